// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/slots"
)

const (
	manualFailoverTimeout = 5 * time.Second        // CLUSTER_MF_TIMEOUT
	electionDelay         = 500 * time.Millisecond // the fixed part; the random part is 0 here
	rankDelay             = time.Second            // for each replica with more data
	replPingPeriod        = 10 * time.Second       // repl-ping-replica-period
	validityFactor        = 10                     // cluster-replica-validity-factor
	writableDelay         = 2 * time.Second        // CLUSTER_WRITABLE_DELAY
	minRejoinDelay        = 500 * time.Millisecond // CLUSTER_MIN_REJOIN_DELAY
	maxRejoinDelay        = 5 * time.Second        // CLUSTER_MAX_REJOIN_DELAY
)

// manualFailover is a CLUSTER FAILOVER in progress.
type manualFailover struct {
	end   time.Time // zero: none
	force bool
}

// election is a replica's candidature.
type election struct {
	at   time.Time // when to ask for votes; zero: none was scheduled
	held bool
}

// votingMasters is how many masters own slots, as far as the node knows, and how many of them it can reach.
func (n *Node) votingMasters() (size, reachable int) {
	for _, p := range n.table {
		if p.replica || p.slots.IsEmpty() {
			continue
		}
		size++
		if !p.pfail && !p.fail {
			reachable++
		}
	}
	return size, reachable
}

func (n *Node) quorum() int {
	size, _ := n.votingMasters()
	return size/2 + 1
}

// learnReport notes whether a master thinks that a node fails (clusterNodeAddFailureReport, clusterNodeDelFailureReport).
func (n *Node) learnReport(p, reporter *peer, told peer) {
	if !told.pfail && !told.fail {
		delete(p.reports, reporter.id)
		return
	}
	if p.reports == nil {
		p.reports = map[string]time.Time{}
	}
	p.reports[reporter.id] = n.world.now
	n.markFailing(p)
}

// markFailing turns suspicion into certainty when a majority of the masters agrees, and tells everybody
// (markNodeAsFailingIfNeeded, clusterSendFail).
func (n *Node) markFailing(p *peer) {
	if !p.pfail || p.fail {
		return
	}
	maps.DeleteFunc(p.reports, func(_ string, at time.Time) bool {
		return n.world.now.Sub(at) > 2*n.world.options.NodeTimeout
	})
	agreeing := len(p.reports)
	if !n.self().replica {
		agreeing++
	}
	if agreeing < n.quorum() {
		return
	}
	p.setFailed(n.world.now)
	for _, other := range n.table[1:] {
		destination := n.world.onBus(n, other.ip, other.busPort)
		if destination == nil || destination.find(n.id) == nil {
			continue
		}
		if failing := destination.find(p.id); failing != nil && failing != destination.self() {
			failing.setFailed(n.world.now)
		}
	}
}

func (p *peer) setFailed(now time.Time) {
	if !p.fail {
		p.pfail, p.fail, p.failedAt = false, true, now
	}
}

// clearFailure takes the mark from a node that answered (clearNodeFailureIfNeeded).
func (n *Node) clearFailure(p *peer) {
	forgiven := p.replica || p.slots.IsEmpty() || n.world.now.Sub(p.failedAt) > 2*n.world.options.NodeTimeout
	if p.fail && forgiven {
		p.fail = false
	}
}

// replicate copies the master's data set when the link to it is or can be made, and notes when it was lost.
func (n *Node) replicate() {
	if !n.self().replica {
		return
	}
	var source, relayed *Node
	if master := n.master(); master != nil && !master.noAddress {
		relayed = n.world.relayed(master.ip)
		source = cmp.Or(n.world.onBus(n, master.ip, master.busPort), relayed)
	}
	if source == nil || source.loading || !n.masterLinkUp && source != relayed && !n.linkable(source) {
		n.loseMaster()
		return
	}
	if source != relayed && !n.findsMaster(n.master(), source) {
		n.loseMaster()
		return
	}
	n.keys, n.offset, n.history, n.former = maps.Clone(source.keys), source.offset, source.history, ""
	n.libraries = slices.Clone(source.libraries)
	if n.options.Valkey {
		n.copyMarks(source)
		n.trackJobs(source)
	}
	n.masterLinkUp, n.masterLostSince = true, time.Time{}
}

func (n *Node) loseMaster() {
	if n.masterLinkUp {
		n.masterLinkUp, n.masterLostSince = false, n.world.now
	}
}

// dataAge is how old the replica's data is: what it was cut off for; a replica that never had its master in this process
// counts from 1970 (repl_down_since is 0).
func (n *Node) dataAge() time.Duration {
	switch {
	case n.masterLinkUp:
		return 0
	case n.masterLostSince.IsZero():
		return n.world.now.Sub(time.Unix(0, 0))
	default:
		return n.world.now.Sub(n.masterLostSince)
	}
}

// failover stands for election when the master failed or a manual failover was asked for
// (clusterHandleSlaveFailover).
func (n *Node) failover() {
	now, timeout := n.world.now, n.world.options.NodeTimeout
	if now.After(n.manual.end) {
		n.manual = manualFailover{}
	}
	master := n.master()
	isManual := !n.manual.end.IsZero()
	if isManual && !n.manual.force && !n.masterLinkUp {
		return // the handshake of offsets with the master does not come about
	}
	if master == nil || master.slots.IsEmpty() || (!master.fail && !isManual) {
		return
	}
	if !isManual && n.settings[redisconf.NoFailover] == "yes" {
		return
	}
	age := n.dataAge()
	if age > timeout {
		age -= timeout
	}
	if !isManual && age > replPingPeriod+validityFactor*timeout {
		return
	}
	electionTimeout := max(2*timeout, 2*time.Second)
	if n.election.at.IsZero() || now.Sub(n.election.at) > 2*electionTimeout {
		n.election = election{at: now.Add(electionDelay + time.Duration(n.rank())*rankDelay)}
	}
	if isManual && !n.election.held {
		n.election.at = now
	}
	if now.Before(n.election.at) || n.election.held {
		return
	}
	n.election.held = true
	n.currentEpoch++
	if n.countVotes(isManual) >= n.quorum() {
		n.self().configEpoch = max(n.self().configEpoch, n.currentEpoch)
		n.replaceMaster()
	}
}

// rank is how many replicas of the same master have more data (clusterGetSlaveRank).
func (n *Node) rank() int {
	rank := 0
	for _, p := range n.table[1:] {
		if !p.replica || p.masterID != n.self().masterID {
			continue
		}
		if other := n.world.onBus(n, p.ip, p.busPort); other != nil && other.id == p.id && other.offset > n.offset {
			rank++
		}
	}
	return rank
}

// countVotes asks all nodes for their vote (clusterRequestFailoverAuth). Votes of masters that own slots count.
func (n *Node) countVotes(force bool) int {
	votes := 0
	for _, p := range n.table[1:] {
		voter := n.world.onBus(n, p.ip, p.busPort)
		if voter == nil || voter.id != p.id {
			continue
		}
		if candidate := voter.find(n.id); candidate != nil && voter.vote(candidate, n.currentEpoch, n.master(), force) {
			votes++
		}
	}
	return votes
}

// vote decides whether this node votes for the candidate, which knows its master as claimed
// (clusterSendFailoverAuthIfNeeded).
func (n *Node) vote(candidate *peer, epoch uint64, claimed *peer, force bool) bool {
	now, timeout := n.world.now, n.world.options.NodeTimeout
	current := n.currentEpoch
	n.currentEpoch = max(current, epoch)
	self := n.self()
	if self.replica || self.slots.IsEmpty() || epoch < current || n.lastVoteEpoch == n.currentEpoch {
		return false
	}
	master := n.find(candidate.masterID)
	if !candidate.replica || master == nil || (!master.fail && !force) {
		return false
	}
	if last, voted := n.voted[master.id]; voted && now.Sub(last) < 2*timeout {
		return false
	}
	for _, p := range n.table {
		if p.configEpoch > claimed.configEpoch && !p.slots.Intersect(claimed.slots).Subtract(n.notClaimed).IsEmpty() {
			return false
		}
	}
	n.lastVoteEpoch, n.voted[master.id] = n.currentEpoch, now
	return true
}

// replaceMaster takes over the master's slots and tells everybody (clusterFailoverReplaceYourMaster).
func (n *Node) replaceMaster() {
	old, self := n.master(), n.self()
	n.becomeMaster()
	self.slots, old.slots = old.slots, self.slots
	n.manual, n.election = manualFailover{}, election{}
	n.broadcast()
	if n.options.Valkey {
		n.verifyData()
		n.endJobs(importJob, "A failover occurred during slot import")
	}
}

// takeOver claims the master's slots without asking (CLUSTER FAILOVER TAKEOVER).
func (n *Node) takeOver() {
	n.bumpEpoch()
	n.replaceMaster()
}

// Supersede has a replica in sync take a master's slots over, in such a way that the former master is left as one without slots,
// and has its keys again when it is restarted: with Redis 7.0 that comes of a switchover while slots move. False if there is no such
// replica.
func (w *World) Supersede(n *Node) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.IndexFunc(w.nodes, func(r *Node) bool { return r.self().replica && r.self().masterID == n.id && r.masterLinkUp })
	if at < 0 {
		return false
	}
	keys := maps.Clone(n.keys)
	w.nodes[at].takeOver()
	w.settle()
	self := n.self()
	self.replica, self.masterID, self.slots = false, "", slots.Set{}
	n.keys = keys
	return true
}

// SwapNewcomers makes each replica of a master without slots that master's master, as Valkey does when the replica has the higher
// epoch and a message that it sent before it followed arrives late: it counts as a failover in the shard
// (clusterUpdateSlotsConfigWith).
func (w *World) SwapNewcomers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, master := range w.nodes {
		at := slices.IndexFunc(w.nodes, func(r *Node) bool { return r.self().replica && r.self().masterID == master.id && r.masterLinkUp })
		if at < 0 || master.self().replica || !master.self().slots.IsEmpty() || len(master.keys)+len(master.importing) > 0 {
			continue
		}
		replica := w.nodes[at]
		replica.becomeMaster()
		replica.bumpEpoch()
		master.follow(replica.id)
	}
	w.settle()
}

// updateState decides whether the cluster is ok for this node (clusterUpdateState).
func (n *Node) updateState() {
	if !n.alive() {
		return
	}
	now := n.world.now
	isMaster := !n.self().replica
	if isMaster && n.state == "fail" && now.Sub(n.started) < writableDelay {
		return
	}
	state := "ok"
	for _, p := range n.table {
		if p.fail && !p.slots.IsEmpty() {
			state = "fail"
		}
	}
	if !n.owned().Complement().IsEmpty() {
		state = "fail" // cluster-require-full-coverage
	}
	if _, reachable := n.votingMasters(); reachable < n.quorum() {
		state, n.minoritySince = "fail", now
	}
	delay := min(max(n.world.options.NodeTimeout, minRejoinDelay), maxRejoinDelay)
	if state == "ok" && n.state == "fail" && isMaster && now.Sub(n.minoritySince) < delay {
		return
	}
	n.state = state
}

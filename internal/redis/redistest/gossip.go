// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// banTime is how long a forgotten node cannot come back by gossip (CLUSTER_BLACKLIST_TTL).
const banTime = 60 * time.Second

// message is a PING, PONG or MEET (clusterMsg): who sends it, what it claims and what it knows of others.
type message struct {
	sender       *Node
	meet, ping   bool
	from         peer // the sender's own entry
	currentEpoch uint64
	claimed      slots.Set // a master's slots; those of its master when a replica sends
	configEpoch  uint64    // likewise
	gossip       []peer
}

// round is one heartbeat of the whole world (clusterCron).
func (w *World) round() {
	for _, n := range w.nodes {
		if !n.alive() {
			continue
		}
		for _, p := range slices.Clone(n.table[1:]) {
			if slices.Contains(n.table, p) { // it may have gone by an earlier answer
				n.pingPeer(p)
			}
		}
	}
	for _, n := range w.nodes {
		if n.alive() {
			n.replicate()
			n.failover()
			n.proceedJobs()
			n.updateState()
		}
	}
}

// pingPeer sends what clusterCron sends to one node, and notes when no answer comes.
func (n *Node) pingPeer(p *peer) {
	now, timeout := n.world.now, n.world.options.NodeTimeout
	if p.handshake && now.Sub(p.created) > max(timeout, time.Second) {
		n.remove(p)
		return
	}
	if p.noAddress {
		return
	}
	if p.pingSent.IsZero() {
		p.pingSent = now
	}
	target := n.world.onBus(n, p.ip, p.busPort)
	if target == nil {
		p.linkUp = false
		if now.Sub(p.pingSent) > timeout && !p.pfail && !p.fail && !p.handshake {
			p.pfail = true
		}
		n.markFailing(p)
		return
	}
	p.linkUp = true
	isMeet := p.meet || n.insists(p, target)
	p.meet = false
	target.receive(n.compose(message{meet: isMeet, ping: !isMeet}), nil)
	n.receive(target.compose(message{}), p)
}

// insists reports whether the node introduces itself once more to one that has had no link to it for a node timeout, because it
// has forgotten it: Valkey from 8.1 on sends a MEET in each node timeout then (clusterNodeCronHandleReconnect), and no ban holds
// it off.
func (n *Node) insists(p *peer, target *Node) bool {
	can := n.options.Valkey && n.majorVersion() >= 8 && !strings.HasPrefix(n.options.Version, "8.0.")
	if !can || p.handshake || target.id != p.id || target.find(n.id) != nil {
		p.unlinked = time.Time{}
		return false
	}
	now, timeout := n.world.now, max(n.world.options.NodeTimeout, time.Second)
	if p.unlinked.IsZero() {
		p.unlinked = now
	}
	if now.Sub(p.unlinked) <= timeout {
		return false
	}
	p.unlinked = now
	return true
}

// broadcast sends an unasked PONG to all known nodes (clusterBroadcastPong).
func (n *Node) broadcast() {
	for _, p := range slices.Clone(n.table[1:]) {
		if destination := n.world.onBus(n, p.ip, p.busPort); destination != nil {
			destination.receive(n.compose(message{}), nil)
		}
	}
}

// compose fills in the header and the gossip section (clusterBuildMessageHdr, clusterSendPing).
func (n *Node) compose(m message) message {
	self := n.self()
	owner := self
	if master := n.master(); master != nil {
		owner = master
	}
	m.sender, m.from, m.currentEpoch = n, *self, n.currentEpoch
	m.claimed, m.configEpoch = owner.slots, owner.configEpoch
	m.gossip = make([]peer, 0, len(n.table)-1)
	for _, p := range n.table[1:] {
		if !p.handshake && !p.noAddress {
			m.gossip = append(m.gossip, *p)
		}
	}
	return m
}

// receive processes a message (clusterProcessPacket). about is the entry whose link carries the answer to our PING; nil
// for a message that came in by itself.
func (n *Node) receive(m message, about *peer) {
	sender := n.find(m.from.id)
	if sender != nil {
		n.currentEpoch = max(n.currentEpoch, m.currentEpoch)
		sender.configEpoch = max(sender.configEpoch, m.from.configEpoch)
	}
	if sender == nil && m.meet {
		n.addHandshake(m.from.ip, m.from.port, m.from.busPort, false)
	}
	if about != nil {
		if sender = n.answered(about, sender, m); sender == nil {
			return
		}
	}
	if sender == nil || sender == n.self() {
		return // strangers are answered and not believed
	}
	if m.ping || m.meet {
		sender.moveTo(m.from)
	}
	sender.hostname = m.from.hostname
	n.learnRole(sender, m)
	sender.shard = m.from.shard
	if n.self().replica && n.self().masterID == sender.id {
		n.self().shard = sender.shard // updateShardId
	}
	n.learnSlots(sender, m)
	n.resolveCollision(sender)
	n.learnGossip(sender, m.gossip)
}

// answered processes what only an answer on our own link can tell, and returns the entry of the sender; nil when the
// message says no more.
func (n *Node) answered(about, sender *peer, m message) *peer {
	switch {
	case about.handshake && sender != nil:
		// "Handshake: we already know node": it moved.
		sender.moveTo(m.from)
		n.remove(about)
		return nil
	case about.handshake:
		about.id, about.handshake = m.from.id, false
		about.replica = m.from.replica
		sender = about
	case about.id != m.from.id:
		// "PONG contains mismatching sender ID": somebody else has the address now.
		about.noAddress, about.linkUp = true, false
		about.ip, about.port, about.tlsPort, about.busPort = "", 0, 0, 0
		return nil
	}
	about.pong, about.pingSent = n.world.now, time.Time{}
	about.pfail = false
	n.clearFailure(about)
	return sender
}

// moveTo takes over the address the sender announces (nodeUpdateAddressIfNeeded).
func (p *peer) moveTo(from peer) {
	if p.ip == from.ip && p.port == from.port && p.tlsPort == from.tlsPort && p.busPort == from.busPort {
		return
	}
	p.ip, p.port, p.tlsPort, p.busPort = from.ip, from.port, from.tlsPort, from.busPort
	p.noAddress = false
	p.linkUp = false
	p.pingSent = time.Time{}
}

// addHandshake starts a handshake with an address under a made-up ID (clusterStartHandshake).
func (n *Node) addHandshake(ip string, port, busPort int, meet bool) {
	for _, p := range n.table {
		if p.handshake && p.ip == ip && p.busPort == busPort {
			return
		}
	}
	id := n.world.hexID()
	n.table = append(n.table, &peer{
		id: id, ip: ip, port: port, tlsPort: port, busPort: busPort, shard: unknownShard(id),
		handshake: true, meet: meet, created: n.world.now,
	})
}

// unknownShard is the shard of a node that has not said it yet: one of its own (createClusterNode makes one up).
func unknownShard(id string) string { return "unknown, of " + id }

// resolveCollision gives the master with the smaller node ID a new epoch (clusterHandleConfigEpochCollision).
func (n *Node) resolveCollision(sender *peer) {
	self := n.self()
	if self.replica || sender.replica || sender.configEpoch != self.configEpoch || sender.id <= self.id {
		return
	}
	n.currentEpoch++
	self.configEpoch = n.currentEpoch
}

// learnGossip processes what a known node tells of others (clusterProcessGossipSection).
func (n *Node) learnGossip(sender *peer, gossip []peer) {
	now := n.world.now
	for _, told := range gossip {
		p := n.find(told.id)
		switch {
		case p == n.self():
		case p == nil && now.After(n.banned[told.id]):
			n.table = append(n.table, &peer{
				id: told.id, ip: told.ip, port: told.port, tlsPort: told.tlsPort, busPort: told.busPort, shard: unknownShard(told.id),
				replica: told.replica, pfail: told.pfail, created: now,
			})
		case p == nil:
		default:
			if !sender.replica {
				n.learnReport(p, sender, told)
			}
			if (p.pfail || p.fail) && !told.pfail && !told.fail {
				p.moveTo(told)
			}
		}
	}
}

// forget removes a node and bans it (CLUSTER FORGET).
func (n *Node) forget(p *peer) {
	n.banned[p.id] = n.world.now.Add(banTime)
	n.remove(p)
}

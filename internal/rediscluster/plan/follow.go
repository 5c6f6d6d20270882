// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// CutOver pauses writes at the server outside, at all masters of its cluster, waits until their followers have all of them, and makes
// those masters.
type CutOver struct {
	base
	Followers []Follower
	// Relays are where writes are paused besides: of shards that have taken over before.
	Relays []string
	// Pause is for how long writes are paused; Resume ends that when all have taken over.
	Pause  time.Duration
	Resume bool
	// Alone has them take over with what they hold: the server is gone, and a person gave it up.
	Alone bool
}

// Follower is an instance that follows a server outside: by the relay that answers there, as the replica of a node of that ID, which has
// the slots.
type Follower struct {
	On              Target
	Relay, MasterID string
	Slots           slots.Set
}

// RecordCutOver writes down that the cluster has taken over: it follows nobody outside any more.
type RecordCutOver struct {
	base
	// Missed is what came into the server's stream after the last that was taken over, in bytes; nil: not known.
	Missed *int64
	// Clone reports whether that is no loss: the server goes on.
	Clone bool
}

// Name implements Step.
func (CutOver) Name() string       { return "CutOver" }
func (RecordCutOver) Name() string { return "RecordCutOver" }

// planFollow keeps everything else back while instances follow the server outside. They are told by the node IDs of their masters, which
// only the RedisCluster of this UID has, so that it is seen also when the spec or the status was changed. Only the cut-over ends that.
func planFollow(in input) Step {
	followers, step := in.followers()
	if step != nil {
		return step
	}
	i, asked := in.snap.Import, in.desired.Import
	if i == nil || asked == nil || i.CutOver || in.snap.Formed {
		if len(followers) > 0 {
			return stallImport("%s follows a server outside, and spec.bootstrap, which says which, is gone: put it back, or delete the RedisCluster",
				followers[0].Name)
		}
		return nil
	}
	var over []*snapshot.Instance
	missing := ""
	for shard := range i.Shards {
		pod := in.snap.Find(shard, 0)
		switch {
		case pod == nil || pod.Redis == nil:
			missing = fmt.Sprintf("the first instance of shard %d does not answer", shard)
		case slices.Contains(followers, pod):
		case pod.Redis.Loading:
			return waitFor(fails(SourceFollowed, "%s loads its data", pod.Name))
		case !in.tookOver(pod):
			return stallImport("%s neither follows the server at %s nor has taken over from it: its volume has lost what it began with; delete the RedisCluster and its claims, and import anew",
				pod.Name, asked.Address)
		default:
			over = append(over, pod)
		}
	}
	switch {
	case len(followers)+len(over) == 0:
		return nil // nothing runs yet
	case missing != "":
		return waitFor(fails(SourceFollowed, "%s", missing))
	case len(followers) > 0:
		return in.follow(followers, over)
	}
	return in.recordCutOver()
}

// followers are the instances that follow a server outside. One that is not to is told of.
func (in input) followers() ([]*snapshot.Instance, Step) {
	var followers []*snapshot.Instance
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Master || !v1alpha1.IsImportMasterID(pod.Redis.MasterID) {
			continue
		}
		if over := in.snap.Formed || in.snap.Import != nil && in.snap.Import.CutOver; over && in.snap.Owned().Len() == slots.Count {
			continue // its volume is of before the cut-over, and its shard has a master, whose replica it becomes
		} else if over || pod.Redis.MasterID != v1alpha1.ImportMasterID(in.desired.UID, pod.Shard) {
			return nil, stallImport("%s follows a server outside, as before a cut-over, or as an instance of a former RedisCluster of this name: its volume is of then; delete its claim, or the RedisCluster and all claims, and import anew",
				pod.Name)
		}
		followers = append(followers, pod)
	}
	return followers, nil
}

// tookOver reports whether an instance has the slots that its shard began with, or has gone on since: then it knows others than the server,
// and the status is older.
func (in input) tookOver(pod *snapshot.Instance) bool {
	for id := range pod.Redis.Peers {
		if !v1alpha1.IsImportMasterID(id) {
			return true
		}
	}
	want, known := in.snap.Import.Begins(pod.Shard)
	return pod.Redis.Master && !pod.Redis.Slots.IsEmpty() && (!known || pod.Redis.Slots.Equal(want))
}

func (in input) recordCutOver() Step {
	asked := in.desired.Import
	if in.gaveUpSource() {
		return RecordCutOver{base: base{fmt.Sprintf("the cluster has taken over from the one at %s, which the annotation %s gives up",
			asked.Address, v1alpha1.AnnotationGiveUpSource)}}
	}
	if asked.Clone {
		return RecordCutOver{base: base{"the cluster has the data of the one at " + asked.Address + ", as they were at one moment"}, Clone: true}
	}
	step := RecordCutOver{base: base{"the cluster has taken over from the server at " + asked.Address}, Missed: Missed(in.snap)}
	if step.Missed != nil && *step.Missed > 0 {
		step.Reason += fmt.Sprintf(": %d bytes came into its stream since, and are not in the cluster", *step.Missed)
	}
	return step
}

// Missed is what came into the server's stream after the last that the cluster took over, in bytes; nil: that is not known of every shard.
func Missed(s *snapshot.Snapshot) *int64 {
	if s.Import == nil || len(s.Import.Shards) == 0 {
		return nil
	}
	var sum int64
	for shard, of := range s.Import.Shards {
		pod := s.Find(shard, 0)
		if of.Source == nil || pod == nil || pod.Redis == nil || of.Source.History != pod.Redis.FormerHistory {
			return nil
		}
		sum += max(0, min(of.Source.Offset-pod.Redis.FormerOffset, mostMissed))
	}
	return &sum
}

// mostMissed bounds what one server says, so that sums do not overflow.
const mostMissed = 1 << 48

// follow waits for the cut-over, or begins it, or goes on with it: of one that has begun, those that have taken over do not follow again,
// and may have served clients since.
func (in input) follow(followers, over []*snapshot.Instance) Step {
	asked := in.desired.Import
	gaveUp := in.gaveUpSource()
	concerns := followers
	if !gaveUp { // else it does not matter any more what became of the servers of those that have taken over
		concerns = slices.Concat(followers, over)
	}
	for _, pod := range concerns {
		if step := in.cannotFollow(pod); step != nil {
			return step
		}
	}
	if asked.Clone && len(over) > 0 && !gaveUp {
		return stallImport("%s has taken over and %s has not: the clone would be of two moments; delete the RedisCluster and its claims, and clone anew, or, if two moments will do, set the annotation %s to %s",
			over[0].Name, followers[0].Name, v1alpha1.AnnotationGiveUpSource, in.wordForSource())
	}
	ready, alone, waits := in.ready(followers)
	switch {
	case len(alone) > 0:
		return CutOver{base: base{fmt.Sprintf("%d instances take over with what they hold: the annotation %s gives the server at %s up",
			len(alone), v1alpha1.AnnotationGiveUpSource, asked.Address)}, Followers: alone, Alone: true}
	case !waits.Holds:
		return Wait{base: base{waits.Reason + in.ifGone(followers, len(over) > 0)}, BlockedBy: waits.Predicate, After: askSource}
	}
	step := CutOver{Followers: ready, Pause: asked.Pause, Resume: asked.Clone}
	for _, pod := range over {
		if ip := in.snap.Import.Shards[pod.Shard].RelayIP; ip != "" {
			step.Relays = append(step.Relays, ip)
		}
	}
	if !asked.CutOver && len(over) == 0 {
		v := fails(CutOverAsked,
			"the cluster follows the server at %s, and has what was written there until now: set spec.bootstrap.import.cutOver to let it take over",
			asked.Address)
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate, After: askSource}
	}
	step.Reason = fmt.Sprintf("%d instances follow the server at %s, and take over while writes are paused there", len(followers),
		asked.Address)
	if len(over) > 0 {
		step.Reason += fmt.Sprintf("; %d have taken over before", len(over))
	}
	return step
}

// cannotFollow says why what an instance follows, or followed, cannot be taken over any more, or not as the server is.
func (in input) cannotFollow(pod *snapshot.Instance) Step {
	if pod.Shard >= len(in.snap.Import.Shards) {
		return nil
	}
	source := in.snap.Import.Shards[pod.Shard].Source
	begins, known := in.snap.Import.Begins(pod.Shard)
	switch {
	case !pod.Redis.Master && pod.Redis.LoadErrors > 0:
		return stallImport("%s could not carry out %d commands of the server (INFO errorstats says which): delete the RedisCluster and its claims, and import with the engine and modules that the server has",
			pod.Name, pod.Redis.LoadErrors)
	case source == nil:
		return nil
	case source.Others:
		return stallImport("the server at %s has keys in other databases than 0, which a cluster does not have: move or delete them",
			in.desired.Import.Address)
	case known && source.Open == 0 && !source.Slots.Equal(begins):
		return stallImport("the master of slot %s at the server has slots %.200s, and had %.200s when the import began: move slots back as they were, or delete the RedisCluster and its claims, and import anew when slots rest",
			begins.Take(1), source.Slots, begins)
	}
	return nil
}

// sourceFollowed holds when an instance has all that the server outside has, but for the last moment.
func sourceFollowed(in input, pod *snapshot.Instance) Verdict {
	r := pod.Redis
	if pod.Shard >= len(in.snap.Import.Shards) {
		return fails(SourceFollowed, "%s is of a shard that the server's cluster does not have", pod.Name)
	}
	of := in.snap.Import.Shards[pod.Shard]
	switch {
	case r.Loading:
		return fails(SourceFollowed, "%s loads its data", pod.Name)
	case of.RelayIP == "":
		return fails(SourceFollowed, "the relay of %s to the server does not run%s", pod.Name, because(of.Error))
	case of.Source == nil:
		return fails(SourceFollowed, "the server that %s follows does not answer%s", pod.Name, because(of.Error))
	case of.Source.Open > 0:
		return fails(SourceFollowed, "%d slots move at the server that %s follows: it is waited until they rest", of.Source.Open, pod.Name)
	case !of.Source.Master:
		return fails(SourceFollowed,
			"the server that %s follows is a replica now, at which writes cannot be paused: make it a master again, or import from its master",
			pod.Name)
	case !r.MasterLinkUp:
		return fails(SourceFollowed, "%s copies the server's data, or has lost it%s", pod.Name, because(of.Source.Held))
	case r.Unsaved:
		return fails(SourceFollowed, "%s writes what it copied to its disk: until then a crash would lose it", pod.Name)
	case lag(of.Source, pod) > mostLag:
		return fails(SourceFollowed, "%s lacks more than %d bytes of what was written to the server", pod.Name, mostLag)
	}
	return holds(SourceFollowed)
}

// lag is how much an instance lacks of what a server says that it had.
func lag(source *snapshot.Source, pod *snapshot.Instance) int64 {
	return max(0, min(source.Offset-pod.Redis.Offset, mostMissed))
}

// Lag is how many bytes the first instances lack of what was written to the servers that they follow, together; false: that is not known of
// each of them.
func Lag(s *snapshot.Snapshot) (int64, bool) {
	if s.Import == nil || len(s.Import.Shards) == 0 {
		return 0, false
	}
	var sum int64
	for shard, of := range s.Import.Shards {
		pod := s.Find(shard, 0)
		if of.Source == nil || pod == nil || pod.Redis == nil || !pod.Redis.MasterLinkUp {
			return 0, false
		}
		sum += lag(of.Source, pod)
	}
	return sum, true
}

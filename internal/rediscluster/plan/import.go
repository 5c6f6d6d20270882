// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// PrepareImport makes the relay to the server outside, the claim of the first instance, and the Job that writes into it that the instance
// follows the relay, as far as they are not there.
type PrepareImport struct {
	base
	// RelayOnly leaves out the claim and its Job: the instance follows already.
	RelayOnly bool
}

// KeepFollower makes the claim stay, whose instance is prepared.
type KeepFollower struct {
	base
	Claims []string
}

// CutOver pauses writes at the server outside, waits until its follower has all of them, and makes that a master.
type CutOver struct {
	base
	Follower Target
	// Relay is where the relay answers, MasterID the node ID that the follower knows it by.
	Relay, MasterID string
	// Pause is for how long writes are paused.
	Pause time.Duration
}

// RecordCutOver writes down that the cluster has taken over: it follows nobody outside any more.
type RecordCutOver struct {
	base
	// Missed is what came into the server's stream after the last that was taken over, in bytes; nil: not known.
	Missed *int64
}

// EndImport deletes the relay, and the Job that prepared the first instance.
type EndImport struct{ base }

// Name implements Step.
func (PrepareImport) Name() string { return "PrepareImport" }
func (KeepFollower) Name() string  { return "KeepFollower" }
func (CutOver) Name() string       { return "CutOver" }
func (RecordCutOver) Name() string { return "RecordCutOver" }
func (EndImport) Name() string     { return "EndImport" }

// DesiredImport is the import that is asked for.
type DesiredImport struct {
	// Address is that of the server, MasterID the node ID that instances know it by.
	Address, MasterID string
	CutOver           bool
	Pause             time.Duration
}

const (
	// mostLag is how much of the server's writes its follower may lack when they are paused: it comes in a moment.
	mostLag = 1 << 20
	// askSource is how often the server is asked how far it is, of which nothing tells.
	askSource = 2 * time.Second
)

func stallImport(format string, args ...any) Stall {
	return Stall{base: base{fmt.Sprintf(format, args...)}, Cause: "CannotImport", BlockedBy: SourceFollowed, After: askAgain}
}

// begins reports whether a cluster that has not formed has its data from a backup or from a server outside: what nobody owns is not handed
// out empty.
func (in input) begins() bool {
	return !in.snap.Formed && (in.snap.Restored != nil || in.desired.Import != nil)
}

// planImport prepares the first instance of a cluster that is to follow a server outside, and ends what was made for that once it has taken
// over.
func planImport(in input) Step {
	i, asked := in.snap.Import, in.desired.Import
	switch {
	case i == nil || in.snap.Formed:
		return nil
	case i.CutOver && (stays(i.Relay) || stays(i.Prepared)):
		return EndImport{base{"the cluster has taken over from the server outside: its relay is of no use any more"}}
	case !i.CutOver && asked != nil && len(in.snap.Shards) > 0 && i.Relay == nil && i.Withheld == "":
		return PrepareImport{base{"the relay to the server at " + asked.Address + " is gone"}, true}
	case i.CutOver || len(in.snap.Shards) > 0 || in.pending.Withheld != nil: // the latter is told by planWithheld
		return nil
	case asked == nil:
		return stallImport("spec.bootstrap was removed while the cluster was being imported: put it back, or delete the RedisCluster")
	}
	if step := in.claimsInTheWay(); step != nil {
		return step
	}
	return in.prepare(i, asked)
}

// stays reports whether a Job exists that is not being deleted.
func stays(job *snapshot.RestoreJob) bool { return job != nil && !job.Terminating }

func (in input) prepare(i *snapshot.Import, asked *DesiredImport) Step {
	job, claim := i.Prepared, in.claimToRestore(0)
	complete := i.Relay != nil && job != nil && claim != nil
	switch {
	case i.Relay != nil && !stays(i.Relay), job != nil && !stays(job),
		claim != nil && claim.Job != "" && (job == nil || claim.Job != job.UID):
		return waitFor(fails(SourceFollowed, "what a former attempt to import left is being deleted"))
	case job != nil && job.Failed:
		return stallImport("the server at %s is not imported: %s; delete Job %s to try again", asked.Address, job.Message, job.Name)
	case job != nil && job.Done && claim == nil:
		return waitFor(fails(SourceFollowed, "the claim that was prepared is gone; delete Job %s to try again", job.Name))
	case !complete && i.Withheld != "":
		return stallImport("%s", i.Withheld)
	case !complete:
		return PrepareImport{base{"the cluster begins with the data of the server at " + asked.Address + ": its first instance is to follow it"},
			false}
	case !job.Done:
		v := fails(SourceFollowed, "the first instance is being prepared to follow the server at %s%s", asked.Address, because(job.Message))
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate, After: askAgain}
	}
	if i.Following && claim.Job == "" {
		return nil // the children are next
	}
	return KeepFollower{base: base{"the first instance is prepared to follow the server at " + asked.Address}, Claims: []string{claim.Name}}
}

// because adds why to a sentence; empty without.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// planFollow keeps everything else back while an instance follows the server outside. It is told by the node ID of its master, which only
// the RedisCluster of this UID has, so that it is seen also when the spec or the status was changed. Only the cut-over ends that.
func planFollow(in input) Step {
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Master || !v1alpha1.IsImportMasterID(pod.Redis.MasterID) {
			continue
		}
		if over := in.snap.Formed || in.snap.Import != nil && in.snap.Import.CutOver; over && in.snap.Owned().Len() == slots.Count {
			continue // its volume is of before the cut-over, and its shard has a master, whose replica it becomes
		} else if over || pod.Redis.MasterID != in.desired.ImportMasterID {
			return stallImport("%s follows a server outside, as before a cut-over, or as an instance of a former RedisCluster of this name: its volume is of then; delete its claim, or the RedisCluster and all claims, and import anew",
				pod.Name)
		}
		return in.follow(pod)
	}
	i, asked, pod := in.snap.Import, in.desired.Import, in.snap.Find(0, 0)
	if i == nil || asked == nil || i.CutOver || in.snap.Formed || pod == nil || pod.Redis == nil {
		return nil
	}
	r := pod.Redis
	switch {
	case r.Loading:
		return waitFor(fails(SourceFollowed, "%s loads its data", pod.Name))
	case !r.Slots.Equal(slots.All()) && !in.knowsOthers(r):
		return stallImport("%s neither follows the server at %s nor has taken over from it: its volume has lost what it began with; delete the RedisCluster and its claims, and import anew",
			pod.Name, asked.Address)
	}
	// One that knows others has gone on since, and the status is older.
	step := RecordCutOver{base: base{pod.Name + " has taken over from the server at " + asked.Address}}
	if i.Source != nil && i.Source.History == r.FormerHistory {
		missed := max(0, i.Source.Offset-r.FormerOffset)
		step.Missed = &missed
		if missed > 0 {
			step.Reason += fmt.Sprintf(": %d bytes came into its stream since, and are not in the cluster", missed)
		}
	}
	return step
}

// knowsOthers reports whether an instance knows another node than the server outside.
func (in input) knowsOthers(r *snapshot.Redis) bool {
	for id := range r.Peers {
		if id != in.desired.ImportMasterID {
			return true
		}
	}
	return false
}

// follow waits for the cut-over, or begins it.
func (in input) follow(pod *snapshot.Instance) Step {
	asked, i := in.desired.Import, in.snap.Import
	if asked == nil || i == nil {
		return stallImport("%s follows a server outside, and spec.bootstrap.import, which says which, is gone: put it back, or delete the RedisCluster", pod.Name)
	}
	v := sourceFollowed(in, pod)
	switch {
	case pod.Redis.LoadErrors > 0:
		return stallImport("%s could not carry out %d commands of the server (INFO errorstats says which): delete the RedisCluster and its claims, and import with the engine and modules that the server has",
			pod.Name, pod.Redis.LoadErrors)
	case i.Source != nil && i.Source.Others:
		return stallImport("the server at %s has keys in other databases than 0, which a cluster does not have: move or delete them",
			asked.Address)
	case !v.Holds:
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate, After: askSource}
	case !asked.CutOver:
		v := fails(CutOverAsked,
			"%s follows the server at %s, and has what was written there until now: set spec.bootstrap.import.cutOver to let the cluster take over",
			pod.Name, asked.Address)
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate, After: askSource}
	}
	return CutOver{base: base{fmt.Sprintf("%s follows the server at %s, and takes over while writes are paused there", pod.Name,
		asked.Address)},
		Follower: target(pod), Relay: i.RelayIP, MasterID: asked.MasterID, Pause: asked.Pause}
}

// sourceFollowed holds when an instance has all that the server outside has, but for the last moment.
func sourceFollowed(in input, pod *snapshot.Instance) Verdict {
	i, r := in.snap.Import, pod.Redis
	switch {
	case r.Loading:
		return fails(SourceFollowed, "%s loads its data", pod.Name)
	case i.RelayIP == "":
		return fails(SourceFollowed, "the relay to the server does not run%s", because(i.Error))
	case i.Source == nil:
		return fails(SourceFollowed, "the server does not answer%s", because(i.Error))
	case !i.Source.Master:
		return fails(SourceFollowed,
			"the server is a replica now, at which writes cannot be paused: make it a master again, or import from its master")
	case !r.MasterLinkUp:
		return fails(SourceFollowed, "%s copies the server's data, or has lost it", pod.Name)
	case r.Unsaved:
		return fails(SourceFollowed, "%s writes what it copied to its disk: until then a crash would lose it", pod.Name)
	case lag(i.Source, pod) > mostLag:
		return fails(SourceFollowed, "%s lacks more than %d bytes of what was written to the server", pod.Name, mostLag)
	}
	return holds(SourceFollowed)
}

// lag is how much an instance lacks of what a server says that it had.
func lag(source *snapshot.Source, pod *snapshot.Instance) int64 {
	return max(0, source.Offset-pod.Redis.Offset)
}

// Lag is how many bytes the first instance lacks of what was written to the server that it follows; false: that is not known.
func Lag(s *snapshot.Snapshot) (int64, bool) {
	pod := s.Find(0, 0)
	if s.Import == nil || s.Import.Source == nil || pod == nil || pod.Redis == nil || !pod.Redis.MasterLinkUp {
		return 0, false
	}
	return lag(s.Import.Source, pod), true
}

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

// PrepareImport makes what shards need to follow a server outside, as far as it is not there.
type PrepareImport struct {
	base
	From snapshot.ImportFrom
	// Instances are the shards whose first instances get their claims, and the Jobs that write into them whom they follow. Shards is how
	// many masters the server's cluster must have; 0: any number.
	Instances []int
	Shards    int
	// Relays are the relays to make.
	Relays []Relay
}

// Relay is the relay that a shard follows a server outside through: the master of these slots.
type Relay struct {
	Shard int
	Slots slots.Set
}

// KeepFollower makes the claims stay whose instances are prepared. The status holds which slots each shard begins with from then on.
type KeepFollower struct {
	base
	Claims []string
	Slots  []slots.Set
}

// EndImport deletes the relays with their Services, and the Jobs that prepared instances.
type EndImport struct {
	base
	Shards int
	// Missed is as in RecordCutOver, at the end.
	Missed int64
}

// Name implements Step.
func (PrepareImport) Name() string { return "PrepareImport" }
func (KeepFollower) Name() string  { return "KeepFollower" }
func (EndImport) Name() string     { return "EndImport" }

// DesiredImport is the import that is asked for, or the clone.
type DesiredImport struct {
	// Source is the field of spec.bootstrap that says which server, with its value. Address is that of the server.
	Source  string
	Address string
	CutOver bool
	Pause   time.Duration
	// Clone reports whether the server goes on: it is a RedisCluster that is cloned.
	Clone bool
}

// clonePause is for how long writes of a RedisCluster that is cloned are delayed at most, each time that this is tried.
const clonePause = 4 * time.Second

// importFor is the import that a cluster asks for; nil: none.
func importFor(cluster *v1alpha1.RedisCluster) *DesiredImport {
	switch asked := cluster.Import(); {
	case asked != nil:
		return &DesiredImport{Source: cluster.Source(), Address: asked.Address, CutOver: asked.CutOver, Pause: asked.Pause()}
	case cluster.CloneOf() != "":
		return &DesiredImport{Source: cluster.Source(), Address: cluster.SourceAddress(), CutOver: true, Pause: clonePause, Clone: true}
	}
	return nil
}

const (
	// mostLag is how much of the server's writes its follower may lack when they are paused: it comes in a moment.
	mostLag = 1 << 20
	// askSource is how often the server is asked how far it is, of which nothing tells.
	askSource = 2 * time.Second
	// endsWithin is how long after the pause writes that waited for its end may need to be carried out.
	endsWithin = 2 * time.Second
)

func stallImport(format string, args ...any) Stall {
	return Stall{base: base{fmt.Sprintf(format, args...)}, Cause: "CannotImport", BlockedBy: SourceFollowed, After: askAgain}
}

// begins reports whether a cluster that has not formed has its data from a backup or from a server outside: what nobody owns is not handed
// out empty.
func (in input) begins() bool {
	return !in.snap.Formed && (in.snap.Restored != nil || in.desired.Import != nil)
}

// beginsWith is how many shards the server's cluster had, as far as that is known: as was written down, as the Jobs say, and no fewer than
// there are, whatever became of the status: until the cluster has formed there are no others.
func beginsWith(s *snapshot.Snapshot) int {
	shards := max(1, len(existingTopology(s)))
	if s.Import != nil {
		shards = max(shards, len(s.Import.Slots), len(s.Import.Shards))
	}
	return shards
}

// beginning is the topology of a cluster that takes the data of a server outside until it has formed: the shards of that, with the
// instances that are asked for as far as there are such shards. Those beyond are drained later, by an ordinary scaling.
func beginning(asked v1alpha1.Topology, shards int) v1alpha1.Topology {
	t := make(v1alpha1.Topology, shards)
	copy(t, asked)
	for i := range t {
		t[i] = max(t[i], 1)
	}
	return t
}

// planImport prepares the first instances of a cluster that is to follow a server outside, and ends what was made for that once it has
// taken over, and the pause of writes is over.
func planImport(in input) Step {
	i, asked := in.snap.Import, in.desired.Import
	switch {
	case i == nil, in.snap.Formed && !i.CutOver:
		return nil
	case i.CutOver:
		return in.endImport()
	case i.Other != "" && asked != nil:
		return stallImport("the cluster began with %s, and the spec says spec.bootstrap.%s now: remove spec.bootstrap, then set it to what it was, or delete the RedisCluster and its claims, and begin anew",
			i.Other, asked.Source)
	case len(in.snap.Shards) > 0:
		if step := in.elsewhere(i); step != nil {
			return step
		}
		return in.prepareRelays()
	case in.pending.Withheld != nil: // told by planWithheld
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

// endImport ends it when the writes that the pause held up have been counted; nil: not yet, or nothing is left.
func (in input) endImport() Step {
	i, asked := in.snap.Import, in.desired.Import
	if asked != nil && !asked.Clone && in.now.Before(i.CutOverAt.Add(asked.Pause+endsWithin)) {
		return nil
	}
	step := EndImport{base: base{"the cluster has taken over from the server outside: its relay is of no use any more"}}
	for shard, of := range i.Shards {
		if stays(of.Relay) || stays(of.Prepared) || of.Service { // a Service may come late, of a process that was stopped
			step.Shards = shard + 1
		}
	}
	if step.Shards == 0 {
		return nil
	}
	if missed := Missed(in.snap); missed != nil && *missed > 0 && asked != nil && !asked.Clone {
		step.Missed = *missed
		step.Reason += fmt.Sprintf("; %d bytes came into its stream by the end of the pause, and are not in the cluster", *missed)
	}
	return step
}

// prepare makes what instances need to follow the server, and says of what is in the way.
func (in input) prepare(i *snapshot.Import, asked *DesiredImport) Step {
	if step := in.leftOfImport(i); step != nil {
		return step
	}
	var missing []int
	var waits *snapshot.RestoreJob
	for shard, of := range i.Shards {
		job, claim := of.Prepared, in.claimToRestore(shard)
		switch {
		case job != nil && job.Failed:
			return stallImport("the server at %s is not imported: %s; delete Job %s to try again", asked.Address, job.Message, job.Name)
		case job != nil && job.Done && claim == nil:
			return waitFor(fails(SourceFollowed, "the claim that was prepared is gone; delete Job %s to try again", job.Name))
		case job == nil || claim == nil || !of.Service:
			missing = append(missing, shard)
		case job.Done && of.Said == nil:
			return stallImport("Job %s did not say what it prepared; delete it to try again", job.Name)
		case !job.Done && waits == nil:
			waits = job
		}
	}
	switch {
	case len(missing) > 0 && i.Withheld != "":
		return stallImport("%s", i.Withheld)
	case len(missing) > 0:
		step := PrepareImport{From: i.From, Instances: missing, base: base{fmt.Sprintf(
			"the cluster begins with the data of the server at %s: the first instances of shards %v are to follow it", asked.Address, missing)}}
		if i.Shards[0].Said != nil {
			step.Shards = len(i.Shards)
		}
		return step
	case waits != nil:
		v := fails(SourceFollowed, "instances are being prepared to follow the server at %s%s", asked.Address, because(waits.Message))
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate, After: askAgain}
	}
	if step := in.keepFollowers(i, asked); step != nil {
		return step
	}
	if step := in.elsewhere(i); step != nil {
		return step
	}
	return in.prepareRelays() // without any the children are next
}

// leftOfImport waits for what a former attempt left to be gone.
func (in input) leftOfImport(i *snapshot.Import) Step {
	left := waitFor(fails(SourceFollowed, "what a former attempt to import left is being deleted"))
	for shard, of := range i.Shards {
		job, claim := of.Prepared, in.claimToRestore(shard)
		if of.Relay != nil && !stays(of.Relay) || job != nil && !stays(job) ||
			claim != nil && claim.Job != "" && (job == nil || claim.Job != job.UID) {
			return left
		}
	}
	if i.Beyond != "" {
		return stallImport("Job %s prepared an instance for a shard that the server's cluster does not have any more: delete it", i.Beyond)
	}
	for _, claim := range in.snap.Claims {
		if claim.ToRestore && claim.Shard >= len(i.Shards) {
			return left
		}
	}
	return nil
}

// keepFollowers checks that all Jobs saw the same shards; nil: that is written down, and the claims stay.
func (in input) keepFollowers(i *snapshot.Import, asked *DesiredImport) Step {
	step := KeepFollower{base: base{"the first instances are prepared to follow the server at " + asked.Address}}
	var owned slots.Set
	kept := i.Following && len(i.Slots) == len(i.Shards)
	for shard, of := range i.Shards {
		set, err := slots.Parse(of.Said.Slots)
		if err != nil || of.Said.Shards != len(i.Shards) || !owned.Intersect(set).IsEmpty() ||
			len(i.Slots) > 0 && !i.Slots[shard].Equal(set) {
			return stallImport("slots moved at the server while instances were being prepared: delete the Jobs %s to begin anew", in.preparing(i))
		}
		owned = owned.Union(set)
		claim := in.claimToRestore(shard)
		kept = kept && claim.Job == ""
		step.Claims, step.Slots = append(step.Claims, claim.Name), append(step.Slots, set)
	}
	switch {
	case owned.Len() != slots.Count:
		return stallImport("slots %s have no master at the server: delete the Jobs %s to try again", owned.Complement(), in.preparing(i))
	case kept:
		return nil
	}
	return step
}

func (in input) preparing(i *snapshot.Import) string {
	var names []string
	for _, of := range i.Shards {
		names = append(names, of.Prepared.Name)
	}
	return list(names)
}

// elsewhere keeps shards from being started whose relays are not where their instances were told; nil: all are.
func (in input) elsewhere(i *snapshot.Import) Step {
	for shard, of := range i.Shards {
		switch {
		case !i.Following || of.Prepared == nil || in.snap.Started(shard):
		case !of.Service && i.Withheld != "":
			return stallImport("%s", i.Withheld)
		case !of.Service: // prepareRelays makes it
		case of.At == "":
			return waitFor(fails(SourceFollowed, "the Service of the relay of shard %d has no address, or is being deleted", shard))
		case of.At != of.Told && len(in.snap.Shards) > 0: // Jobs are not made again
			return stallImport("the first instance of shard %d is prepared to follow %s, and its relay is at %s: delete the relay's Service, which is made again where it was",
				shard, of.Told, of.At)
		case of.At != of.Told:
			return stallImport("the first instance of shard %d is prepared to follow %s, and its relay is at %s: delete Job %s to prepare it anew",
				shard, of.Told, of.At, of.Prepared.Name)
		}
	}
	return nil
}

// prepareRelays makes relays that are missing; nil: none is, or none may be made, which planFollow tells.
func (in input) prepareRelays() Step {
	i, asked := in.snap.Import, in.desired.Import
	if asked == nil || i.Withheld != "" {
		return nil
	}
	step := PrepareImport{From: i.From, base: base{"relays to the server at " + asked.Address + " are missing"}}
	for shard, of := range i.Shards {
		if set, known := i.Begins(shard); known && (of.Relay == nil || !of.Service) && in.needsRelay(shard) {
			step.Relays = append(step.Relays, Relay{shard, set})
		}
	}
	if len(step.Relays) == 0 {
		return nil
	}
	return step
}

// because adds why to a sentence; empty without.
func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// RestoreShards makes a claim for the first instance of each of these shards, and the Job that writes the shard's data into it. There are
// no StatefulSets yet. A claim goes with its Job until all shards are restored, so that nothing is left of a restore that is given up.
type RestoreShards struct {
	base
	From   v1alpha1.BackupLocation
	Shards []int
}

// KeepRestored makes the claims stay, all of which are restored. The status holds what the cluster began with from then on.
type KeepRestored struct {
	base
	Claims   []string
	Restored v1alpha1.RestoredData
}

// DeleteRestoreJobs deletes Jobs that restored shards: their claims stay.
type DeleteRestoreJobs struct {
	base
	Shards []int
}

// RecordKeys writes down how many keys the restored masters hold, before any of them meets another: no client has written by then, since
// none of them serves alone.
type RecordKeys struct {
	base
	Keys v1alpha1.KeyCount
}

// Name implements Step.
func (RecordKeys) Name() string        { return "RecordKeys" }
func (RestoreShards) Name() string     { return "RestoreShards" }
func (KeepRestored) Name() string      { return "KeepRestored" }
func (DeleteRestoreJobs) Name() string { return "DeleteRestoreJobs" }

// askAgain is after how long a Secret or a backup that is missing is looked for again; nothing tells.
const askAgain = 10 * time.Second

func stallRestore(format string, args ...any) Stall {
	return Stall{base: base{fmt.Sprintf(format, args...)}, Cause: "CannotRestore", BlockedBy: ShardsRestored, After: askAgain}
}

// planRestore fills the claims of a new cluster before anything starts on them. A cluster whose StatefulSets exist has begun, whatever
// became of its status.
func planRestore(in input) Step {
	r := in.snap.Restore
	switch {
	case r == nil:
		return nil
	case !in.desired.Restore && in.snap.Restored == nil:
		return stallRestore("spec.bootstrap was removed while the cluster was being restored: put it back, or delete the RedisCluster")
	case in.snap.Restored != nil:
		return in.deleteRestoreJobs(true)
	case len(in.snap.Shards) > 0 || in.pending.Withheld != nil: // the latter is told by planWithheld
		return nil
	}
	if step := in.claimsInTheWay(); step != nil {
		return step
	}
	if step := in.deleteRestoreJobs(false); step != nil {
		return step
	}
	var missing, done []int
	var why string
	for shard := range in.desired.Topology {
		job, exists := r.Jobs[shard]
		claim := in.claimToRestore(shard)
		switch {
		case exists && job.Terminating, claim != nil && claim.Job != "" && claim.Job != job.UID:
			return waitFor(fails(ShardsRestored, "the former Job of shard %d and its claim are being deleted", shard))
		case exists && job.Failed:
			return stallRestore("shard %d is not restored: %s; delete Job %s to try again", shard, job.Message, job.Name)
		case exists && job.Done && claim == nil:
			return waitFor(fails(ShardsRestored, "the claim that shard %d was restored into is gone; delete Job %s to try again", shard, job.Name))
		case !exists, claim == nil:
			missing = append(missing, shard)
		case job.Done:
			done = append(done, shard)
		case why == "" && job.Message != "":
			why = fmt.Sprintf("; shard %d: %s", shard, job.Message)
		}
	}
	switch {
	case len(missing) > 0 && r.Withheld != "":
		return stallRestore("%s", r.Withheld)
	case len(missing) > 0:
		return RestoreShards{base: base{fmt.Sprintf("the cluster begins with %s: shards %v are to be restored", r.From, missing)},
			From: r.From, Shards: missing}
	case len(done) < len(in.desired.Topology):
		v := fails(ShardsRestored, "%d of %d shards are restored%s", len(done), len(in.desired.Topology), why)
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate, After: askAgain}
	}
	return in.keepRestored()
}

// claimsInTheWay are those that were there before, of any instance: what is in them is older than the cluster, or newer than the backup.
func (in input) claimsInTheWay() Step {
	var names []string
	for _, claim := range in.snap.Claims {
		switch {
		case claim.Terminating:
			return waitFor(fails(ShardsRestored, "claim %s is being deleted", claim.Name))
		case !claim.ToRestore:
			names = append(names, claim.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if in.desired.Import != nil {
		return stallImport("claims exist, and no server is imported over, or beside, what may be in them: %s; delete them to import", list(names))
	}
	return stallRestore("claims exist, and nothing is restored over, or beside, what may be in them: %s; delete them to restore, or make the RedisCluster without spec.bootstrap to go on with their data",
		list(names))
}

// claimToRestore is the claim of the first instance of a shard; nil: there is none.
func (in input) claimToRestore(shard int) *snapshot.Claim {
	for i := range in.snap.Claims {
		if c := &in.snap.Claims[i]; c.Shard == shard && c.Ordinal == 0 {
			return c
		}
	}
	return nil
}

// keepRestored checks that all Jobs restored the same backup, each its shard.
func (in input) keepRestored() Step {
	step := KeepRestored{base: base{"all shards are restored"}}
	var owned slots.Set
	for shard := range in.desired.Topology {
		job := in.snap.Restore.Jobs[shard]
		said := job.Report
		if said == nil || said.Restored == "" {
			return stallRestore("Job %s did not say what it restored; delete it to try again. %s", job.Name, job.Message)
		}
		set, err := slots.Parse(said.Restored)
		if err != nil {
			return stallRestore("Job %s: %v", job.Name, err)
		}
		if shard == 0 {
			step.Restored = v1alpha1.RestoredData{Location: job.From, ManifestChecksum: said.Manifest,
				MarkedAt: metav1.NewTime(said.Marked.UTC().Truncate(time.Second)), Consistent: said.Consistent, Bytes: said.Bytes}
		}
		if said.Manifest != step.Restored.ManifestChecksum || said.Count != len(in.desired.Topology) {
			return stallRestore("Job %s restored another backup than that of shard 0: somebody replaced it meanwhile; delete both Jobs to try again", job.Name)
		}
		if twice := owned.Intersect(set); !twice.IsEmpty() {
			return stallRestore("the backup has slots %s twice", twice)
		}
		owned = owned.Union(set)
		step.Restored.Slots = append(step.Restored.Slots, set.String())
		step.Claims = append(step.Claims, in.claimToRestore(shard).Name)
	}
	if owned.Len() != slots.Count {
		return stallRestore("the backup has no shard of slots %s", slots.All().Subtract(owned))
	}
	return step
}

// deleteRestoreJobs deletes the Jobs that are of no use any more: those of shards that a cluster is not to have, with their claims, and all
// once the claims stay. No StatefulSet is made before they are gone: it would take a claim that goes with its Job.
func (in input) deleteRestoreJobs(restored bool) Step {
	step := DeleteRestoreJobs{base: base{"these Jobs have restored their shards, or have none to restore"}}
	going := ""
	for shard, job := range in.snap.Restore.Jobs {
		claim := in.claimToRestore(shard)
		needed := shard < len(in.topology) && (!restored || claim != nil && claim.Job != "")
		switch {
		case needed:
		case job.Terminating:
			going = job.Name
		default:
			step.Shards = append(step.Shards, shard)
		}
	}
	switch {
	case len(step.Shards) > 0:
		slices.Sort(step.Shards)
		return step
	case going != "":
		return waitFor(fails(ShardsRestored, "Job %s is being deleted", going))
	}
	for _, claim := range in.snap.Claims {
		if claim.ToRestore && claim.Job != "" && (restored || claim.Shard >= len(in.topology)) {
			return waitFor(fails(ShardsRestored, "claim %s goes with a Job that is gone, and is being deleted", claim.Name))
		}
	}
	return nil
}

// planRestored looks at each restored master before it meets anybody: one that began with errors, or without its slots, would lose the
// data of its slots to whoever has them, or hand them out without it.
func planRestored(in input) Step {
	if in.snap.Formed || in.snap.Restored == nil {
		return nil
	}
	for shard, text := range in.snap.Restored.Slots {
		pod := in.snap.Find(shard, 0)
		if pod == nil || pod.Redis == nil || !pod.Redis.Isolated() {
			continue
		}
		want, err := slots.Parse(text)
		if err == nil && pod.Redis.Slots.IsEmpty() && want.Intersect(in.snap.Owned()).Equal(want) {
			continue // another instance has taken over since, and this one has lost its volume
		}
		switch {
		case pod.Redis.Loading:
			return waitFor(fails(ShardsRestored, "%s loads its data", pod.Name))
		case err != nil:
			return stallRestore("status.restored.slots of shard %d: %v", shard, err)
		case pod.Redis.LoadErrors > 0:
			return stallRestore("%s could not carry out %d commands of the backup (INFO errorstats says which): restore it with the engine and modules that it was taken from",
				pod.Name, pod.Redis.LoadErrors)
		case !pod.Redis.Slots.Equal(want):
			return stallRestore("%s was restored with slots %s and owns %s: delete the RedisCluster and its claims, and restore it anew", pod.Name,
				want, pod.Redis.Slots)
		}
	}
	return in.recordKeys()
}

// recordKeys counts once; nil: it is done, or it is too late, because a master has met others.
func (in input) recordKeys() Step {
	if in.snap.Restored.Keys != nil || len(in.snap.Restored.Slots) == 0 {
		return nil
	}
	var keys v1alpha1.KeyCount
	for shard := range in.snap.Restored.Slots {
		pod := in.snap.Find(shard, 0)
		if pod == nil || pod.Redis == nil || !pod.Redis.Isolated() || pod.Redis.Slots.IsEmpty() {
			return nil
		}
		keys.Total += pod.Redis.Keys
		keys.WithTTL += pod.Redis.KeysWithTTL
		keys.WithFieldTTL += pod.Redis.KeysWithFieldTTL
	}
	return RecordKeys{base{fmt.Sprintf("the restored masters hold %d keys, of which %d have a time to live", keys.Total, keys.WithTTL)}, keys}
}

// planRestoredEpochs gives the empty instances of a cluster that began with data epochs, as those of a new one get them.
func planRestoredEpochs(in input) Step {
	if !in.begins() || !snapshotComplete(in).Holds {
		return nil
	}
	given := firstEpochs(in, in.snap.Masters())
	if len(given) == 0 {
		return nil
	}
	return AssignSlots{base: base{"new instances get epochs below those of the masters with data"}, Assignments: given}
}

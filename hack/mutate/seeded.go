// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// bugs are mistakes that somebody could make: each of them is to be found by a test of the unit, simulation or model layer.
var bugs = slices.Concat(redisBugs, chartBugs)

// redisBugs are those of the operator of RedisClusters.
var redisBugs = []Bug{
	{Name: "forgets a node that replicas still follow, which may have the only copy of its slots", File: "internal/rediscluster/plan/heal.go",
		Old: `	lost := lostMasters(in.snap)
	var ids []string
	step := Forget{}`,
		New: `	var lost []string
	var ids []string
	step := Forget{}`},
	{Name: "forgets nodes although not every instance was asked", File: "internal/rediscluster/plan/heal.go",
		Old: `	if !snapshotComplete(in).Holds {
		return nil
	}
	lost := lostMasters(in.snap)`,
		New: `	lost := lostMasters(in.snap)`},
	{Name: "assigns slots that another instance takes for somebody's", File: "internal/rediscluster/plan/form.go",
		Old: `	missing := slots.All().Subtract(in.snap.Owned())
	if missing.Len() == 0 || !snapshotComplete(in).Holds || claimedByPeers(in.snap, missing) || in.disputedSlots(missing) {
		return nil`,
		New: `	missing := slots.All().Subtract(in.snap.Owned())
	if missing.Len() == 0 || !snapshotComplete(in).Holds {
		return nil`},
	{Name: "gives lost slots away without asking a person", File: "internal/rediscluster/plan/heal_emptied.go",
		Old: `	pods := in.emptied()
	if len(pods) == 0 {
		return nil
	}
	names :=`,
		New: `	pods := in.emptied()
	if len(pods) > 0 {
		return nil
	}
	names :=`},
	{Name: "moves slots before the goal is written down", File: "internal/rediscluster/plan/scale.go",
		Old: `	if goal, err := in.goal(); len(moves) == 0 && err == nil && goal != nil && goal == in.snap.Goal {
		moves = in.moves(goal)
	}`,
		New: `	if goal, err := in.goal(); len(moves) == 0 && err == nil && goal != nil {
		moves = in.moves(goal)
	}`},
	{Name: "makes a new goal in the middle of a scaling", File: "internal/rediscluster/plan/scale_goal.go",
		Old: `	if recorded != nil && recorded.For == fingerprint {
		if in.reached(recorded) {
			return nil, nil
		}
		return recorded, nil
	}`,
		New: `	if recorded != nil && recorded.For == fingerprint && in.reached(recorded) {
		return nil, nil
	}`},
	{Name: "a master gives slots while it receives others", File: "internal/rediscluster/plan/scale.go",
		Old: `		if receives[m.From.NodeID] || gives[m.To.NodeID] {
			return true
		}
		gives[`,
		New: `		gives[`},
	{Name: "a master gives slots as soon as it has received some", File: "internal/rediscluster/plan/scale_capacity.go",
		Old: `	if left := 2*r.NodeTimeout - in.now.Sub(r.ReceivedAt); left > 0 {
		return fails`,
		New: `	if left := 2*r.NodeTimeout - in.now.Sub(r.ReceivedAt); left > 2*r.NodeTimeout {
		return fails`},
	{Name: "closes an open slot of which keys have moved", File: "internal/rediscluster/plan/scale_openslots.go",
		Old: `	for _, pod := range o.others {
		if pod.Redis.OpenKeys[o.slot] > 0 && (to == nil || pod.Redis.OpenKeys[o.slot] > to.Redis.OpenKeys[o.slot]) {
			to = pod
		}
	}
	if to != nil {
		return to, true
	}`,
		New: ``},
	{Name: "takes marks of moving off an instance that holds keys of the slot", File: "internal/rediscluster/plan/scale_openslots.go",
		Old: `		if pod != to && pod.Redis.OpenKeys[o.slot] == 0 {
			pods = append(pods, pod)
		}`,
		New: `		pods = append(pods, pod)`},
	{Name: "lets an instance go that holds keys", File: "internal/rediscluster/plan/scale_removal.go",
		Old: `	case r.Master && r.Keys > 0:
		return fails(SafeToRemove, "%s is to go and still holds %d keys", pod.Name, r.Keys)`,
		New: ``},
	{Name: "deletes the StatefulSet of a shard that members still know", File: "internal/rediscluster/plan/scale_removal.go",
		Old: `	if v := in.forgottenByAll(); !v.Holds {
		v.Reason = fmt.Sprintf("shards %v are to go, and not every instance is known to have forgotten them: %s",
			slices.Sorted(maps.Keys(step.Shards)), v.Reason)
		return waitFor(v)
	}`,
		New: ``},
	{Name: "switches over to a replica without waiting for its link", File: "internal/rediscluster/plan/rollout.go",
		Old: `	return !r.Master && r.MasterID == master.Redis.NodeID && r.MasterLinkUp && !pod.Terminating && !pod.Fenced && upToDate(pod, master)`,
		New: `	return !r.Master && r.MasterID == master.Redis.NodeID && !pod.Terminating`},
	{Name: "restarts a master without switching over", File: "internal/rediscluster/plan/rollout.go",
		Old: `	case pod.Redis.Master:
		step := switchOver(in, pod)`,
		New: `	case pod.Redis.Master:
		var step Step`},
	{Name: "restarts two instances at a time", File: "internal/rediscluster/plan/rollout.go",
		Old: `	next := outdated[0]
	if next.Terminating {
		return waitFor(fails(PodsGone, "%s is stopping", next.Name))
	}`,
		New: `	next := outdated[0]
	for len(outdated) > 1 && next.Terminating {
		outdated = outdated[1:]
		next = outdated[0]
	}`},
	{Name: "takes over by itself while most masters can vote", File: "internal/rediscluster/plan/heal_promote.go",
		Old: `	step := Promote{Replica: target(best), Takeover: lost}`,
		New: `	step := Promote{Replica: target(best), Takeover: true}`},
	{Name: "promotes a replica that was cut off long before its master went", File: "internal/rediscluster/plan/heal_promote.go",
		Old: `	lost := in.now.Add(-r.MasterLinkDownFor)
	if lost.Before(lastSeen.Add(-r.NodeTimeout)) {
		return fails(`,
		New: `	lost := in.now.Add(-r.MasterLinkDownFor)
	if lost.IsZero() {
		return fails(`},
	{Name: "believes replicas that are cut off when their master was last there", File: "internal/rediscluster/plan/heal_promote.go",
		Old: `	lastSeen := in.snap.Answered[id].At
`,
		New: `	lastSeen := in.now.Add(-1000 * time.Hour)
`},
	{Name: "takes an instance that does not answer for one that is gone", File: "internal/rediscluster/plan/heal_promote.go",
		Old: `	case nodeGone(in, id).Holds:
	case late &&`,
		New: `	case in.snap.ByNodeID(id) == nil:
	case late &&`},
	{Name: "throws a damaged instance's files away though its shard has no master", File: "internal/rediscluster/plan/heal_files.go",
		Old: `		master := in.snap.Masters()[pod.Shard]
		if master == nil {
			continue
		}`,
		New: `		master := in.snap.Masters()[pod.Shard]
		if master == nil {
			master = pod
		}`},
	{Name: "introduces an instance that would lose its keys by it", File: "internal/rediscluster/plan/form_meet.go",
		Old: `				len(meetings) == mostMeetings ||
				!undisputed(a) || !undisputed(b) {
				continue`,
		New: `				len(meetings) == mostMeetings {
				_ = undisputed
				continue`},
	{Name: "joins two clusters whose slots overlap", File: "internal/rediscluster/plan/form_meet.go",
		Old: `	for _, v := range []Verdict{noForeignNode(in.snap), slotsDisjoint(in.snap)} {`,
		New: `	for _, v := range []Verdict{noForeignNode(in.snap)} {`},
	{Name: "finishes a deletion while pods are stopping", File: "internal/rediscluster/plan/delete.go",
		Old: `		if n := len(in.snap.Instances) + len(in.snap.Shards); n > 0 {
			v := fails(PodsGone, "%d pods are still stopping", len(in.snap.Instances))
			return Wait{base: base{v.Reason}, BlockedBy: v.Predicate} // Kubernetes tells when they are gone
		}`,
		New: ``},
	{Name: "retires the previous password while an instance does not answer", File: "internal/rediscluster/plan/access.go",
		Old: `	if auth.Changing == "" || in.now.Before(PasswordStageEnds(auth, in.desired.PreviousPasswordFor)) || AccessPending(in.snap) != "" ||
		!snapshotComplete(in).Holds {
		return nil
	}`,
		New: `	if auth.Changing == "" || in.now.Before(PasswordStageEnds(auth, in.desired.PreviousPasswordFor)) {
		return nil
	}`},
	{Name: "tells replicas and masters of a setting at once, before one has taken it", File: "internal/rediscluster/plan/settings.go",
		Old: `	wave := 1
	for current > 0 && wave < len(behind) && masters[behind[wave].On.Pod] == masters[behind[0].On.Pod] {
		wave++
	}`,
		New: `	wave := len(behind)`},
	{Name: "sends a command to whoever answers at the address", File: "internal/rediscluster/act/act.go",
		Old: `	if id != t.NodeID {
		return nil, fmt.Errorf("%s at %s is node %s now, and was node %s when observed", t.Pod, t.IP, id, t.NodeID)
	}`,
		New: `	_ = id`},
	{Name: "deletes StatefulSets of another cluster's with our label", File: "internal/rediscluster/act/delete.go",
		Old: `		_, named := cluster.ShardOf(set.Name)
		return !named || !ownedBy(cluster, &set)`,
		New: `		_, named := cluster.ShardOf(set.Name)
		return !named`},
	{Name: "lets the object go while StatefulSets still exist", File: "internal/rediscluster/act/delete.go",
		Old: `		if len(sets) > 0 {
			return fmt.Errorf("%d StatefulSets still exist", len(sets))
		}`,
		New: `		_ = sets`},
	{Name: "takes the owners of others off the children", File: "internal/rediscluster/act/delete.go",
		Old: `	child.SetOwnerReferences(slices.DeleteFunc(child.GetOwnerReferences(),
		func(owner metav1.OwnerReference) bool { return owner.UID == cluster.UID }))`,
		New: `	child.SetOwnerReferences(nil)`},
	{Name: "deletes a pod or a claim that took the name of the one that was seen", File: "internal/rediscluster/act/lost.go",
		Old: `	uid := types.UID(seen)
	err := a.Client.Delete(ctx, object, append(options, client.Preconditions{UID: &uid})...)`,
		New: `	_ = types.UID(seen)
	err := a.Client.Delete(ctx, object, options...)`},
	{Name: "recreates an instance without deleting its claim", File: "internal/rediscluster/act/lost.go",
		Old: `	if step.Claim.Name != "" {
		claim :=`,
		New: `	if step.Claim.Name == "" {
		claim :=`},
	{Name: "switches over without having the master suppress pings", File: "internal/rediscluster/act/move.go",
		Old: `	end, err := master.SuppressPings(ctx)
	if end != nil {
		// Where this does not happen, planConfig does it in the next reconciliation.
		defer func() { _ = end(context.WithoutCancel(ctx)) }()
	}
	if err != nil {
		return fmt.Errorf("prepare %s for switching over: %w", step.Master.Pod, err)
	}`,
		New: `	_ = master`},
	{Name: "promotes by takeover where a vote is asked for", File: "internal/rediscluster/act/heal.go",
		Old: `	mode := redis.FailoverForce
`,
		New: `	mode := redis.FailoverTakeover
`},
	{Name: "marks the owner of an open slot before its destination", File: "internal/rediscluster/act/move.go",
		Old: `		for _, state := range []redis.SlotState{redis.SlotImporting, redis.SlotOwned} {
			if err := to.SetSlots(ctx, move.Slots, state, move.From.NodeID); err != nil {
				return fmt.Errorf("mark slots %s at %s: %w", move.Slots, move.To.Pod, err)
			}
		}`,
		New: `		_ = to`},
	{Name: "publishes a password that has been replaced meanwhile", File: "internal/rediscluster/act/auth.go",
		Old: `	case step.To == plan.PublishPassword && state.Stage() == snapshot.PasswordAccepting && !state.Due(reading.Asked):
		state = state.Publish(now)`,
		New: `	case step.To == plan.PublishPassword:
		state = state.Publish(now)`},
	{Name: "tells the source of the new owner before the destination", File: "internal/redis/reshard/classic.go",
		Old: `	if err := d.to.Node.ChangeSlots(ctx, owned,
		redis.SlotChange{Slots: next, State: redis.SlotImporting, NodeID: d.from.ID}); err != nil {
		return err
	}
	if err := hears(ctx, d.from.Node, drained); err != nil {
		return err
	}
	if err := d.from.Node.ChangeSlots(ctx, owned,
		redis.SlotChange{Slots: next, State: redis.SlotMigrating, NodeID: d.to.ID}); err != nil {
		return err
	}`,
		New: `	if err := d.from.Node.ChangeSlots(ctx, owned,
		redis.SlotChange{Slots: next, State: redis.SlotMigrating, NodeID: d.to.ID}); err != nil {
		return err
	}
	if err := d.to.Node.ChangeSlots(ctx, owned,
		redis.SlotChange{Slots: next, State: redis.SlotImporting, NodeID: d.from.ID}); err != nil {
		return err
	}`},
	{Name: "tells the source of the new owner before it has heard of it", File: "internal/redis/reshard/classic.go",
		Old: `	if err := hears(ctx, d.from.Node, drained); err != nil {
		return err
	}`,
		New: ``},
	{Name: "counts a slot as drained when its first keys have moved", File: "internal/redis/reshard/drain.go",
		Old: `			batches = batches[n:]
		}`,
		New: `			batches = batches[n:]
		}
		return nil`},
	{Name: "deletes the source's keys that the destination has too, whoever owns the slot", File: "internal/redis/reshard/drain.go",
		Old: `	if d.wins == targetWins {
		return cmp.Or(`,
		New: `	if len(both) > 0 {
		return cmp.Or(`},
	{Name: "keeps the source's keys of a slot that the destination owns", File: "internal/redis/reshard/drain.go",
		Old: `	if d.wins == targetWins {
		return cmp.Or(d.from.Node.Discard(ctx, both), over) // what is left is moved when the slot is looked at again
	}`,
		New: ``},
	{Name: "moves slots that are open towards another node", File: "internal/redis/reshard/classic.go",
		Old: `		case migrating && to != toID || importing && from != fromID:
			foreign = append(foreign, slot)`,
		New: `		case to == from && fromID == toID:
			foreign = append(foreign, slot)`},
	{Name: "takes a batch that was refused for moved", File: "internal/redis/reshard/drain.go",
		Old: `		if errors.Is(err, redis.ErrBusyKey) {
			err = d.resolve(ctx, batches[i])
		}
		if err != nil {
			return err
		}`,
		New: `		if errors.Is(err, redis.ErrBusyKey) {
			_ = batches[i]
			continue
		}`},
	{Name: "deletes keys of the source that the destination does not have", File: "internal/redis/reshard/drain.go",
		Old: `		if there == "" {
			continue
		}`,
		New: ``},
	{Name: "takes a job that failed for one that goes on", File: "internal/redis/reshard/atomic.go",
		Old: `		case redis.SlotMigrationFailed, redis.SlotMigrationCancelled:
			return failed(ctx, m, method, job)`,
		New: `		case redis.SlotMigrationFailed, redis.SlotMigrationCancelled:
			return nil`},
	{Name: "makes a second job for slots that one is moving", File: "internal/redis/reshard/atomic.go",
		Old: `	for _, job := range jobs {
		if err = follow(ctx, m, source.Atomic, job, &done, o.Now, end); err != nil {
			return done, err
		}
	}`,
		New: `	_ = jobs`},
	{Name: "logs in with a password that an instance does not accept yet", File: "internal/rediscluster/act/auth.go",
		Old: `		return setUsers(ctx, on, node, state, step.Live[on.Pod])
	})
	if err != nil {
		return err
	}`,
		New: `		return setUsers(ctx, on, node, state, step.Live[on.Pod])
	})
	_ = err`},
	{Name: "deletes users that stay, and makes them again", File: "internal/rediscluster/act/auth.go",
		Old: `	for _, user := range state.AllUsers() {
		delete(found.Users, user.Name)
	}`,
		New: ``},
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/test/crash"
)

// written are the commands that change something; applications send none of them.
var written = []string{
	"ACL DELUSER", "ACL SETUSER", "CLIENT PAUSE", "CLIENT UNPAUSE", "CLUSTER ADDSLOTS", "CLUSTER ADDSLOTSRANGE",
	"CLUSTER BUMPEPOCH", "CLUSTER CANCELSLOTMIGRATIONS",
	"CLUSTER FAILOVER", "CLUSTER FORGET", "CLUSTER MEET", "CLUSTER MIGRATESLOTS", "CLUSTER REPLICATE", "CLUSTER RESET",
	"CLUSTER SET-CONFIG-EPOCH", "CLUSTER SETSLOT", "CONFIG REWRITE", "CONFIG SET", "FUNCTION RESTORE", "MIGRATE", "UNLINK",
}

// watch makes the operator's writes known to a killer.
func (s *simulation) watch(k *crash.Killer) {
	s.killer = k
	s.process = k.Begin()
	s.world.OnCommand(func(n *redistest.Node, args []string) {
		name := strings.ToUpper(args[0])
		if len(args) > 1 && name != "MIGRATE" && name != "UNLINK" {
			name += " " + strings.ToUpper(args[1])
		}
		if !slices.Contains(written, name) {
			return
		}
		if s.outside != nil {
			s.outside.write()
		}
		switch s.process.Strikes(fmt.Sprintf("%s at %s", strings.Join(args[:min(len(args), 5)], " "), s.nameOf(n)), false) {
		case crash.Before:
			s.crash()
			s.world.FailNext(n, args[0], redistest.Failure{Kind: redistest.DropBefore})
		case crash.Unanswered:
			s.crash()
			s.world.FailNext(n, args[0], redistest.Failure{Kind: redistest.DropAfter})
		case crash.Late:
			s.holdCommands(n, args)
			s.crash()
			s.world.FailNext(n, args[0], redistest.Failure{Kind: redistest.DropBefore})
		case crash.Never, crash.Answered, crash.Lost:
		}
	})
	s.schedule.told = s.arrives.note
	s.loop.Actor.Client = interceptor.NewClient(s.kube, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return s.request("create", o, func() error {
				if s.outside != nil {
					s.outside.admit(o)
				}
				return c.Create(ctx, o, options...)
			})
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return s.request("update", o, func() error { return c.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return s.request("patch", o, func() error {
				err := c.Patch(ctx, o, p, options...)
				if cluster, is := o.(*v1alpha1.RedisCluster); is && err == nil {
					s.cluster.Annotations, s.cluster.ResourceVersion = cluster.Annotations, cluster.ResourceVersion
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return s.request("delete", o, func() error {
				if err := s.isSeen(o, (&client.DeleteOptions{}).ApplyOptions(options).Preconditions); err != nil {
					return err
				}
				return c.Delete(ctx, o, options...)
			})
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, of string, o, body client.Object,
			options ...client.SubResourceCreateOption) error {
			return s.request(of+" of", o, func() error {
				if eviction, is := body.(*policyv1.Eviction); is {
					if err := s.isSeen(o, eviction.DeleteOptions.Preconditions); err != nil {
						return err
					}
				}
				return c.SubResource(of).Create(ctx, o, body, options...)
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, of string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption) error {
			return s.request("patch "+of+" of", o, func() error { return c.SubResource(of).Patch(ctx, o, p, options...) })
		},
	})
}

// request is a write to the API server.
func (s *simulation) request(verb string, object client.Object, send func() error) error {
	when := s.process.Strikes(fmt.Sprintf("%s %T %s", verb, object, object.GetName()), true)
	if refusal := crash.Refusals[when]; refusal != nil {
		return refusal
	}
	switch when {
	case crash.Before:
		s.crash()
		return context.Canceled
	case crash.Unanswered:
		_ = send() // whoever is dead does not hear of it
		s.crash()
		return context.Canceled
	case crash.Lost:
		_ = send() // it is carried out, and nobody hears of it
		return crash.ErrReset
	case crash.Late:
		s.hold(func() { s.say("late: %v", send()) })
		s.crash()
		return context.Canceled
	case crash.Never, crash.Answered:
	}
	return send()
}

// master is the pod of a shard whose Redis owns slots.
func (s *simulation) master(shard int) string { return s.observe().Masters()[shard].Name }

// TestCrashAtEveryWrite: whichever write the operator's process ends at, and whether that was carried out or not, its successor
// brings about what an operator that lives does: the same owners of slots, objects, settings and status; and no write of an
// application is lost. So it is when the successor ends, too, and when the API server refuses a write once. Each moment of each
// flow is tried at some writes; SIMULATION=all tries all.
func TestCrashAtEveryWrite(t *testing.T) {
	for _, f := range flows {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var undisturbed crash.Killer
			var want string
			synctest.Test(t, func(t *testing.T) { want = f.run(t, &undisturbed) })
			if len(undisturbed.Writes()) == 0 {
				t.Fatal("nothing was written")
			}
			tried := map[string]int{}
			for _, trial := range crash.Trials(len(undisturbed.Writes()), undisturbed.Requests(), 12) {
				tried[trial.What]++
				synctest.Test(t, func(t *testing.T) {
					switch got := f.run(t, &crash.Killer{At: trial.At, When: trial.When, Again: trial.Again}); {
					case got == ofTwoMoments:
						tried["clones that are to be made anew"]++
					case got != want:
						t.Errorf("write %d of %d, %s (-undisturbed +now):\n%s", trial.At, len(undisturbed.Writes()), trial.When, cmp.Diff(want, got))
					}
				})
			}
			t.Logf("%d writes, %d of them to the API server: %v", len(undisturbed.Writes()), len(undisturbed.Requests()), tried)
		})
	}
}

// run takes a cluster through a flow, with what happens at one of the writes. It returns what came of it.
func (f flow) run(t *testing.T, k *crash.Killer) (outcome string) {
	t.Helper()
	s, app := f.start(t, k)
	s.rest()
	s.goOn(app)
	return f.end(s, app)
}

// start makes the cluster that a flow begins with, and asks for the change.
func (f flow) start(t *testing.T, k *crash.Killer) (*simulation, *application) {
	t.Helper()
	begin := f.begin
	if begin == nil {
		begin = formedOne
	}
	s := begin(t, f.valkey)
	app := newApplication(s)
	if s.cluster.Status.Restored != nil {
		for _, part := range slots.All().Split(3) {
			app.acknowledged[restoredKey(part)] = "restored"
		}
	}
	if s.outside != nil {
		app.acknowledged = s.outside.acknowledged
	}
	if s.cluster.Status.Phase == "Running" {
		for key := range 24 {
			app.write(fmt.Sprintf("key:%d", key))
		}
		s.world.Run(2 * time.Second)
	}
	k.Say = s.say
	s.watch(k)
	s.bringsBack = true
	f.change(s)
	return s, app
}

// end asserts that a cluster is healthy and has lost nothing, and returns what came of it.
func (f flow) end(s *simulation, app *application) string {
	s.t.Helper()
	s.world.OnCommand(nil)
	if s.killer.At > 0 && !s.killer.Struck() {
		s.fail("there is no write %d", s.killer.At)
	}
	if s.outside != nil && s.outside.isTorn {
		s.outside.wantServing()
		return ofTwoMoments
	}
	s.wantHealthy()
	app.wantAll()
	return s.outcome(f.shared)
}

// rest converges until the operator has nothing to do for a while, has no change of a password under way, and has seen what has no
// generation.
func (s *simulation) rest() {
	for range 200 {
		s.converge()
		s.world.Run(10 * time.Second)
		if s.outside != nil && s.outside.isTorn {
			return
		}
		seen := s.awaits == nil || s.awaits()
		if c := s.cluster.Status; c.PasswordChange == nil && c.Phase == "Running" && c.Plan.Step == "None" && seen {
			return
		}
	}
	s.fail("the cluster does not come to rest: %s, %+v", s.cluster.Status.Phase, s.cluster.Status.Plan)
}

// outcome is what users see of a cluster, without what chance decides: names of nodes, addresses, who is the master of a shard.
func (s *simulation) outcome(shared bool) string {
	s.t.Helper()
	var b strings.Builder
	snap := s.observe()
	for shard := range s.shards() {
		master := snap.Masters()[shard]
		if fair := slots.Count / s.shards(); shared && (master.Redis.Slots.Len()-fair)/2 == 0 {
			fmt.Fprintf(&b, "shard %d owns its share\n", shard)
		} else {
			fmt.Fprintf(&b, "shard %d owns %s\n", shard, master.Redis.Slots)
		}
		if open := len(master.Redis.Migrating) + len(master.Redis.Importing) + len(master.Redis.Jobs); open > 0 {
			fmt.Fprintf(&b, "shard %d has open slots\n", shard)
		}
	}
	var sets appsv1.StatefulSetList
	var pods corev1.PodList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{&sets, &pods, &secrets} {
		if err := s.kube.List(s.t.Context(), list); err != nil {
			s.t.Fatal(err)
		}
	}
	for i := range sets.Items {
		fmt.Fprintf(&b, "%s has %d replicas\n", sets.Items[i].Name, *sets.Items[i].Spec.Replicas)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if s.find(pod.Name) == nil {
			fmt.Fprintf(&b, "pod %s\n", pod.Name)
			continue
		}
		fmt.Fprintf(&b, "%s of template %s", pod.Name, pod.Labels[appsv1.StatefulSetRevisionLabel])
		for _, condition := range pod.Status.Conditions {
			fmt.Fprintf(&b, " %s=%s", condition.Type, condition.Status)
		}
		fmt.Fprintf(&b, " may be elected: %t", s.named(pod.Name).node.Setting("cluster-replica-no-failover") != "yes")
		for _, name := range []string{"cluster-node-timeout", "dynamic-hz", "hz", "maxmemory-policy"} {
			fmt.Fprintf(&b, " %s=%s", name, s.named(pod.Name).node.Setting(name))
		}
		for _, in := range snap.Reachable() {
			if in.Name == pod.Name {
				b.WriteString(" " + in.Redis.EngineVersion())
			}
		}
		b.WriteString("\n")
	}
	if s.encryption != nil && !s.showsTheNewest() {
		b.WriteString("an instance shows a former certificate\n")
	}
	if s.encryption != nil {
		for _, in := range s.instances {
			fmt.Fprintf(&b, "%s: %v, certificates of clients %s\n", in.pod.Name, stageOf(in), in.node.Setting(redisconf.AuthClients))
		}
		fmt.Fprintf(&b, "redis.conf has ports %s and %s, pods %s; %+v\n", s.file["port"], s.file["tls-port"], s.ports, s.cluster.Status.TLS)
	}
	for i := range secrets.Items {
		secret := &secrets.Items[i]
		fmt.Fprintf(&b, "Secret %s has %d keys, labels %v\n", secret.Name, len(secret.Data), secret.Labels)
	}
	if s.outside != nil {
		s.outside.outcome(&b)
	}
	status := s.cluster.Status.DeepCopy()
	fmt.Fprintf(&b, "%s: %d shards, %d slots, instances %s, replicas %d\n", status.Phase, status.Shards, status.Slots, status.Instances,
		status.Replicas)
	for _, c := range status.Conditions {
		fmt.Fprintf(&b, "%s is %s, %s\n", c.Type, c.Status, c.Reason)
	}
	fmt.Fprintf(&b, "settings %v, refused %v, data %v, placed %v, assigned %t, migration %v, rollout %v\n", status.Settings,
		status.RefusedSettings, status.DataVolumes, status.PlacedOn, status.SlotsAssigned, status.Migration, status.Rollout)
	return b.String()
}

// statusWritten writes the status that a reconciliation computed; false when the operator's process ended before it had.
func (s *simulation) statusWritten(computed *v1alpha1.RedisClusterStatus) bool {
	if equality.Semantic.DeepEqual(&s.cluster.Status, computed) {
		return true
	}
	switch s.process.Strikes("the status", false) {
	case crash.Before:
		return false
	case crash.Late: // on condition that nobody has written it meanwhile, so that it is refused
		s.process.End()
		return false
	case crash.Never, crash.Unanswered, crash.Answered, crash.Lost:
	}
	s.written++
	if is := computed.Autoscale; is != nil && (len(s.inForce) == 0 || s.inForce[len(s.inForce)-1] != int(is.Shards)) {
		s.inForce = append(s.inForce, int(is.Shards))
	}
	s.cluster.Status = *computed
	return true
}

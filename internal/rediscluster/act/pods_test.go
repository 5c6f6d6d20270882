// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var refusedConflict = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "c-0-0", errors.New("another UID"))

// writes notes what is deleted and evicted, and answers with an error.
type writes struct {
	made   []string
	answer error
}

func (w *writes) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			o := (&client.DeleteOptions{}).ApplyOptions(options)
			note := fmt.Sprintf("delete %T %s", object, object.GetName())
			if o.Preconditions != nil && o.Preconditions.UID != nil {
				note += " if " + string(*o.Preconditions.UID)
			}
			if o.GracePeriodSeconds != nil {
				note += fmt.Sprintf(" within %d", *o.GracePeriodSeconds)
			}
			w.made = append(w.made, note)
			return w.answer
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, object, sub client.Object,
			_ ...client.SubResourceCreateOption) error {
			w.made = append(w.made, fmt.Sprintf("evict %s if %s", object.GetName(), *sub.(*policyv1.Eviction).DeleteOptions.Preconditions.UID))
			return w.answer
		},
	}
}

// Only the very pod and claim that were seen are deleted: another one may have their name by now.
func TestDeletesOnlyWhatWasSeen(t *testing.T) {
	claim := snapshot.Claim{Name: "data-c-0-0", UID: "claim"}
	for name, tt := range map[string]struct {
		step plan.Step
		want []string
	}{
		"a restart is an eviction": {plan.Restart{Pod: "c-0-0", UID: "pod"}, []string{"evict c-0-0 if pod"}},
		"of a pod that does not run it is none": {plan.Restart{Pod: "c-0-0", UID: "pod", Failing: true},
			[]string{"delete *v1.Pod c-0-0 if pod"}},
		"a lost pod goes at once": {plan.ForceDelete{Pod: "c-0-0", UID: "pod"}, []string{"delete *v1.Pod c-0-0 if pod within 0"}},
		"a damaged instance goes with its claim, which goes first": {plan.Recreate{Pod: "c-0-0", UID: "pod", Claim: claim},
			[]string{"delete *v1.PersistentVolumeClaim data-c-0-0 if claim", "delete *v1.Pod c-0-0 if pod"}},
		"one without a claim goes alone": {plan.Recreate{Pod: "c-0-0", UID: "pod"}, []string{"delete *v1.Pod c-0-0 if pod"}},
	} {
		for _, answer := range []error{nil, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "c-0-0"), refusedConflict} {
			w := writes{answer: answer}
			b := newBench(t, w.funcs())
			if err := b.do(tt.step); err != nil {
				t.Errorf("%s: %v is no error: it is observed again, and got %v", name, answer, err)
			}
			if diff := cmp.Diff(tt.want, w.made); diff != "" {
				t.Errorf("%s, answer %v: writes (-want +got):\n%s", name, answer, diff)
			}
		}
		w := writes{answer: apierrors.NewTooManyRequests("a budget", 1)}
		b := newBench(t, w.funcs())
		if err := b.do(tt.step); !apierrors.IsTooManyRequests(err) || !slices.Equal(w.made, tt.want[:1]) {
			t.Errorf("%s: a refusal gives %v after %v", name, err, w.made)
		}
	}
}

// A pod is bound to its node and let start in one write, if it is the one that was seen.
func TestPlace(t *testing.T) {
	gated := func() *corev1.Pod {
		term := func(key string) corev1.NodeSelectorTerm {
			return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpExists}}}
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-0", UID: "pod"}, Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: v1alpha1.SchedulingGateNode}, {Name: "another.example.com/gate"}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{term("a"), term("b")}}}}}}
	}
	plainPod := gated()
	plainPod.Spec.Affinity = nil
	for name, tt := range map[string]struct {
		pod   *corev1.Pod
		place plan.Placement
		// gates are those that are left, bound the terms that name the node.
		gates, terms, bound int
	}{
		"each of the terms":  {gated(), plan.Placement{Pod: "c-0-0", UID: "pod", Node: "node1"}, 1, 2, 2},
		"a pod without any":  {plainPod, plan.Placement{Pod: "c-0-0", UID: "pod", Node: "node1"}, 1, 1, 1},
		"on any node":        {gated(), plan.Placement{Pod: "c-0-0", UID: "pod"}, 1, 2, 0},
		"another pod by now": {gated(), plan.Placement{Pod: "c-0-0", UID: "before", Node: "node1"}, 2, 2, 0},
	} {
		b := newBench(t, interceptor.Funcs{}, tt.pod.DeepCopy())
		b.must(plan.Place{Pods: []plan.Placement{tt.place, {Pod: "gone", UID: "pod"}}})
		var got corev1.Pod
		if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(tt.pod), &got); err != nil {
			t.Fatal(err)
		}
		terms, bound := 0, 0
		if got.Spec.Affinity != nil {
			for _, term := range got.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				terms++
				for _, here := range term.MatchFields {
					if here.Key == "metadata.name" && slices.Equal(here.Values, []string{"node1"}) {
						bound++
					}
				}
			}
		}
		if diff := cmp.Diff([]int{tt.gates, tt.terms, tt.bound}, []int{len(got.Spec.SchedulingGates), terms, bound}); diff != "" {
			t.Errorf("%s: gates, terms and bound terms (-want +got):\n%s", name, diff)
		}
		if !slices.Contains(got.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: "another.example.com/gate"}) {
			t.Errorf("%s: the gate of another is gone: %v", name, got.Spec.SchedulingGates)
		}
	}
}

func TestPlaceRefused(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "c-0-0", errors.New("no"))
	timeout := errors.New("timeout")
	get := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, pod := o.(*corev1.Pod); pod {
				return err
			}
			return c.Get(ctx, key, o, options...)
		}}
	}
	patch := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return err
		}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-0", UID: "pod"}}
	for name, tt := range map[string]struct {
		fails  interceptor.Funcs
		stalls bool
	}{
		"may not read": {get(forbidden), true}, "cannot read": {get(timeout), false},
		"may not write": {patch(forbidden), true}, "cannot write": {patch(timeout), false},
	} {
		err := newBench(t, tt.fails, pod.DeepCopy()).do(plan.Place{Pods: []plan.Placement{{Pod: "c-0-0", UID: "pod", Node: "node1"}}})
		var stall *StallError
		if stalls := errors.As(err, &stall); stalls != tt.stalls || err == nil || !stalls && !errors.Is(err, timeout) {
			t.Errorf("%s: got %v, want a stall: %t", name, err, tt.stalls)
		}
	}
}

// Without the consent of other masters only if the plan says so: while most of them do not answer, a vote is not won.
func TestPromoteAsksForVotes(t *testing.T) {
	for _, takeover := range []bool{false, true} {
		b := newBench(t, interceptor.Funcs{})
		b.meetAll()
		b.must(plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[1], MasterID: b.targets[0].NodeID}}})
		var asked []string
		b.world.OnCommand(func(_ *redistest.Node, args []string) {
			if words := strings.ToUpper(strings.Join(args, " ")); strings.HasPrefix(words, "CLUSTER FAILOVER") {
				asked = append(asked, words)
			}
		})
		b.must(plan.Promote{Replica: b.targets[1], Takeover: takeover})
		want := "CLUSTER FAILOVER FORCE"
		if takeover {
			want = "CLUSTER FAILOVER TAKEOVER"
		}
		if diff := cmp.Diff([]string{want}, asked); diff != "" {
			t.Error(diff)
		}
	}
}

// Nobody votes about a takeover, and who decided on it may have been stopped since: it is looked at once more whether the master still
// does not run, and told to nobody who is a master already.
func TestTakeoverLooksOnceMore(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(b *bench)
		change func(step *plan.Promote)
		told   int
		fails  string
	}{
		"it does not run":  {told: 1},
		"it runs again":    {before: func(b *bench) { b.world.Restart(b.nodes[0], "10.0.0.77", true) }, fails: "it has a master again"},
		"somebody listens": {change: func(step *plan.Promote) { step.Silent = []string{step.Replica.IP + ":6379"} }, fails: "may run again"},
		"nobody listens":   {change: func(step *plan.Promote) { step.Silent = []string{"10.0.0.99:6379"} }, told: 1},
		"another one's":    {change: func(step *plan.Promote) { step.Lost = step.Replica.NodeID }, fails: "it has a master again"},
		"another has succeeded": {change: func(step *plan.Promote) { step.Others = []plan.Target{{Pod: "c-2-0", IP: "10.0.0.3"}} },
			before: func(b *bench) {
				b.must(plan.Promote{Replica: b.targets[2], Takeover: true})
			}, fails: "c-2-0 is a master of its shard"},
		"another has not": {change: func(step *plan.Promote) { step.Others = []plan.Target{{Pod: "c-2-0", IP: "10.0.0.3"}} }, told: 1},
		"another does not answer": {change: func(step *plan.Promote) { step.Others = []plan.Target{{Pod: "c-2-0", IP: "10.0.0.3"}} },
			before: func(b *bench) { b.world.Kill(b.nodes[2]) }, fails: "identify c-2-0"},
		"it took too long": {before: func(b *bench) {
			clock := time.Now()
			b.actor.Now = func() time.Time { clock = clock.Add(1100 * time.Millisecond); return clock }
		}, fails: "its master may have started"},
		"it took as long as it may": {before: func(b *bench) {
			clock := time.Now()
			b.actor.Now = func() time.Time { clock = clock.Add(time.Second); return clock }
		}, told: 1},
		"it does not say what it follows": {before: func(b *bench) {
			b.world.FailNext(b.nodes[1], "CLUSTER NODES", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
		}, fails: "look at c-1-0 before it is promoted"},
		"another does not say what it owns": {change: func(step *plan.Promote) { step.Others = []plan.Target{{Pod: "c-2-0", IP: "10.0.0.3"}} },
			before: func(b *bench) {
				b.world.FailNext(b.nodes[2], "CLUSTER NODES", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
			}, fails: "look at c-2-0 before c-1-0 is promoted"},
		"inherited": {change: func(step *plan.Promote) { step.Inherited = true }, told: 1},
		"inherited, and it has a link": {change: func(step *plan.Promote) { step.Inherited = true },
			before: func(b *bench) { b.world.Restart(b.nodes[0], "10.0.0.77", true) }, told: 1},
		"it has taken over":   {before: func(b *bench) { b.must(plan.Promote{Replica: b.targets[1], Takeover: true}) }},
		"it cannot be looked": {before: func(b *bench) { b.world.Kill(b.nodes[1]) }, fails: "identify"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			b.must(plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[0], Slots: slots.All(), Epoch: 1}}})
			b.meetAll()
			b.must(plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[1], MasterID: b.targets[0].NodeID},
				{Replica: b.targets[2], MasterID: b.targets[0].NodeID}}})
			b.world.Run(2 * time.Second)
			b.world.Kill(b.nodes[0])
			b.world.Run(2 * time.Second)
			if tt.before != nil {
				tt.before(b)
				b.world.Run(2 * time.Second)
			}
			told := 0
			b.world.OnCommand(func(_ *redistest.Node, args []string) {
				if strings.EqualFold(strings.Join(args, " "), "CLUSTER FAILOVER TAKEOVER") {
					told++
				}
			})
			step := plan.Promote{Replica: b.targets[1], Takeover: true, Lost: b.targets[0].NodeID}
			if tt.change != nil {
				tt.change(&step)
			}
			for i := range step.Others {
				step.Others[i].NodeID = b.targets[2].NodeID
			}
			err := b.do(step)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) || told != tt.told {
				t.Errorf("told %d times, %v; want %d times, %q", told, err, tt.told, tt.fails)
			}
		})
	}
}

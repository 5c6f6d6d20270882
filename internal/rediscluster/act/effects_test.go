// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// A pod is led into the Service and out of it by its condition; conditions of others stay, and a pod that is gone needs none.
func TestServingCondition(t *testing.T) {
	b := world3(t, interceptor.Funcs{})
	conditions := func() map[corev1.PodConditionType]corev1.ConditionStatus {
		var pod corev1.Pod
		if err := b.actor.Client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "c-0-0"}, &pod); err != nil {
			t.Fatal(err)
		}
		found := map[corev1.PodConditionType]corev1.ConditionStatus{}
		for _, condition := range pod.Status.Conditions {
			found[condition.Type] = condition.Status
		}
		return found
	}
	b.must(plan.AddToEndpoints{Pods: []string{"gone", "c-0-0"}})
	if diff := cmp.Diff(map[corev1.PodConditionType]corev1.ConditionStatus{v1alpha1.PodConditionServing: "True"}, conditions()); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	b.must(plan.RemoveFromEndpoints{Pods: []string{"c-0-0"}})
	if diff := cmp.Diff(map[corev1.PodConditionType]corev1.ConditionStatus{v1alpha1.PodConditionServing: "False"}, conditions()); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
}

// Only the shards that are named are deleted, of those only what is the cluster's, and nothing that has changed since it was decided.
func TestRemovesNamedShards(t *testing.T) {
	set := func(name string) *appsv1.StatefulSet {
		return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "set",
			Labels:          map[string]string{v1alpha1.LabelCluster: "c"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "RedisCluster", Name: "c", UID: "uid", Controller: ptr.To(true)}}}}
	}
	foreign := set("c-3")
	foreign.OwnerReferences[0].UID = "another"
	b := newBench(t, interceptor.Funcs{}, set("c-0"), set("c-1"), set("c-2"), foreign, set("c-x"))
	b.must(plan.RemoveShards{Shards: map[int]string{1: "999", 3: "999"}})
	if err := b.do(plan.RemoveShards{Shards: map[int]string{0: "998"}}); !apierrors.IsConflict(err) {
		t.Errorf("c-0 is another version than was seen: %v", err)
	}
	var left appsv1.StatefulSetList
	if err := b.actor.Client.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, set := range left.Items {
		names = append(names, set.Name)
	}
	if diff := cmp.Diff([]string{"c-0", "c-2", "c-3", "c-x"}, names); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// Orphans keep running: also the Secret of their password, which is read by name, loses its owner, and need not exist.
func TestOrphansKeepTheirPassword(t *testing.T) {
	for _, exists := range []bool{true, false} {
		b := world3(t, interceptor.Funcs{})
		if exists {
			b.must(plan.CreateAuth{})
		}
		b.must(plan.OrphanChildren{})
		for _, child := range []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-auth"}},
			&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0"}}} {
			err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(child), child)
			if err != nil && exists || len(child.GetOwnerReferences()) > 0 {
				t.Errorf("%s: %v, owners %v", child.GetName(), err, child.GetOwnerReferences())
			}
		}
	}
}

// Orphans keep the certificate that was made for them, which is renewed on. As long as it is not known whether there is one, a StatefulSet
// keeps its owner: the step is done again.
func TestOrphansKeepTheirCertificate(t *testing.T) {
	unread := errors.New("timeout")
	noKind := &meta.NoKindMatchError{GroupKind: values.Certificate.GroupKind()}
	for name, tt := range map[string]struct {
		noted, there  bool
		answer, fails error
		left          [2]int // owners of the Certificate and of the StatefulSet
	}{
		"it is renewed on":     {noted: true, there: true},
		"it is gone":           {noted: true},
		"cert-manager is gone": {noted: true, answer: noKind},
		"it cannot be read":    {noted: true, there: true, answer: unread, fails: unread, left: [2]int{1, 1}},
		"none was made":        {there: true, answer: unread, left: [2]int{1, 0}},
	} {
		answer := tt.answer
		set := set("c-0", ours)
		b := newBench(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if answer != nil && o.GetObjectKind().GroupVersionKind() == values.Certificate {
				return answer
			}
			return c.Get(ctx, key, o, options...)
		}}, set)
		certificate := &unstructured.Unstructured{}
		certificate.SetGroupVersionKind(values.Certificate)
		certificate.SetNamespace("n")
		certificate.SetName("c-tls")
		certificate.SetOwnerReferences([]metav1.OwnerReference{*ours})
		if tt.there {
			if err := b.actor.Client.Create(t.Context(), certificate); err != nil {
				t.Fatal(err)
			}
		}
		if tt.noted {
			b.subject.Cluster.Status.Certificate = "c-tls"
		}
		if err := b.do(plan.OrphanChildren{}); !errors.Is(err, tt.fails) || err != nil && tt.fails == nil {
			t.Errorf("%s: %v", name, err)
		}
		answer = nil
		left := [2]int{}
		for i, object := range []client.Object{certificate, set} {
			if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err == nil {
				left[i] = len(object.GetOwnerReferences())
			}
		}
		if left != tt.left {
			t.Errorf("%s: they have %v owners, want %v", name, left, tt.left)
		}
	}
}

// Steps that follow a look at instances do nothing to any if one of them is another by now, and say which.
func TestIdentityOfEachEnd(t *testing.T) {
	one := func(of func([]plan.Target) plan.Step) func(_, wrong plan.Target) plan.Step {
		return func(_, wrong plan.Target) plan.Step { return of([]plan.Target{wrong}) }
	}
	for name, step := range map[string]func(right, wrong plan.Target) plan.Step{
		"Switchover, the master":  func(right, wrong plan.Target) plan.Step { return plan.Switchover{Master: wrong, Replica: right} },
		"Switchover, the replica": func(right, wrong plan.Target) plan.Step { return plan.Switchover{Master: right, Replica: wrong} },
		"RepairSlots, the source": func(right, wrong plan.Target) plan.Step {
			return plan.RepairSlots{Moves: []plan.Move{{From: wrong, To: right, Slots: slots.Of(7)}}}
		},
		"RepairSlots, the destination": func(right, wrong plan.Target) plan.Step {
			return plan.RepairSlots{Moves: []plan.Move{{From: right, To: wrong, Slots: slots.Of(7)}}}
		},
		"StabilizeSlots": func(_, wrong plan.Target) plan.Step {
			return plan.StabilizeSlots{Stabilizations: []plan.Stabilization{{On: wrong, Slots: slots.Of(7)}}}
		},
		"RewriteAOF": func(_, wrong plan.Target) plan.Step { return plan.RewriteAOF{On: wrong} },
		"ReclaimSlots": func(_, wrong plan.Target) plan.Step {
			return plan.ReclaimSlots{Claims: []plan.Claim{{On: wrong, Slots: slots.Of(16383)}}}
		},
		"CopyFunctions, the source": func(right, wrong plan.Target) plan.Step {
			return plan.CopyFunctions{From: wrong, To: []plan.Target{right}}
		},
		"CopyFunctions, the destination": func(right, wrong plan.Target) plan.Step {
			return plan.CopyFunctions{From: right, To: []plan.Target{wrong}}
		},
		"SetConfig": func(_, wrong plan.Target) plan.Step {
			return plan.SetConfig{Changes: []plan.InstanceConfig{{On: wrong, Settings: map[string]string{"hz": "20"}}}}
		},
		"AssignSlots": func(_, wrong plan.Target) plan.Step {
			return plan.AssignSlots{Assignments: []plan.Assignment{{To: wrong, Slots: slots.Of(7), Epoch: 7}}}
		},
		"Replicate": func(right, wrong plan.Target) plan.Step {
			return plan.Replicate{Replications: []plan.Replication{{Replica: wrong, MasterID: right.NodeID}}}
		},
		"CutOver": func(_, wrong plan.Target) plan.Step {
			return plan.CutOver{Followers: []plan.Follower{{On: wrong, Relay: "10.0.0.1"}}, Pause: time.Minute}
		},
		"Promote":   func(_, wrong plan.Target) plan.Step { return plan.Promote{Replica: wrong} },
		"BumpEpoch": func(_, wrong plan.Target) plan.Step { return plan.BumpEpoch{On: wrong} },
		"Forget": func(right, wrong plan.Target) plan.Step {
			return plan.Forget{On: []plan.Target{wrong}, NodeIDs: []string{right.NodeID}}
		},
		"SetAccess":          one(func(on []plan.Target) plan.Step { return plan.SetAccess{On: on} }),
		"CancelJobs":         one(func(on []plan.Target) plan.Step { return plan.CancelJobs{On: on} }),
		"ReloadCertificates": one(func(on []plan.Target) plan.Step { return plan.ReloadCertificates{On: on} }),
		"SetTLS": one(func(on []plan.Target) plan.Step {
			var changes []plan.InstanceConfig
			for _, t := range on {
				changes = append(changes, plan.InstanceConfig{On: t, Settings: map[string]string{"tls-cluster": "yes"}})
			}
			return plan.SetTLS{Changes: changes}
		}),
		"SetNodeTimeout": one(func(on []plan.Target) plan.Step { return plan.SetNodeTimeout{On: on, Timeout: time.Second} }),
	} {
		b := world3(t, interceptor.Funcs{})
		wrong := b.targets[1]
		wrong.NodeID = b.targets[2].NodeID
		told := b.told("C") // CLUSTER SETSLOT, CLUSTER FAILOVER, CONFIG SET, CLIENT PAUSE
		err := b.do(step(b.targets[0], wrong))
		if err == nil || !strings.Contains(err.Error(), "c-1-0 at 10.0.0.2 is node") {
			t.Errorf("%s: %v", name, err)
		}
		for _, command := range *told {
			if command[3:] != "CLUSTER MYID" {
				t.Errorf("%s: told %s", name, command)
			}
		}
	}
}

// An instance that cannot be asked who it is, is told nothing, and named.
func TestWhoDoesNotAnswerIsNamed(t *testing.T) {
	b := world3(t, interceptor.Funcs{})
	b.world.Kill(b.nodes[1])
	for name, err := range map[string]error{
		"one": b.do(plan.BumpEpoch{On: b.targets[1]}),
		"one of several, whose slots move": b.do(plan.MoveSlots{Moves: []plan.Move{
			{From: b.targets[1], To: b.targets[2], Slots: slots.Of(7)}}}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "identify c-1-0: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a source or a destination says when functions are copied is told with the names of both.
func TestFunctionsThatAreNotCopied(t *testing.T) {
	for command, tt := range map[string]struct {
		node int
		says string
	}{"FUNCTION DUMP": {0, "read the functions of c-0-0: "}, "FUNCTION RESTORE": {1, "copy the functions of c-0-0 to c-1-0: "}} {
		b := owning(t)
		restored := b.told("FUNCTION RESTORE")
		b.world.FailNext(b.nodes[tt.node], command, redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
		err := b.do(plan.CopyFunctions{From: b.targets[0], To: b.targets[1:2]})
		if err == nil || !strings.HasPrefix(err.Error(), tt.says) {
			t.Errorf("%s: %v", command, err)
		}
		if command == "FUNCTION DUMP" && len(*restored) > 0 {
			t.Errorf("%s: told %v", command, *restored)
		}
	}
}

// A slot that cannot be closed, or marked at its source, is an error that names who refused.
func TestMarksThatAreRefused(t *testing.T) {
	no := redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"}
	b := owning(t)
	b.world.FailNext(b.nodes[0], "CLUSTER SETSLOT", no)
	err := b.do(plan.StabilizeSlots{Stabilizations: []plan.Stabilization{{On: b.targets[0], Slots: slots.Of(7)}}})
	if err == nil || !strings.HasPrefix(err.Error(), "close slots 7 at c-0-0: ") {
		t.Errorf("closed: %v", err)
	}
	b.world.FailNext(b.nodes[0], "CLUSTER SETSLOT", no)
	err = b.do(plan.RepairSlots{Moves: []plan.Move{{From: b.targets[0], To: b.targets[2], Slots: slots.Of(7)}}})
	if err == nil || !strings.HasPrefix(err.Error(), "mark slots 7 at c-0-0: ") {
		t.Errorf("marked: %v", err)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// newSmall is a cluster with so many shards, whose instances know nobody.
func newSmall(t *testing.T, seed uint64, shards, perShard int, valkey bool) *simulation {
	t.Helper()
	s := prepared(t, seed, perShard, valkey)
	s.cluster.Spec.Shards, s.cluster.Spec.Replicas = ptr.To(int32(shards)), ptr.To(int32(shards*perShard))
	s.populate()
	return s
}

// formedSmall makes clusters with so many shards of three instances, which have formed.
func formedSmall(shards int) func(t *testing.T, valkey bool) *simulation {
	return func(t *testing.T, valkey bool) *simulation {
		t.Helper()
		s := newSmall(t, 1, shards, 3, valkey)
		s.converge()
		return s
	}
}

// becomesThree asks for two shards more, with some slots of the only one.
func becomesThree(s *simulation) {
	some := v1alpha1.AssignStrategy{Slots: 8, FromReplicas: s.named(s.master(0)).node.ID()}
	s.cluster.Spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AssignReceive,
		AssignStrategies: []v1alpha1.AssignStrategy{some, some}}
	s.scale(3, 2)
}

// becomesOne asks for one shard again.
func becomesOne(s *simulation) {
	s.cluster.Spec.UpdateStrategy = v1alpha1.SlotStrategy{}
	s.scale(1, 3)
}

// tells writes what the kubelet tells of an instance's container: it runs, or it has ended.
func (s *simulation) tells(in *instance, running bool) {
	s.t.Helper()
	if err := s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(in.pod), in.pod); err != nil {
		s.t.Fatal(err)
	}
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	if !running {
		state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(s.world.Now())}}
	}
	in.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "redis", State: state}}
	if err := s.kube.Status().Update(s.t.Context(), in.pod); err != nil {
		s.t.Fatal(err)
	}
}

// crashMaster ends the process of a shard's master. Its kubelet says so, and starts it again at its address half a minute later.
func (s *simulation) crashMaster(shard int) {
	in := s.named(s.master(shard))
	s.world.Kill(in.node)
	s.tells(in, false)
	s.say("--- %s crashes", in.pod.Name)
	at := s.world.Now().Add(30 * time.Second)
	s.kubelet = func() {
		if s.world.Now().Before(at) {
			return
		}
		s.kubelet = nil
		if s.find(in.pod.Name) != in {
			return // it is another pod's by now
		}
		s.tells(in, true)
		s.world.Restart(in.node, in.pod.Status.PodIP, true)
		s.say("--- %s runs again", in.pod.Name)
	}
	s.awaits = func() bool { return s.kubelet == nil }
}

// A master of so few that nobody is elected crashes: a replica is appointed without waiting for the node timeout, what was
// written is there, and the former master follows when it is back.
func TestSuccessorOfACrashedMasterIsAppointed(t *testing.T) {
	eachSeed(t, 10, func(t *testing.T, seed uint64) {
		shards := 1 + int(seed%2)
		s := newSmall(t, seed, shards, 2+int(seed/2%2), seed%4 > 1)
		s.converge()
		for generation := range 3 {
			s.write(generation)
			former := s.master(0)
			s.crashMaster(0)
			if s.random.IntN(2) == 0 {
				s.unreliable()
			}
			began := s.world.Now()
			for s.observe().Masters()[0] == nil {
				if s.reconcile(); s.world.Now().Sub(began) > 25*time.Second {
					s.fail("nobody has been appointed")
				}
				s.world.Run(time.Second)
			}
			s.converge()
			s.world.Run(30 * time.Second)
			s.rest()
			s.wantHealthy()
			s.wantData(generation, everyShard)
			if s.master(0) == former {
				s.fail("%s is the master again", former)
			}
		}
	})
}

// Without proof that the only master has stopped nobody is appointed, as long as that takes: it may be taking writes where neither the
// operator nor its replicas reach it, also when its kubelet, which cannot say otherwise any more, had said that it ended.
func TestNobodyIsAppointedWithoutProof(t *testing.T) {
	for shards := 1; shards <= 2; shards++ {
		for _, told := range []string{"running", "ended"} {
			t.Run(fmt.Sprintf("%d shards, said to be %s", shards, told), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { nobodyIsAppointed(t, shards, told == "running") })
			})
		}
	}
}

func nobodyIsAppointed(t *testing.T, shards int, running bool) {
	t.Helper()
	s := newSmall(t, 3, shards, 3, false)
	s.converge()
	s.write(1)
	cut := s.named(s.master(0))
	s.tells(cut, running)
	s.world.Partition(cut.node)
	for pass := range 60 {
		switch step := s.reconcile().(type) {
		case plan.Wait:
			if pass > 30 && (step.BlockedBy != plan.NodeStopped || !strings.Contains(step.Reason, cut.pod.Name) ||
				!strings.Contains(step.Reason, "out-of-service")) {
				s.fail("it waits for %s: %s", step.BlockedBy, step.Reason)
			}
		case plan.None, plan.RemoveFromEndpoints:
		default:
			s.fail("%s: %s", step.Name(), step.Why())
		}
		s.world.Run(time.Second)
	}
	s.tells(cut, true)
	s.world.Heal()
	s.converge()
	s.wantHealthy()
	s.wantData(1, everyShard)
	if s.master(0) != cut.pod.Name {
		s.fail("%s is the master", s.master(0))
	}
}

// A pod that Kubernetes has made again, and which no node has room for, does not run: its claim stays, and a replica takes over. When
// it is back, with what it had, it follows.
func TestMasterWithoutANodeIsSucceeded(t *testing.T) {
	eachSeed(t, 4, func(t *testing.T, seed uint64) {
		s := newSmall(t, seed, 1+int(seed%2), 2, seed > 1)
		s.converge()
		s.write(1)
		in := s.named(s.master(0))
		s.world.Kill(in.node)
		s.homeless(in, true)
		for passes := 0; s.observe().Masters()[0] == nil; passes++ {
			if s.reconcile(); passes > 30 {
				s.fail("nobody has been appointed")
			}
			s.world.Run(time.Second)
		}
		s.homeless(in, false)
		s.restart(in, true)
		s.converge()
		s.wantHealthy()
		s.wantData(1, everyShard)
	})
}

// homeless takes the node from a pod, and its address, or gives it one again.
func (s *simulation) homeless(in *instance, is bool) {
	s.t.Helper()
	if err := s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(in.pod), in.pod); err != nil {
		s.t.Fatal(err)
	}
	in.pod.Spec.NodeName = map[bool]string{true: "", false: "node0"}[is]
	if err := s.kube.Update(s.t.Context(), in.pod); err != nil {
		s.t.Fatal(err)
	}
	in.pod.Status.Phase, in.pod.Status.PodIP = corev1.PodRunning, s.address()
	if is {
		in.pod.Status.Phase, in.pod.Status.PodIP = corev1.PodPending, ""
	}
	if err := s.kube.Status().Update(s.t.Context(), in.pod); err != nil {
		s.t.Fatal(err)
	}
}

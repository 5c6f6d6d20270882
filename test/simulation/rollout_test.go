// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// retemplate changes the template of all StatefulSets.
func (s *simulation) retemplate(revision string) {
	s.template = revision
	var sets appsv1.StatefulSetList
	if err := s.kube.List(s.t.Context(), &sets); err != nil {
		s.t.Fatal(err)
	}
	for i := range sets.Items {
		sets.Items[i].Status.UpdateRevision = revision + s.ports
		if err := s.kube.Status().Update(s.t.Context(), &sets.Items[i]); err != nil {
			s.t.Fatal(err)
		}
	}
	s.say("--- template %s%s", revision, s.ports)
}

// replaced gives the StatefulSets the pods back that were evicted, with the template of now, and returns their names.
func (s *simulation) replaced(keepsData bool) []string {
	var names []string
	for _, in := range s.instances {
		if err := s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(in.pod), in.pod.DeepCopy()); !apierrors.IsNotFound(err) {
			continue
		}
		var shard, ordinal int
		if _, err := fmt.Sscanf(in.pod.Name, s.cluster.Name+"-%d-%d", &shard, &ordinal); err != nil {
			s.t.Fatal(err)
		}
		in.pod = s.pod(shard, ordinal)
		if s.renders {
			valkey, version := s.engine()
			s.world.Upgrade(in.node, valkey, version)
			s.world.SetConfig(in.node, s.authFile())
		}
		s.world.Restart(in.node, in.pod.Status.PodIP, keepsData)
		s.say("%s is back with template %s, data kept: %t", in.pod.Name, s.template, keepsData)
		names = append(names, in.pod.Name)
	}
	return names
}

// restartByHand deletes the pod of an older template that a person is told to delete first.
func (s *simulation) restartByHand() {
	masters := s.masters()
	var first *corev1.Pod
	for _, in := range s.instances {
		set := &appsv1.StatefulSet{}
		name := in.pod.Name[:strings.LastIndex(in.pod.Name, "-")]
		if err := s.kube.Get(s.t.Context(), client.ObjectKey{Namespace: in.pod.Namespace, Name: name}, set); err != nil {
			s.t.Fatal(err)
		}
		revision := set.Status.UpdateRevision // none since the set was made: nothing is outdated
		if revision != "" && in.pod.Labels[appsv1.StatefulSetRevisionLabel] != revision && (first == nil || masters[first.Name]) {
			first = in.pod
		}
	}
	if first == nil {
		s.fail("a person is to restart what is not outdated")
	}
	s.say("--- a person deletes %s", first.Name)
	if err := s.kube.Delete(s.t.Context(), first.DeepCopy()); err != nil {
		s.t.Fatal(err)
	}
	s.replaced(true)
}

// masters are the pods whose Redis owns slots.
func (s *simulation) masters() map[string]bool {
	snap := s.observe()
	masters := map[string]bool{}
	for _, in := range snap.Reachable() {
		masters[in.Name] = !in.Redis.Slots.IsEmpty()
	}
	return masters
}

// Every instance gets the new template, one at a time, replicas before masters; each restart finds the cluster whole; no master is
// restarted; and no write fails, whatever of the operator's commands do.
func TestRollsOut(t *testing.T) {
	eachSeed(t, 12, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed, 2+int(seed%2))
		s.converge()
		app := newApplication(s)
		s.retemplate("v2")
		if seed%3 == 2 {
			s.unreliable()
		}
		restarted := map[string]int{}
		for range 600 {
			for key := range 6 {
				if name := fmt.Sprintf("key:%d", key); !app.write(name) {
					s.fail("writing %s failed", name)
				}
			}
			masters := s.masters()
			step := s.reconcile()
			if _, done := step.(plan.None); done && s.cluster.Status.Phase == "Running" {
				break
			}
			for _, pod := range s.replaced(true) {
				restarted[pod]++
				if masters[pod] {
					s.fail("%s was restarted while it was a master", pod)
				}
			}
			s.world.Run(time.Second)
		}
		s.converge()
		s.wantHealthy()
		app.wantAll()
		for _, in := range s.instances {
			if restarted[in.pod.Name] != 1 {
				s.fail("%s was restarted %d times, want once", in.pod.Name, restarted[in.pod.Name])
			}
		}
	})
}

// An operator that is killed in the middle of a switchover leaves no setting changed: neither on a master that was only prepared
// for it, nor on one that has become a replica, nor on one that restarts meanwhile.
func TestInterruptedSwitchoverLeavesNothingChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		killed   [2]string // at the first command that begins with the second, after one that begins with the first
		restarts bool
	}{
		"prepared":       {killed: [2]string{"CONFIG SET dynamic-hz no", "CLUSTER MYID"}},
		"switched over":  {killed: [2]string{"CLUSTER FAILOVER", "CONFIG SET"}},
		"and restarting": {killed: [2]string{"CLUSTER FAILOVER", "CONFIG SET"}, restarts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { interruptedSwitchover(t, tt.killed, tt.restarts) })
		})
	}
}

func interruptedSwitchover(t *testing.T, killed [2]string, restarts bool) {
	s := newSimulation(t, 1, 2)
	s.converge()
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	began := false
	s.world.OnCommand(func(n *redistest.Node, args []string) {
		command := strings.Join(args, " ")
		if began && strings.HasPrefix(command, killed[1]) {
			kill()
		}
		if ctx.Err() != nil { // whoever is dead restores nothing
			s.world.FailNext(n, args[0], redistest.Failure{Kind: redistest.DropBefore})
		}
		began = began || strings.HasPrefix(command, killed[0])
	})
	master, replica := s.named("c-0-0"), s.named("c-0-1")
	if !s.masters()[master.pod.Name] {
		master, replica = replica, master
	}
	_, err := s.loop.Actor.Do(ctx, act.Subject{Cluster: s.cluster}, plan.Switchover{Master: target(master), Replica: target(replica)})
	s.world.OnCommand(nil)
	if got := master.node.Setting("dynamic-hz"); ctx.Err() == nil || got != "no" {
		s.fail("killed: %v (%v), dynamic-hz is %q", ctx.Err(), err, got)
	}
	if restarts {
		s.restart(master, true)
	}
	s.converge()
	s.wantHealthy()
	s.wantInForce("dynamic-hz", "yes")
	s.wantInForce("hz", "10")
}

func target(in *instance) plan.Target {
	return plan.Target{Pod: in.pod.Name, IP: in.pod.Status.PodIP, NodeID: in.node.ID()}
}

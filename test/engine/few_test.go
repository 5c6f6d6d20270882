// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// One master, or two, cannot have a successor elected: one that has crashed appoints it before it starts again. What replicas had
// acknowledged is there, although its own file lacks it, and it follows.
func TestCrashedMasterOfFewIsSucceeded(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		for masters := 1; masters <= 2; masters++ {
			c := startCluster(t, e, masters, masters, 1)
			keys := c.writeAcknowledged("acknowledged", 1)
			c.servers[0].kill()
			c.servers[0].forget()
			if out := c.runStart(0); !strings.Contains(out, "takes over first") {
				t.Errorf("%d masters: start.sh printed %q", masters, out)
			}
			if view := c.view(masters); view.Role != redis.RoleMaster {
				t.Errorf("%d masters: the server starts while the replica is a %s", masters, view.Role)
			}
			c.servers[0].run()
			eventually(t, func() error { return inSync(t, c.node(0), c.ids[masters]) })
			c.wantKeys(keys)
		}
	})
}

// Nobody votes, so nobody is appointed while a replica does not answer that may have more, or a server of the directory runs.
func TestCrashedMasterOfFewIsCareful(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 2)
		s.servers[0].kill()
		s.suspend(2)
		if out := s.runStart(0); strings.Contains(out, "takes over") {
			t.Errorf("a replica hangs, and start.sh printed %q", out)
		}
		must(t, s.servers[2].process.Process.Signal(syscall.SIGCONT))
		nodes, err := os.Open(filepath.Join(s.servers[0].dir, "nodes.conf"))
		must(t, err)
		must(t, syscall.Flock(int(nodes.Fd()), syscall.LOCK_EX))
		if out := s.runStart(0); strings.Contains(out, "takes over") {
			t.Errorf("a server runs in the directory, and start.sh printed %q", out)
		}
		must(t, nodes.Close())
		if out := s.runStart(0); !strings.Contains(out, "takes over first") {
			t.Errorf("start.sh printed %q", out)
		}
	})
}

// A former master of few, whose successor was appointed while it was away and does not answer, waits for it: alone it would take writes
// that are lost.
func TestFormerMasterOfFewAsksOn(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 1, 1, 1)
		c.servers[0].kill()
		must(t, c.direct(1).Do(t.Context(), "cluster", "failover", "takeover").Err())
		must(t, c.servers[1].process.Process.Signal(syscall.SIGSTOP))
		printed := c.goStart(0, "")
		time.Sleep(3 * time.Second) // an answer is waited for this long at most, and then asked for again
		select {
		case out := <-printed:
			t.Fatalf("the server starts alone: %q", out)
		default:
		}
		must(t, c.servers[1].process.Process.Signal(syscall.SIGCONT))
		if out := <-printed; strings.Contains(out, "takes over") {
			t.Errorf("start.sh printed %q", out)
		}
	})
}

// The server holds the lock of its directory for as long as it runs, whatever it does with its files: nobody is appointed meanwhile, and
// no second server starts.
func TestServerHoldsItsDirectory(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 1, 1, 1)
		s, script := c.servers[0], c.startScript(0, "", e.command)
		s.kill()
		s.engine.command = filepath.Join(t.TempDir(), "start")
		writeProgram(t, s.engine.command, fmt.Sprintf("#!/bin/sh\n%s exec sh %q %q \"$@\"\n", script.Env[len(script.Env)-1], script.Args[1],
			e.command))
		s.run()
		s.engine = e
		eventually(t, func() error { return inSync(t, c.node(0), c.ids[1]) })
		eventually(t, func() error { // it writes nodes.conf anew; what begins before both know that they are in sync comes to nothing
			_ = c.direct(0).Do(t.Context(), "cluster", "failover").Err() // of the master an error
			return inSync(t, c.node(1), c.ids[0])
		})
		// It may be writing its AOF anew after the resync, and saves nothing beside that.
		eventually(t, func() error { return c.direct(0).BgSave(t.Context()).Err() })
		printed := c.goStart(0, "")
		time.Sleep(3 * time.Second) // as long as it takes to appoint somebody, several times
		select {
		case out := <-printed:
			t.Fatalf("a second server starts: %q", out)
		default:
		}
		if first, second := c.view(0).Role, c.view(1).Role; first != redis.RoleMaster || second != redis.RoleReplica {
			t.Errorf("they are a %s and a %s while the server runs", first, second)
		}
		s.kill()
		if out := <-printed; !strings.Contains(out, "waits for its end") || !strings.Contains(out, "takes over first") {
			t.Errorf("start.sh printed %q", out)
		}
	})
}

// tells writes what the kubelet tells of a pod's container.
func (o *operated) tells(p *operatedPod, state corev1.ContainerState) {
	o.t.Helper()
	must(o.t, o.kube.Get(o.t.Context(), client.ObjectKeyFromObject(p.pod), p.pod))
	p.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "redis", State: state}}
	must(o.t, o.kube.Status().Update(o.t.Context(), p.pod))
}

func hasEnded() corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
}

func runs() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
}

// The operator appoints the successor of a master whose container has ended, at once. The former one follows it when it is back.
func TestOperatorAppointsASuccessor(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		for _, topology := range [][]int32{{3}, {2, 2}} {
			o := operate(t, e, topology...)
			o.fill(100)
			crashed := o.master(0)
			o.stop(crashed)
			o.tells(crashed, hasEnded())
			step := o.until("Promote")
			if promote, is := step.(plan.Promote); !is || !promote.Takeover {
				t.Errorf("%s: %s", step.Name(), step.Why())
			}
			if n := o.kept(100); n != 100 {
				t.Errorf("%d of 100 keys are kept while %s is away", n, crashed.pod.Name)
			}
			eventually(t, func() error { return o.client().Set(t.Context(), "key:0", "0", 0).Err() })
			o.tells(crashed, runs())
			o.again(crashed, false, false)
			o.converge()
			if view := o.view(crashed); view.Role != redis.RoleReplica {
				t.Errorf("the former master is a %s", view.Role)
			}
			if n := o.kept(100); n != 100 {
				t.Errorf("%d of 100 keys are kept", n)
			}
		}
	})
}

// A master that hangs, or that a stale status says to have ended, may be taking writes: nobody is appointed, and the status says why.
func TestOperatorAppointsNobodyWithoutProof(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2)
		o.fill(50)
		hung := o.master(0)
		for name, state := range map[string]corev1.ContainerState{"runs": runs(), "has ended": hasEnded()} {
			must(t, hung.server.process.Process.Signal(syscall.SIGSTOP))
			o.tells(hung, state)
			told := false
			for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				step := o.reconcile()
				if plan.Is[plan.Promote](step) {
					t.Fatalf("it %s: %s", name, step.Why())
				}
				told = told || strings.Contains(step.Why(), "is not appointed")
			}
			if !told {
				t.Errorf("it %s, and nobody is told why nothing happens:\n%s", name, strings.Join(o.steps, "\n"))
			}
			must(t, hung.server.process.Process.Signal(syscall.SIGCONT))
			o.tells(hung, runs())
			o.converge()
		}
		if n := o.kept(50); n != 50 || o.master(0) != hung {
			t.Errorf("%d of 50 keys are kept", n)
		}
	})
}

// renders makes StatefulSets and pods be as the chart renders them for a topology.
func (o *operated) renders(shape plan.Shape) {
	o.t.Helper()
	for shard, replicas := range shape.Topology {
		set := &appsv1.StatefulSet{}
		err := o.kube.Get(o.t.Context(), client.ObjectKey{Namespace: "engines", Name: o.cluster.ShardName(shard)}, set)
		if apierrors.IsNotFound(err) {
			o.beginShard(shard, replicas, func(int, string) {})
			continue
		}
		must(o.t, err)
		for ordinal := *set.Spec.Replicas; ordinal < replicas; ordinal++ {
			o.add(shard, int(ordinal), set.Labels, o.t.TempDir())
		}
		if *set.Spec.Replicas != replicas {
			set.Spec.Replicas = ptr.To(replicas)
			must(o.t, o.kube.Update(o.t.Context(), set))
		}
	}
	o.pods = slices.DeleteFunc(o.pods, func(p *operatedPod) bool {
		shard, ordinal, _ := o.cluster.InstanceOf(p.pod.Name)
		if shard < len(shape.Topology) && ordinal < int(shape.Topology[shard]) {
			return false
		}
		must(o.t, o.kube.Delete(o.t.Context(), p.pod.DeepCopy()))
		p.server.kill()
		return true
	})
	for shard := len(shape.Topology); shard < 3; shard++ {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "engines", Name: o.cluster.ShardName(shard)}}
		must(o.t, client.IgnoreNotFound(o.kube.Delete(o.t.Context(), set)))
	}
}

// kept ends a load, and asserts that all that was acknowledged is there: what was written last, or a write after it whose answer
// was not heard.
func (l *load) kept(client *goredis.ClusterClient) {
	l.t.Helper()
	l.stop()
	l.wait.Wait()
	for _, keys := range l.written {
		for key, acknowledged := range keys {
			if value, err := client.Get(l.t.Context(), key).Int(); err != nil || value < acknowledged {
				l.t.Errorf("%s is %d (%v); %d was acknowledged", key, value, err, acknowledged)
			}
		}
	}
	l.t.Logf("%d commands of clients, %d failed", l.commands, len(l.failures))
}

// A cluster begins with one shard, a person has its replica take over, it becomes one of three shards, and one of one again: no
// command of an application fails before instances go, and nothing that was acknowledged is lost. (When instances go, a client that
// has not asked again who owns which slots dials them in vain for a while.)
func TestOneShardGrowsAndShrinks(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2)
		o.rendered = o.renders
		l := startLoadBy(t, o.client(), "load")
		replica := "c-0-1"
		if o.master(0).pod.Name == replica {
			replica = "c-0-0"
		}
		o.cluster.Annotations = map[string]string{v1alpha1.AnnotationSwitchover: replica}
		stored := o.cluster.DeepCopy()
		must(t, o.kube.Create(t.Context(), stored))
		o.cluster.ResourceVersion = stored.ResourceVersion
		o.until("EndSwitchover")
		if is := o.master(0).pod.Name; is != replica {
			t.Errorf("%s is the master", is)
		}
		for generation, shards := range []int32{3, 1} {
			if shards == 1 {
				l.end()
				l = startLoadBy(t, o.client(), "less")
			}
			o.cluster.Spec.Shards, o.cluster.Spec.Replicas = ptr.To(shards), ptr.To(2*shards)
			o.cluster.Spec.UpdateStrategy = v1alpha1.SlotStrategy{}
			if shards > 1 { // a busy machine takes minutes for two thirds of all
				some := v1alpha1.AssignStrategy{Slots: 300, FromReplicas: o.view(o.master(0)).NodeID}
				o.cluster.Spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AssignReceive,
					AssignStrategies: []v1alpha1.AssignStrategy{some, some}}
			}
			o.cluster.Generation = int64(generation + 2)
			before := l.count()
			o.until("RecordGoal", "MoveSlots")
			o.converge()
			if masters, pods := len(o.seen.Masters()), len(o.pods); masters != int(shards) || pods != int(2*shards) {
				t.Errorf("%d masters of %d instances, want %d of %d", masters, pods, shards, 2*shards)
			}
			if l.count() == before {
				t.Errorf("nothing was written")
			}
		}
		l.kept(o.client())
		if t.Failed() {
			t.Log(fmt.Sprint(strings.Join(o.steps, "\n")))
		}
	})
}

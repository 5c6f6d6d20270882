// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// hibernates makes StatefulSets of what is asked of them: all pods stop at about the same time, in any order, and start again elsewhere.
func (o *operated) hibernates() {
	o.rendered = func(shape plan.Shape) {
		if shape.Dormant == o.dormant {
			return
		}
		o.dormant = shape.Dormant
		for shard, replicas := range shape.Topology {
			set := &appsv1.StatefulSet{}
			must(o.t, o.kube.Get(o.t.Context(), client.ObjectKey{Namespace: "engines", Name: o.cluster.ShardName(shard)}, set))
			if o.dormant {
				replicas = 0
			}
			set.Spec.Replicas = ptr.To(replicas)
			must(o.t, o.kube.Update(o.t.Context(), set))
		}
		var stopping sync.WaitGroup
		for _, i := range rand.Perm(len(o.pods)) {
			p := o.pods[i]
			if o.dormant {
				stopping.Go(func() {
					_ = p.server.process.Process.Signal(syscall.SIGTERM) // one that has ended is what is wanted
					<-p.server.ended
				})
				must(o.t, o.kube.Delete(o.t.Context(), &corev1.Pod{ObjectMeta: *p.pod.ObjectMeta.DeepCopy()}))
				continue
			}
			o.ensure(p)
			o.start(p, loopback(o.t))
		}
		stopping.Wait()
	}
}

// cycles is how often a cluster is hibernated and wakes: of four engines, a hundred times in all with E2E=all.
func cycles() int {
	if os.Getenv("E2E") == "all" {
		return 25
	}
	return 3
}

// A cluster that is hibernated under load and wakes at other addresses has every key that was acknowledged, and its instances are the
// nodes that they were, in the roles that they had.
func TestHibernation(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2, 2, 2)
		o.hibernates()
		o.converge()
		o.fill(manyKeys)
		acknowledged := map[string]string{}
		for cycle := range cycles() {
			roles := o.roles()
			end := o.increase(cycle, acknowledged)
			o.cluster.Spec.Hibernate = true
			o.until("Sleep")
			end()
			o.cluster.Spec.Hibernate = false
			o.converge()
			if got := o.roles(); got != roles {
				t.Errorf("cycle %d: the roles were %s, and are %s", cycle, roles, got)
			}
		}
		if kept := o.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys are left", kept, manyKeys)
		}
		c := o.client()
		for key, want := range acknowledged {
			if got, err := c.Get(t.Context(), key).Result(); err != nil || got != want {
				t.Fatalf("%s is %q (%v), and %q was acknowledged", key, got, err, want)
			}
		}
		t.Logf("%d cycles, %d further writes acknowledged", cycles(), len(acknowledged))
		if len(acknowledged) == 0 {
			t.Error("nothing was written meanwhile")
		}
	})
}

// roles says which pod is which node, and whose master.
func (o *operated) roles() (said string) {
	o.t.Helper()
	for _, p := range o.pods {
		view := o.view(p)
		said += fmt.Sprintf("%s is %s of %s; ", p.pod.Name, view.NodeID, view.MasterID)
	}
	return said
}

// increase writes as an application does until it is told to end, each key once, and notes what was acknowledged.
func (o *operated) increase(cycle int, acknowledged map[string]string) (end func()) {
	c := o.client()
	ctx, cancel := context.WithCancel(o.t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			key := fmt.Sprintf("cycle:%d:%d", cycle, n)
			if c.Set(ctx, key, n, 0).Err() == nil {
				acknowledged[key] = strconv.Itoa(n)
			}
			time.Sleep(time.Millisecond)
		}
	})
	return func() { cancel(); writer.Wait() }
}

// Of a shard whose instances all stop because the operator said so, no replica takes over, and the master is the last.
func TestMasterStopsLast(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		s := startStopping(t, e, 1)
		for i := range s.servers {
			must(t, s.node(i).ConfigSet(t.Context(), "cluster-replica-no-failover", "yes"))
		}
		ended := make(chan error, 1)
		go func() { ended <- s.stop(0, "true") }()
		must(t, s.stop(1, "true"))
		select {
		case err := <-ended:
			t.Fatalf("the master may stop, and its replica has not (%v)", err)
		default:
		}
		if epoch := s.view(0).ConfigEpoch; epoch > 2 {
			t.Errorf("the epoch is %d: a replica took over", epoch)
		}
		s.servers[1].kill()
		must(t, <-ended)
	})
}

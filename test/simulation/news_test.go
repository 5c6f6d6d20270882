// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/test/crash"
)

// stale is a cache of Kubernetes objects of which some kinds are as they were once.
type stale struct {
	client.Reader
	cluster *v1alpha1.RedisCluster
	pods    *corev1.PodList
	sets    *appsv1.StatefulSetList
}

// List implements client.Reader. All objects are one cluster's.
func (r *stale) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	switch into := list.(type) {
	case *corev1.PodList:
		if r.pods != nil {
			r.pods.DeepCopyInto(into)
			if of := (&client.ListOptions{}).ApplyOptions(options).LabelSelector; of != nil {
				into.Items = slices.DeleteFunc(into.Items, func(pod corev1.Pod) bool { return !of.Matches(labels.Set(pod.Labels)) })
			}
			return nil
		}
	case *appsv1.StatefulSetList:
		if r.sets != nil {
			r.sets.DeepCopyInto(into)
			return nil
		}
	}
	return r.Reader.List(ctx, list, options...)
}

// kinds of what the operator is told.
const (
	newsOfTheCluster = "RedisCluster"
	newsOfPods       = "Pod"
	newsOfSets       = "StatefulSet"
	newsOfAll        = "every kind"
)

// freeze makes the operator see the objects of a kind as they are now, until all is thawed.
func (s *simulation) freeze(kind string) {
	list := func(into client.ObjectList) {
		if err := s.kube.List(context.Background(), into); err != nil {
			s.t.Error(err)
		}
	}
	if kind == newsOfTheCluster || kind == newsOfAll {
		s.stale.cluster = s.cluster.DeepCopy()
	}
	if kind == newsOfPods || kind == newsOfAll {
		pods := &corev1.PodList{}
		list(pods)
		s.stale.pods = pods
	}
	if kind == newsOfSets || kind == newsOfAll {
		sets := &appsv1.StatefulSetList{}
		list(sets)
		s.stale.sets = sets
	}
	s.say("--- no news of %s", kind)
}

func (s *simulation) thaw() {
	s.stale = stale{Reader: s.kube}
	s.say("--- news again")
}

// seen is the cluster as the operator sees it.
func (s *simulation) seen() *v1alpha1.RedisCluster {
	if s.stale.cluster != nil {
		return s.stale.cluster.DeepCopy()
	}
	return s.cluster.DeepCopy()
}

// outdated reports whether the API server would refuse to write the status of the cluster that the operator sees.
func (s *simulation) outdated() bool {
	return s.stale.cluster != nil && !equality.Semantic.DeepEqual(s.stale.cluster, s.cluster)
}

// TestStaleNews: when no news of a kind reaches the operator from one of its writes on, it does nothing that news cannot mend: when
// they come again, the cluster becomes what it becomes with them, and no write of an application is lost. The process lives; or ends
// at that write, and its successor begins with what the first one saw; or it works on beside a successor that gets the news. A minute is
// six times as long as the operator believes what it wrote itself. Masters are on as many nodes afterwards, if they may part.
func TestStaleNews(t *testing.T) {
	for i, f := range flows {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var undisturbed crash.Killer
			var want string
			var writes int
			synctest.Test(t, func(t *testing.T) {
				s, app := f.start(t, &undisturbed)
				s.rest()
				writes = len(undisturbed.Writes())
				s.part()
				want = f.end(s, app)
			})
			tried := map[string]int{}
			try := func(at int, kind, who string) {
				tried["without news, the process "+who]++
				synctest.Test(t, func(t *testing.T) {
					if got := f.runStale(t, at, kind, who); got != want && got != ofTwoMoments {
						t.Errorf("no news of %s since write %d of %d, the process %s (-undisturbed +now):\n%s", kind, at, writes, who,
							cmp.Diff(want, got))
					}
				})
			}
			kinds, processes := []string{newsOfTheCluster, newsOfPods, newsOfSets, newsOfAll}, []string{lives, ends, beside}
			for j, kind := range kinds {
				for k, who := range processes {
					if !crash.All() {
						if (i+j)%len(kinds) == 0 && k == i%len(processes) || k == 2 && kind == newsOfAll && i%2 == 0 {
							try(1+(i+1)*writes/(len(flows)+1), kind, who)
						}
						continue
					}
					for at := 1; at <= writes; at++ {
						try(at, kind, who)
					}
				}
			}
			t.Logf("%d writes: %v", writes, tried)
		})
	}
}

// what becomes of the process that gets no news.
const (
	lives  = "lives"
	ends   = "ends"
	beside = "works beside its successor"
)

// runStale takes a cluster through a flow in which no news of a kind comes for a minute from one of the writes on.
func (f flow) runStale(t *testing.T, at int, kind, who string) string {
	t.Helper()
	var s *simulation
	k := &crash.Killer{At: at, Meanwhile: func() { s.freeze(kind) }}
	if who == ends {
		k.When = crash.Before
	}
	s, app := f.start(t, k)
	s.struck(f.timed)
	frozen, news := s.stale, stale{Reader: s.kube}
	former, successor := s.memory, &rediscluster.Memory{}
	for i := range 60 {
		if i%10 == 0 {
			app.writeAgain()
		}
		s.reconcile()
		if who == beside {
			s.stale, s.memory = news, successor
			s.reconcile()
			s.stale, s.memory = frozen, former
		}
		s.world.Run(time.Second)
	}
	s.thaw()
	s.rest()
	s.part()
	return f.end(s, app)
}

// part has masters part that one node has most of, as they do without spreadMasters: false. Who is the master of a shard is chance where
// replicas were elected meanwhile: instances that are introduced later than a node timeout after they started take masters at their
// former addresses for failed, while their replicas are in sync already.
func (s *simulation) part() {
	s.t.Helper()
	reason := func() string {
		return meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionMastersSpread).Reason
	}
	if s.outside != nil && s.outside.isTorn || reason() != "Disabled" {
		return
	}
	s.cluster.Spec.SpreadMasters, s.awaits = new(true), nil
	for range 40 { // one that was told to take over and did not is left alone for minutes
		if s.rest(); reason() != "Concentrated" {
			return
		}
	}
	s.fail("masters do not part")
}

// Instances that wake are introduced later than a node timeout after they started: masters then agree that others have failed, at their
// former addresses, and replicas are elected that are in sync with those at the new ones (Redis 7.0 does the same). No write is lost
// meanwhile, and masters that this has concentrated part.
func TestMastersPartAfterALateIntroduction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWithClaims(t, false)
		app := newApplication(s)
		for key := range 24 {
			app.write(fmt.Sprintf("key:%d", key))
		}
		s.world.Run(2 * time.Second)
		s.bringsBack, s.cluster.Spec.Hibernate, s.cluster.Generation = true, true, 2
		s.converge()
		before := s.masters()
		s.cluster.Spec.Hibernate, s.cluster.Generation = false, 3
		s.freeze(newsOfPods)
		s.elapse(20 * time.Second)
		s.thaw()
		for range 30 {
			s.reconcile()
			for range 10 {
				app.writeAgain()
				s.world.Run(100 * time.Millisecond)
			}
		}
		s.rest()
		if s.mostOnOneNode() < 2 || maps.Equal(before, s.masters()) {
			s.fail("nobody was elected: masters are where they were")
		}
		s.part()
		if most := s.mostOnOneNode(); most > 1 {
			s.fail("%d masters are on one node", most)
		}
		s.wantHealthy()
		app.wantAll()
	})
}

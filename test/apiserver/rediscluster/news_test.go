// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
)

// newsFlows are what the operator does while it is not told all that happens.
var newsFlows = append(slices.Clone(crashFlows),
	flow{name: "scale out", change: scaled(4, 4), phase: v1alpha1.PhaseRunning},
	flow{name: "scale in", cluster: func(c *v1alpha1.RedisCluster) { c.Spec.Shards, c.Spec.Replicas = new(int32(4)), new(int32(4)) },
		change: scaled(3, 3), phase: v1alpha1.PhaseRunning},
	// Masters stay where they are: which shard's replica is in sync first, and so which of them is spread, is chance.
	flow{name: "more instances", cluster: func(c *v1alpha1.RedisCluster) { c.Spec.SpreadMasters = new(false) },
		change: scaled(3, 6), phase: v1alpha1.PhaseRunning},
	flow{name: "fewer instances", cluster: func(c *v1alpha1.RedisCluster) {
		c.Spec.Replicas, c.Spec.SpreadMasters = new(int32(6)), new(false)
	}, change: scaled(3, 3), phase: v1alpha1.PhaseRunning},
)

func scaled(shards, instances int32) func(*testing.T, *v1alpha1.RedisCluster) {
	return func(t *testing.T, c *v1alpha1.RedisCluster) {
		change(t, c, func(c *v1alpha1.RedisCluster) { c.Spec.Shards, c.Spec.Replicas = &shards, &instances })
	}
}

// what becomes of the news of a kind.
const (
	heldBack = "held back"
	lost     = "lost"
	past     = "held back, and the process ends"
)

// TestStaleNews: news of a kind that the operator watches does not arrive from one of its writes on, for longer than it believes its
// own writes; then it arrives, or is lost and the kind listed again. Or the process ends, and its successor begins with all kinds
// as they were before the change. Meanwhile nothing is made twice, and nothing goes back that only goes on; then the operator brings
// about what it does with news. A few trials; SIMULATION=all tries each kind at each write.
func TestStaleNews(t *testing.T) {
	prepareFlows(t)
	for i, f := range newsFlows {
		if i%5 != 0 && !crash.All() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			undisturbed, all := &crash.Killer{}, &environment.News{}
			f.news = all
			want := f.run(t, undisturbed, "")
			resources := all.Resources()
			if len(resources) < 8 {
				t.Errorf("only %v are watched", resources)
			}
			writes, tried := len(undisturbed.Writes()), map[string]int{}
			try := func(at int, what string, resources ...string) {
				tried["without news"]++
				t.Run(fmt.Sprintf("%s %s since %d", strings.Join(resources, "+"), what, at), func(t *testing.T) {
					t.Parallel()
					f.withoutNews(t, want, at, what, resources)
				})
			}
			for at := 1; at <= writes; at++ {
				if crash.All() {
					for _, resource := range resources {
						try(at, heldBack, resource)
						try(at, lost, resource)
					}
					try(at, past, resources...)
				}
			}
			if !crash.All() {
				try(1+writes/2, heldBack, resources[i%len(resources)])
				try(1+writes/3, past, resources...)
			}
			t.Logf("%d writes: %v", writes, tried)
		})
	}
}

var generation = regexp.MustCompile(`(?m)^(  generation|  observedGeneration): \d+$`)

// withoutNews is a run of a flow in which something happens to the news of some resources at one of the writes.
func (f flow) withoutNews(t *testing.T, want string, at int, what string, resources []string) {
	t.Helper()
	f.news = &environment.News{}
	k := &crash.Killer{At: at, Meanwhile: func() { f.news.Hold(resources...) }}
	if what == past {
		before := environment.Version(t, api)
		for _, ask := range []*func(*testing.T, *v1alpha1.RedisCluster){&f.change, &f.then} {
			if asks := *ask; asks != nil {
				*ask = func(t *testing.T, c *v1alpha1.RedisCluster) {
					before = environment.Version(t, api)
					asks(t, c)
				}
			}
		}
		k.When, k.Meanwhile = crash.Before, func() { f.news.Begin(before) }
		if f.then != nil {
			// A StatefulSet's news may arrive before that of what was asked for: who hears of them in this order goes back once.
			f.alike = func(outcome string) string { return generation.ReplaceAllString(outcome, "$1: COUNT") }
			want = f.alike(want)
		}
	}
	f.withheld = func(t *testing.T, cluster *v1alpha1.RedisCluster, done func() string) {
		t.Helper()
		// Who is told what was there before somebody asked for the deletion makes it again, and deletes it with the next news.
		watchWhile(t, cluster, k, what == past && (f.phase == "" || f.givesUp), done)
		if what == lost {
			f.news.Lose()
		}
		f.news.Thaw()
	}
	f.run(t, k, want)
}

// watchWhile lets the operator work without news for longer than it believes its own writes, and asserts that what is there is not
// made a second time under its name meanwhile, unless it may be, and that the status does not go back. What is seen in one look, and
// what in two, is chance: so the write may never come, and the operator be done with all that was asked for.
func watchWhile(t *testing.T, cluster *v1alpha1.RedisCluster, k *crash.Killer, again bool, done func() string) {
	t.Helper()
	world := crash.World{API: api, Kinds: childKinds, Namespaces: []string{cluster.Namespace}}
	known := map[string]types.UID{}
	var observed int64
	begin := time.Now()
	for end := begin.Add(apply.Lag + 2*time.Second); time.Now().Before(end); time.Sleep(pollInterval) {
		if !k.Struck() {
			end = end.Add(pollInterval)
			quiet := min(time.Since(begin), time.Since(k.Latest()))
			if quiet > apply.Lag && done() == "" || quiet > 10*apply.Lag {
				return
			}
		}
		objects, err := world.Objects(context.Background())
		check(t, err)
		for _, object := range objects {
			name := object.GetKind() + " " + object.GetName()
			if uid := known[name]; uid != "" && uid != object.GetUID() && !again {
				t.Errorf("%s was made again", name)
			}
			known[name] = object.GetUID()
			generation, _, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
			if object.GetKind() != "RedisCluster" {
				continue
			}
			if generation < observed {
				t.Errorf("the status is of generation %d, and was of %d", generation, observed)
			}
			observed = generation
		}
	}
}

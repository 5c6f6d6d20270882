// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Instances that accept connections and never answer hold a reconciliation up for a few seconds at the most, once; those that answer
// are observed in every reconciliation; and each silent one is asked again.
func TestSilentInstances(t *testing.T) {
	const silent, answering = 300, 8
	world := redistest.New(redistest.Options{InstantGossip: true})
	t.Cleanup(world.Close)
	objects := []client.Object{secret("s"), statefulSet(nil)}
	for i := range silent + answering {
		ip := fmt.Sprintf("10.1.%d.%d", i/200, i%200)
		if i >= silent {
			ip = fmt.Sprintf("10.0.0.%d", i-silent)
			world.AddNode(redistest.NodeOptions{IP: ip, Password: "s"})
		}
		objects = append(objects, pod(func(p *corev1.Pod) {
			p.Name, p.UID, p.Status.PodIP = fmt.Sprintf("c-0-%d", i), types.UID(fmt.Sprint(i)), ip
		}))
	}
	o, _, _ := newObserver(t, interceptor.Funcs{}, objects...)
	synctest.Test(t, func(t *testing.T) {
		var dialled atomic.Int64
		pool := redis.NewPool(redis.Options{Dialer: func(ctx context.Context, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "10.1.") {
				dialled.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return world.Connect(ctx, address)
		}})
		defer pool.Close()
		defer time.Sleep(AnswerTimeout) // the client library ends its dials by itself
		o.Redis = pool
		// Which of them answer is not known at first: the reconciliation ends all the same. Then those that do come first.
		began := time.Now()
		_, held, err := o.Observer.Observe(t.Context(), cluster(), &o.Memory, AnswerTimeout)
		if took := time.Since(began); err != nil || took > 2*AnswerTimeout || held < AnswerTimeout {
			t.Fatalf("the first reconciliation took %s and was held up for %s: %v", took, held, err)
		}
		for range silent / describeAtOnce { // until all were asked
			if _, _, err := o.Observer.Observe(t.Context(), cluster(), &o.Memory, AnswerTimeout); err != nil {
				t.Fatal(err)
			}
		}
		var asked []string
		for range 1 + silent/mostSilent {
			began, before := time.Now(), dialled.Load()
			s, held, err := o.Observer.Observe(t.Context(), cluster(), &o.Memory, ShortAnswerTimeout)
			if took := time.Since(began); err != nil || took > ShortAnswerTimeout || held == 0 {
				t.Fatalf("a reconciliation took %s and was held up for %s: %v", took, held, err)
			}
			if n := dialled.Load() - before; n > mostSilent {
				t.Fatalf("%d silent instances were asked in one reconciliation", n)
			}
			if n := len(s.Reachable()); n != answering {
				t.Fatalf("%d instances are observed, and %d answer", n, answering)
			}
			for _, in := range s.Instances {
				if in.Redis == nil && in.Error != notAsked {
					asked = append(asked, in.Name)
				}
			}
		}
		if n := len(unique(asked)); n != silent {
			t.Errorf("%d of %d silent instances were asked again", n, silent)
		}
	})
}

func unique(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// An instance that refuses connections costs no time, and is asked in every reconciliation: it may come up at any moment.
func TestRefusalIsNoSilence(t *testing.T) {
	o, _, _ := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(nil), pod(func(p *corev1.Pod) { p.UID = "p" }))
	s := observe(t, o)
	if whom := o.round(s); len(whom.silent) > 0 || len(whom.first) != 1 || s.Instances[0].Redis != nil {
		t.Errorf("asked next: %+v", whom)
	}
}

// What is remembered of pods goes with them.
func TestAnswersAreForgotten(t *testing.T) {
	var a Memory
	s := &snapshot.Snapshot{Instances: []snapshot.Instance{{UID: "a"}, {UID: "b"}}}
	a.noteAnswers(s, map[string]bool{"a": true, "b": false}, now)
	if whom := a.round(s); len(whom.first) != 1 || whom.answered != 1 || len(whom.silent) != 1 {
		t.Errorf("asked next: %+v", whom)
	}
	a.noteAnswers(&snapshot.Snapshot{}, nil, now)
	if whom := a.round(s); len(whom.first) != 2 || whom.answered != 0 {
		t.Errorf("asked after the pods were replaced: %+v", whom)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/hostile"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Instances that answer with whatever does harm are not known, for a reason that fits a status, and the honest one beside
// them is described all the same.
func TestHostileInstancesBesideAnHonestOne(t *testing.T) {
	kinds := slices.DeleteFunc(hostile.Kinds(), func(k hostile.Kind) bool { return k == hostile.LongError }) // it describes itself honestly
	objects := []client.Object{secret("s"), statefulSet(nil), pod(nil)}
	servers := map[string]string{}
	for i, kind := range kinds {
		ip := fmt.Sprintf("10.0.1.%d", i)
		objects = append(objects, pod(func(p *corev1.Pod) { p.Name, p.Status.PodIP = fmt.Sprintf("c-0-%d", i+1), ip }))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = hostile.Serve(listener, kind) }()
		t.Cleanup(func() { _ = listener.Close() })
		servers[snapshot.Address(ip)] = listener.Addr().String()
	}
	o, _, world := newObserver(t, interceptor.Funcs{}, objects...)
	world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
	pool := redis.NewPool(redis.Options{DialTimeout: 2 * time.Second, IOTimeout: 2 * time.Second,
		Dialer: func(ctx context.Context, addr string) (net.Conn, error) {
			if server, found := servers[addr]; found {
				return (&net.Dialer{}).DialContext(ctx, "tcp", server)
			}
			return world.Dial(ctx, addr)
		}})
	t.Cleanup(pool.Close)
	o.Redis = pool
	s := observe(t, o)
	if len(s.Instances) != len(kinds)+1 || s.Instances[0].Redis == nil {
		t.Fatalf("%d instances; the honest one: %+v", len(s.Instances), s.Instances[0])
	}
	for i, in := range s.Instances[1:] {
		if in.Redis != nil || in.Error == "" || len(in.Error) > longestError {
			t.Errorf("%s: %+v", kinds[i], in)
		}
	}
}

// IDs that instances have answered to are not remembered without end.
func TestSeenIsBounded(t *testing.T) {
	m, c := &Memory{}, cluster()
	for i := range 3 * mostSeen {
		s := &snapshot.Snapshot{Instances: []snapshot.Instance{{Redis: &snapshot.Redis{NodeID: fmt.Sprintf("%040x", i),
			Peers: map[string]snapshot.Peer{fmt.Sprintf("%040x", 0): {}}}}}}
		if i%mostSeen != 0 && i < 3*mostSeen-1 {
			m.ids[fmt.Sprintf("%040x", i)] = true // as if it had been observed
			continue
		}
		ids := m.noteIDs(c, s)
		if len(ids) > mostSeen+1 || !ids[fmt.Sprintf("%040x", 0)] || !ids[fmt.Sprintf("%040x", i)] {
			t.Errorf("%d IDs are remembered; the one that is still known: %t", len(ids), ids[fmt.Sprintf("%040x", 0)])
		}
	}
}

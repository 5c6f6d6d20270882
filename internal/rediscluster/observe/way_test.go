// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A port whose connections are dropped, as a NetworkPolicy does, leaves time for the other one, also where there is little time.
func TestADroppedPortLeavesTimeForTheOther(t *testing.T) {
	second, plain := snapshot.Way{SecondPort: true}, snapshot.Way{Plain: true}
	for name, ways := range map[string][]snapshot.Way{
		"the next way": {second, plain, {}}, "the last way": {second, {SecondPort: true, Plain: true}, plain},
	} {
		t.Run(name, func(t *testing.T) {
			world := redistest.New(redistest.Options{InstantGossip: true})
			defer world.Close()
			world.AddNode(redistest.NodeOptions{IP: "10.0.0.1"})
			synctest.Test(t, func(t *testing.T) {
				pool := redis.NewPool(redis.Options{Dialer: func(ctx context.Context, address string) (net.Conn, error) {
					if !strings.HasSuffix(address, ":6379") {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return world.Connect(ctx, address)
				}})
				defer pool.Close()
				defer time.Sleep(AnswerTimeout) // the client library ends its dials by itself
				o, in := &Observer{Redis: pool}, &snapshot.Instance{IP: "10.0.0.1"}
				most, began := (round{}).within(ShortAnswerTimeout), time.Now()
				o.describe(t.Context(), redis.Credentials{}, in, ways, ShortAnswerTimeout, nil, &texts{})
				if took := time.Since(began); in.Redis == nil || in.Way != plain || took > most {
					t.Errorf("after %s it is reached by %+v: %s", took, in.Way, in.Error)
				}
			})
		})
	}
}

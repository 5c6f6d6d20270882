// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/hostile"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// A hostile server, whatever it does, costs a call no more than its time, and the error says what is wrong.
func TestHostileServers(t *testing.T) {
	for _, kind := range hostile.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel() // some are silent as long as one waits
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = hostile.Serve(listener, kind) }()
			t.Cleanup(func() { _ = listener.Close() })
			pool := redis.NewPool(redis.Options{DialTimeout: time.Second, IOTimeout: 500 * time.Millisecond})
			t.Cleanup(pool.Close)
			node := pool.Node(listener.Addr().String(), credentials)
			for name, call := range map[string]func(context.Context) error{
				"Describe":  func(ctx context.Context) error { _, err := node.Describe(ctx, "maxmemory"); return err },
				"Functions": func(ctx context.Context) error { _, err := node.Functions(ctx); return err },
				"SetSlots":  func(ctx context.Context) error { return node.SetSlots(ctx, slots.Range(0, 99), redis.SlotStable, "") },
			} {
				err := call(t.Context())
				if err == nil {
					if !strings.HasPrefix(string(kind), "lies") || name == "Describe" && kind != hostile.LongError {
						t.Errorf("%s: no error", name)
					}
					continue // it lies in another command
				}
				if !errors.Is(err, redis.ErrProtocol) && !errors.Is(err, redis.ErrUnreachable) && !errors.Is(err, redis.ErrRefused) {
					t.Errorf("%s: the error is of no class: %v", name, err)
				}
				if len(err.Error()) > 400 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%s: the error is %q", name, err)
				}
			}
		})
	}
}

// Servers that hang or drip while the connection is being encrypted take no longer than the time for that.
func TestHostileServersBeforeTLS(t *testing.T) {
	trusted := httptest.NewTLSServer(nil)
	t.Cleanup(trusted.Close)
	secured := redis.NewTLS(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.Certificate().Raw}), "example.com")
	for _, kind := range []hostile.Kind{hostile.Silent, hostile.Drip, hostile.Garbage, hostile.EndlessString} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel() // some are silent as long as one waits
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = hostile.Serve(listener, kind) }()
			t.Cleanup(func() { _ = listener.Close() })
			pool := redis.NewPool(redis.Options{DialTimeout: 500 * time.Millisecond, IOTimeout: 500 * time.Millisecond})
			t.Cleanup(pool.Close)
			node := pool.Node(listener.Addr().String(), redis.Credentials{Password: password, TLS: secured})
			_, err = node.Certificate(t.Context())
			if again := node.Ping(t.Context()); !errors.Is(err, redis.ErrUnreachable) || !errors.Is(again, redis.ErrUnreachable) {
				t.Errorf("errors %v, %v", err, again)
			}
		})
	}
}

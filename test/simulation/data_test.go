// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// write puts one key into each shard and waits until the replicas have it.
func (s *simulation) write(generation int) {
	s.t.Helper()
	for key := range 12 {
		name := fmt.Sprintf("key:%d", key)
		if !s.set(name, fmt.Sprint(generation)) {
			s.fail("no instance takes %s", name)
		}
	}
	s.world.Run(2 * time.Second)
}

// set writes through whichever instance owns the key's slot.
func (s *simulation) set(key, value string) bool {
	for _, in := range s.instances {
		conn, err := s.world.Connect(s.t.Context(), in.node.Addr())
		if err != nil {
			continue
		}
		_, _ = fmt.Fprintf(conn, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
		answer := make([]byte, 128)
		n, _ := conn.Read(answer)
		_ = conn.Close()
		if strings.HasPrefix(string(answer[:n]), "+OK") {
			return true
		}
	}
	return false
}

// wantData asserts that the masters hold the generation of every key of these shards.
func (s *simulation) wantData(generation int, shards map[int]bool) {
	s.t.Helper()
	snap := s.observe()
	masters := snap.Masters()
	for key := range 12 {
		name := fmt.Sprintf("key:%d", key)
		slot := slots.KeySlot(name)
		for shard, master := range masters {
			if !master.Redis.Slots.Contains(slot) || !shards[shard] {
				continue
			}
			if got := s.named(master.Name).node.Keys()[name]; got != fmt.Sprint(generation) {
				s.fail("%s of shard %d is %q at %s, want generation %d", name, shard, got, master.Name, generation)
			}
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// TestClusterBeginsWithABackup: the operator forms a cluster of masters that were restored and of empty instances. It has the keys, and its
// replicas follow. One that could not carry out all of its data meets nobody.
func TestClusterBeginsWithABackup(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 0)
		client := c.client()
		var keys []string
		for _, part := range slots.All().Split(3) {
			keys = append(keys, everyType(t, client, tags(part, 1)[0])...)
		}
		written := contents(t, client, keys)
		store := newStore(t)
		m, err := c.taking("monday", store).Take(t.Context())
		must(t, err)
		hashes := map[string]int64{"redis-8.0": 1, "valkey-9.1": 1}[e.name] // whose fields expire
		for i, shard := range m.Shards {
			want := report.Counts{Keys: c.direct(i).DBSize(t.Context()).Val(), WithTTL: 2, WithFieldTTL: hashes}
			if shard.Counts == nil || *shard.Counts != want {
				t.Errorf("shard %d has %+v, and the backup says %+v", i, want, shard.Counts)
			}
		}

		begun := func(spoil func(shard int, dir string)) *operated {
			topology := v1alpha1.Topology{2, 2, 2}
			o := prepared(t, e, topology)
			o.cluster.Status.Restored = &v1alpha1.RestoredData{}
			for _, shard := range m.Shards {
				o.cluster.Status.Restored.Slots = append(o.cluster.Status.Restored.Slots, shard.Slots.String())
			}
			o.begin(topology, func(shard int, dir string) {
				must(t, store.Restore(t.Context(), archive.Restoring{Manifest: m, Shard: shard, Directory: dir}))
				spoil(shard, dir)
			})
			return o
		}
		o := begun(func(int, string) {})
		o.converge()
		if got := contents(t, o.client(), keys); !maps.Equal(got, written) {
			t.Errorf("keys differ: %v\nwant %v", got, written)
		}
		said, err := m.Report()
		must(t, err)
		found, want := o.cluster.Status.Restored.Keys, said.Counts
		if found == nil || *found != (v1alpha1.KeyCount{Total: want.Keys, WithTTL: want.WithTTL, WithFieldTTL: want.WithFieldTTL}) {
			t.Errorf("the restored masters had %+v, and the backup has %+v", found, want)
		}

		key := tags(m.Shards[1].Slots, 1)[0]
		wrong := "*3\r\n$3\r\nSET\r\n$" + strconv.Itoa(len("{"+key+"}x")) + "\r\n{" + key + "}x\r\n$1\r\n1\r\n" +
			"*3\r\n$5\r\nLPUSH\r\n$" + strconv.Itoa(len("{"+key+"}x")) + "\r\n{" + key + "}x\r\n$1\r\n1\r\n"
		o = begun(func(shard int, dir string) {
			if shard == 1 {
				file, err := os.OpenFile(filepath.Join(dir, "appendonlydir", "appendonly.aof.1.incr.aof"), os.O_APPEND|os.O_WRONLY, 0)
				must(t, err)
				_, err = file.WriteString(wrong)
				must(t, err)
				must(t, file.Close())
			}
		})
		for range 5 {
			step, stalls := o.reconcile().(plan.Stall)
			if !stalls || step.Cause != "CannotRestore" || !strings.Contains(step.Reason, "could not carry out 1 commands") {
				t.Fatalf("a master that could not carry out all of its data: %+v", o.steps)
			}
		}
	})
}

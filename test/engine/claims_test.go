// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// The files of an instance never take more than MostOnDisk says, by which claims grow: not while the append-only file grows by writes of
// the same keys and is written anew, not beside a snapshot, and not while a replica is sent all data. Values are what compresses least.
func TestFilesFitIntoWhatTheyMayTake(t *testing.T) {
	const values, size = 1500, 20 << 10 // 29 MiB
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2)
		master := o.master(0)
		replica := o.named(0, 0)
		if replica == master {
			replica = o.named(0, 1)
		}
		c := goredis.NewClient(&goredis.Options{Addr: snapshot.Address(master.pod.Status.PodIP), Protocol: 2, DisableIdentity: true})
		defer c.Close()
		write := func(from, to int) {
			for i := from; i < to; i++ {
				value := make([]byte, size)
				_, _ = rand.Read(value) // never returns an error
				must(t, c.Set(t.Context(), fmt.Sprintf("key:%d", i), value, 0).Err())
			}
		}
		quiet := func(p *operatedPod) {
			t.Helper()
			eventually(t, func() error {
				info, err := o.node(p).Describe(t.Context())
				if err != nil {
					return err
				}
				return want(!info.Rewriting && !info.Loading && (info.MasterLinkUp || p == master), "it is busy")
			})
		}
		write(0, values)
		quiet(master)
		quiet(replica)
		must(t, c.Do(t.Context(), "BGSAVE").Err())
		quietSave(t, c)

		for name, do := range map[string]func(){
			"writes": func() { write(0, values); write(0, values); quiet(master) },
			"anew":   func() { must(t, c.Do(t.Context(), "BGREWRITEAOF").Err()); quiet(master) },
			"save":   func() { must(t, c.Do(t.Context(), "BGSAVE").Err()); quietSave(t, c) },
			"copy": func() {
				o.stop(replica)
				write(0, values/2) // more than the backlog has
				o.again(replica, false, false)
				quiet(replica)
			},
		} {
			t.Run(name, func(t *testing.T) {
				pods := []*operatedPod{master, replica}
				watched := o.watchFiles(pods)
				do()
				for i, most := range watched() {
					t.Logf("files of %s took %d KiB of %d KiB", pods[i].pod.Name, most.took>>10, most.may>>10)
					if most.took > most.may {
						t.Errorf("files of %s took %d bytes, %d are said to be the most", pods[i].pod.Name, most.took, most.may)
					}
				}
			})
		}
	})
}

func quietSave(t *testing.T, c *goredis.Client) {
	t.Helper()
	eventually(t, func() error {
		info := c.InfoMap(t.Context(), "persistence")
		return want(info.Err() == nil && info.Item("Persistence", "rdb_bgsave_in_progress") == "0", "it saves (%v)", info.Err())
	})
}

// files are what those of an instance took, and what they might have taken, in bytes.
type files struct{ took, may int64 }

// watchFiles looks at the files of instances again and again, until it is asked what was the most of each.
func (o *operated) watchFiles(pods []*operatedPod) (most func() []files) {
	ctx, cancel := context.WithCancel(o.t.Context())
	seen := make([]files, len(pods))
	var watches sync.WaitGroup
	for i, p := range pods {
		node := o.node(p)
		look := func() {
			seen[i].took = max(seen[i].took, onDisk(p.server.dir))
			if view, err := node.Describe(ctx); err == nil { // it may be stopped
				is := snapshot.Redis{AppendOnlySize: view.AppendOnlySize, UsedMemory: view.UsedMemory}
				seen[i].may = max(seen[i].may, is.MostOnDisk())
			}
		}
		look()
		watches.Go(func() {
			for ctx.Err() == nil {
				look()
				time.Sleep(2 * time.Millisecond)
			}
		})
	}
	return func() []files {
		cancel()
		watches.Wait()
		return seen
	}
}

// onDisk is what the files in a directory take; what is gone meanwhile takes nothing.
func onDisk(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	return bytes
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A master that cannot write its data to disk refuses writes. A replica that can takes over without losing a key.
func TestMasterThatCannotWriteToDiskIsSucceeded(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2, 1, 1)
		o.fill(manyKeys)
		failing := o.master(0)
		o.failDisk(failing, true)
		o.converge()
		if now := o.master(0); now == failing {
			t.Fatalf("%s is the master still:\n%s", now.pod.Name, strings.Join(o.steps, "\n"))
		}
		o.wantWrites()
		if kept := o.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys", kept, manyKeys)
		}
	})
}

// A replica that cannot write its table to disk would end as soon as it is a master: it stays what it is, and runs on.
func TestNoSwitchoverToADiskThatCannotBeWritten(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2, 1, 1)
		o.fill(manyKeys)
		failing := o.master(0)
		heir := o.named(0, 0)
		if heir == failing {
			heir = o.named(0, 1)
		}
		table := filepath.Join(heir.server.dir, "nodes.conf")
		must(t, os.Rename(table, table+".kept"))
		must(t, os.MkdirAll(filepath.Join(table, "in-the-way"), 0o700))
		o.failDisk(failing, true)
		eventually(t, func() error {
			o.reconcile()
			said := strings.Join(o.steps, "\n")
			return want(strings.Contains(said, heir.pod.Name+" cannot take over"), "%s", said)
		})
		if now := o.master(0); now != failing || o.view(heir).Keys == 0 {
			t.Errorf("%s is the master, and %s has %d keys", now.pod.Name, heir.pod.Name, o.view(heir).Keys)
		}
		must(t, os.RemoveAll(table))
		must(t, os.Rename(table+".kept", table))
		o.converge()
		if now := o.master(0); now != heir {
			t.Errorf("%s is the master", now.pod.Name)
		}
		o.wantWrites()
		if kept := o.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys", kept, manyKeys)
		}
	})
}

// Where nobody can take over it is said, and nothing is done; when there is room on the disk again, so are writes.
func TestMasterThatCannotWriteToDiskIsTold(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 1, 1, 1)
		o.fill(manyKeys)
		failing := o.named(1, 0)
		o.failDisk(failing, true)
		stall, _ := o.until("Stall").(plan.Stall)
		if stall.Cause != "WritesRefused" || stall.BlockedBy != plan.WritesAccepted || !strings.Contains(stall.Why(), failing.pod.Name) {
			t.Errorf("it stalls for %s (%s): %s", stall.Cause, stall.BlockedBy, stall.Why())
		}
		o.failDisk(failing, false)
		o.converge()
		o.wantWrites()
		if kept := o.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys", kept, manyKeys)
		}
	})
}

// Redis does not try again to sync an append-only file that could not be synced once: writes stay refused when there is room again on what
// is under its disk. The operator has the master write the file anew, and on Redis 7.0 begin another one.
func TestWritesGoOnWhenThereIsRoomAgain(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		e.preload = syncFails(t)
		o := operate(t, e, 2, 1, 1)
		o.fill(manyKeys)
		master, key := o.master(0), o.keyOf(o.master(0))
		shard := []*operatedPod{o.named(0, 0), o.named(0, 1)}
		for _, p := range shard {
			must(t, o.node(p).ConfigSet(t.Context(), "appendfsync", "everysec")) // with always it ends
		}
		time.Sleep(2 * time.Second) // what was filled in is synced
		for _, p := range shard {
			must(t, os.WriteFile(filepath.Join(p.server.dir, noSync), nil, 0o600))
		}
		c := goredis.NewClient(&goredis.Options{Addr: snapshot.Address(master.pod.Status.PodIP), Protocol: 2, DisableIdentity: true})
		defer c.Close()
		must(t, c.Set(t.Context(), key, "w", 0).Err()) // one write: a replica that cannot sync ends at the next
		eventually(t, func() error {
			return want(o.view(shard[0]).PersistenceError+o.view(shard[1]).PersistenceError == snapshot.AppendOnlyError+snapshot.AppendOnlyError,
				"the files are synced")
		})
		if err := c.Set(t.Context(), key, "w", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "MISCONF") {
			t.Errorf("a write is answered: %v", err)
		}
		for _, p := range shard {
			must(t, os.Remove(filepath.Join(p.server.dir, noSync)))
		}
		o.until("RewriteAOF")
		o.loop.Now = func() time.Time { return time.Now().Add(time.Minute) } // when it may be asked again
		o.converge()
		if now := o.master(0); now != master {
			t.Errorf("%s is the master, and was %s", now.pod.Name, master.pod.Name)
		}
		o.wantWrites()
		if kept := o.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys", kept, manyKeys)
		}
		if v := o.view(master); v.PersistenceError != "" || v.Settings["appendonly"] == "no" {
			t.Errorf("%+v", v)
		}
	})
}

// noSync is a file in the directory of a server with syncFails, as long as its append-only file cannot be synced.
const noSync = "no-sync"

// syncFails is a library that servers load before others: with it the append-only file cannot be synced while there is a file noSync.
func syncFails(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "sync.c"), filepath.Join(dir, "sync.so")
	must(t, os.WriteFile(source, []byte(`#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  path[length < 0 ? 0 : length] = 0;
  if (strstr(path, "appendonly") && access("`+noSync+`", F_OK) == 0) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_fdatasync, fd);
}
`), 0o600))
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("this test needs a C compiler, as the race detector does: %v\n%s", err, out)
	}
	return library
}

// failDisk makes an instance fail to save a snapshot, as a full disk does, or lets it save one again.
func (o *operated) failDisk(p *operatedPod, fail bool) {
	o.t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: snapshot.Address(p.pod.Status.PodIP), Protocol: 2, DisableIdentity: true})
	defer c.Close()
	inTheWay := filepath.Join(p.server.dir, "dump.rdb")
	if fail {
		must(o.t, c.ConfigSet(o.t.Context(), "save", "3600 1").Err()) // refuses writes only when it is to save
		must(o.t, os.RemoveAll(inTheWay))
		must(o.t, os.MkdirAll(filepath.Join(inTheWay, "in-the-way"), 0o700))
	} else {
		must(o.t, os.RemoveAll(inTheWay))
	}
	must(o.t, c.BgSave(o.t.Context()).Err())
	eventually(o.t, func() error {
		failed := o.view(p).PersistenceError != ""
		return want(failed == fail, "%s: its disk fails: %t", p.pod.Name, failed)
	})
	err := c.Set(o.t.Context(), o.keyOf(p), "w", 0).Err()
	if refused := err != nil && strings.HasPrefix(err.Error(), "MISCONF"); refused != fail || !fail && err != nil {
		o.t.Fatalf("with a disk that fails: %t, a write is answered: %v", fail, err)
	}
}

// keyOf is a key whose slot an instance owns.
func (o *operated) keyOf(p *operatedPod) string {
	o.t.Helper()
	owned, c := o.view(p).Slots, o.client()
	for i := range 10000 {
		key := fmt.Sprintf("own:%d", i)
		if slot, err := c.ClusterKeySlot(o.t.Context(), key).Result(); err == nil && owned.Contains(uint16(slot)) {
			return key
		}
	}
	o.t.Fatalf("%s owns no slot", p.pod.Name)
	return ""
}

// wantWrites writes all over the slots.
func (o *operated) wantWrites() {
	o.t.Helper()
	c := o.client()
	for i := range manyKeys {
		if err := c.Set(o.t.Context(), fmt.Sprintf("later:%d", i), i, 0).Err(); err != nil {
			o.t.Fatalf("a write when all is well again: %v", err)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/directory"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
)

// TestArchiveInAFullDirectory: a file system without room is said to be full, no backup is complete there, nothing of one is left, and the
// archive goes on when there is room.
func TestArchiveInAFullDirectory(t *testing.T) {
	t.Parallel()
	c, dir := startCluster(t, engines(t)[0], 1, 1, 0), t.TempDir()
	c.taking("", nil) // the user
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	process := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--mount", "sh", "-c",
		`mount -t tmpfs -o size=1m tmpfs "$0" && mkdir "$0/store" && { cat /dev/zero >"$0/clutter" 2>/dev/null; exec "$@"; }`,
		dir, tool(t, "BACKUP"), "archive", "archive", "--request", "asked", "--from", c.servers[0].addr(), "--user", "backup",
		"--password-file", c.backupPassword(), "--interval", "100ms", "--listen", address, "--store", "file://"+filepath.Join(dir, "store"))
	var problem bytes.Buffer
	process.Stdout, process.Stderr = &problem, &problem
	must(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait() // it was killed
		if t.Failed() {
			t.Log(problem.String())
		}
	})
	is := func(what func(report.Archive) bool) {
		t.Helper()
		eventually(t, func() error {
			text, err := backupjob.Asker(report.Most)(t.Context(), address)
			if err != nil {
				return err
			}
			said, err := report.ParseArchive(text)
			if err != nil {
				return err
			}
			return want(what(said), "it says %+v", said)
		})
	}
	is(func(said report.Archive) bool { return said.Waits == report.WaitRoom && !said.Ready() })

	seen := filepath.Join("/proc", fmt.Sprint(process.Process.Pid), "root", dir)
	bucket, err := directory.Open(filepath.Join(seen, "store"), "")
	must(t, err)
	defer bucket.Close()
	_, err = c.taking("backup", archive.NewStore(bucket, archive.Keys{})).Take(t.Context())
	wantError(t, err, "no space left on device")
	if left, err := filepath.Glob(filepath.Join(seen, "store", "backup", "*", "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left (%v)", left, err)
	}
	must(t, os.Remove(filepath.Join(seen, "clutter")))
	is(func(said report.Archive) bool { return said.Ready() && said.Waits != report.WaitRoom })
}

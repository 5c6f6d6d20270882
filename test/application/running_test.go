// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The scripts, as they are run in the pod.
func TestScripts(t *testing.T) {
	const untilTold = `trap 'echo told; exit 0' TERM; echo begun; while :; do sleep 0.1; done`
	tests := map[string]struct {
		program, stop, want string
		code                int
	}{
		"it ends when it is told to":           {untilTold, "told", "begun\ntold", 0},
		"to be told twice is no harm":          {untilTold, "told told", "begun\ntold", 0},
		"it ends by itself":                    {"echo done", "", "done", 0},
		"it fails":                             {"echo half; echo why >&2; exit 3", "", "half\nwhy", 3},
		"it cannot be told after it has ended": {"echo done", "refused", "done", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := filepath.Join(t.TempDir(), "run-1")
			sh := func(script string, more ...string) (string, int) {
				out, err := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "sh", files}, more...)...).CombinedOutput()
				if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
					t.Fatal(err)
				} else if failed != nil {
					return strings.TrimSpace(string(out)), failed.ExitCode()
				}
				return strings.TrimSpace(string(out)), 0
			}
			if out, code := sh(begin, "sh", "-c", tt.program); code != 0 {
				t.Fatalf("begin: %d %s", code, out)
			}
			sh(`until [ -s "$1.out" ]; do sleep 0.1; done`) // it is ready to be told
			for word := range strings.FieldsSeq(tt.stop) {
				if word == "refused" {
					sh(end)
				}
				if out, code := sh(stop); (code == 0) != (word == "told") {
					t.Errorf("stop: %d %s", code, out)
				}
			}
			if out, code := sh(end); out != tt.want || code != tt.code {
				t.Errorf("got %d %q, want %d %q", code, out, tt.code, tt.want)
			}
		})
	}
}

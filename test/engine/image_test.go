// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// imagePath is a PATH on which a script finds what docs/rediscluster.md asks of an image, and nothing else; redis-cli is the one in
// dir.
func imagePath(t testing.TB, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "rediscluster.md"))
	must(t, err)
	list := regexp.MustCompile("(?m)^- for the scripts: (.*), of Debian").FindStringSubmatch(string(text))
	if list == nil {
		t.Fatal("docs/rediscluster.md does not say what an image must hold for the scripts")
	}
	programs := filepath.Join(dir, "programs")
	must(t, os.MkdirAll(programs, 0o700))
	for _, name := range strings.Split(strings.ReplaceAll(list[1], "`", ""), ", ") {
		path, err := exec.LookPath(name)
		must(t, err)
		must(t, os.Symlink(path, filepath.Join(programs, name)))
	}
	return dir + ":" + programs
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents tests what the documents say of the tree.
package documents

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../.."

// Each test that docs/security.md names as the proof of something exists.
func TestTheProofsExist(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) == 0 {
		t.Fatal("docs/security.md names no test")
	}
	exist := tests(t)
	for _, match := range named {
		if !exist[match[1]] {
			t.Errorf("docs/security.md names %s, and there is no such test", match[1])
		}
	}
}

// tests are the names of all tests and fuzz targets of the tree.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9]+)\(`)
	exist := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range function.FindAllStringSubmatch(string(text), -1) {
			exist[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return exist
}

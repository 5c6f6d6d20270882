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

// Each test that a document names as the proof of something exists, and each row of a table of proofs names one.
func TestTheProofsExist(t *testing.T) {
	exist := tests(t)
	test := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	for _, name := range []string{"security.md", "source-documents.md", "promises.md", "backup.md", "installation.md"} {
		text, err := os.ReadFile(filepath.Join(repository, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		rows, proving := 0, false
		for line := range strings.Lines(string(text)) {
			named := test.FindAllStringSubmatch(line, -1)
			for _, match := range named {
				if !exist[match[1]] {
					t.Errorf("docs/%s names %s, and there is no such test", name, match[1])
				}
			}
			if strings.HasPrefix(line, "|-") {
				continue
			}
			isRow := strings.HasPrefix(line, "|")
			proving = isRow && (proving || strings.HasSuffix(strings.TrimSpace(line), "| shown by |"))
			if isRow && proving && len(named) == 0 && !strings.HasSuffix(strings.TrimSpace(line), "| shown by |") {
				t.Errorf("docs/%s: no test shows this row: %s", name, line)
			}
			if len(named) > 0 && isRow {
				rows++
			}
		}
		t.Logf("docs/%s: %d rows are shown by tests", name, rows)
		if rows == 0 {
			t.Errorf("docs/%s names no test", name)
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

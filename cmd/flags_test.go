// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"middleware.hc.cn/operator/internal/manager"
)

var update = flag.Bool("update", false, "write docs/reference/flags.md anew")

// nothing is an environment in which no variable is set.
func nothing(string) (string, bool) { return "", false }

// page is docs/reference/flags.md, made from the flags as they are.
func page() string {
	var text strings.Builder
	text.WriteString("# Flags\n\nMade from the code: `go test ./cmd -run TestFlagsPage -update`. `manager` alone is `manager run`; `manager version` prints the build. " +
		"A wrong value is refused at start with a sentence that names the flag. In names, `_` is as good as `-`.\n\n## manager run\n")
	options := manager.DefaultOptions()
	for _, group := range options.Flags(nothing) {
		table(&text, "### "+group.Title, group.FlagSet)
	}
	table(&text, "## manager validate", newValidate(nothing).Flags())
	table(&text, "## manager render", newRender(nothing).Flags())
	return text.String()
}

// table writes one flag a row.
func table(text *strings.Builder, title string, flags *pflag.FlagSet) {
	fmt.Fprintf(text, "\n%s\n\n| flag | default | meaning |\n|---|---|---|\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" && f.Shorthand != f.Name {
			name = "`-" + f.Shorthand + "`, " + name
		}
		initial := strings.TrimSuffix(strings.TrimPrefix(f.DefValue, "["), "]")
		if f.Value.Type() == "duration" && initial != "0s" {
			initial = strings.Replace(initial, "m0s", "m", 1)
		}
		if initial != "" {
			initial = "`" + initial + "`"
		}
		fmt.Fprintf(text, "| %s | %s | %s |\n", name, initial, strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(f.Usage))
	})
}

func TestFlagsPage(t *testing.T) {
	path, want := in("docs", "reference", "flags.md"), page()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not as the code is (-code +page), write it with -update:\n%s", path, diff)
	}
}

// Documents and manifests name no flag that does not exist.
func TestNamedFlagsExist(t *testing.T) {
	known := []string{"help"}
	add := func(f *pflag.Flag) { known = append(known, f.Name) }
	root := newRoot(nothing)
	root.Flags().VisitAll(add)
	for _, sub := range root.Commands() {
		sub.Flags().VisitAll(add)
	}
	// Flags of the operator are those after `/manager`, and those that a document sets in code quotes with one of these beginnings.
	ours := regexp.MustCompile("`--((?:allow|cluster|controllers|graceful|health|install|leader|max|metrics|pprof|reconcile|redis|sync|watch|webhook|zap)[a-z-]*)")
	found := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range ours.FindAllStringSubmatch(string(text), -1) {
			found++
			if !slices.Contains(known, match[1]) {
				t.Errorf("%s names --%s, and there is no such flag", file, match[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d flags are named; do documents still write them in code quotes?", found)
	}
}

// documents are the pages of docs/ and those beside it.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md"} {
		matches, err := filepath.Glob(in(pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, matches...)
	}
	return files
}

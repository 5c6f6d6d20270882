// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"middleware.hc.cn/operator/internal/archive/cli"
	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/plugin"
)

var update = flag.Bool("update", false, "write docs/reference/flags.md anew")

// nothing is an environment in which no variable is set.
func nothing(string) (string, bool) { return "", false }

// page is docs/reference/flags.md, made from the flags as they are.
func page() string {
	var text strings.Builder
	text.WriteString(
		"# Flags\n\nMade from the code: `go test ./cmd -run TestFlagsPage -update`. `manager` alone is `manager run`; `manager version` prints the build. " +
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

// others are flags of other programs that documents name alone, in code quotes.
var others = []string{"cascade", "delete-crds", "domain-filter", "force", "set", "source", "take-ownership", "tls"}

// Documents name no flag that does not exist.
func TestNamedFlagsExist(t *testing.T) {
	known := append([]string{"help"}, others...)
	add := func(f *pflag.Flag) { known = append(known, f.Name) }
	root := newRoot(nothing)
	root.Flags().VisitAll(add)
	backup := cli.New()
	backup.PersistentFlags().VisitAll(add)
	kubectl := plugin.New(plugin.Environment{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Lookup: nothing})
	kubectl.PersistentFlags().VisitAll(add)
	for _, sub := range slices.Concat(root.Commands(), backup.Commands(), kubectl.Commands()) {
		sub.Flags().VisitAll(add)
	}
	named := regexp.MustCompile("`--([a-z][a-z0-9-]*)")
	found := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if !slices.Contains(known, match[1]) {
				t.Errorf("%s names --%s, and there is no such flag", file, match[1])
			}
		}
	}
	if found < 60 {
		t.Errorf("%d flags are named; do documents still write them in code quotes?", found)
	}
}

// Each command line of the operator that a document shows, in a block of commands, in code quotes, or as the arguments of a
// Deployment, is one that it takes.
func TestDocumentedCommandLinesParse(t *testing.T) {
	command := regexp.MustCompile("(?m)(?:^|[|`] ?)/?(?:bin/)?manager((?: [^|`#>\\n]+)?)(?:[|`#>]|$)")
	arguments := regexp.MustCompile(`(?m)^ +args:\n((?: +- --.*\n)+)`)
	found := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, match := range command.FindAllStringSubmatch(string(text), -1) {
			lines = append(lines, match[1])
		}
		for _, match := range arguments.FindAllStringSubmatch(string(text), -1) {
			lines = append(lines, strings.ReplaceAll(match[1], " - ", " "))
		}
		for _, line := range lines {
			found++
			if err := parses(strings.Fields(line)); err != nil {
				t.Errorf("%s: manager%s: %v", file, line, err)
			}
		}
	}
	if found < 15 {
		t.Errorf("only %d command lines are shown", found)
	}
}

// So is each command line of the program that takes backups.
func TestDocumentedBackupCommandLinesParse(t *testing.T) {
	command := regexp.MustCompile(`(?m)^backup ([^#\n]+)`)
	found := 0
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range command.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", " "), -1) {
			found++
			sub, rest, err := cli.New().Find(strings.Fields(strings.ReplaceAll(line[1], "'", "")))
			if err == nil {
				err = sub.ParseFlags(rest)
			}
			if err == nil {
				err = sub.ValidateArgs(sub.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: backup %s: %v", file, line[1], err)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d command lines are shown", found)
	}
}

// parses says why the operator does not take a command line; what it would do is not done.
func parses(arguments []string) error {
	command, rest, err := newRoot(nothing).Find(arguments)
	if err != nil {
		return err
	}
	if err := command.ParseFlags(rest); err != nil && !errors.Is(err, pflag.ErrHelp) {
		return err
	}
	return command.ValidateArgs(command.Flags().Args())
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

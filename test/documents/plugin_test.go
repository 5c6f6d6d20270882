// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"middleware.hc.cn/operator/internal/plugin"
	"middleware.hc.cn/operator/internal/plugin/checkup"
)

const pluginPage = "docs/plugin.md"

var update = flag.Bool("update", false, "write what docs/plugin.md has from the code anew")

// rightsTable is the table of what the commands ask for.
func rightsTable() string {
	var b strings.Builder
	for _, right := range checkup.Rights() {
		without := right.Optional
		if right.ClusterWide {
			without += " (cluster)"
		}
		b.WriteString("| " + right.Command + " | `" + right.String() + "` | " + strings.TrimSpace(without) + " |\n")
	}
	return b.String()
}

// The page has the rights that the commands ask for, and an example that the code prints.
func TestPluginPage(t *testing.T) {
	example := read(t, "internal/plugin/overview/testdata/broken-80.txt")
	text := read(t, pluginPage)
	want := regexp.MustCompile("(?s)```text\n.*?```").ReplaceAllLiteralString(text, "```text\n"+example+"```")
	const heading = "| command | right | without it |\n|---|---|---|\n"
	before, after, _ := strings.Cut(want, heading)
	_, rest, _ := strings.Cut(after, "\n\n")
	want = before + heading + rightsTable() + "\n" + rest
	if *update {
		if err := os.WriteFile(filepath.Join(repository, pluginPage), []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("%s is not as the code is, write it with -update (-code +page):\n%s", pluginPage, diff)
	}
}

// The commands that the page lists are those that there are, and each command line that a page shows is one that the plugin takes.
func TestPluginCommands(t *testing.T) {
	root := plugin.New(plugin.Environment{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		Lookup: func(string) (string, bool) { return "", false }})
	listed := map[string]bool{}
	for _, row := range rowsOf(t, pluginPage, "| command | does |") {
		for _, match := range regexp.MustCompile("`([a-z]+)").FindAllStringSubmatch(row[0], -1) {
			listed[match[1]] = true
		}
	}
	for _, command := range root.Commands() {
		if !listed[command.Name()] {
			t.Errorf("%s does not list %s", pluginPage, command.Name())
		}
		delete(listed, command.Name())
	}
	if len(listed) > 0 {
		t.Errorf("%s lists %v, which are not there", pluginPage, listed)
	}
	found := 0
	for _, page := range pagesOf(t) {
		for _, match := range regexp.MustCompile("(?m)(?:^|`|\\$ )kubectl middleware ([^`#|\n]+)").FindAllStringSubmatch(read(t, page), -1) {
			words := strings.Fields(match[1])
			command, rest, err := root.Find(words)
			if strings.HasPrefix(words[0], "__") {
				continue
			}
			found++
			if err == nil {
				err = command.ParseFlags(rest)
			}
			if err == nil || errors.Is(err, pflag.ErrHelp) {
				err = command.ValidateArgs(command.Flags().Args())
			}
			if err != nil || command == root {
				t.Errorf("%s: kubectl middleware %s: %v", page, match[1], err)
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d command lines are shown", found)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// changes are what CHANGELOG.md says about one version.
type changes struct{ text string }

// readChanges reads the part about a version, whose heading is the version, alone or with a date behind it. What is unreleased counts
// as that of a version that the file does not know, if that is asked for.
func readChanges(file, version string, snapshot bool) (changes, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of this checkout
	if err != nil {
		return changes{}, err
	}
	for part := range strings.SplitSeq("\n"+string(text), "\n## ") {
		heading, rest, _ := strings.Cut(part, "\n")
		name := strings.Trim(strings.Fields(heading + " -")[0], "[]")
		if name == version || snapshot && name == "Unreleased" && !strings.Contains(string(text), "\n## "+version) &&
			!strings.Contains(string(text), "\n## ["+version+"]") {
			if rest = strings.TrimSpace(rest); rest == "" {
				return changes{}, fmt.Errorf("%s says nothing about %s", file, heading)
			}
			return changes{rest}, nil
		}
	}
	return changes{}, fmt.Errorf("%s has no heading \"## %s\": give what is unreleased that name", file, version)
}

// change is one in the form of Artifact Hub.
type change struct {
	Kind        string `json:"kind"`
	Description string `json:"description"`
}

// changes are the lines of the lists, by the headings of Keep a Changelog, without markup.
func (c changes) changes() []change {
	all, kind := []change{}, ""
	for line := range strings.Lines(c.text) {
		line = strings.TrimRight(line, "\n")
		if heading, is := strings.CutPrefix(line, "### "); is {
			kind = strings.ToLower(strings.TrimSpace(heading))
		} else if item, is := strings.CutPrefix(line, "- "); is && kind != "" {
			all = append(all, change{kind, plain(item)})
		}
	}
	return all
}

func (c changes) has(kind string) bool { return strings.Contains("\n"+c.text+"\n", "\n### "+kind+"\n") }

// plain is the text of a line, without links, emphasis and code quotes, and its first sentence if it has many.
func plain(text string) string {
	text = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	text = strings.NewReplacer("**", "", "`", "").Replace(text)
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return text
}

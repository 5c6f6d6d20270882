// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// line is one line of a page.
type line struct {
	number   int
	section  string // the nearest heading above it
	language string // of the fenced block that it is in
	fenced   bool
	text     string
}

// block is a fenced code block.
type block struct {
	number         int
	language, text string
}

// pagesOf are the pages of the project that people read, by their paths from its root; the API reference is made from the types.
func pagesOf(t *testing.T) []string {
	t.Helper()
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/reference/flags.md", "test/*/README.md", "hack/*/README.md",
		"deploy/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			pages = append(pages, strings.TrimPrefix(path, repository+"/"))
		}
	}
	return slices.DeleteFunc(pages, func(page string) bool { return page == "CHANGELOG.md" })
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func linesOf(t *testing.T, page string) []line {
	t.Helper()
	var lines []line
	current := line{}
	for i, text := range strings.Split(read(t, page), "\n") {
		language, fence := strings.CutPrefix(strings.TrimSpace(text), "```")
		switch {
		case fence:
			current.fenced = !current.fenced
			current.language = language
			continue
		case !current.fenced && strings.HasPrefix(text, "#"):
			current.section = strings.TrimSpace(strings.TrimLeft(text, "#"))
		}
		current.number, current.text = i+1, text
		lines = append(lines, current)
	}
	return lines
}

// blocksOf are the fenced blocks of a page.
func blocksOf(t *testing.T, page string) []block {
	t.Helper()
	var blocks []block
	last := line{}
	for _, l := range linesOf(t, page) {
		if !l.fenced {
			last = l
			continue
		}
		if !last.fenced || l.number > last.number+1 {
			blocks = append(blocks, block{number: l.number, language: l.language})
		}
		blocks[len(blocks)-1].text += l.text + "\n"
		last = l
	}
	return blocks
}

// commandsOf are the command lines of a page's shell blocks, without their comments, continued lines joined.
func commandsOf(t *testing.T, page string) []block {
	t.Helper()
	comment := regexp.MustCompile(`(^|\s)#.*$`)
	var commands []block
	for _, b := range blocksOf(t, page) {
		if b.language != "sh" {
			continue
		}
		for i, text := range strings.Split(strings.ReplaceAll(b.text, "\\\n", " "), "\n") {
			if text = strings.TrimSpace(comment.ReplaceAllString(text, "")); text != "" {
				commands = append(commands, block{number: b.number + i, text: text})
			}
		}
	}
	return commands
}

// rowsOf are the cells of the rows of a page's tables that have this heading, without the row of the heading.
func rowsOf(t *testing.T, page, heading string) [][]string {
	t.Helper()
	var rows [][]string
	inside := false
	for _, l := range linesOf(t, page) {
		switch {
		case l.fenced || !strings.HasPrefix(l.text, "|"):
			inside = false
		case l.text == heading:
			inside = true
		case inside && !strings.HasPrefix(l.text, "|-"):
			var cells []string
			for cell := range strings.SplitSeq(strings.Trim(l.text, "|"), " | ") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table with the heading %s", page, heading)
	}
	return rows
}

// quoted are the words of a text that stand in code quotes and look like the names of conditions, reasons, steps and the like.
func quoted(text string) []string {
	var words []string
	for _, match := range regexp.MustCompile("`([A-Za-z_]+)`").FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return words
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// site is the program that makes the documentation site.
func site(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	tool, err := exec.CommandContext(t.Context(), filepath.Join(repository, "hack/tool.sh"), "site").Output()
	if err != nil {
		t.Fatalf("it cannot be built: %v", err)
	}
	said, err := exec.CommandContext(t.Context(), strings.TrimSpace(string(tool)), arguments...).CombinedOutput()
	return string(said), err
}

// siteMade is the site with the pages as they are, twice: as what is developed and as a release.
func siteMade(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "site")
	if said, err := site(t, "--out="+out, "latest="+repository, "0.1.0="+repository); err != nil {
		t.Fatal(said)
	}
	return out
}

// Each link of the site leads to a file of it, and to something of that name in it; each page is there, in every version, and what people
// search for is found.
func TestSiteHoldsTogether(t *testing.T) {
	out := siteMade(t)
	attribute, names := regexp.MustCompile(`(?:href|src|data-file|data-root)="([^"]*)"`), regexp.MustCompile(`\bid="([^"]*)"`)
	ids, pages, links := map[string]map[string]bool{}, 0, 0
	texts := map[string]string{}
	for _, pattern := range []string{"*.html", "*/*.html", "*/*/*.html", "*/*/*/*.html"} {
		files, err := filepath.Glob(filepath.Join(out, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file], ids[file] = string(text), map[string]bool{"": true}
			for _, id := range names.FindAllStringSubmatch(texts[file], -1) {
				ids[file][html.UnescapeString(id[1])] = true
			}
			pages++
		}
	}
	for file, text := range texts {
		for _, match := range attribute.FindAllStringSubmatch(text, -1) {
			to := html.UnescapeString(match[1])
			if strings.Contains(to, ":") { // of others
				continue
			}
			links++
			path, anchor, _ := strings.Cut(to, "#")
			target := file
			if path != "" {
				target = filepath.Join(filepath.Dir(file), path)
			}
			if _, err := os.Stat(target); err != nil || ids[target] != nil && !ids[target][anchor] {
				t.Errorf("%s leads to %s: %v", strings.TrimPrefix(file, out), to, err)
			}
		}
		if strings.Contains(text, "language-mermaid") {
			t.Errorf("%s shows a diagram as text: it is not understood", strings.TrimPrefix(file, out))
		}
	}
	for _, page := range append(pagesOf(t), "CHANGELOG.md") {
		address := strings.TrimSuffix(strings.Replace(page, "README.md", "index.md", 1), ".md") + ".html"
		for _, version := range []string{"latest", "0.1.0"} {
			if texts[filepath.Join(out, version, address)] == "" {
				t.Errorf("the site lacks %s/%s", version, address)
			}
		}
	}
	if pages < 200 || links < 5000 {
		t.Errorf("only %d pages with %d links were found", pages, links)
	}
	searchFinds(t, filepath.Join(out, "latest"), ids)
}

// searchFinds checks the index of the search: all it leads to is there, and the sections of these words are in it.
func searchFinds(t *testing.T, version string, ids map[string]map[string]bool) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(version, "search.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index []struct{ U, P, H, T string }
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, entry := range index {
		path, anchor, _ := strings.Cut(entry.U, "#")
		if of := ids[filepath.Join(version, path)]; !of[anchor] {
			t.Errorf("the search leads to %s", entry.U)
		}
		found[entry.U] = entry.P != "" && entry.T != ""
	}
	for _, want := range []string{"index.html#install", "docs/troubleshooting.html#redisclusterslotsuncovered",
		"docs/reference/api.html#redisclusterspec"} {
		if !found[want] {
			t.Errorf("the search does not find %s", want)
		}
	}
}

// A link that leads nowhere, and an argument that is no version, are refused.
func TestSiteRefuses(t *testing.T) {
	for page, want := range map[string]string{
		"[a](docs/none.md)":        "docs/none.md leads nowhere",
		"[a](#none)":               "has no heading #none",
		"[a](../outside.md)":       "leads nowhere",
		"![a](secret.png)":         "not in docs/pictures",
		"# A\n\n# A\n\n[a](#a-2)":  "has no heading #a-2",
		"# `a_b` [c](#a_b-c), `d`": "has no heading #a_b-c", // it is #a_b-c-d
	} {
		tree := t.TempDir()
		if err := os.WriteFile(filepath.Join(tree, "README.md"), []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := site(t, "--out="+filepath.Join(tree, "out"), "latest="+tree); err == nil || !strings.Contains(said, want) {
			t.Errorf("%s: %v %s", page, err, said)
		}
	}
	for _, argument := range []string{"", "0.1.0", "=.", "../up=."} {
		if said, err := site(t, "--out="+filepath.Join(t.TempDir(), "out"), argument); err == nil || !strings.Contains(said, "VERSION=FOLDER") {
			t.Errorf("%q: %v %s", argument, err, said)
		}
	}
}

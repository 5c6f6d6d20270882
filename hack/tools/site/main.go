// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command site makes the documentation site from the Markdown of a checkout: one folder a version, with its search index.
//
//	site --out=build/site latest=. 0.1.0=build/trees/0.1.0
//
// Each argument is a version and the tree that has its pages; releases come newest first. A link that leads nowhere, or to a heading
// that is not there, is an error.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// latest is the version that is no release: what the checkout has.
const latest = "latest"

func main() {
	out := flag.String("out", "build/site", "the folder to write to; what is in it goes")
	repository := flag.String("repository", "https://middleware.hc.cn/operator", "where files are that are no pages")
	flag.Parse()
	if err := run(*out, *repository, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(out, repository string, arguments []string) error {
	var versions, trees []string
	for _, argument := range arguments {
		version, tree, found := strings.Cut(argument, "=")
		if !found || version == "" || strings.ContainsAny(version, `/\`) || strings.HasPrefix(version, ".") ||
			slices.Contains(versions, version) {
			return fmt.Errorf("%q is not VERSION=FOLDER, each version once", argument)
		}
		versions, trees = append(versions, version), append(trees, tree)
	}
	if len(versions) == 0 {
		return fmt.Errorf("which versions? %s=.", latest)
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	releases := slices.DeleteFunc(slices.Clone(versions), func(version string) bool { return version == latest })
	first := cmp.Or(append(releases, latest)...)
	for i, version := range versions {
		s := &site{Version: version, Versions: versions, tree: trees[i], repository: repository, ref: "v" + version}
		if version == latest {
			s.ref = "main"
			if len(releases) > 0 {
				s.Newest = releases[0]
			}
		} else if version != first {
			s.Newest = first
		}
		if err := s.build(filepath.Join(out, version)); err != nil {
			return fmt.Errorf("%s: %w", version, err)
		}
	}
	return frame(out, first)
}

// frame writes what is above the versions: the way to the one that is shown first, and from links to the Markdown itself.
func frame(out, first string) error {
	index := fmt.Sprintf("<!doctype html>\n<meta charset=utf-8>\n<title>Middleware Operator</title>\n"+
		"<meta http-equiv=refresh content=\"0; url=%[1]s/index.html\">\n<a href=\"%[1]s/index.html\">Documentation</a>\n", first)
	lost := fmt.Sprintf("<!doctype html>\n<meta charset=utf-8>\n<title>Not found</title>\n<p>There is no such page.</p>\n<script>\n"+
		"// A runbook's URL names the Markdown: .../docs/troubleshooting.md#alert\n"+
		"const page = /^(.*?)((?:docs\\/[\\w\\/.-]+|[A-Z]+))\\.md$/.exec(location.pathname);\n"+
		"if (page) location.replace(page[1] + %q + page[2].replace(/README$/, 'index') + '.html' + location.hash);\n</script>\n", first+"/")
	for name, text := range map[string]string{"index.html": index, "404.html": lost, ".nojekyll": ""} {
		if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

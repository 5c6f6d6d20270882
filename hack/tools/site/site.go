// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// patterns are the pages, by their paths in a tree; pictures are what they show.
var (
	patterns = []string{"*.md", "docs/*.md", "docs/adr/*.md", "docs/reference/*.md", "test/*/README.md", "hack/*/README.md",
		"deploy/*/README.md"}
	pictures = []string{"docs/pictures/*"}
)

//go:embed theme
var theme embed.FS

var layout = template.Must(template.ParseFS(theme, "theme/page.html"))

// site is one version.
type site struct {
	Version  string
	Versions []string
	Newest   string // the release to read instead; empty for that one itself
	Menu     []group

	tree, repository, ref string
	pages                 map[string]*page
}

// group is a part of the menu, of the index of the documentation.
type group struct {
	Title string
	Items []item
}

type item struct {
	Title, Source string
	Below         bool // it is part of the one above
}

// entry is what the search finds: a section of a page.
type entry struct {
	URL     string `json:"u"`
	Page    string `json:"p"`
	Heading string `json:"h"`
	Text    string `json:"t"`
}

// address is where a page is in its version: files keep their folders, so that pictures and relative links stay where they are.
func address(source string) string {
	folder, name := path.Split(strings.TrimSuffix(source, ".md"))
	if name == "README" {
		name = "index"
	}
	return folder + name + ".html"
}

// relative is the way from one file to another.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}

func (s *site) build(out string) error {
	if err := s.read(); err != nil {
		return err
	}
	var wrong []error
	var index []entry
	for _, source := range s.sources() {
		p := s.pages[source]
		wrong = append(wrong, s.resolve(p)...)
		index = append(index, p.entries()...)
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	if docs := s.pages["docs/README.md"]; docs != nil {
		s.Menu = docs.menu(s.pages)
	}
	for _, source := range s.sources() {
		if err := s.write(out, s.pages[source]); err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
	}
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	if err := put(filepath.Join(out, "search.json"), text); err != nil {
		return err
	}
	return s.assets(out)
}

func (s *site) sources() []string {
	var sources []string
	for source := range s.pages {
		sources = append(sources, source)
	}
	slices.Sort(sources)
	return sources
}

// read parses all pages of the tree.
func (s *site) read() error {
	s.pages = map[string]*page{}
	for _, pattern := range patterns {
		files, err := fs.Glob(os.DirFS(s.tree), pattern)
		if err != nil {
			return err
		}
		for _, source := range files {
			text, err := os.ReadFile(filepath.Join(s.tree, source))
			if err != nil {
				return err
			}
			s.pages[source] = parse(source, text)
		}
	}
	if s.pages["README.md"] == nil {
		return fmt.Errorf("%s has no README.md", s.tree)
	}
	return nil
}

// write renders a page into the theme.
func (s *site) write(out string, p *page) error {
	body, err := p.html()
	if err != nil {
		return err
	}
	file, here := filepath.Join(out, address(p.source)), address(p.source)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	err = layout.Execute(f, map[string]any{
		"Site": s, "Title": p.title, "Body": template.HTML(body), "Contents": p.contents(), "Root": relative(here, ""),
		"Here": p.source, "File": here, "Source": s.repository + "/blob/" + s.ref + "/" + p.source,
		"Address": func(source string) string { return relative(here, address(source)) },
	})
	return errors.Join(err, f.Close())
}

// assets are the files of the theme and the pictures.
func (s *site) assets(out string) error {
	for _, name := range []string{"style.css", "site.js"} {
		text, err := theme.ReadFile("theme/" + name)
		if err == nil {
			err = put(filepath.Join(out, name), text)
		}
		if err != nil {
			return err
		}
	}
	for _, pattern := range pictures {
		files, err := fs.Glob(os.DirFS(s.tree), pattern)
		if err != nil {
			return err
		}
		for _, picture := range files {
			text, err := os.ReadFile(filepath.Join(s.tree, picture))
			if err == nil {
				err = put(filepath.Join(out, picture), text)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func put(file string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

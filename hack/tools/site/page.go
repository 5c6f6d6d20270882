// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// The pages are ours, and have a few HTML elements in tables.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe(),
	renderer.WithNodeRenderers(util.Prioritized(own{}, 100))))

// own renders what is otherwise here than in goldmark.
type own struct{}

func (own) RegisterFuncs(register renderer.NodeRendererFuncRegisterer) {
	register.Register(ast.KindFencedCodeBlock, fences)
	register.Register(ast.KindHeading, headings)
}

// headings have a link to themselves.
func headings(w util.BufWriter, _ []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	h := node.(*ast.Heading)
	id, _ := h.AttributeString("id")
	form, values := "<h%d id=\"%s\">", []any{h.Level, id}
	if !entering {
		form, values = " <a class=\"anchor\" href=\"#%s\" aria-label=\"Link to this section\">#</a></h%d>\n", []any{id, h.Level}
	}
	_, err := fmt.Fprintf(w, form, values...)
	return ast.WalkContinue, err
}

// page is one Markdown file.
type page struct {
	source, title string
	text          []byte
	root          ast.Node
	headings      []heading
	ids           map[string]bool
}

type heading struct {
	Level     int
	ID, Title string
}

// parse reads a page, and gives its headings the names that GitHub gives them.
func parse(source string, content []byte) *page {
	p := &page{source: source, title: source, text: content, root: markdown.Parser().Parse(text.NewReader(content)), ids: map[string]bool{}}
	_ = ast.Walk(p.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		h, is := node.(*ast.Heading)
		if !is || !entering {
			return ast.WalkContinue, nil
		}
		title := p.plain(h)
		id := p.id(title)
		p.ids[id] = true
		h.SetAttributeString("id", []byte(id))
		if h.Level == 1 && len(p.headings) == 0 {
			p.title = title
		}
		p.headings = append(p.headings, heading{h.Level, id, title})
		return ast.WalkSkipChildren, nil
	})
	return p
}

var notID = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

func (p *page) id(title string) string {
	base := strings.ReplaceAll(notID.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
	id := base
	for n := 1; p.ids[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	return id
}

// plain is the text of a node and of those in it.
func (p *page) plain(node ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(p.text))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.AutoLink:
			if entering {
				b.Write(n.Label(p.text))
			}
		default:
			if entering && n.Type() == ast.TypeBlock && n.Lines() != nil && n.IsRaw() {
				b.Write(n.Lines().Value(p.text))
			}
			if !entering && n != node && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// resolve makes links to Markdown links to pages, and those to other files of the tree links to the repository; it says which lead
// nowhere.
func (s *site) resolve(p *page) (wrong []error) {
	_ = ast.Walk(p.root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Link:
			to, err := s.target(p, string(n.Destination))
			if err != nil {
				wrong = append(wrong, err)
			}
			n.Destination = []byte(to)
		case *ast.Image:
			file := path.Join(path.Dir(p.source), string(n.Destination))
			if matched, _ := path.Match(pictures[0], file); !matched {
				wrong = append(wrong, fmt.Errorf("%s shows %s, which is not in %s", p.source, file, pictures[0]))
			} else if _, err := os.Stat(filepath.Join(s.tree, file)); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", p.source, err))
			}
		}
		return ast.WalkContinue, nil
	})
	return wrong
}

func (s *site) target(p *page, link string) (string, error) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return link, nil
	}
	file, anchor, _ := strings.Cut(link, "#")
	to := p.source
	if file != "" {
		to = path.Join(path.Dir(p.source), file)
	}
	of := s.pages[to]
	if of == nil {
		if _, err := os.Stat(filepath.Join(s.tree, to)); err != nil || strings.HasPrefix(to, "..") {
			return link, fmt.Errorf("%s: %s leads nowhere", p.source, link)
		}
		return s.repository + "/blob/" + s.ref + "/" + to, nil
	}
	if anchor != "" && !of.ids[anchor] {
		return link, fmt.Errorf("%s: %s has no heading #%s", p.source, to, anchor)
	}
	way := ""
	if of != p {
		way = relative(address(p.source), address(to))
	}
	if anchor != "" {
		way += "#" + anchor
	}
	return way, nil
}

func (p *page) html() (string, error) {
	var b bytes.Buffer
	err := markdown.Renderer().Render(&b, p.text, p.root)
	return b.String(), err
}

// contents are the headings below the title, for a list beside a page.
func (p *page) contents() []heading {
	var list []heading
	for _, h := range p.headings {
		if h.Level == 2 || h.Level == 3 {
			list = append(list, h)
		}
	}
	if len(list) > 60 { // a reference
		list = nil
		for _, h := range p.headings {
			if h.Level == 2 {
				list = append(list, h)
			}
		}
	}
	return list
}

// entries are the sections of a page, with all of their text.
func (p *page) entries() []entry {
	here := entry{URL: address(p.source), Page: p.title}
	var list []entry
	var b strings.Builder
	flush := func() {
		if here.Text = strings.Join(strings.Fields(b.String()), " "); here.Text != "" || here.Heading != "" {
			list = append(list, here)
		}
		b.Reset()
	}
	for node := p.root.FirstChild(); node != nil; node = node.NextSibling() {
		if h, is := node.(*ast.Heading); is {
			if h.Level == 1 {
				continue
			}
			flush()
			id, _ := h.AttributeString("id")
			here.URL, here.Heading = fmt.Sprintf("%s#%s", address(p.source), id), p.plain(h)
			continue
		}
		b.WriteString(p.plain(node) + " ")
	}
	flush()
	return list
}

// menu is what the index of the documentation lists: its groups, the page that each row is about, and pages that belong to that.
func (p *page) menu(pages map[string]*page) []group {
	var menu []group
	seen := map[string]bool{}
	for node := p.root.FirstChild(); node != nil; node = node.NextSibling() {
		if strong, is := node.FirstChild().(*ast.Emphasis); is && strong.Level == 2 && strong.NextSibling() == nil {
			menu = append(menu, group{Title: p.plain(strong)})
		}
		if _, is := node.(*extast.Table); !is || len(menu) == 0 {
			continue
		}
		last := &menu[len(menu)-1]
		for row := node.FirstChild(); row != nil; row = row.NextSibling() {
			below := false
			_ = ast.Walk(row, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
				link, is := n.(*ast.Link)
				if !is || !entering {
					return ast.WalkContinue, nil
				}
				for source, of := range pages {
					if relative(address(p.source), address(source)) == string(link.Destination) && !seen[source] {
						seen[source] = true
						title := p.plain(link)
						if below {
							title = of.title
						}
						last.Items = append(last.Items, item{title, source, below})
					}
				}
				below = true
				return ast.WalkContinue, nil
			})
		}
	}
	return menu
}

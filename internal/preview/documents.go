// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// document is one object of a file.
type document struct {
	file string
	// line is where its text begins, counted from 1.
	line   int
	object *unstructured.Unstructured
}

func (d document) refuse(path, message, remedy string) *Finding {
	return &Finding{Severity: SeverityError, File: d.file, Line: d.line, Path: path, Message: message, Remedy: remedy}
}

// located is findingsOf for what is wrong with an object of a file, or with what became of it.
func (d document) located(severity Severity, err error) []Finding {
	all := findingsOf(severity, d.file, err)
	for i := range all {
		all[i].File, all[i].Line = d.file, d.line
		all[i].Path = strings.Join(slices.DeleteFunc([]string{d.String(), all[i].Path}, func(s string) bool { return s == "" }), ", ")
	}
	return all
}

// String is "CronTab shop/nightly".
func (d document) String() string {
	name := d.object.GetName()
	if namespace := d.object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return d.object.GetKind() + " " + name
}

// standardInput is the path that means it.
const standardInput = "-"

// readAll reads every object of files, of directories (their *.yaml, *.yml and *.json files, at any depth), and of standard input.
// What could not be read is among the findings.
func readAll(paths []string, stdin io.Reader) (documents []document, findings []Finding) {
	for _, path := range paths {
		files, err := filesAt(path)
		if err != nil {
			findings = append(findings, Finding{Severity: SeverityError, File: path, Message: reasonOf(err), Remedy: "check the path"})
			continue
		}
		for _, file := range files {
			read, err := readFile(file, stdin)
			documents = append(documents, read...)
			findings = append(findings, findingsOf(SeverityError, file, err)...)
		}
	}
	return documents, findings
}

func filesAt(path string) ([]string, error) {
	if path == standardInput {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name)) && !isKustomization(name) {
			files = append(files, name)
		}
		return err
	})
	return files, err
}

func isKustomization(file string) bool {
	name := filepath.Base(file)
	return strings.TrimSuffix(name, filepath.Ext(name)) == "kustomization"
}

// readFile reads the objects of one file, up to the first that cannot be read.
func readFile(file string, stdin io.Reader) ([]document, error) {
	var content []byte
	var err error
	if file == standardInput {
		content, err = io.ReadAll(stdin)
	} else {
		content, err = os.ReadFile(file) //nolint:gosec // the person at the command line names it
	}
	if err != nil {
		return nil, &Finding{File: file, Message: reasonOf(err), Remedy: "check the path"}
	}
	return decode(file, content)
}

// readFS reads the objects of the files of fsys that match a pattern of fs.Glob.
func readFS(fsys fs.FS, pattern string) ([]document, error) {
	files, err := fs.Glob(fsys, pattern)
	if err != nil {
		return nil, err
	}
	var documents []document
	for _, file := range files {
		content, err := fs.ReadFile(fsys, file)
		if err != nil {
			return nil, err
		}
		read, err := decode(file, content)
		if err != nil {
			return nil, err
		}
		documents = append(documents, read...)
	}
	return documents, nil
}

// decode reads the objects of a file's content, up to the first that cannot be read.
func decode(file string, content []byte) ([]document, error) {
	var documents []document
	for _, part := range split(content) {
		d := document{file: file, line: part.line}
		refuse := func(err error) error {
			return d.refuse("", oneLine(err.Error()), "write Kubernetes objects in YAML or JSON")
		}
		encoded, err := yaml.YAMLToJSONStrict(part.text)
		if err != nil {
			return documents, refuse(err)
		}
		if text := string(encoded); text == "null" || text == "{}" {
			continue // only comments
		}
		d.object = &unstructured.Unstructured{}
		if err := d.object.UnmarshalJSON(encoded); err != nil {
			return documents, refuse(err)
		}
		if !d.object.IsList() {
			documents = append(documents, d)
			continue
		}
		items, err := d.object.ToList()
		if err != nil {
			return documents, refuse(err)
		}
		for i := range items.Items {
			documents = append(documents, document{file: d.file, line: d.line, object: &items.Items[i]})
		}
	}
	return documents, nil
}

type part struct {
	line int
	text []byte
}

// split cuts a YAML stream at its "---" lines. Each part begins at its first line that is neither empty nor a comment.
func split(content []byte) []part {
	var parts []part
	current := part{}
	begun := false
	for i, line := range bytes.SplitAfter(content, []byte("\n")) {
		trimmed := bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("---")) && (len(trimmed) == 3 || bytes.HasPrefix(trimmed, []byte("--- "))) {
			parts = append(parts, current)
			current, begun = part{text: bytes.TrimPrefix(line, []byte("---"))}, false
			continue
		}
		if !begun && len(trimmed) > 0 && trimmed[0] != '#' {
			current.line, begun = i+1, true
		}
		current.text = append(current.text, line...)
	}
	return append(parts, current)
}

// reasonOf leaves out of a file error the path, which the finding tells already.
func reasonOf(err error) string {
	text := err.Error()
	if _, reason, found := strings.Cut(text, ": "); found {
		return reason
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// only returns the one document of a file, or those of a kind ("CronTab", "crontab" or "CronTab.stable.example.com").
func only(documents []document, kind, file string) ([]document, error) {
	if kind == "" {
		if len(documents) == 1 {
			return documents, nil
		}
		var found []string
		for _, d := range documents {
			found = append(found, d.String())
		}
		return nil, &Finding{File: file, Message: fmt.Sprintf("there are %d objects in it (%s)", len(documents), strings.Join(found, ", ")),
			Remedy: "say which with --kind"}
	}
	var chosen []document
	for _, d := range documents {
		gvk := d.object.GroupVersionKind()
		if strings.EqualFold(kind, gvk.Kind) || strings.EqualFold(kind, gvk.GroupKind().String()) {
			chosen = append(chosen, d)
		}
	}
	if len(chosen) == 0 {
		return nil, &Finding{File: file, Message: "there is no " + kind + " in it", Remedy: "check --kind and -f"}
	}
	return chosen, nil
}

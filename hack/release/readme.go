// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Between these lines of the chart's README is the table of values.
const tableBegin, tableEnd = "<!-- values: made from values.yaml by `make chart` -->\n", "<!-- end of values -->"

// writeReadme writes the table of values, from values.yaml and its comments.
func (c chart) writeReadme() error {
	text, err := os.ReadFile(c.values())
	if err != nil {
		return err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return fmt.Errorf("%s: %w", c.values(), err)
	}
	rows, err := valueRows("", document.Content[0])
	if err != nil {
		return fmt.Errorf("%s: %w", c.values(), err)
	}
	path := filepath.Join(c.output, "README.md")
	page, err := os.ReadFile(path) //nolint:gosec // a file of this checkout
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(page), tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		return fmt.Errorf("%s has no lines %s and %s", path, tableBegin, tableEnd)
	}
	table := "\n| value | default | meaning |\n|---|---|---|\n" + strings.Join(rows, "\n") + "\n\n"
	return writeFile(path, []byte(before+tableBegin+table+tableEnd+after))
}

// valueRows are the rows of the values of a mapping: those with a comment are explained as a whole, the others value by value.
func valueRows(prefix string, mapping *yaml.Node) ([]string, error) {
	var rows []string
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		if key.HeadComment == "" {
			if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
				return nil, fmt.Errorf("%s has no comment that explains it", name)
			}
			below, err := valueRows(name+".", value)
			if err != nil {
				return nil, err
			}
			rows = append(rows, below...)
			continue
		}
		var content any
		if err := value.Decode(&content); err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		comment := strings.Join(strings.Fields(strings.ReplaceAll("\n"+key.HeadComment, "\n#", " ")), " ")
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |", name, encoded, comment))
	}
	return rows, nil
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helmchart "helm.sh/helm/v3/pkg/chart"
)

// schemas holds the compiled values.schema.json of a chart and its dependencies: Helm compiles them for each rendering, which
// takes a third of the time a rendering takes. The key is the schema's text.
type schemas struct{ compiled sync.Map }

// validate checks values as Helm does: those of the chart with its schema, those of each enabled dependency with its own.
func (s *schemas) validate(part *helmchart.Chart, values map[string]any) error {
	var failed []error
	if part.Schema != nil {
		if err := s.validateOne(part.Schema, values); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", part.Name(), err))
		}
	}
	for _, dependency := range part.Dependencies() {
		switch own := values[dependency.Name()].(type) {
		case nil:
		case map[string]any:
			failed = append(failed, s.validate(dependency, own))
		default:
			failed = append(failed, fmt.Errorf("%s: its values are a %T instead of an object", dependency.Name(), own))
		}
	}
	return errors.Join(failed...)
}

func (s *schemas) validateOne(text []byte, values map[string]any) error {
	compiled, err := s.compile(text)
	if err != nil {
		return fmt.Errorf("values.schema.json: %w", err)
	}
	if err := compiled.Validate(values); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "jsonschema validation failed with '"+schemaURL+"#'\n"))
	}
	return nil
}

// elsewhere refuses a chart, or a dependency in dir, whose schema refers to one that is not in it: it would be fetched, from
// wherever its author says, by whoever renders. What its own $defs and $id hold, and the drafts of JSON Schema, are at hand.
func (s *schemas) elsewhere(part *helmchart.Chart, dir string) error {
	if part.Schema != nil {
		_, err := s.compile(part.Schema)
		if remote := (*jsonschema.LoadURLError)(nil); errors.As(err, &remote) {
			return &Error{Stage: StageLoad, Path: path.Join(dir, "values.schema.json"),
				Err:    fmt.Errorf("it refers to %s, and nothing is fetched", remote.URL),
				Remedy: "copy what it refers to into the schema, under $defs"}
		}
	}
	for _, dependency := range part.Dependencies() {
		if err := s.elsewhere(dependency, path.Join(dir, "charts", dependency.Name())); err != nil {
			return err
		}
	}
	return nil
}

const schemaURL = "file:///values.schema.json"

func (s *schemas) compile(text []byte) (*jsonschema.Schema, error) {
	if found, ok := s.compiled.Load(string(text)); ok {
		return found.(*jsonschema.Schema), nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // from nowhere
	if err := compiler.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, err
	}
	s.compiled.Store(string(text), compiled)
	return compiled, nil
}

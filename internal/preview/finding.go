// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"errors"
	"fmt"
	"strings"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

// Severity is how much a Finding matters.
type Severity string

const (
	// SeverityError is something that does not work.
	SeverityError Severity = "error"
	// SeverityWarning is something that may not work, or that could not be checked.
	SeverityWarning Severity = "warning"
	// SeverityNote is something to know.
	SeverityNote Severity = "note"
)

// Finding is one thing that was found in what is to be shipped. It is an error, too.
type Finding struct {
	Severity Severity `json:"severity"`
	// Kind is the kind of the watch it is about, empty if it is about none.
	Kind string `json:"kind,omitempty"`
	// File and Line are where; Line counts from 1 and is 0 when unknown.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Path is a field, a template, or an object.
	Path    string `json:"path,omitempty"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Error is "file:line: path: message; remedy".
func (f *Finding) Error() string {
	var text strings.Builder
	switch {
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&text, "%s:%d: ", f.File, f.Line)
	case f.File != "":
		fmt.Fprintf(&text, "%s: ", f.File)
	}
	if f.Path != "" {
		text.WriteString(f.Path + ": ")
	}
	text.WriteString(f.Message)
	if f.Remedy != "" {
		text.WriteString("; " + f.Remedy)
	}
	return text.String()
}

// findingsOf takes an error apart: joined ones become one Finding each. File is where it was found, for errors that do not say.
func findingsOf(severity Severity, file string, err error) []Finding {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // only what was joined last is taken apart
		var all []Finding
		for _, one := range joined.Unwrap() {
			all = append(all, findingsOf(severity, file, one)...)
		}
		return all
	}
	found := Finding{Severity: severity, File: file}
	var inWatches *watches.Error
	var inChart *chart.Error
	var own *Finding
	switch {
	case errors.As(err, &own):
		found = *own
		found.Severity = severity
	case errors.As(err, &inWatches):
		found.File, found.Line, found.Message, found.Remedy = file, inWatches.Line, inWatches.Problem, inWatches.Remedy
	case errors.As(err, &inChart):
		found.Path, found.Message, found.Remedy = inChart.Path, inChart.Err.Error(), inChart.Remedy
	default:
		found.Message = err.Error()
	}
	return []Finding{found}
}

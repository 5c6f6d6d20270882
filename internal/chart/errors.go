// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

// Stage is the part of the work in which an Error arose.
type Stage string

const (
	// StageLoad is reading the chart.
	StageLoad Stage = "load"
	// StageValues is combining and validating values.
	StageValues Stage = "values"
	// StageTemplate is executing templates.
	StageTemplate Stage = "template"
	// StageManifest is reading what the templates wrote.
	StageManifest Stage = "manifest"
	// StageCheck is comparing the result with what may be created.
	StageCheck Stage = "check"
)

// Error is a refusal of this package. Trying again with the same input gives the same error.
type Error struct {
	Stage Stage
	// Path is where: a path of values ("spec.image"), a template ("app/templates/service.yaml") or a file of the chart.
	Path string
	Err  error
	// Remedy is what to do about it.
	Remedy string
}

func (e *Error) Error() string {
	text := e.Err.Error()
	if e.Path != "" {
		text = e.Path + ": " + text
	}
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

func (e *Error) Unwrap() error { return e.Err }

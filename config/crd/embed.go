// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd embeds the operator's CustomResourceDefinitions, as generated from api/.
package crd

import (
	"embed"
	"io/fs"
)

//go:embed bases/*.yaml
var bases embed.FS

// Bases are the definitions, one YAML file each.
func Bases() fs.FS {
	files, err := fs.Sub(bases, "bases")
	if err != nil {
		panic(err) // the directory is embedded above
	}
	return files
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
)

// The form of a submission to OperatorHub's repositories, whose pipelines publish a bundle first and then add it to the catalog:
// https://github.com/k8s-operatorhub/community-operators/blob/main/docs/contributing-fbc.md
const (
	schemaBasic  = "olm.template.basic"
	templateName = "basic.yaml"
)

// submission writes, into the operator's folder of such a repository, the release-config.yaml of a version, and the catalog template
// to begin with: package and channels without a version, since the pipeline enters each one when its bundle has got an image.
func submission(documents []map[string]any, name, version, folder string) error {
	config, err := releaseConfig(documents, name)
	if err != nil {
		return err
	}
	if err := writeDocuments(filepath.Join(folder, version, "release-config.yaml"), config); err != nil {
		return err
	}
	return writeDocuments(filepath.Join(folder, "catalog-templates", templateName), skeleton(documents))
}

// releaseConfig says what channels a bundle goes to, and what it replaces there.
func releaseConfig(documents []map[string]any, name string) (map[string]any, error) {
	var releases []map[string]any
	byReplaces := map[any]map[string]any{}
	for _, channel := range documents {
		if channel["schema"] != schemaChannel {
			continue
		}
		entries, err := maps(channel, "entries")
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if entry["name"] != name {
				continue
			}
			release, known := byReplaces[entry["replaces"]]
			if !known {
				release = map[string]any{"template_name": templateName, "skipRange": entry["skipRange"], "channels": []any{}}
				if entry["replaces"] != nil {
					release["replaces"] = entry["replaces"]
				}
				byReplaces[entry["replaces"]] = release
				releases = append(releases, release)
			}
			release["channels"] = append(release["channels"].([]any), channel["name"])
		}
	}
	if len(releases) == 0 {
		return nil, fmt.Errorf("no channel has %s; add its bundle to the catalog's template first", name)
	}
	return map[string]any{"catalog_templates": releases}, nil
}

func skeleton(documents []map[string]any) map[string]any {
	var entries []any
	for _, document := range documents {
		switch document["schema"] {
		case schemaPackage:
			entries = append(entries, document)
		case schemaChannel:
			entries = append(entries, map[string]any{
				"schema": schemaChannel, "package": document["package"], "name": document["name"], "entries": []any{},
			})
		}
	}
	return map[string]any{"schema": schemaBasic, "entries": entries}
}

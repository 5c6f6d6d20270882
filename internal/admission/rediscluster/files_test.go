// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"
)

// Files that a cluster begins with have each slot once, and no name leads out of the store's prefix.
func TestFiles(t *testing.T) {
	const restore = "spec.bootstrap.restore."
	for shards, want := range map[string]string{
		`[{objects: [dump.rdb]}]`:                                            "",
		`[{objects: [a/base, a/incr], slots: 0-16383}]`:                      "",
		`[{objects: [a], slots: 0-8191}, {objects: [b], slots: 8192-16383}]`: "",
		`[{objects: [a], slots: 0-8191}]`:                                    restore + "files.shards: Invalid value: 1: slots 8192-16383 are in no entry",
		`[{objects: [a], slots: 0-8191}, {objects: [b], slots: 8191-16383}]`: restore +
			"files.shards[1].slots: Invalid value: \"8191-16383\": slots 8191 are those of a former entry",
		`[{objects: [a]}, {objects: [b], slots: 0-16383}]`: restore + "files.shards[0].slots: Required value",
		`[{objects: [a], slots: 0-99999}]`:                 restore + "files.shards[0].slots: Invalid value",
		`[{objects: [a/../../b]}]`:                         restore + "files.shards[0].objects[0]: Invalid value",
		`[{objects: [a, ./b]}]`:                            restore + "files.shards[0].objects[1]: Invalid value",
	} {
		spec := `{bootstrap: {restore: {files: {store: {s3: {bucket: exports, region: eu, credentialsSecretName: a}}, shards: ` + shards + `}}}}`
		refused := strings.Join(sentences(Validate(cluster(t, spec), Options{})), "\n")
		if !strings.HasPrefix(refused, want) || want == "" && refused != "" {
			t.Errorf("%s: %q, want %q", shards, refused, want)
		}
	}
	for spec, want := range map[string]string{
		`redisBackup: a, files: {store: {s3: {bucket: exports, region: eu, credentialsSecretName: a}}, shards: [{objects: [a]}]}`:        "redisBackup: Required value",
		`identitySecretName: a, files: {store: {s3: {bucket: exports, region: eu, credentialsSecretName: a}}, shards: [{objects: [a]}]}`: "identitySecretName: Forbidden",
	} {
		refused := strings.Join(sentences(Validate(cluster(t, `{bootstrap: {restore: {`+spec+`}}}`), Options{})), "\n")
		if !strings.HasPrefix(refused, restore+want) {
			t.Errorf("%s: %q, want %q", spec, refused, want)
		}
	}
}

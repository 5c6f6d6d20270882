// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// What a store and an archive may be, also for objects that came past the schema.
func TestBackup(t *testing.T) {
	const credentials = "credentialsSecretName: c"
	s3 := func(text string) string {
		return "backup: {archive: {}, store: {s3: {" + text + "}}}"
	}
	archive := func(text string) string {
		return "backup: {store: {s3: {bucket: backups, " + credentials + "}}, archive: {" + text + "}}"
	}
	const at, invalid = "spec.backup.", ": Invalid value"
	for _, tt := range []struct{ spec, want string }{
		{archive(""), ""},
		{archive("interval: 1s, markInterval: 5s, baseInterval: 10m, keep: 1h, objective: 5s"), ""},
		{s3("bucket: backups, prefix: a/b, endpoint: 'https://minio.store.svc:9000', region: eu-west-1, caSecretName: ca, " + credentials), ""},

		{"backup: {store: {s3: {bucket: backups, " + credentials + "}}}", at + "archive: Required value: say what is kept"},
		{"backup: {archive: {}, maxBytesPerSecond: '1', store: {s3: {bucket: backups, " + credentials + "}}}",
			at + "maxBytesPerSecond" + invalid},
		{"backup: {archive: {}, store: {}}", at + "store: Required value: say where"},
		{s3("bucket: Backups/, " + credentials), at + "store.s3.bucket" + invalid},
		{s3("bucket: 'a?x=y', " + credentials), at + "store.s3.bucket" + invalid},
		{s3("bucket: backups, prefix: ../other, " + credentials), at + "store.s3.prefix" + invalid},
		{s3("bucket: backups, prefix: 'a&endpoint=x', " + credentials), at + "store.s3.prefix" + invalid},
		{s3("bucket: backups, region: 'a b', " + credentials), at + "store.s3.region" + invalid},
		{s3("bucket: backups, endpoint: 'ftp://x', " + credentials), at + "store.s3.endpoint" + invalid},
		{s3("bucket: backups, endpoint: 'http://u:p@x', " + credentials), at + "store.s3.endpoint" + invalid},
		{s3("bucket: backups, credentialsSecretName: A_b"), at + "store.s3.credentialsSecretName" + invalid},
		{s3("bucket: backups"), at + "store.serviceAccountName: Required value"},
		{s3("bucket: backups, caSecretName: '../x', " + credentials), at + "store.s3.caSecretName" + invalid},
		{"backup: {archive: {}, recipients: [age1x], store: {s3: {bucket: backups, " + credentials + "}}}", at + "recipients[0]" + invalid},
		{archive("interval: 10ms"), at + `archive.interval: Invalid value: "10ms": must be between 1s and 10m`},
		{archive("markInterval: 25h"), at + `archive.markInterval: Invalid value: "25h0m0s": must be between 5s and 24h`},
		{archive("baseInterval: 1m"), at + "archive.baseInterval" + invalid},
		{archive("keep: 1m"), at + "archive.keep" + invalid},
		{archive("objective: 1s, interval: 1s"), at + "archive.objective" + invalid},
		{archive("objective: 30s, interval: 20s"), at + `archive.objective: Invalid value: "30s": must be twice the interval at least`},
	} {
		got := strings.Join(sentences(Validate(cluster(t, tt.spec), Options{})), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.spec, got, tt.want)
		}
	}
}

// The archive may be asked for, changed and given up while the cluster runs.
func TestBackupChanges(t *testing.T) {
	without := cluster(t, "{}")
	with := cluster(t, "backup: {store: {s3: {bucket: backups, credentialsSecretName: c}}, archive: {}}")
	other := cluster(t, "backup: {store: {s3: {bucket: others, credentialsSecretName: c}}, archive: {keep: 2h}}")
	all := []*v1alpha1.RedisCluster{without, with, other, without}
	for i, before := range all[:len(all)-1] {
		if refused := ValidateUpdate(before, all[i+1], Options{}); len(refused) > 0 {
			t.Errorf("change %d: %v", i, refused)
		}
	}
	got := with.Spec.Backup
	if objective := got.Archive.Objective; objective == nil || objective.Duration != time.Minute || got.Store.S3.Region != "us-east-1" {
		t.Errorf("defaults: %+v", with.Spec.Backup)
	}
}

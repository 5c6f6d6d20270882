// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func TestCheckStore(t *testing.T) {
	const azure = "azure: {container: con, storageAccount: acc, credentialsSecretName: s, "
	for text, want := range map[string]string{
		"s3: {bucket: backups, credentialsSecretName: s}":                           "",
		"{s3: {bucket: backups}, serviceAccountName: a}":                            "",
		"{gcs: {bucket: backups}, serviceAccountName: a}":                           "",
		"gcs: {bucket: backups, prefix: a/b, credentialsSecretName: s}":             "",
		"azure: {container: con, storageAccount: acc, credentialsSecretName: s}":    "",
		"claim: {claimName: c, prefix: a/b}":                                        "",
		"{}":                                                                        "store: Required value: say where: set one of s3, gcs",
		"{claim: {claimName: c}, gcs: {bucket: backups}, serviceAccountName: a}":    "store: Required value: say where",
		"s3: {bucket: backups}":                                                     "store.serviceAccountName: Required value: say who logs in",
		"{gcs: {bucket: backups, credentialsSecretName: s}, serviceAccountName: a}": "store.serviceAccountName: Required value: say who logs in",
		"azure: {container: con, storageAccount: acc}":                              "store.serviceAccountName: Required value: say who logs in",
		"{claim: {claimName: c}, serviceAccountName: a}":                            "store.serviceAccountName: Forbidden: a claim is mounted",
		"claim: {claimName: c, prefix: ../data}":                                    "store.claim.prefix: Invalid value",
		"claim: {claimName: c, prefix: a/../../b}":                                  "store.claim.prefix: Invalid value",
		"claim: {claimName: c, prefix: /etc}":                                       "store.claim.prefix: Invalid value",
		"gcs: {bucket: backups, prefix: a//b, credentialsSecretName: s}":            "store.gcs.prefix: Invalid value",
		"claim: {claimName: ''}":                                                    "store.claim.claimName: Required value",
		"claim: {claimName: ../c}":                                                  "store.claim.claimName: Invalid value",
		"s3: {bucket: backups, credentialsSecretName: a/b}":                         "store.s3.credentialsSecretName: Invalid value",
		"{s3: {bucket: backups}, serviceAccountName: A}":                            "store.serviceAccountName: Invalid value",
		"s3: {bucket: Backups/, credentialsSecretName: s}":                          "store.s3.bucket: Invalid value",
		"gcs: {bucket: 'b?c', credentialsSecretName: s}":                            "store.gcs.bucket: Invalid value",
		"gcs: {bucket: ../b, credentialsSecretName: s}":                             "store.gcs.bucket: Invalid value",
		"azure: {container: C, storageAccount: acc, credentialsSecretName: s}":      "store.azure.container: Invalid value",
		"azure: {container: a--b, storageAccount: acc, credentialsSecretName: s}":   "store.azure.container: Invalid value",
		"azure: {container: con, storageAccount: my-acc, credentialsSecretName: s}": "store.azure.storageAccount: Invalid value",
		azure + "caSecretName: A}":                                                  "store.azure.caSecretName: Invalid value",
		azure + "endpoint: 'https://azurite.store.svc:10000/acc'}":                  "",
		azure + "endpoint: 'https://a/b/c'}":                                        "store.azure.endpoint: Invalid value",
		azure + "endpoint: 'https://u:p@a'}":                                        "store.azure.endpoint: Invalid value",
	} {
		var store v1alpha1.BackupStore
		if err := yaml.UnmarshalStrict([]byte(text), &store); err != nil {
			t.Fatal(err)
		}
		got := ""
		if refused := CheckStore(store, field.NewPath("store")); len(refused) > 0 {
			got = refused.ToAggregate().Error()
		}
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestCheckRate(t *testing.T) {
	for rate, good := range map[v1alpha1.ByteRate]bool{"": true, "50M": true, "100k": true, "100Ki": true, "999Gi": true,
		"99k": false, "0M": false,
		"50": false, "1e9": false, "1e1000000000": false, "-5M": false, "5m": false, "1000G": false, "1 M": false} {
		if refused := CheckRate(rate, field.NewPath("rate")); good != (len(refused) == 0) {
			t.Errorf("%s: %v", rate, refused)
		}
	}
}

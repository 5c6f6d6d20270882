// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// TestDefaultsAgreeWithSchema: the API server defaults by the CRD, the reconciler by
// Default; an object must not depend on which of them saw it.
func TestDefaultsAgreeWithSchema(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "crd", "bases", "redis.middleware.hc.cn_redisclusters.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	// storage is in each case: that it is there at all is a default no schema can say.
	for _, manifest := range []string{
		`{spec: {storage: {}}}`,
		`{spec: {storage: {}, pod: [{}]}}`,
		`{spec: {storage: {}, backup: {store: {s3: {bucket: backups, credentialsSecretName: a}}, archive: {}}}}`,
		`{spec: {storage: {}, backup: {store: {s3: {bucket: backups, region: eu-west-1, credentialsSecretName: a}}, archive: {keep: 24h, objective: 5m}}}}`,
		`{spec: {replicas: 9, pod: [{updateStrategy: {}, volumes: {type: emptyDir}}], updateStrategy: {}, auth: {}, networkPolicy: {}}}`,
		`{spec: {storage: {size: 5Gi}, version: 7.0.15, updateStrategy: {pipeline: "7"}, auth: {enabled: false}, podDisruptionBudget: {enabled: false}, spreadMasters: false}}`,
	} {
		var bySchema map[string]any
		if err := yaml.Unmarshal([]byte(manifest), &bySchema); err != nil {
			t.Fatal(err)
		}
		applySchemaDefaults(t, bySchema, crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		encoded, err := yaml.Marshal(bySchema)
		if err != nil {
			t.Fatal(err)
		}
		var want, got v1alpha1.RedisCluster
		if err := yaml.UnmarshalStrict(encoded, &want); err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict([]byte(manifest), &got); err != nil {
			t.Fatal(err)
		}
		Default(&got)
		// The image is a default of the operator's Deployment, not of the schema.
		defaultTo(&want.Spec.Repository, v1alpha1.DefaultRepository)
		defaultTo(&want.Spec.Version, v1alpha1.DefaultVersion)
		if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
			t.Errorf("%s: the CRD's defaults and Default disagree (-CRD +Default):\n%s", manifest, diff)
		}
	}
}

// applySchemaDefaults does what the API server does with structural defaults.
func applySchemaDefaults(t *testing.T, value any, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		for name := range schema.Properties {
			property := schema.Properties[name]
			if _, set := value[name]; !set && property.Default != nil {
				var byDefault any
				if err := yaml.Unmarshal(property.Default.Raw, &byDefault); err != nil {
					t.Fatal(err)
				}
				value[name] = byDefault
			}
			applySchemaDefaults(t, value[name], &property)
		}
	case []any:
		for i := range value {
			applySchemaDefaults(t, value[i], schema.Items.Schema)
		}
	}
}

// TestStorageIsTheVolume: type pvc beside storage says nothing that storage does not, and goes;
// every other volume stays for Validate.
func TestStorageIsTheVolume(t *testing.T) {
	for spec, stays := range map[string]bool{
		`{storage: {size: 5Gi, storageClassName: fast}, pod: [{volumes: {type: pvc}}]}`:  false,
		`{pod: [{volumes: {type: pvc}}]}`:                                                true,
		`{storage: {}, pod: [{volumes: {type: pvc, persistentVolumeClaimName: data}}]}`:  true,
		`{storage: {}, pod: [{volumes: {type: nfs}}]}`:                                   true,
		`{storage: {}, pod: [{volumes: {type: emptyDir}}, {volumes: {type: hostPath}}]}`: true,
	} {
		cr := cluster(t, spec)
		if (cr.Spec.Pod[0].Volumes != nil) != stays {
			t.Errorf("%s: volumes are %+v, and are to stay: %t", spec, cr.Spec.Pod[0].Volumes, stays)
		}
		if !stays && (cr.Spec.Storage.Size.String() != "5Gi" || *cr.Spec.Storage.StorageClassName != "fast") {
			t.Errorf("%s: storage is %+v", spec, cr.Spec.Storage)
		}
	}
}

// TestDefaultIsIdempotent, and says nothing about shards: kubectl scale sets replicas,
// and shards is to follow.
func TestDefaultIsIdempotent(t *testing.T) {
	once := cluster(t, `{replicas: 8, pod: [{}]}`)
	twice := once.DeepCopy()
	Default(twice)
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Errorf("defaulting again changes the object:\n%s", diff)
	}
	if once.Spec.Shards != nil {
		t.Errorf("shards is defaulted to %d", *once.Spec.Shards)
	}
}

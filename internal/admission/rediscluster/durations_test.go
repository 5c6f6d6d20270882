// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// The schema refuses what is no duration. If one object had such a text, none of its kind could be read any more, in any namespace.
func TestDurationsAreThose(t *testing.T) {
	for file, kind := range map[string]any{"redisclusters": v1alpha1.RedisCluster{}, "redisbackups": v1alpha1.RedisBackup{},
		"redisbackupschedules": v1alpha1.RedisBackupSchedule{}} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "crd", "bases", "redis.middleware.hc.cn_"+file+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		if found := durations(t, file, reflect.TypeOf(kind), crd.Spec.Versions[0].Schema.OpenAPIV3Schema); found == 0 {
			t.Errorf("%s: no duration was found", file)
		}
	}
}

// durations is how many there are below a path.
func durations(t *testing.T, path string, of reflect.Type, schema *apiextensionsv1.JSONSchemaProps) (found int) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of == reflect.TypeFor[metav1.Duration]():
		refuses := strings.HasSuffix(path, ".auth.previousPasswordFor") // see below
		for _, rule := range schema.XValidations {
			refuses = refuses || strings.HasPrefix(rule.Rule, "duration(self) ")
		}
		if !refuses {
			t.Errorf("%s takes any text", path)
		}
		return 1
	case of.Kind() == reflect.Slice && schema.Items != nil:
		return durations(t, path, of.Elem(), schema.Items.Schema)
	case of.Kind() != reflect.Struct:
		return 0
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if below, is := schema.Properties[name]; is {
			found += durations(t, path+"."+name, of.Field(i).Type, &below)
		}
	}
	return found
}

// The schema of what was released takes more digits than a duration has room for. The object can be read, and so can all others.
func TestDurationBeyondAllMeasure(t *testing.T) {
	for text, want := range map[string]time.Duration{"9999999999999999h": math.MaxInt64, "90m": 90 * time.Minute} {
		var list v1alpha1.RedisClusterList
		err := json.Unmarshal([]byte(`{"items":[{"spec":{"auth":{"enabled":true,"previousPasswordFor":"`+text+`","rotate":"a"}}}]}`), &list)
		if err != nil || list.Items[0].PreviousPasswordFor() != want || list.Items[0].Spec.Auth.Rotate != "a" {
			t.Errorf("%s: %+v, %v", text, list.Items, err)
		}
	}
	var c v1alpha1.RedisCluster
	if err := json.Unmarshal([]byte(`{"spec":{"auth":{"enabled":false}}}`), &c); err != nil || c.Spec.Auth.PreviousPasswordFor != nil ||
		c.AuthEnabled() {
		t.Errorf("%+v, %v", c.Spec.Auth, err)
	}
	if err := json.Unmarshal([]byte(`{"spec":{"auth":{"enabled":1}}}`), &c); err == nil {
		t.Error("anything is taken")
	}
}

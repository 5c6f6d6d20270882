// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transitions makes chains of changes of custom resources: whatever the schema of a kind allows, its bounds, what is just
// beyond them, and what people do wrong. Its tests ask that a resource that has come a long way is what a new one would be.
package transitions

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/admit"
)

// Kind is one whose specs are changed.
type Kind struct {
	schema.GroupVersionKind
	spec *apiextensionsv1.JSONSchemaProps
	// starts are specs to begin with.
	starts []map[string]any
	// seen are values that occur in those, by the path of their field.
	seen map[string][]any
	// mistakes are what people do wrong, as patches (RFC 7386) of the spec in JSON, by what is wrong.
	mistakes map[string]string
}

// Kinds are the five kinds, with the samples below the root of the checkout. A RedisBackup and a RedisBackupSchedule have no transitions:
// the spec of the former does not change, but for what becomes of the store, and from that of the latter nothing is rendered.
func Kinds(root string, defined map[schema.GroupVersionKind]*admit.Definition) (map[string]*Kind, error) {
	kinds := map[string]*Kind{}
	for gvk, d := range defined {
		spec := d.Schema().Properties["spec"]
		if gvk.Kind == "RedisBackup" || gvk.Kind == "RedisBackupSchedule" {
			continue
		}
		kinds[gvk.Kind] = &Kind{GroupVersionKind: gvk, spec: &spec, seen: map[string][]any{}, mistakes: map[string]string{}}
		for what, patch := range mistakes[gvk.Kind] {
			text, err := yaml.YAMLToJSON([]byte(patch))
			if err != nil {
				return nil, err
			}
			kinds[gvk.Kind].mistakes[what] = string(text)
		}
		for _, text := range starts[gvk.Kind] {
			if err := kinds[gvk.Kind].start([]byte("spec: " + text)); err != nil {
				return nil, err
			}
		}
	}
	samples := os.DirFS(filepath.Join(root, "config", "samples"))
	files, err := fs.Glob(samples, "*_*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := fs.ReadFile(samples, file)
		if err != nil {
			return nil, err
		}
		var head struct{ Kind string }
		if err := yaml.Unmarshal(text, &head); err != nil {
			return nil, err
		}
		if k := kinds[head.Kind]; k != nil {
			if err := k.start(text); err != nil {
				return nil, err
			}
		}
	}
	return kinds, nil
}

// start adds the spec of an object to those to begin with.
func (k *Kind) start(object []byte) error {
	var read struct{ Spec map[string]any }
	if err := yaml.Unmarshal(object, &read); err != nil {
		return err
	}
	spec := integers(read.Spec)
	k.starts = append(k.starts, spec)
	k.note("spec", spec)
	return nil
}

// note remembers the values of a spec.
func (k *Kind) note(path string, value any) {
	k.seen[path] = append(k.seen[path], value)
	switch value := value.(type) {
	case map[string]any:
		for name, child := range value {
			k.note(path+"."+name, child)
		}
	case []any:
		for _, item := range value {
			k.note(path+"[]", item)
		}
	}
}

// Start is a spec to begin with.
func (k *Kind) Start(random *rand.Rand) map[string]any {
	return runtime.DeepCopyJSON(k.starts[random.IntN(len(k.starts))])
}

// integers makes whole numbers what the API server makes of them.
func integers(spec map[string]any) map[string]any { return whole(spec).(map[string]any) }

func whole(value any) any {
	switch value := value.(type) {
	case float64:
		if value == float64(int64(value)) {
			return int64(value)
		}
	case map[string]any:
		for name, child := range value {
			value[name] = whole(child)
		}
	case []any:
		for i, item := range value {
			value[i] = whole(item)
		}
	}
	return value
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What takes minutes or all memory to decode is refused before, wherever a type has a quantity, and nowhere else.
func TestQuantities(t *testing.T) {
	const limit = `{"spec": {"containers": [{"resources": {"limits": {"memory": %}}}]}}`
	for name, tt := range map[string]struct{ object, says string }{
		"a size":            {strings.ReplaceAll(limit, "%", `"1e3"`), ""},
		"exa":               {strings.ReplaceAll(limit, "%", `"12E"`), ""},
		"two digits":        {strings.ReplaceAll(limit, "%", `"1e-99"`), ""},
		"a number":          {strings.ReplaceAll(limit, "%", `1e300`), ""},
		"no quantity":       {strings.ReplaceAll(limit, "%", `{"1e999999999": "1e999999999"}`), ""},
		"a large exponent":  {strings.ReplaceAll(limit, "%", `"1e2147483647"`), "spec.containers[0].resources.limits[memory]"},
		"a negative one":    {strings.ReplaceAll(limit, "%", `".1E-2147483648"`), "spec.containers[0].resources.limits[memory]"},
		"many digits":       {strings.ReplaceAll(limit, "%", `"`+strings.Repeat("9", 100)+`"`), "500m or 10Gi"},
		"behind a pointer":  {`{"spec": {"volumes": [{"emptyDir": {"sizeLimit": "1e999"}}]}}`, "spec.volumes[0].emptyDir.sizeLimit"},
		"in another case":   {`{"Spec": {"Overhead": {"cpu": "1e999"}}}`, "Overhead[cpu]"},
		"not a quantity":    {`{"spec": {"hostname": "1e999999999"}, "metadata": {"labels": {"commit": "12e345678"}}}`, ""},
		"an unknown field":  {`{"spec": {"nope": {"cpu": "1e999999999"}}}`, ""},
		"lists for maps":    {`{"spec": [{"overhead": []}], "metadata": "x"}`, ""},
		"nothing":           {`{}`, ""},
		"an inlined source": {`{"spec": {"volumes": [{"EmptyDir": {"SizeLimit": "1e999"}}]}}`, "spec.volumes[0]"},
	} {
		var object map[string]any
		if err := json.Unmarshal([]byte(tt.object), &object); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		refused := Quantities[corev1.Pod](object)
		if (tt.says == "") != (len(refused) == 0) || tt.says != "" && !strings.Contains(refused.ToAggregate().Error(), tt.says) {
			t.Errorf("%s: %v, want %q", name, refused, tt.says)
		}
		if tt.says == "" {
			continue
		}
		if _, strict := Strict[corev1.Pod](&unstructured.Unstructured{Object: object}); len(strict) != len(refused) {
			t.Errorf("%s: Strict says %v", name, strict)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/admission/app"
	"middleware.hc.cn/operator/internal/admission/crontab"
	"middleware.hc.cn/operator/internal/admission/foobar"
	"middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/chart"
)

// admissions are what the webhook does with an object of each kind.
var admissions = map[string]func(*unstructured.Unstructured) field.ErrorList{
	"App":     admit(app.Default, app.Validate, app.ValidateUpdate, app.Warnings),
	"CronTab": admit(crontab.Default, crontab.Validate, crontab.ValidateUpdate, crontab.Warnings),
	"FooBar":  admit(foobar.Default, foobar.Validate, foobar.ValidateUpdate, foobar.Warnings),
}

func admit[T any](setDefaults func(*T), validate func(*T) field.ErrorList, update func(before, after *T) field.ErrorList,
	warn func(*T) []string) func(*unstructured.Unstructured) field.ErrorList {
	return func(object *unstructured.Unstructured) field.ErrorList {
		typed, refused := rules.Strict[T](object)
		if len(refused) > 0 {
			return refused
		}
		_ = validate(typed) // an object that came past the webhook has no defaults
		setDefaults(typed)
		_, _ = warn(typed), update(new(T), typed)
		return validate(typed)
	}
}

// FuzzObject decodes a whole object: it is refused with the path of a field, or rendered, or what keeps it from that is named.
func FuzzObject(f *testing.F) {
	kinds := []string{"App", "CronTab", "FooBar"}
	for i, kind := range kinds {
		for _, file := range sampleFiles(f) {
			if object := readObject(f, file); object.GetKind() == kind {
				f.Add(uint8(i), string(encode(f, object.Object["spec"])))
			}
		}
		for _, spec := range []string{"{}", "null", "[]", "1", `{"replicas":1e308}`, `{"image":"a","unknown":[]}`} {
			f.Add(uint8(i), spec)
		}
	}
	for _, spec := range []string{
		`{"image":"a","ports":[{"name":"a","containerPort":-1}],"autoscaling":{},"canary":{},"ingress":{"enabled":true}}`,
		`{"image":"a","ports":[],"autoscaling":{"maxReplicas":0},"service":{"enabled":true,"type":"ExternalName"}}`,
		`{"image":"a","resources":{"limits":{"cpu":"1e2147483647"},"requests":{"cpu":-1}},"probes":{"liveness":{}}}`,
		`{"image":"a","ingress":{"enabled":true,"gateway":{"name":"g"},"host":"*.a"},"canary":{"image":"b","weight":50}}`,
	} {
		f.Add(uint8(0), spec)
	}
	f.Add(uint8(1), `{"cronSpec":"*/0 99999999999999999999 ? L W#","image":"a","timeZone":"../../etc/passwd","replicas":0}`)
	f.Add(uint8(2), `{"command":"$(FOO)","foo":"\u0000","barz":"TRUE","image":"@sha256:"}`)
	f.Fuzz(func(t *testing.T, choice uint8, text string) {
		var spec map[string]any
		if json.Unmarshal([]byte(text), &spec) != nil {
			return
		}
		object := newObject(kinds[int(choice)%len(kinds)], "x", spec)
		refused := admissions[object.GetKind()](object)
		for _, mistake := range refused {
			if !strings.HasPrefix(mistake.Field, "spec") {
				t.Errorf("%s: %v names no field", text, mistake)
			}
		}
		if len(refused) > 0 {
			return
		}
		objects, err := render(t, object)
		var named *chart.Error
		if err != nil && !errors.As(err, &named) {
			t.Errorf("%s: %v", text, err)
		}
		for _, made := range objects {
			if ns := made.GetNamespace(); ns != "" && ns != "default" ||
				!slices.Contains(loadChart(t, testKinds[object.GetKind()].chart).Kinds(), made.GetKind()) {
				t.Errorf("%s makes %s %s/%s", text, made.GetKind(), ns, made.GetName())
			}
		}
	})
}

func encode(t testing.TB, part any) []byte {
	t.Helper()
	text, err := json.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

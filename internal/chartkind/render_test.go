// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	helmcharts "middleware.hc.cn/operator/helm-charts"
	"middleware.hc.cn/operator/internal/admission/app"
	"middleware.hc.cn/operator/internal/admission/crontab"
	"middleware.hc.cn/operator/internal/admission/foobar"
	"middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/chartkind"
)

var update = flag.Bool("update", false, "write the golden files anew")

const samples = "../../config/samples"

// kind is a chart kind, as the tests handle it.
type kind struct {
	chart   string
	crd     string
	minimal map[string]any
	// chartOnly are values that are no field of the spec.
	chartOnly   []string
	setDefaults func(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured
}

var testKinds = map[string]kind{
	"CronTab": {"crontab", "stable.example.com_crontabs.yaml", map[string]any{"cronSpec": "* * * * */5", "image": "my-awesome-cron-image"},
		nil, withDefaults(crontab.Default)},
	"FooBar": {"foobar", "k8s.io_foobars.yaml", map[string]any{"command": "echo foobar"}, []string{"backoffLimit"},
		withDefaults(foobar.Default)},
	"App": {"app", "appcontroller.middleware.hc.cn_apps.yaml", map[string]any{"image": "docker.io/library/busybox:1.36"}, nil,
		withDefaults(app.Default)},
}

// gvks are what the operator calls the same kinds.
var gvks = map[string]schema.GroupVersionKind{
	"CronTab": crontabv1beta1.GroupVersion.WithKind("CronTab"),
	"FooBar":  foobarv1.GroupVersion.WithKind("FooBar"),
	"App":     appv1alpha1.GroupVersion.WithKind("App"),
}

func withDefaults[T any](setDefaults func(*T)) func(testing.TB, *unstructured.Unstructured) *unstructured.Unstructured {
	return func(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		typed, refused := rules.Strict[T](object)
		if len(refused) > 0 {
			t.Fatal(refused.ToAggregate())
		}
		setDefaults(typed)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: content}
	}
}

// loaded keeps the charts: they are immutable, and loading is slow for a fuzzer.
var loaded = map[string]*chart.Chart{}

func loadChart(t testing.TB, name string) *chart.Chart {
	t.Helper()
	if loaded[name] != nil {
		return loaded[name]
	}
	files, err := fs.Sub(helmcharts.FS, name)
	if err != nil {
		t.Fatal(err)
	}
	if loaded[name], err = chart.Load(files); err != nil {
		t.Fatal(err)
	}
	return loaded[name]
}

func render(t testing.TB, object *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	t.Helper()
	k := testKinds[object.GetKind()]
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := loadChart(t, k.chart).Render(spec,
		chart.Release{Name: object.GetName(), Namespace: object.GetNamespace(), Revision: 1, IsInstall: true},
		chart.Capabilities{KubeVersion: "v1.37.2"})
	if err != nil {
		return nil, err
	}
	if len(rendered.Hooks)+len(rendered.CRDs) > 0 {
		t.Fatalf("hooks or CRDs were rendered: %v %v", rendered.Hooks, rendered.CRDs)
	}
	return rendered.Objects, nil
}

func readObject(t testing.TB, path string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(text, &object.Object); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	object.SetNamespace("default")
	return object
}

func newObject(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSONValue(spec)}}
	object.SetGroupVersionKind(gvks[kind])
	object.SetName(name)
	object.SetNamespace("default")
	return object
}

// sampleFiles are the samples of the chart kinds.
func sampleFiles(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(samples, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range all {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		if _, ok := testKinds[readObject(t, file).GetKind()]; ok {
			files = append(files, file)
		}
	}
	if len(files) < 2*len(testKinds) {
		t.Fatalf("found the samples %v, want two of each kind", files)
	}
	return files
}

// TestSamplesRender renders each sample, with and without defaults, and compares it
// with what it rendered to before.
func TestSamplesRender(t *testing.T) {
	for _, file := range sampleFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			object := readObject(t, file)
			if refused := chartkind.For(object.GroupVersionKind()).Validate(object); len(refused) > 0 {
				t.Fatal(refused.ToAggregate())
			}
			got := toYAML(t, object)
			golden := filepath.Join("testdata", filepath.Base(file))
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("the rendered chart changed (go test ./internal/chartkind -update accepts it):\n%s", diff)
			}
			defaulted := testKinds[object.GetKind()].setDefaults(t, object)
			if diff := cmp.Diff(string(got), string(toYAML(t, defaulted))); diff != "" {
				t.Errorf("the defaults of the webhook change what is rendered:\n%s", diff)
			}
		})
	}
}

func toYAML(t testing.TB, object *unstructured.Unstructured) []byte {
	t.Helper()
	objects, err := render(t, object)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes()
}

// TestFooBarRunsAgain names the Job anew exactly when the command has to run again.
func TestFooBarRunsAgain(t *testing.T) {
	base := map[string]any{"foo": "bar", "barz": "false", "command": "echo foobar", "image": "busybox:1"}
	tests := []struct {
		name   string
		barz   string
		change map[string]any
		again  bool
	}{
		{"false: foo", "false", map[string]any{"foo": "other"}, false},
		{"false: command", "false", map[string]any{"command": "echo other"}, true},
		{"false: image", "false", map[string]any{"image": "busybox:2"}, true},
		{"true: foo", "true", map[string]any{"foo": "other"}, true},
		{"true: command", "true", map[string]any{"command": "echo other"}, true},
		{"true: image", "true", map[string]any{"image": "busybox:2"}, true},
		{"true: nothing", "true", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := newObject("FooBar", "f", base)
			set(t, before, tt.barz, "spec", "barz")
			after := before.DeepCopy()
			for key, value := range tt.change {
				set(t, after, value, "spec", key)
			}
			was, is := job(t, before), job(t, after)
			if again := was.GetName() != is.GetName(); again != tt.again {
				t.Errorf("runs again: %v, want %v (%s, %s)", again, tt.again, was.GetName(), is.GetName())
			}
			if was.GetName() == is.GetName() && !cmp.Equal(was.Object, is.Object) {
				t.Errorf("the Job is the same one, so its immutable template must not change:\n%s", cmp.Diff(was.Object, is.Object))
			}
		})
	}
}

func set(t testing.TB, object *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

func job(t testing.TB, foobar *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	objects, err := render(t, foobar)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() == "Job" {
			return object
		}
	}
	t.Fatal("no Job was rendered")
	return nil
}

// TestAppRendersOnRequest lists what an App consists of.
func TestAppRendersOnRequest(t *testing.T) {
	ingress := map[string]any{"enabled": true, "host": "a.example.com"}
	scaling := map[string]any{"minReplicas": int64(4), "maxReplicas": int64(9)}
	tests := []struct {
		name string
		spec map[string]any
		want string
	}{
		{"minimal", nil, "Service/a Deployment/a"},
		{"no ports", map[string]any{"ports": []any{}}, "Deployment/a"},
		{"no Service", map[string]any{"service": map[string]any{"enabled": false}}, "Deployment/a"},
		{"Ingress", map[string]any{"ingress": ingress}, "Service/a Deployment/a Ingress/a"},
		{"autoscaling", map[string]any{"autoscaling": scaling}, "Service/a Deployment/a HorizontalPodAutoscaler/a"},
		{"canary", map[string]any{"canary": map[string]any{"image": "b:2"}}, "Service/a-canary Service/a Deployment/a-canary Deployment/a"},
		{"canary and Ingress", map[string]any{"canary": map[string]any{"image": "b:2", "weight": int64(5)}, "ingress": ingress},
			"Service/a-canary Service/a Deployment/a-canary Deployment/a Ingress/a-canary Ingress/a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := newObject("App", "a", testKinds["App"].minimal)
			for key, value := range tt.spec {
				set(t, object, value, "spec", key)
			}
			objects, err := render(t, object)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetKind()+"/"+o.GetName())
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAppReplicas: an autoscaler owns the number of stable pods; canary pods follow
// the weight.
func TestAppReplicas(t *testing.T) {
	scaling := map[string]any{"minReplicas": int64(4), "maxReplicas": int64(9)}
	tests := []struct {
		name           string
		spec           map[string]any
		stable, canary any
	}{
		{"weight 0", map[string]any{"replicas": int64(10)}, int64(10), int64(1)},
		{"weight 25 of 10", map[string]any{"replicas": int64(10), "canary": map[string]any{"image": "b:2", "weight": int64(25)}}, int64(10),
			int64(3)},
		{"weight 100", map[string]any{"replicas": int64(10), "canary": map[string]any{"image": "b:2", "weight": int64(100)}}, int64(10),
			int64(10)},
		{"autoscaled", map[string]any{"autoscaling": scaling, "canary": map[string]any{"image": "b:2", "weight": int64(50)}}, nil, int64(2)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := newObject("App", "a", map[string]any{"image": "b:1", "canary": map[string]any{"image": "b:2"}})
			for key, value := range tt.spec {
				set(t, object, value, "spec", key)
			}
			objects, err := render(t, object)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]any{}
			for _, o := range objects {
				if o.GetKind() == "Deployment" {
					got[o.GetName()], _, _ = unstructured.NestedFieldNoCopy(o.Object, "spec", "replicas")
				}
			}
			if diff := cmp.Diff(map[string]any{"a": tt.stable, "a-canary": tt.canary}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAppRoutesThroughAGateway: where HTTPRoute is served, an App that names a Gateway has one, with weights and the header that
// selects a version; elsewhere it has Ingresses.
func TestAppRoutesThroughAGateway(t *testing.T) {
	const backendStable, backendCanary = `{"name":"a","port":80,"weight":%d}`, `{"name":"a-canary","port":80,"weight":%d}`
	rule := func(header string, backends ...string) string {
		if header != "" {
			header = `"headers":[{"name":"X-Canary","value":"` + header + `"}],`
		}
		return `{"backendRefs":[` + strings.Join(backends, ",") + `],"matches":[{` + header + `"path":{"type":"PathPrefix","value":"/shop"}}]}`
	}
	stable, canary := func(w int) string { return fmt.Sprintf(backendStable, w) }, func(w int) string { return fmt.Sprintf(backendCanary, w) }
	served := chart.Capabilities{KubeVersion: "v1.37.2", APIVersions: []string{"gateway.networking.k8s.io/v1/HTTPRoute"}}
	for _, tt := range []struct {
		name   string
		canary map[string]any
		on     chart.Capabilities
		rules  string
	}{
		{"not served", map[string]any{"image": "b:2", "weight": int64(30)},
			chart.Capabilities{KubeVersion: "v1.37.2", APIVersions: []string{"gateway.networking.k8s.io/v1beta1/HTTPRoute"}}, ""},
		{"no canary", nil, served, rule("", stable(100))},
		{"weight", map[string]any{"image": "b:2", "weight": int64(30)}, served, rule("", stable(70), canary(30))},
		{"no weight", map[string]any{"image": "b:2"}, served, rule("", stable(100), canary(0))},
		{"all", map[string]any{"image": "b:2", "weight": int64(100)}, served, rule("", stable(0), canary(100))},
		{"header", map[string]any{"image": "b:2", "weight": int64(30), "header": "X-Canary"}, served,
			rule("always", canary(100)) + "," + rule("never", stable(100)) + "," + rule("", stable(70), canary(30))},
		{"header's value", map[string]any{"image": "b:2", "weight": int64(30), "header": "X-Canary", "headerValue": "beta"}, served,
			rule("beta", canary(100)) + "," + rule("", stable(70), canary(30))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec := map[string]any{"image": "b:1", "ingress": map[string]any{"enabled": true, "host": "a.example.com", "path": "/shop",
				"gateway": map[string]any{"name": "public", "namespace": "infra", "sectionName": "web"}}}
			if tt.canary != nil {
				spec["canary"] = tt.canary
			}
			rendered, err := loadChart(t, "app").Render(spec, chart.Release{Name: "a", Namespace: "default", Revision: 1}, tt.on)
			if err != nil {
				t.Fatal(err)
			}
			ingresses, rules := 0, ""
			for _, o := range rendered.Objects {
				switch o.GetKind() {
				case "Ingress":
					ingresses++
				case "HTTPRoute":
					list, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
					text, err := json.Marshal(list)
					if err != nil {
						t.Fatal(err)
					}
					rules = strings.Trim(string(text), "[]")
					to, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
					want := []any{map[string]any{"name": "public", "namespace": "infra", "sectionName": "web"}}
					if diff := cmp.Diff(want, to); diff != "" || o.GetName() != "a" || o.GetNamespace() != "default" {
						t.Errorf("%s/%s leads from %s", o.GetNamespace(), o.GetName(), diff)
					}
				}
			}
			if want := strings.Trim("["+tt.rules+"]", "[]"); rules != want {
				t.Errorf("rules:\n%s\nwant:\n%s", rules, want)
			}
			if (ingresses == 0) != (tt.rules != "") {
				t.Errorf("%d Ingresses", ingresses)
			}
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

var update = flag.Bool("update", false, "write testdata/*.golden.yaml anew")

// kinds are those that the chart may render. All of them live in namespaces.
var kinds = []string{"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"}

func namespaced(schema.GroupVersionKind) (bool, error) { return true, nil }

func loadChart(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := chart.LoadDir(filepath.Join("..", "..", "..", "helm-charts", "rediscluster"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(c *chart.Chart, cr *v1alpha1.RedisCluster, topology v1alpha1.Topology, in values.Inputs) ([]*unstructured.Unstructured, error) {
	rendered, err := c.Render(values.Build(cr, topology, in), chart.Release{Name: cr.Name, Namespace: cr.Namespace, Revision: 1, IsInstall: true}, chart.Capabilities{})
	if err != nil {
		return nil, err
	}
	if err := chart.Check(rendered, chart.Allowed{Namespace: cr.Namespace, Kinds: kinds, Namespaced: namespaced}); err != nil {
		return nil, err
	}
	return rendered.Objects, nil
}

func readCluster(t testing.TB, path string) *v1alpha1.RedisCluster {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cr := &v1alpha1.RedisCluster{}
	if err := yaml.UnmarshalStrict(text, cr); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return cr
}

func toYAML(t testing.TB, objects []*unstructured.Unstructured) string {
	t.Helper()
	var b strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.String()
}

// TestGolden shows what a RedisCluster becomes. The inputs are testdata/<name>.yaml.
func TestGolden(t *testing.T) {
	c := loadChart(t)
	samples := filepath.Join("..", "..", "..", "config", "samples")
	cases := []struct {
		name, file string
		in         values.Inputs
	}{
		{name: "default", file: "testdata/default.yaml"},
		{name: "source-sample", file: filepath.Join(samples, "redis_v1alpha1_rediscluster.yaml")},
		{name: "full-sample", file: filepath.Join(samples, "redis_v1alpha1_rediscluster_full.yaml")},
		{name: "emptydir-noauth", file: "testdata/emptydir-noauth.yaml"},
		{name: "nfs", file: "testdata/nfs.yaml"},
		{name: "hostpath", file: "testdata/hostpath.yaml"},
		{name: "everything", file: "testdata/everything.yaml", in: values.Inputs{ConfigMapSettings: map[string]string{"maxmemory": "1gb", "save": "900 1 300 10"}}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			cr := readCluster(t, test.file)
			objects, err := render(c, cr, cr.Spec.Topology(), test.in)
			if err != nil {
				t.Fatal(err)
			}
			got, path := toYAML(t, objects), filepath.Join("testdata", test.name+".golden.yaml")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("rendered objects differ from %s (-want +got); run go test with -update when that is meant:\n%s", path, diff)
			}
		})
	}
}

// TestScalingRestartsNothing: a pod template that changed with the topology would roll
// every instance when the cluster grows.
func TestScalingRestartsNothing(t *testing.T) {
	c := loadChart(t)
	cr := readCluster(t, "testdata/everything.yaml")
	before, err := render(c, cr, v1alpha1.Topology{2, 2, 2}, values.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	after, err := render(c, cr, v1alpha1.Topology{3, 2, 2, 2}, values.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	was, is := podTemplates(before), podTemplates(after)
	if len(was) != 3 || len(is) != 4 {
		t.Fatalf("%d and %d StatefulSets, want 3 and 4", len(was), len(is))
	}
	for name, template := range was {
		if diff := cmp.Diff(template, is[name]); diff != "" {
			t.Errorf("the pod template of %s changed:\n%s", name, diff)
		}
	}
}

func podTemplates(objects []*unstructured.Unstructured) map[string]any {
	templates := map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "StatefulSet" {
			templates[object.GetName()], _, _ = unstructured.NestedMap(object.Object, "spec", "template")
		}
	}
	return templates
}

// TestConfigChangeRestartsNothing: settings are applied to running instances; the file
// is for those that start.
func TestConfigChangeRestartsNothing(t *testing.T) {
	c := loadChart(t)
	cr := readCluster(t, "testdata/default.yaml")
	before, err := render(c, cr, cr.Spec.Topology(), values.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	cr.Spec.Config = map[string]string{"maxmemory": "1gb"}
	after, err := render(c, cr, cr.Spec.Topology(), values.Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(podTemplates(before), podTemplates(after)); diff != "" {
		t.Errorf("the pod template changed with spec.config:\n%s", diff)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/chart"
)

// kubeVersion is what every rendering of this test believes the cluster to be.
const kubeVersion = "v1.36.3"

// helm builds Helm's own command, once.
var helm = sync.OnceValues(func() (string, error) {
	path, err := exec.Command(filepath.Join(root, "hack", "tool.sh"), "helm").Output()
	return strings.TrimSpace(string(path)), err
})

// helmTemplate is what `helm template` says, in its order.
func helmTemplate(t *testing.T, dir, namespace, version, values string, more ...string) ([]*unstructured.Unstructured, string) {
	t.Helper()
	binary, err := helm()
	check(t, err)
	command := exec.Command(binary,
		append([]string{"template", "rel", dir, "--namespace", namespace, "--kube-version", version, "--values", "-"}, more...)...)
	var problem bytes.Buffer
	command.Stdin, command.Stderr = strings.NewReader(values), &problem
	text, err := command.Output()
	if err != nil {
		return nil, strings.TrimSpace(problem.String())
	}
	return documents(t, text), ""
}

// documents reads YAML documents; what holds nothing but comments is none.
func documents(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		object := &unstructured.Unstructured{}
		encoded, err := yaml.YAMLToJSON([]byte(document))
		check(t, err)
		if string(encoded) == "null" {
			continue
		}
		check(t, object.UnmarshalJSON(encoded))
		for _, field := range []string{"labels", "annotations"} { // null is none
			if value, found, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", field); found && value == nil {
				unstructured.RemoveNestedField(object.Object, "metadata", field)
			}
		}
		switch {
		case object.IsList():
			list, err := object.ToList()
			check(t, err)
			for i := range list.Items {
				objects = append(objects, &list.Items[i])
			}
		default:
			objects = append(objects, object)
		}
	}
	return objects
}

// sorted are objects by kind, namespace and name.
func sorted(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.SortedStableFunc(slices.Values(objects), func(a, b *unstructured.Unstructured) int {
		return strings.Compare(title(a), title(b))
	})
}

func title(o *unstructured.Unstructured) string {
	return strings.Join([]string{o.GroupVersionKind().GroupKind().String(), o.GetNamespace(), o.GetName()}, " ")
}

func titles(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, o := range objects {
		names = append(names, title(o))
	}
	return names
}

// TestRenderingsAreHelmsOwn renders every chart of the catalog with every set of values and compares it with what `helm template`
// prints: the same CRDs and objects with the same content, in the same order, and the same hooks.
func TestRenderingsAreHelmsOwn(t *testing.T) {
	for _, e := range catalog {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			dir := e.path(t)
			loaded, err := chart.LoadDir(dir)
			check(t, err)
			for name, values := range e.valueFiles(t, dir) {
				if slices.Contains(e.random, name) {
					continue
				}
				t.Run(name, func(t *testing.T) {
					switch {
					case slices.Contains(e.refused, name):
						refuses(t, loaded, values, "beside the value itself")
						compare(t, e, loaded.AllowStructuredValues(), dir, values)
					case strings.Contains(values, "{{"): // a value is data here, also in a chart that passes it through tpl
						refuses(t, loaded, values, "holds a template action")
					default:
						compare(t, e, loaded, dir, values)
					}
				})
			}
		})
	}
}

func render(t *testing.T, loaded *chart.Chart, text string) (*chart.Rendered, error) {
	t.Helper()
	var values map[string]any
	check(t, yaml.Unmarshal([]byte(text), &values))
	return loaded.Render(values, chart.Release{Name: "rel", Namespace: "ns", Revision: 1, IsInstall: true},
		chart.Capabilities{KubeVersion: kubeVersion})
}

// refuses checks that values are refused although Helm takes them.
func refuses(t *testing.T, loaded *chart.Chart, text, problem string) {
	t.Helper()
	if _, err := render(t, loaded, text); err == nil || !strings.Contains(err.Error(), problem) {
		t.Errorf("got %v, want a refusal that says %q", err, problem)
	}
}

func compare(t *testing.T, e entry, loaded *chart.Chart, dir, text string) {
	t.Helper()
	got, err := render(t, loaded, text)
	want, refused := helmTemplate(t, dir, "ns", kubeVersion, text, "--include-crds")
	if (err == nil) != (refused == "") {
		t.Fatalf("Helm says %q, this engine says %v", refused, err)
	}
	if err != nil {
		return
	}
	var hooks []*unstructured.Unstructured
	for _, hook := range got.Hooks {
		hooks = append(hooks, hook.Object)
	}
	all := slices.Concat(got.CRDs, got.Objects, sorted(hooks))
	if n := len(want) - len(hooks); n >= 0 { // `helm template` does not print hooks in the order in which they run
		want = append(want[:n:n], sorted(want[n:])...)
	}
	if diff := cmp.Diff(titles(want), titles(all)); diff != "" {
		t.Fatalf("Helm's CRDs, objects and hooks (-) and ours (+): %s", diff)
	}
	for i := range want {
		if diff := cmp.Diff(want[i].Object, all[i].Object); diff != "" {
			t.Errorf("%s as Helm renders it (-) and as we do (+): %s", title(want[i]), diff)
		}
	}
	err = chart.Check(got, chart.Allowed{Namespace: "ns", Kinds: append(loaded.Kinds(), e.kinds...), ClusterScoped: true,
		Namespaces: []string{"*"},
		Namespaced: func(schema.GroupVersionKind) (bool, error) { return true, nil }})
	if err != nil {
		t.Errorf("the chart's own kinds are allowed: %v", err)
	}
}

// A chart that lacks a dependency is refused, as Helm's own command refuses it.
func TestChartWithoutItsDependencies(t *testing.T) {
	e := named(t, "kyverno")
	e.without = nil
	dir := e.path(t)
	_, err := chart.LoadDir(dir)
	_, refused := helmTemplate(t, dir, "ns", kubeVersion, "")
	if err == nil || !strings.Contains(err.Error(), "kyverno-api is not in charts/") || !strings.Contains(refused, "missing in charts/") {
		t.Errorf("Helm says %q, this engine says %v", refused, err)
	}
}

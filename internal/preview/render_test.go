// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// rendered runs Render on a file of a project, or on standard input.
func rendered(t *testing.T, replaced map[string]string, change func(*Request)) (out, notes string, err error) {
	t.Helper()
	p, dir := project(t, replaced)
	var objects, remarks strings.Builder
	request := Request{Project: p, File: filepath.Join(dir, "samples", "hello.yaml"), Out: &objects, Notes: &remarks}
	if change != nil {
		change(&request)
	}
	err = Render(context.Background(), request)
	return objects.String(), remarks.String(), err
}

func TestRenderPrintsWhatWouldBeSent(t *testing.T) {
	out, notes, err := rendered(t, map[string]string{
		"watches.yaml": "- {group: example.com, version: v1, kind: Greeting, chart: chart, overrideValues: {from: $SET}}\n",
		"chart/templates/c.yaml": configMap +
			"---\napiVersion: v1\nkind: Service\nmetadata: {name: {{ .Values.from | quote | replace \" \" \"-\" }}}\n",
		"chart/templates/h.yaml": hook,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out, "---\n") || !strings.Contains(notes, "1 hook not shown") {
		t.Errorf("out %q, notes %q", out, notes)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.Split(out, "---\n")[1]), &object.Object); err != nil {
		t.Fatal(err)
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", "text")
	if object.GetKind() != "ConfigMap" || object.GetNamespace() != "default" || text != "good day" {
		t.Errorf("namespace and the CRD's default are set: %v", object)
	}
	if object.GetLabels()["app.kubernetes.io/managed-by"] != "middleware-operator" || object.GetResourceVersion() != "" ||
		object.GetOwnerReferences() != nil {
		t.Errorf("metadata: %v", object.Object["metadata"])
	}
	if !strings.Contains(out, "name: from-the-environment") {
		t.Errorf("overrideValues are set: %s", out)
	}
}

func TestRenderChoices(t *testing.T) {
	two := hello + "---\n" + strings.Replace(hello, "name: hello", "name: again, namespace: shop", 1) +
		"---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
	for _, tc := range []struct {
		name     string
		replaced map[string]string
		change   func(*Request)
		// out, notes are parts of what is printed, says of the error.
		out, notes, says string
	}{
		{name: "standard input", change: func(r *Request) { r.File, r.Stdin = "-", strings.NewReader(hello) }, out: "name: hello"},
		{name: "a namespace", change: func(r *Request) { r.Namespace = "shop" }, out: "namespace: shop"},
		{name: "all of a kind", replaced: map[string]string{"samples/hello.yaml": two}, change: func(r *Request) { r.Kind = "greeting" },
			out: "name: again"},
		{name: "a kind with its group", replaced: map[string]string{"samples/hello.yaml": two},
			change: func(r *Request) { r.Kind = "Greeting.example.com" }, out: "name: again"},
		{name: "no kind for several objects", replaced: map[string]string{"samples/hello.yaml": two},
			says: "there are 3 objects in it (Greeting hello, Greeting shop/again, Pod p); say which with --kind"},
		{name: "a kind that is not there", change: func(r *Request) { r.Kind = "Goodbye" }, says: "there is no Goodbye in it"},
		{name: "a kind no watch runs", replaced: map[string]string{"samples/hello.yaml": two}, change: func(r *Request) { r.Kind = "Pod" },
			says: "hello.yaml:13: Pod p: "},
		{name: "a list",
			replaced: map[string]string{
				"samples/hello.yaml": `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"example.com/v1","kind":"Greeting","metadata":{"name":"listed"}}]}`},
			out: "name: listed"},
		{name: "no name", replaced: map[string]string{"samples/hello.yaml": strings.Replace(hello, "name: hello", "generateName: hello-", 1)},
			says: "metadata.name: "},
		{name: "hooks", replaced: map[string]string{"chart/templates/h.yaml": hook}, change: func(r *Request) { r.ShowHooks = true },
			out: "name: migrate\n  namespace: default\n"},
		{name: "no CRD", replaced: map[string]string{"crds/greeting.yaml": ""}, notes: "its defaults are not set; give it with --crds",
			out: "text: \"\""},
		{name: "a kind that is not known",
			replaced: map[string]string{"chart/templates/w.yaml": "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n"},
			notes:    "Widget.example.org is not known here", out: "kind: Widget"},
		{name: "an API that is given",
			replaced: map[string]string{"chart/templates/c.yaml": `{{ if .Capabilities.APIVersions.Has "example.org/v1" }}` + configMap +
				"{{ end }}"},
			change: func(r *Request) { r.APIVersions = []string{"example.org/v1"} }, out: "name: hello"},
		{name: "a version that is given",
			replaced: map[string]string{
				"chart/templates/c.yaml": strings.Replace(configMap, ".Values.text", ".Capabilities.KubeVersion.Version", 1)},
			change: func(r *Request) { r.KubeVersion = "v1.33.1" }, out: "text: v1.33.1"},
		{name: "the next revision",
			replaced: map[string]string{"chart/templates/c.yaml": strings.Replace(configMap, ".Values.text", ".Release.Revision", 1),
				"samples/hello.yaml": hello + "status: {deployedRelease: {name: hello, revision: 3, digest: other}}\n"}, out: `text: "4"`},
		{name: "a resource that the CRD refuses", replaced: map[string]string{"samples/hello.yaml": strings.Replace(hello, "{}", "{text: 5}", 1)},
			says: "hello.yaml:2: Greeting hello, spec.text: Invalid value"},
		{name: "a resource that is too large for the engine", replaced: map[string]string{"crds/greeting.yaml": "",
			"samples/hello.yaml": strings.Replace(hello, "{}", "{text: "+strings.Repeat("a", 600<<10)+"}", 1)},
			says: "Greeting default/hello, spec: Invalid value"},
		{name: "objects that may not be made", replaced: map[string]string{"chart/templates/r.yaml": clusterRole},
			says: "ClusterRole hello: it is cluster-scoped"},
		{name: "a variable that is not set",
			replaced: map[string]string{
				"watches.yaml": "- {group: example.com, version: v1, kind: Greeting, chart: chart, overrideValues: {a: $UNSET}}\n"},
			notes: "the environment variable UNSET is not set here", out: "name: hello"},
		{name: "a file that is not there", change: func(r *Request) { r.File = "nowhere.yaml" },
			says: "nowhere.yaml: no such file or directory; check the path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, notes, err := rendered(t, tc.replaced, tc.change)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || out != "" {
					t.Errorf("got %v and %q, want an error that says %q", err, out, tc.says)
				}
				return
			}
			if err != nil || !strings.Contains(out, tc.out) || !strings.Contains(notes, tc.notes) {
				t.Errorf("got %v\nout:\n%s\nnotes:\n%s\nwant %q and %q", err, out, notes, tc.out, tc.notes)
			}
		})
	}
}

func TestRenderJSON(t *testing.T) {
	out, _, err := rendered(t, nil, func(r *Request) { r.JSON = true })
	if err != nil {
		t.Fatal(err)
	}
	list := &unstructured.UnstructuredList{}
	if err := json.Unmarshal([]byte(out), list); err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "hello" {
		t.Errorf("%v:\n%s", err, out)
	}
}

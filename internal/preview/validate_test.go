// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// repository is the directory of the project.
var repository = filepath.Join("..", "..")

// shipped is the report on what this repository ships.
func shipped() *Report {
	return Validate(Project{WatchesFile: filepath.Join(repository, "watches.yaml"),
		CRDs: []string{filepath.Join(repository, "config", "crd", "bases")}, Env: os.LookupEnv},
		[]string{filepath.Join(repository, "config", "samples")})
}

func TestWhatIsShippedIsValid(t *testing.T) {
	r := shipped()
	for _, f := range r.Findings {
		if f.Severity != SeverityNote {
			t.Errorf("%s: %s", f.Severity, f.Error())
		}
	}
	if err := r.Err(true); err != nil {
		t.Error(err)
	}
	if len(r.Kinds) == 0 {
		t.Error("there are no kinds")
	}
	for _, k := range r.Kinds {
		if k.Samples < 2 || k.Renderings < k.Samples || k.Objects == 0 {
			t.Errorf("%s: %d samples, %d renderings, %d objects", k.Kind, k.Samples, k.Renderings, k.Objects)
		}
	}
}

// TestTheShippedRoleGrantsWhatTheChartsNeed holds config/rbac against the rights that --print-rbac tells.
func TestTheShippedRoleGrantsWhatTheChartsNeed(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(repository, "config", "rbac", "manager_role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	granted := map[[3]string]bool{}
	for _, part := range split(content) {
		role := rbacv1.ClusterRole{}
		if err := yaml.Unmarshal(part.text, &role); err != nil {
			t.Fatal(err)
		}
		for _, right := range rights(role.Rules) {
			granted[right] = true
		}
	}
	needed := rights(shipped().Rules())
	for _, right := range needed {
		if slices.Contains(right[:], "*") {
			t.Errorf("a wildcard: %v", right)
		}
		if !granted[right] {
			t.Errorf("config/rbac/manager_role.yaml does not grant %v", right)
		}
	}
	if want := [3]string{"batch", "cronjobs", "delete"}; !slices.Contains(needed, want) {
		t.Errorf("%v is needed and not listed", want)
	}
}

// rights are group, resource and verb of rules, one by one.
func rights(rules []rbacv1.PolicyRule) [][3]string {
	var all [][3]string
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, [3]string{group, resource, verb})
				}
			}
		}
	}
	return all
}

func TestValidateFinds(t *testing.T) {
	for _, tc := range []struct {
		name     string
		replaced map[string]string
		// want are the findings that are no notes: severity and a part of their text.
		want [][2]string
	}{
		{"nothing wrong with what is right", nil, nil},
		{"all mistakes of a watches file",
			map[string]string{
				"watches.yaml": "- {group: example.com, version: v1, kind: Greeting, chart: chart, periods: 1m, reconcilePeriod: often}\n"},
			[][2]string{{"error", `watches.yaml:1: unknown field "periods"`},
				{"error", `watches.yaml:1: reconcilePeriod "often" is no duration; write one such as 30s`}}},
		{"a variable that is not set",
			map[string]string{
				"watches.yaml": greeting["watches.yaml"] +
					"  # with\n- {group: example.com, version: v2, kind: Greeting, chart: chart, overrideValues: {text: $UNSET, more: $SET}}\n",
				"crds/greeting.yaml": crd +
					strings.ReplaceAll(crd[strings.Index(crd, "    - name: v1"):], "name: v1\n      served: true\n      storage: true",
						"name: v2\n      served: true\n      storage: false")},
			[][2]string{{"warning", "hello.yaml:2: Greeting hello, apiVersion: it is of version v1, the watch of v2"},
				{"warning", "the environment variable UNSET is not set here"}}},
		{"a chart that is none", map[string]string{"chart/Chart.yaml": "name: [\n"}, [][2]string{{"error", "Chart.yaml"}}},
		{"a dependency that is not there",
			map[string]string{
				"chart/Chart.yaml": greeting["chart/Chart.yaml"] + "dependencies: [{name: cache, version: 1.0.0, repository: https://example.com}]\n"},
			[][2]string{{"error", "cache"}}},
		{"a schema that is none", map[string]string{"chart/values.schema.json": `{"type": "nothing"}`, "samples/hello.yaml": ""},
			[][2]string{{"error", "values.schema.json"}}},
		{"a chart for another Kubernetes", map[string]string{"chart/Chart.yaml": greeting["chart/Chart.yaml"] + "kubeVersion: '>=1.99'\n",
			"samples/hello.yaml": ""},
			[][2]string{{"error", "the chart needs Kubernetes >=1.99"}}},
		{"no CRD", map[string]string{"crds/greeting.yaml": ""}, [][2]string{{"warning", "the CRD of Greeting.example.com is not known"}}},
		{"a CRD of something else", map[string]string{"crds/greeting.yaml": strings.ReplaceAll(crd, "reeting", "oodbye")},
			[][2]string{{"error", "no CRD defines Greeting.example.com"}}},
		{"a CRD of another version", map[string]string{"crds/greeting.yaml": strings.ReplaceAll(crd, "name: v1", "name: v2")},
			[][2]string{{"error", "has no version v1, only v2"}}},
		{"a version that is not served", map[string]string{"crds/greeting.yaml": strings.Replace(crd, "served: true", "served: false", 1)},
			[][2]string{{"error", "greeting.yaml:1: spec.versions[v1].served: the version is not served"}}},
		{"no status subresource", map[string]string{"crds/greeting.yaml": strings.Replace(crd, "      subresources: {status: {}}\n", "", 1)},
			[][2]string{{"warning", "there is no status subresource"}}},
		{"a status that is dropped",
			map[string]string{"crds/greeting.yaml": strings.Replace(crd, ", x-kubernetes-preserve-unknown-fields: true", "", 1)},
			[][2]string{{"error", "it drops what the operator writes: status.conditions, status.deployedRelease, "}}},
		{"a CRD that an API server refuses",
			map[string]string{"crds/greeting.yaml": strings.Replace(crd, "name: greetings.example.com", "name: wrong.example.com", 1)},
			[][2]string{{"error", "greeting.yaml:1: metadata.name: Invalid value"}}},
		{"a misspelt field of a CRD", map[string]string{"crds/greeting.yaml": strings.Replace(crd, "served:", "serve:", 1)},
			[][2]string{{"error", "serve"}, {"error", "no CRD defines"}}},
		{"a field that the CRD does not know", map[string]string{"samples/hello.yaml": strings.Replace(hello, "spec: {}", "spec: {texd: a}", 1)},
			[][2]string{{"error", "hello.yaml:2: Greeting hello, spec.texd: the CRD does not know this field"}}},
		{"a value that the CRD refuses",
			map[string]string{"samples/hello.yaml": strings.Replace(hello, "spec: {}", "spec: {text: much too long}", 1)},
			[][2]string{{"error", "Greeting hello, spec.text: Too long"}}},
		{"a value that a rule refuses", map[string]string{"samples/hello.yaml": strings.Replace(hello, "spec: {}", "spec: {text: rude}", 1)},
			[][2]string{{"error", "be polite"}}},
		{"a sample that is no YAML", map[string]string{"samples/hello.yaml": hello + "---\n\n\na: [\n"},
			[][2]string{{"error", "hello.yaml:9: "}}},
		{"a template that needs values",
			map[string]string{"chart/templates/c.yaml": `{{ required "name it" .Values.name }}`, "samples/hello.yaml": ""},
			[][2]string{{"warning", "it does not render without values: "}}},
		{"a template that a sample breaks",
			map[string]string{"chart/templates/c.yaml": `{{ if eq .Values.text "good day" }}{{ fail "not again" }}{{ end }}`},
			[][2]string{{"error", "hello.yaml:2: Greeting hello"}}},
		{"an object that is cluster-scoped", map[string]string{"chart/templates/r.yaml": clusterRole, "samples/hello.yaml": ""},
			[][2]string{
				{"error", "the watch does not allow ClusterRole example; turn them off in the values, or add to the watch: allow: {clusterScoped: true}"}}},
		{"no cluster-scoped object that is allowed", map[string]string{"chart/templates/r.yaml": clusterRole,
			"watches.yaml": "- {group: example.com, version: v1, kind: Greeting, chart: chart, allow: {clusterScoped: true}}\n"}, nil},
		{"an object in another namespace",
			map[string]string{"chart/templates/s.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: elsewhere}\n",
				"samples/hello.yaml": ""},
			[][2]string{{"error", "allow: {namespaces: [elsewhere]}"}}},
		{"a kind nobody knows", map[string]string{"chart/templates/w.yaml": "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n"},
			[][2]string{{"warning", "Widget.example.org is not known here"}}},
		{"a kind that is never rendered",
			map[string]string{
				"chart/templates/w.yaml": "{{ if .Values.never }}\napiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n{{ end }}"},
			nil},
		{"a status that drops a part",
			map[string]string{"crds/greeting.yaml": strings.Replace(crd, "status: {type: object, x-kubernetes-preserve-unknown-fields: true}",
				"status: {type: object, properties: {conditions: &any {x-kubernetes-preserve-unknown-fields: true, type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}, "+
					"inventory: *any, observedGeneration: {type: integer}, hooks: &open {type: object, x-kubernetes-preserve-unknown-fields: true}, deployedRelease: {type: object, properties: {name: {type: string}, revision: {type: integer}}}}}", 1)},
			[][2]string{{"error", "it drops what the operator writes: status.deployedRelease.digest; set"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, dir := project(t, tc.replaced)
			var samples []string
			if content, replaced := tc.replaced["samples/hello.yaml"]; !replaced || content != "" {
				samples = []string{filepath.Join(dir, "samples")}
			}
			r := Validate(p, samples)
			var found []string
			for _, f := range r.Findings {
				if f.Severity != SeverityNote {
					found = append(found, string(f.Severity)+" "+f.Error())
				}
			}
			if len(found) != len(tc.want) {
				t.Errorf("got %d findings, want %d:\n%s", len(found), len(tc.want), strings.Join(found, "\n"))
			}
			for _, want := range tc.want {
				if !slices.ContainsFunc(found, func(f string) bool { return strings.HasPrefix(f, want[0]) && strings.Contains(f, want[1]) }) {
					t.Errorf("no %s says %q:\n%s", want[0], want[1], strings.Join(found, "\n"))
				}
			}
		})
	}
}

func TestNotesTellWhatIsParticular(t *testing.T) {
	p, dir := project(t, map[string]string{
		"chart/templates/hook.yaml":   hook,
		"chart/templates/test.yaml":   "apiVersion: v1\nkind: Pod\nmetadata:\n  name: try\n  annotations:\n    helm.sh/hook: test\n",
		"chart/templates/widget.yaml": "{{ if .Values.never }}\napiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}\n{{ end }}",
		"chart/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: {{ randAlphaNum 8 }}}\n",
		"chart/templates/l.yaml":      "{{ $all := lookup \"v1\" \"Secret\" \"\" \"\" }}",
	})
	r := Validate(p, []string{filepath.Join(dir, "samples")})
	if r.Err(true) != nil {
		t.Errorf("findings: %v", r.Findings)
	}
	var notes []string
	for _, f := range r.Findings {
		notes = append(notes, f.Error())
	}
	for _, want := range []string{"call lookup", "random or time functions", "its templates write Widget, which no rendering made"} {
		if !strings.Contains(strings.Join(notes, "\n"), want) {
			t.Errorf("no note says %q: %v", want, notes)
		}
	}
	if diff := cmp.Diff([]string{"pre-install: Job migrate"}, r.Kinds[0].Hooks); diff != "" {
		t.Errorf("hooks: %s", diff)
	}
	if needed := rights(r.Rules()); !slices.Contains(needed, [3]string{"batch", "jobs", "create"}) ||
		!slices.Contains(needed, [3]string{"example.com", "greetings/status", "patch"}) ||
		!slices.Contains(needed, [3]string{"", "pods", "list"}) || !slices.Contains(needed, [3]string{"", "namespaces", "get"}) {
		t.Errorf("rights: %v", needed)
	} else if slices.Contains(needed, [3]string{"", "pods", "create"}) {
		t.Error("helm test is not run, and needs no rights")
	}
}

func TestReport(t *testing.T) {
	p, dir := project(t, map[string]string{"chart/templates/r.yaml": clusterRole, "crds/greeting.yaml": ""})
	r := Validate(p, []string{filepath.Join(dir, "samples")})
	if err := r.Err(false); err == nil || !strings.Contains(err.Error(), "1 error, 1 warning") {
		t.Errorf("Err: %v", err)
	}
	var text, encoded strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "1 error, 1 warning") || !strings.Contains(text.String(), "error    Greeting: ") {
		t.Errorf("text:\n%s", text.String())
	}
	if err := r.JSON(&encoded); err != nil {
		t.Fatal(err)
	}
	read := Report{}
	if err := json.Unmarshal([]byte(encoded.String()), &read); err != nil {
		t.Fatal(err)
	}
	if read.Kinds[0].Needs == nil || !read.Kinds[0].Needs.ClusterScoped || len(read.Findings) != len(r.Findings) {
		t.Errorf("JSON:\n%s", encoded.String())
	}
	role, err := r.ClusterRole("greetings")
	if err != nil || !strings.Contains(string(role), "grant only what it has itself") {
		t.Errorf("a chart that grants rights is remarked upon: %v\n%s", err, role)
	}
	clean := &Report{Findings: []Finding{{Severity: SeverityWarning}}}
	if clean.Err(false) != nil || clean.Err(true) == nil {
		t.Error("warnings count only if it is strict")
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// life is what one chart of the catalog goes through: installed with one set of values, upgraded with another.
type life struct {
	chart, kindName string
	allow           watches.Allow
	first, second   string
	// kept are objects that stay because the chart says so, as "kind name", or a kind for all of them.
	kept []string
}

var lives = []life{
	{chart: "olm", kindName: "Lifecycle",
		allow: watches.Allow{ClusterScoped: true, Namespaces: []string{"operator-lifecycle-manager", "operators"}},
		first: "{}", second: "catalog: {replicaCount: 2}\ninstallType: none"},
	{chart: "cert-manager", kindName: "Certificates", allow: watches.Allow{ClusterScoped: true, Namespaces: []string{"kube-system"}},
		first:  "crds: {enabled: true}",
		second: "crds: {enabled: true}\nreplicaCount: 2\ncainjector: {enabled: false}\nwebhook: {networkPolicy: {enabled: true}}",
		kept:   []string{"CustomResourceDefinition"}},
	{chart: "metrics-server", kindName: "Meter", allow: watches.Allow{ClusterScoped: true, Namespaces: []string{"kube-system"}},
		first:  "apiService: {create: false}",
		second: "apiService: {create: false}\nreplicas: 2\npodDisruptionBudget: {enabled: true, minAvailable: 1}"},
	{chart: "descheduler", kindName: "Evictor", allow: watches.Allow{ClusterScoped: true}, first: "replicas: 1\nkind: Deployment",
		second: "kind: CronJob"},
	{chart: "ingress-nginx", kindName: "Entrance", allow: watches.Allow{ClusterScoped: true},
		first: "{}", second: "controller: {kind: DaemonSet}\ndefaultBackend: {enabled: true}"},
	{chart: "node-feature-discovery", kindName: "Features", allow: watches.Allow{ClusterScoped: true}, first: "{}",
		second: "topologyUpdater: {enable: true, createCRDs: true}\ngc: {enable: false}"},
	{chart: "kyverno", kindName: "Guard", allow: watches.Allow{ClusterScoped: true},
		// Without its CRDs: the API server takes five seconds to delete each.
		first:  "crds: {install: false}",
		second: "crds: {install: false}\ncleanupController: {enabled: false}\nbackgroundController: {replicas: 2}",
		kept:   []string{"ConfigMap rel-kyverno"}},
}

func (l life) kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: l.kindName}
}

func TestLives(t *testing.T) {
	for _, l := range lives {
		t.Run(l.chart, func(t *testing.T) {
			dir := named(t, l.chart).path(t)
			loaded, err := chart.LoadDir(dir)
			check(t, err)
			namespace := environment.NewNamespace(t, api, "charts")
			mgr, children, err := environment.NewManager(admin, scheme.Scheme)
			check(t, err)
			check(t, release.Add(mgr, children,
				watches.Watch{GroupVersionKind: l.kind(), WatchDependentResources: true, Selector: labels.Everything(), Allow: l.allow},
				loaded, release.Options{ServiceAccount: "system:operator"}))
			environment.Start(t, mgr)
			l.live(t, dir, namespace)
		})
	}
}

// live installs, repairs, upgrades and uninstalls, and looks after each.
func (l life) live(t *testing.T, dir, namespace string) {
	t.Helper()
	began := time.Now()
	took := func() time.Duration { return time.Since(began) }
	cr := environment.Object(l.kind(), namespace, "rel")
	cr.Object["spec"] = parse(t, l.first)
	check(t, api.Create(context.Background(), cr))
	await(t, cr)
	first := l.expected(t, dir, namespace, l.first)
	l.compare(t, cr, first)
	t.Logf("installed after %v: %d objects", took().Round(time.Millisecond), len(first))

	l.damage(t, first)
	environment.Eventually(t, "the repair", func() string { play(t); return missing(t, first) })
	await(t, cr)
	t.Logf("repaired after %v", took().Round(time.Millisecond))
	l.compare(t, cr, first)

	environment.Change(t, api, cr, func(o *unstructured.Unstructured) { o.Object["spec"] = parse(t, l.second) })
	await(t, cr)
	t.Logf("upgraded after %v", took().Round(time.Millisecond))
	second := l.expected(t, dir, namespace, l.second, "--is-upgrade")
	l.compare(t, cr, second)
	vanished := slices.DeleteFunc(slices.Clone(first),
		func(o *unstructured.Unstructured) bool { return slices.Contains(titles(second), title(o)) })
	appeared := slices.DeleteFunc(titles(second), func(o string) bool { return slices.Contains(titles(first), o) })
	if len(vanished)+len(appeared) == 0 {
		t.Error("the second values change no set of objects: the upgrade shows nothing")
	}
	t.Logf("upgraded: %d objects went, %d came", len(vanished), len(appeared))
	environment.Eventually(t, "what is no longer rendered deleted", func() string { return l.remaining(t, vanished) })

	check(t, api.Delete(context.Background(), cr))
	environment.Eventually(t, "the uninstallation", func() string {
		play(t)
		if environment.Get(t, api, cr) {
			return fmt.Sprint("the resource is there: ", cr.Object["status"])
		}
		return l.remaining(t, second)
	})
	for _, object := range second {
		if l.keeps(object) && !environment.Get(t, api, object.DeepCopy()) {
			t.Errorf("%s was to be kept", title(object))
		}
	}
	if leftovers := leftovers(t); len(leftovers) > 0 {
		t.Errorf("left behind: %v", leftovers)
	}
}

func (l life) keeps(o *unstructured.Unstructured) bool {
	return slices.Contains(l.kept, o.GetKind()) || slices.Contains(l.kept, o.GetKind()+" "+o.GetName())
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	check(t, err)
	var values unstructured.Unstructured
	check(t, json.Unmarshal([]byte(`{"apiVersion":"v1","kind":"Values","spec":`+string(encoded)+`}`), &values.Object))
	spec, _ := values.Object["spec"].(map[string]any)
	return spec
}

// await waits until a resource is Ready in its present generation.
func await(t *testing.T, cr *unstructured.Unstructured) {
	t.Helper()
	environment.Eventually(t, "Ready", func() string {
		play(t)
		if !environment.Get(t, api, cr) {
			return "it is gone"
		}
		c := meta.FindStatusCondition(conditions.Read(cr), "Ready")
		if c == nil || c.Status != "True" || c.ObservedGeneration != cr.GetGeneration() {
			hooks, _, _ := unstructured.NestedFieldNoCopy(cr.Object, "status", "hooks")
			return fmt.Sprintf("%+v, hooks: %v", c, hooks)
		}
		return ""
	})
}

// expected is what `helm template` renders for the API server that runs here, with the namespaces that kubectl would fill in.
func (l life) expected(t *testing.T, dir, namespace, values string, more ...string) []*unstructured.Unstructured {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(admin)
	check(t, err)
	version, err := client.ServerVersion()
	check(t, err)
	_, resources, err := client.ServerGroupsAndResources()
	check(t, err)
	for _, list := range resources {
		more = append(more, "--api-versions", list.GroupVersion)
		for _, r := range list.APIResources {
			more = append(more, "--api-versions", list.GroupVersion+"/"+r.Kind)
		}
	}
	objects, refused := helmTemplate(t, dir, namespace, version.GitVersion, values, append(more, "--no-hooks")...)
	if refused != "" {
		t.Fatal(refused)
	}
	for _, o := range objects {
		mapping, err := api.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		check(t, err)
		switch {
		case mapping.Scope.Name() == meta.RESTScopeNameRoot:
			o.SetNamespace("")
		case o.GetNamespace() == "":
			o.SetNamespace(namespace)
		}
	}
	return objects
}

// compare checks that the inventory, Helm's record and the live objects are what Helm would have made.
func (l life) compare(t *testing.T, cr *unstructured.Unstructured, want []*unstructured.Unstructured) {
	t.Helper()
	inventory, _, _ := unstructured.NestedSlice(cr.Object, "status", "inventory")
	var have []string
	for _, item := range inventory {
		entry, _ := item.(map[string]any)
		text := func(field string) string { s, _ := entry[field].(string); return s }
		have = append(have,
			strings.Join([]string{schema.GroupKind{Group: text("group"), Kind: text("kind")}.String(), text("namespace"), text("name")}, " "))
	}
	slices.Sort(have)
	if diff := cmp.Diff(slices.Sorted(slices.Values(titles(want))), have); diff != "" {
		t.Fatalf("objects of Helm (-) and of the inventory (+): %s", diff)
	}
	recorded := getManifest(t, cr)
	if diff := cmp.Diff(slices.Sorted(slices.Values(names(want))), slices.Sorted(slices.Values(names(recorded)))); diff != "" {
		t.Errorf("objects of `helm template` (-) and of `helm get manifest` (+): %s", diff)
	}
	if amiss := missing(t, want); amiss != "" {
		t.Error(amiss)
	}
}

// names are kinds and names; a manifest leaves namespaces out where kubectl fills them in.
func names(objects []*unstructured.Unstructured) []string {
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetName())
	}
	return names
}

// getManifest is what Helm's own command says of the release.
func getManifest(t *testing.T, cr *unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	binary, err := helm()
	check(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	check(t, os.WriteFile(file, server.KubeConfig, 0o600))
	text, err := exec.Command(binary, "get", "manifest", cr.GetName(), "--namespace", cr.GetNamespace(), "--kubeconfig", file).CombinedOutput()
	if err != nil {
		t.Fatalf("helm get manifest: %v: %s", err, text)
	}
	return documents(t, text)
}

// missing returns the first object that is not there, or that does not have every field that Helm renders: another client that
// applied Helm's rendering would change it.
func missing(t *testing.T, want []*unstructured.Unstructured) string {
	t.Helper()
	for _, object := range want {
		live := object.DeepCopy()
		if !environment.Get(t, api, live) {
			return title(object) + " is not there"
		}
		applied := object.DeepCopy()
		if l := applied.GetLabels(); l[apply.ManagedByLabel] != "" { // ours to set
			l[apply.ManagedByLabel] = apply.ManagedByValue
			applied.SetLabels(l)
		}
		err := api.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("helm"),
			client.ForceOwnership, client.DryRunAll)
		if err != nil {
			return fmt.Sprintf("%s: %v", title(object), err)
		}
		for _, o := range []*unstructured.Unstructured{applied, live} {
			o.SetManagedFields(nil)
			o.SetResourceVersion("")
		}
		if diff := cmp.Diff(applied.Object, live.Object); diff != "" {
			return fmt.Sprintf("%s as Helm makes it (-) and as it is (+): %s", title(object), diff)
		}
	}
	return ""
}

// damage edits every second object and deletes the others, as somebody with rights might.
func (l life) damage(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	edited, deleted := 0, 0
	for i, object := range objects {
		o := object.DeepCopy()
		switch label := editable(object); {
		case o.GetKind() == "Namespace" || o.GetKind() == "CustomResourceDefinition": // deleting those deletes what is not ours
		case i%2 == 0 && label != "":
			edited++
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"edited"}}}`, label)
			check(t, api.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("somebody")))
		default:
			deleted++
			check(t, client.IgnoreNotFound(api.Delete(context.Background(), o)))
		}
	}
	t.Logf("damaged: %d objects edited, %d deleted", edited, deleted)
}

// editable is a label that the chart renders.
func editable(o *unstructured.Unstructured) string {
	for name := range o.GetLabels() {
		if name != apply.ManagedByLabel {
			return name
		}
	}
	return ""
}

// remaining returns the first object that is still there and not about to go, kept ones apart.
func (l life) remaining(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	for _, object := range objects {
		o := object.DeepCopy()
		if meta.IsNoMatchError(noMatch(o)) || l.keeps(o) {
			continue
		}
		if environment.Get(t, api, o) && o.GetDeletionTimestamp() == nil {
			return title(o) + " is still there"
		}
	}
	return ""
}

func noMatch(o *unstructured.Unstructured) error {
	_, err := api.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	return err
}

// leftovers are Jobs, which hooks make, that nobody deleted.
func leftovers(t *testing.T) []string {
	t.Helper()
	jobs := &unstructured.UnstructuredList{}
	jobs.SetGroupVersionKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "JobList"})
	check(t, api.List(context.Background(), jobs))
	var names []string
	for _, job := range jobs.Items {
		if job.GetDeletionTimestamp() == nil {
			names = append(names, title(&job))
		}
	}
	return names
}

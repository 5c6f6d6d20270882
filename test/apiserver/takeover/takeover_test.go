// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/test/apiserver/environment"
)

// sdkFinalizer is that of operator-sdk's helm-operator, which preceded helm-operator-plugins.
const sdkFinalizer = "helm.sdk.operatorframework.io/uninstall-release"

// resources are what helm-operator leaves behind, each in another state.
type resources struct {
	plain    *unstructured.Unstructured // installed
	upgraded *unstructured.Unstructured // at its third revision
	older    *unstructured.Unstructured // with the older operator's finalizer
	cluster  *unstructured.Unstructured // with a cluster-scoped child
	stuck    *unstructured.Unstructured // helm-operator was killed while it installed; it never goes on by itself
	leaving  *unstructured.Unstructured // being deleted, some children are gone
	held     *unstructured.Unstructured // being deleted, uninstalled, kept by a finalizer of somebody else
}

func TestTakeover(t *testing.T) {
	namespace, directory := environment.NewNamespace(t, api, "takeover"), t.TempDir()
	write(t, directory, project)
	left := leaveBehind(t, namespace, directory)
	untouched := []*unstructured.Unstructured{left.plain, left.upgraded, left.older, left.cluster}

	before, histories, manifests := map[string]map[string]identity{}, map[string][]revision{}, map[string]map[string]map[string]any{}
	since := map[string]any{}
	for _, cr := range untouched {
		before[title(cr)], histories[title(cr)], manifests[title(cr)] = identities(t, cr), history(t, cr), manifest(t, cr)
		since[title(cr)] = condition(t, cr, "Deployed")["lastTransitionTime"]
	}
	stuckBefore := identities(t, left.stuck)
	stop := startThisOperator(t, directory)

	for _, cr := range untouched {
		t.Run(cr.GetName()+" is taken over untouched", func(t *testing.T) {
			environment.Eventually(t, "the takeover", func() string { return takenOver(t, cr) })
			if diff := cmp.Diff(before[title(cr)], identities(t, cr)); diff != "" {
				t.Errorf("objects changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(histories[title(cr)], history(t, cr)); diff != "" {
				t.Errorf("helm history changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(manifests[title(cr)], manifest(t, cr)); diff != "" {
				t.Errorf("helm get manifest changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(since[title(cr)], condition(t, cr, "Deployed")["lastTransitionTime"]); diff != "" {
				t.Errorf("the condition Deployed was not kept (-before +after):\n%s", diff)
			}
		})
	}
	t.Run("a stuck release goes on", func(t *testing.T) { stuckGoesOn(t, left.stuck, stuckBefore) })
	t.Run("a deletion is carried on", func(t *testing.T) {
		environment.Eventually(t, "the deletion", func() string { return remains(t, left.leaving) })
	})
	t.Run("what was uninstalled stays so", func(t *testing.T) { heldStaysUninstalled(t, left.held) })
	if slices.ContainsFunc(untouched, func(cr *unstructured.Unstructured) bool { return takenOver(t, cr) != "" }) {
		return // what follows needs releases that were taken over
	}
	for _, cr := range untouched {
		t.Run(cr.GetName()+" is upgraded", func(t *testing.T) { upgraded(t, cr, before[title(cr)], histories[title(cr)]) })
	}
	stop()
	newChart(t, directory)
	stop = startThisOperator(t, directory)
	t.Run("what a new chart drops is dropped", func(t *testing.T) { dropped(t, left.upgraded, before[title(left.upgraded)]) })
	for _, cr := range append(untouched, left.stuck) {
		t.Run(cr.GetName()+" is deleted", func(t *testing.T) {
			environment.Check(t, api.Delete(context.Background(), cr))
			environment.Eventually(t, "the deletion", func() string { return remains(t, cr) })
		})
	}
	stop()
}

// leaveBehind has helm-operator bring resources into each state, and stops it.
func leaveBehind(t *testing.T, namespace, directory string) resources {
	t.Helper()
	stop := startHelmOperator(t, directory)
	defer stop()
	create := func(kind schema.GroupVersionKind, name string, finalizers ...string) *unstructured.Unstructured {
		cr := environment.Object(kind, namespace, name)
		cr.Object["spec"] = map[string]any{"text": "first"}
		cr.SetFinalizers(finalizers)
		environment.Check(t, api.Create(context.Background(), cr))
		return cr
	}
	made := resources{
		plain: create(shopKind, "plain"), upgraded: create(shopKind, "upgraded"), older: create(shopKind, "older"),
		cluster: create(readerKind, "cluster"),
		stuck:   create(shopKind, "stuck"), leaving: create(shopKind, "leaving"), held: create(shopKind, "held", "example.com/hold"),
	}
	for _, cr := range []*unstructured.Unstructured{made.plain, made.upgraded, made.older, made.cluster, made.stuck, made.leaving, made.held} {
		awaitRevision(t, cr, 1)
	}
	for i, text := range []string{"second", "third"} {
		setText(t, made.upgraded, text)
		awaitRevision(t, made.upgraded, i+2)
	}
	allow := denyDeletion(t, namespace, made.leaving.GetName())
	environment.Check(t, api.Delete(context.Background(), made.leaving))
	environment.Check(t, api.Delete(context.Background(), made.held))
	environment.Eventually(t, "half a deletion", func() string {
		if environment.Get(t, api, environment.Object(deploymentKind, namespace, made.leaving.GetName())) {
			return "the Deployment is still there"
		}
		return ""
	})
	environment.Eventually(t, "the other deletion", func() string {
		if environment.Get(t, api, made.held); len(made.held.GetFinalizers()) > 1 {
			return "helm-operator's finalizer is still there"
		}
		return ""
	})
	stop()
	allow()
	if !environment.Get(t, api, environment.Object(configMapKind, namespace, made.leaving.GetName())) {
		t.Fatal("the deletion that was denied was made")
	}
	environment.Change(t, api, made.older, func(cr *unstructured.Unstructured) { cr.SetFinalizers([]string{sdkFinalizer}) })
	leavePending(t, made.stuck)
	environment.Check(t, api.Delete(context.Background(), environment.Object(deploymentKind, namespace, made.stuck.GetName())))
	return made
}

func setText(t *testing.T, cr *unstructured.Unstructured, text string) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":"`+text+`"}}`))
	environment.Check(t, api.Patch(context.Background(), cr, patch))
}

// awaitRevision waits until helm-operator has deployed a revision and said so.
func awaitRevision(t *testing.T, cr *unstructured.Unstructured, number int) {
	t.Helper()
	environment.Eventually(t, "helm-operator's revision", func() string {
		if deployed := condition(t, cr, "Deployed"); deployed["status"] != "True" {
			return title(cr) + " is not deployed"
		}
		list := history(t, cr)
		if last := list[len(list)-1]; last.Revision != number || last.Status != "deployed" {
			return title(cr) + ": " + strings.Join(states(list), ", ")
		}
		return ""
	})
}

// denyDeletion makes the API server refuse to delete a ConfigMap, so that an uninstallation ends halfway, until the returned
// function is called.
func denyDeletion(t *testing.T, namespace, name string) (allow func()) {
	t.Helper()
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				ResourceNames: []string{name},
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: namespace, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	environment.Check(t, api.Create(context.Background(), policy))
	environment.Check(t, api.Create(context.Background(), binding))
	tryDelete := func() error {
		return api.Delete(context.Background(), environment.Object(configMapKind, namespace, name), client.DryRunAll)
	}
	environment.Eventually(t, "the denial", func() string {
		if err := tryDelete(); err == nil {
			return "deleting is allowed"
		}
		return ""
	})
	return func() {
		environment.Check(t, api.Delete(context.Background(), binding))
		environment.Check(t, api.Delete(context.Background(), policy))
		environment.Eventually(t, "the end of the denial", func() string {
			if err := tryDelete(); err != nil {
				return err.Error()
			}
			return ""
		})
	}
}

// stuckGoesOn: what a killed helm-operator left pending is completed, and what it had made stays.
func stuckGoesOn(t *testing.T, cr *unstructured.Unstructured, before map[string]identity) {
	environment.Eventually(t, "the takeover", func() string { return takenOver(t, cr) })
	after := identities(t, cr)
	if want := len(before) + 1; len(after) != want {
		t.Errorf("got %d objects, want %d: %v", len(after), want, slices.Sorted(maps.Keys(after)))
	}
	for name, was := range before {
		if diff := cmp.Diff(was, after[name]); diff != "" {
			t.Errorf("%s changed (-before +after):\n%s", name, diff)
		}
	}
	environment.Eventually(t, "a deployed revision", func() string {
		list := history(t, cr)
		if last := list[len(list)-1]; last.Status != "deployed" {
			return strings.Join(states(list), ", ")
		}
		return ""
	})
}

// heldStaysUninstalled: a resource that only somebody else's finalizer keeps gets no children any more.
func heldStaysUninstalled(t *testing.T, cr *unstructured.Unstructured) {
	environment.Change(t, api, cr, func(cr *unstructured.Unstructured) { cr.SetFinalizers(nil) })
	environment.Eventually(t, "the deletion", func() string { return remains(t, cr) })
	for _, child := range childrenOf(cr) {
		if environment.Get(t, api, child) {
			t.Errorf("%s is there", title(child))
		}
	}
}

// upgraded: the next change makes the next revision, of the same objects.
func upgraded(t *testing.T, cr *unstructured.Unstructured, before map[string]identity, past []revision) {
	setText(t, cr, "after the takeover")
	want := states(past)
	want[len(want)-1] = strings.Replace(want[len(want)-1], "deployed", "superseded", 1)
	number := past[len(past)-1].Revision + 1
	want = append(want, states([]revision{{Revision: number, Status: "deployed"}})...)
	environment.Eventually(t, "the next revision", func() string { return cmp.Diff(want, states(history(t, cr))) })
	environment.Eventually(t, "its report", func() string { return takenOver(t, cr) })

	after := identities(t, cr)
	for name, was := range before {
		if after[name].UID != was.UID || !after[name].Created.Equal(was.Created) {
			t.Errorf("%s was made anew", name)
		}
	}
	rendered := manifest(t, cr)
	if len(rendered) != len(childrenOf(cr)) {
		t.Errorf("helm get manifest has %v", slices.Sorted(maps.Keys(rendered)))
	}
	for where, text := range map[string]any{
		"the ConfigMap":     after["ConfigMap "+cr.GetName()].Content["data"].(map[string]any)["text"],
		"helm get manifest": rendered["ConfigMap "+cr.GetName()]["data"].(map[string]any)["text"],
	} {
		if text != "after the takeover" {
			t.Errorf("%s has the text %q", where, text)
		}
	}
}

// newChart changes the project's chart.
func newChart(t *testing.T, directory string) {
	t.Helper()
	changed := maps.Clone(project)
	for name, replacement := range newVersion {
		changed[name] = strings.Replace(changed[name], replacement[0], replacement[1], 1)
	}
	deployment := "helm-charts/shop/templates/deployment.yaml"
	changed[deployment] = strings.Replace(changed[deployment], droppedVariable, "", 1)
	write(t, directory, changed)
}

// dropped: fields that helm-operator wrote and the chart has no more are removed from the objects, which stay.
func dropped(t *testing.T, cr *unstructured.Unstructured, before map[string]identity) {
	config, deployment := environment.Object(configMapKind, cr.GetNamespace(), cr.GetName()),
		environment.Object(deploymentKind, cr.GetNamespace(), cr.GetName())
	environment.Eventually(t, "the new chart", func() string {
		list := history(t, cr)
		if last := list[len(list)-1]; last.Chart != "shop-1.1.0" || last.Status != "deployed" {
			return "the last revision is of " + last.Chart + ", " + last.Status
		}
		return takenOver(t, cr)
	})
	environment.Get(t, api, config)
	environment.Get(t, api, deployment)
	if data, _, _ := unstructured.NestedStringMap(config.Object, "data"); len(data) != 1 {
		t.Errorf("the ConfigMap's data are %v", data)
	}
	if seconds, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "minReadySeconds"); found {
		t.Errorf("the Deployment's minReadySeconds is %d", seconds)
	}
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	env, _, _ := unstructured.NestedSlice(containers[0].(map[string]any), "env")
	if len(env) != 1 {
		t.Errorf("the Deployment's environment is %v", env)
	}
	for _, o := range []*unstructured.Unstructured{config, deployment} {
		if was := before[title(o)]; o.GetUID() != was.UID || !o.GetCreationTimestamp().Time.Equal(was.Created) {
			t.Errorf("%s was made anew", title(o))
		}
	}
}

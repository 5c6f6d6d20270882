// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const (
	simple = "controller_v1_application.yaml"
	full   = "controller_v1_application_full.yaml"
	web    = "application-sample"
)

var ctx = context.Background()

// TestMadeRestoredRecreated follows the source document: the Deployment is made,
// restored when someone edits it, made again when someone deletes it, and belongs to
// the Application; count grows, and then stays.
func TestMadeRestoredRecreated(t *testing.T) {
	ns := newNamespace(t)
	app := sample(t, simple, ns)
	create(t, app)

	made := deploymentOf(t, ns, web)
	if owner := metav1.GetControllerOf(made); owner == nil || owner.UID != app.GetUID() || !ptr.Deref(owner.BlockOwnerDeletion, false) {
		t.Errorf("it is not removed with its Application: owner %v", owner)
	}
	if token := made.Spec.Template.Spec.AutomountServiceAccountToken; token == nil || *token {
		t.Error("the pods carry a service account token")
	}
	awaitCondition(t, app, "Progressing", "True RollingOut: Deployment "+web)
	rollout(t, ns, web)
	awaitCondition(t, app, "Ready", "True Available: Deployment "+web+": 1 of 1 pods are available")
	before := status(t, app)
	if before.ReadyReplicas != 1 || before.Count < 2 || before.ObservedGeneration != 1 {
		t.Errorf("status %+v", before)
	}

	edit(t, ns, web, func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](7)
		d.Spec.Template.Spec.Containers[0].Image = "evil:1"
		d.Spec.RevisionHistoryLimit = ptr.To[int32](4) // no field of the template: stays
	})
	eventually(t, "restored", func() string {
		d := deploymentOf(t, ns, web)
		if got := d.Spec.Template.Spec.Containers[0].Image; got != "registry.k8s.io/pause:3.10" || *d.Spec.Replicas != 1 {
			return fmt.Sprintf("image %s, %d replicas", got, *d.Spec.Replicas)
		}
		if *d.Spec.RevisionHistoryLimit != 4 {
			return "another client's field was taken away"
		}
		return ""
	})
	awaitEvent(t, app, "Restored")
	eventually(t, "count", func() string {
		if after := status(t, app); after.Count <= before.Count {
			return fmt.Sprintf("count is %d after an edit, was %d", after.Count, before.Count)
		}
		return ""
	})

	old := deploymentOf(t, ns, web)
	check(t, api.Delete(ctx, old))
	eventually(t, "recreated", func() string {
		if now := deploymentOf(t, ns, web); now.UID == old.UID {
			return "it is still the old one"
		}
		return ""
	})
	awaitEvent(t, app, "Recreated")
	rollout(t, ns, web)
	awaitCondition(t, app, "Ready", "True Available")
}

// TestPause: what is paused is left as it is, and says so; what happened meanwhile is put right afterwards.
func TestPause(t *testing.T) {
	ns := newNamespace(t)
	app := sample(t, simple, ns)
	create(t, app)
	rollout(t, ns, web)
	awaitCondition(t, app, "Paused", "False NotPaused")
	pause := func(value string) {
		t.Helper()
		check(t, api.Patch(ctx, app,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"middleware.hc.cn/pause": `+value+`}}}`))))
	}
	pause(`"true"`)
	awaitCondition(t, app, "Paused", "True PauseReconcileAnnotationTrue: annotation middleware.hc.cn/pause is true: nothing is changed")
	before := status(t, app).Count
	edit(t, ns, web, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "mine:1"
		d.Spec.Replicas = ptr.To[int32](0)
	})
	eventually(t, "a reconciliation after the edit", func() string {
		if status(t, app).Count == before {
			return "none was counted"
		}
		return ""
	})
	if image := deploymentOf(t, ns, web).Spec.Template.Spec.Containers[0].Image; image != "mine:1" {
		t.Errorf("it was changed while it was paused: image %s", image)
	}
	pause("null")
	awaitCondition(t, app, "Paused", "False NotPaused")
	eventually(t, "restored", func() string {
		if image := deploymentOf(t, ns, web).Spec.Template.Spec.Containers[0].Image; image == "mine:1" {
			return image
		}
		return ""
	})
}

func awaitEvent(t *testing.T, regarding client.Object, reason string) {
	t.Helper()
	eventually(t, "event "+reason, func() string {
		list := &eventsv1.EventList{}
		check(t, api.List(ctx, list, client.InNamespace(regarding.GetNamespace())))
		var seen []string
		for _, e := range list.Items {
			if e.Regarding.UID == regarding.GetUID() {
				seen = append(seen, e.Reason)
			}
			if e.Regarding.UID == regarding.GetUID() && e.Reason == reason {
				return ""
			}
		}
		return fmt.Sprintf("got %v", seen)
	})
}

// TestReplicasBelongToOthersWhenLeftOut: an autoscaler's number stays.
func TestReplicasBelongToOthersWhenLeftOut(t *testing.T) {
	ns := newNamespace(t)
	create(t, sample(t, full, ns))
	edit(t, ns, "shop-backend", func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) })
	edit(t, ns, "shop-backend", func(d *appsv1.Deployment) { d.Labels["team"] = "other" })
	eventually(t, "restored", func() string {
		d := deploymentOf(t, ns, "shop-backend")
		if d.Labels["team"] != "checkout" {
			return "label " + d.Labels["team"]
		}
		if *d.Spec.Replicas != 5 {
			t.Fatalf("replicas became %d", *d.Spec.Replicas)
		}
		return ""
	})
}

// TestIdleCostsNothing: a reconciliation that finds nothing to do makes no request and writes
// no status.
func TestIdleCostsNothing(t *testing.T) {
	ns := newNamespace(t)
	app := sample(t, simple, ns)
	create(t, app)
	deploymentOf(t, ns, web)
	rollout(t, ns, web)
	awaitCondition(t, app, "Ready", "True")
	settled := status(t, app)
	// Another client's label causes a reconciliation and is nobody's business.
	for i := range 5 {
		began, asked := passes(t), requests.Load()
		edit(t, ns, web, func(d *appsv1.Deployment) {
			d.Labels["example.com/touched"] = fmt.Sprint(i)
		})
		eventually(t, "pass", func() string {
			if passes(t) == began {
				return "not yet"
			}
			return ""
		})
		if n := requests.Load() - asked; n != 0 && i > 0 { // the first touch may meet the end of the rollout
			t.Errorf("%d requests in idle reconciliations", n)
		}
	}
	if now := status(t, app); now.Count != settled.Count {
		t.Errorf("count went from %d to %d in idle reconciliations", settled.Count, now.Count)
	}
}

func foreignDeployment(namespace, name string, labels map[string]string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "theirs:1"}}},
			},
		},
	}
}

// TestForeignDeployments: one that matches keeps ours from being made, and one that
// has the name is never adopted.
func TestForeignDeployments(t *testing.T) {
	tests := []struct {
		name   string
		theirs *appsv1.Deployment
		want   string
	}{
		{"matches the selector", foreignDeployment("", "theirs", map[string]string{"app": web}),
			"True Conflict: Deployment theirs matches spec.selector and does not belong to this Application: delete it, or choose another selector"},
		{"has the name", foreignDeployment("", web, map[string]string{"app": "theirs"}),
			"True Conflict: Deployment "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ns := newNamespace(t)
			tt.theirs.Namespace = ns
			create(t, tt.theirs)
			app := sample(t, simple, ns)
			create(t, app)
			awaitCondition(t, app, "Stalled", tt.want)
			awaitEvent(t, app, "Conflict")
			list := &appsv1.DeploymentList{}
			check(t, api.List(ctx, list, client.InNamespace(ns)))
			if len(list.Items) != 1 || list.Items[0].Spec.Template.Spec.Containers[0].Image != "theirs:1" || len(list.Items[0].OwnerReferences) > 0 {
				t.Errorf("their Deployment was touched: %+v", list.Items)
			}
		})
	}
}

// TestWrongOnesAreRefusedByThemselves: without a webhook the reconciler says the same,
// and an Application that cannot even be read does not hold up the others.
func TestWrongOnesAreRefusedByThemselves(t *testing.T) {
	ns := newNamespace(t)
	unreadable := sample(t, simple, ns)
	unreadable.SetName("unreadable")
	check(t, unstructured.SetNestedField(unreadable.Object, "none", "spec", "template", "spec", "template", "spec", "containers"))
	create(t, unreadable)
	privileged := sample(t, simple, ns)
	privileged.SetName("privileged")
	check(t, unstructured.SetNestedField(privileged.Object, true, "spec", "template", "spec", "template", "spec", "hostPID"))
	create(t, privileged)
	app := sample(t, simple, ns)
	create(t, app)

	deploymentOf(t, ns, web)
	awaitCondition(t, unreadable, "Stalled", "True Invalid: spec.template.spec.template.spec.containers: Invalid value: has a value of the wrong type")
	awaitCondition(t, privileged, "Stalled", "True Invalid: spec.template.spec.template.spec: Forbidden: host namespaces (hostPID=true)")
	list := &appsv1.DeploymentList{}
	check(t, api.List(ctx, list, client.InNamespace(ns)))
	if len(list.Items) != 1 {
		t.Errorf("%d Deployments, want that of the good one", len(list.Items))
	}
}

// TestAPIServersRefusalIsToldAndMended: what only the API server knows to be wrong
// becomes a condition, and the corrected Application goes on.
func TestAPIServersRefusalIsToldAndMended(t *testing.T) {
	ns := newNamespace(t)
	app := sample(t, simple, ns)
	path := []string{"spec", "template", "spec", "template", "spec", "restartPolicy"}
	check(t, unstructured.SetNestedField(app.Object, "Never", path...))
	create(t, app)
	awaitCondition(t, app, "Stalled", "True ApplyFailed: ")
	check(t, api.Get(ctx, client.ObjectKeyFromObject(app), app))
	check(t, unstructured.SetNestedField(app.Object, "Always", path...))
	eventually(t, "correction", func() string {
		if err := api.Update(ctx, app); err != nil {
			check(t, client.IgnoreNotFound(api.Get(ctx, client.ObjectKeyFromObject(app), app)))
			check(t, unstructured.SetNestedField(app.Object, "Always", path...))
			return err.Error()
		}
		return ""
	})
	deploymentOf(t, ns, web)
	awaitCondition(t, app, "Stalled", "False")
}

// TestSchemaRefuses: what the CRD says without any webhook.
func TestSchemaRefuses(t *testing.T) {
	ns := newNamespace(t)
	there := sample(t, simple, ns)
	create(t, there)
	tests := []struct {
		name, path string
		value      any
		want       string
	}{
		{"empty selector", "spec.selector", map[string]any{},
			"selector must not be empty: an empty one would match every Deployment of the namespace"},
		{"namespace", "spec.template.metadata", map[string]any{"namespace": "x"}, "metadata.namespace must be left out"},
		{"selector changes", "spec.selector", map[string]any{"matchLabels": map[string]any{"a": "b"}},
			"selector is immutable: delete the Application and create it again"},
		{"name changes", "spec.template.metadata", map[string]any{"name": "x"},
			"metadata.name is immutable: delete the Application and create it again"},
		{"Deployment's selector changes", "spec.template.spec.selector", map[string]any{"matchLabels": map[string]any{"app": web}},
			"spec.selector is immutable: delete the Application and create it again"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := change(there, tt.path, tt.value)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// change patches one field, as a dry run.
func change(object *unstructured.Unstructured, path string, value any) error {
	body := map[string]any{}
	if err := unstructured.SetNestedField(body, value, strings.Split(path, ".")...); err != nil {
		return err
	}
	encoded, err := yaml.Marshal(body)
	if err != nil {
		return err
	}
	if encoded, err = yaml.YAMLToJSON(encoded); err != nil {
		return err
	}
	if path == "spec.selector" { // a merge patch keeps the old keys of a map
		encoded = []byte(strings.Replace(string(encoded), `{"selector":{`, `{"selector":{"matchExpressions":null,`, 1))
		if !strings.Contains(string(encoded), "matchLabels") {
			encoded = []byte(strings.Replace(string(encoded), `"matchExpressions":null`, `"matchExpressions":null,"matchLabels":null`, 1))
		}
		encoded = []byte(strings.Replace(string(encoded), `null,}`, `null}`, 1))
	}
	return api.Patch(ctx, object.DeepCopy(), client.RawPatch("application/merge-patch+json", encoded), client.DryRunAll)
}

// TestSamplesAreAccepted applies every sample as a user does, with strict field
// validation, against the CRDs alone.
func TestSamplesAreAccepted(t *testing.T) {
	ns := newNamespace(t)
	files, err := filepath.Glob("../../../config/samples/*_v*.yaml")
	check(t, err)
	if len(files) < 8 {
		t.Fatalf("found %v", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			check(t, err)
			object := &unstructured.Unstructured{}
			check(t, yaml.UnmarshalStrict(text, &object.Object))
			object.SetNamespace(ns)
			strict := client.WithFieldValidation(api, metav1.FieldValidationStrict)
			check(t, strict.Create(ctx, object, client.DryRunAll))
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// OLM makes the webhook configurations itself, from definitions that have no matchConditions: the webhooks are asked about objects that
// are being deleted too. They must never keep one from going, whatever its spec is.
func TestDeletedObjectsGoUnderOLM(t *testing.T) {
	wrong := map[string]*unstructured.Unstructured{
		"RedisCluster": manifest(t, redis, "RedisCluster", `{config: {requirepass: secret}}`),
		"App":          manifest(t, app, "App", `{image: "Not An Image"}`),
		"Application": manifest(t, application, "Application",
			`{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {hostNetwork: true, containers: [{name: c, image: busybox}]}}}}}`),
		"unreadable Application": manifest(t, application, "Application",
			`{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: none}}}}}`),
		"CronTab": manifest(t, crontab, "CronTab", `{cronSpec: "61 * * * *", image: busybox:1.36}`),
		"FooBar":  manifest(t, foobar, "FooBar", `{command: echo, image: "Not An Image"}`),
	}
	for name := range wrong {
		wrong[name].SetName("")
		wrong[name].SetGenerateName("deleted-")
		controllerutil.AddFinalizer(wrong[name], "example.com/hold")
	}
	ask(t, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
	for kind, object := range wrong {
		eventually(t, kind+" is refused", func(ctx context.Context) error { return kube.Create(ctx, object) })
	}
	ask(t)
	eventually(t, "webhooks are not asked", func(ctx context.Context) error {
		if kube.Create(ctx, manifest(t, crontab, "CronTab", `{cronSpec: "61 * * * *", image: busybox:1.36}`), client.DryRunAll) == nil {
			return errors.New("a wrong manifest is accepted")
		}
		return nil
	})
	for kind, object := range wrong {
		t.Run(kind, func(t *testing.T) {
			if err := kube.Delete(t.Context(), object.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			patches := []struct {
				what, patch string
				write       client.SubResourceWriter
			}{
				{"an annotation", `{"metadata":{"annotations":{"a":"b"}}}`, nil},
				{"the status", `{"status":{"observedGeneration":1}}`, kube.Status()},
				{"the finalizers", `{"metadata":{"finalizers":null}}`, nil},
			}
			for _, p := range patches {
				patch := client.RawPatch("application/merge-patch+json", []byte(p.patch))
				var err error
				if p.write != nil {
					err = p.write.Patch(t.Context(), object.DeepCopy(), patch)
				} else {
					err = kube.Patch(t.Context(), object.DeepCopy(), patch)
				}
				if err != nil {
					t.Errorf("%s of an object that is being deleted cannot be changed: %v", p.what, err)
				}
			}
			eventually(t, "the object stays", func(ctx context.Context) error {
				err := kube.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
				if err == nil {
					return errors.New("it can still be read")
				}
				return client.IgnoreNotFound(err)
			})
		})
	}
}

// ask has the API server ask the webhooks about the objects that meet these conditions, until the test ends.
func ask(t *testing.T, about ...admissionregistrationv1.MatchCondition) {
	t.Helper()
	key := client.ObjectKey{Name: "middleware-operator"}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := kube.Get(t.Context(), key, configuration); err != nil {
			t.Fatal(err)
		}
		before, now := configuration.DeepCopyObject().(client.Object), configuration.DeepCopyObject().(client.Object)
		t.Cleanup(func() {
			err := kube.Get(context.Background(), key, now)
			before.SetResourceVersion(now.GetResourceVersion())
			if err = errors.Join(err, kube.Update(context.Background(), before)); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].MatchConditions = about
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].MatchConditions = about
	}
	for _, configuration := range []client.Object{mutating, validating} {
		if err := kube.Update(t.Context(), configuration); err != nil {
			t.Fatal(err)
		}
	}
}

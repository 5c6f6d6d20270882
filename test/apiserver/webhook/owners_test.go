// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// With the rights of config/rbac, children of every kind hold back the deletion of what owns them, on an API server that asks for
// the right to do so (OwnerReferencesPermissionEnforcement, as on OpenShift).
func TestChildrenMayBlockTheDeletionOfTheirOwners(t *testing.T) {
	for file, child := range map[string]schema.GroupVersionKind{
		"appcontroller_v1alpha1_app.yaml":  {Group: "apps", Version: "v1", Kind: "Deployment"},
		"controller_v1_application.yaml":   {Group: "apps", Version: "v1", Kind: "Deployment"},
		"k8s_v1_foobar.yaml":               {Group: "batch", Version: "v1", Kind: "Job"},
		"redis_v1alpha1_rediscluster.yaml": {Group: "apps", Version: "v1", Kind: "StatefulSet"},
		"stable_v1beta1_crontab.yaml":      {Group: "batch", Version: "v1", Kind: "CronJob"},
	} {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(root + "/config/samples/" + file)
			if err != nil {
				t.Fatal(err)
			}
			owner := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(text, &owner.Object); err != nil {
				t.Fatal(err)
			}
			if owner.GetKind() == "RedisCluster" {
				owner.Object["spec"] = map[string]any{} // it is paused, and wants objects that are not there
			}
			owner.SetNamespace("default") // where the operator may keep Secrets
			if err := kube.Create(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = kube.Delete(context.Background(), owner) })
			eventually(t, "no child holds back its deletion", func(ctx context.Context) error {
				children := &metav1.PartialObjectMetadataList{}
				children.SetGroupVersionKind(child.GroupVersion().WithKind(child.Kind + "List"))
				if err := kube.List(ctx, children, client.InNamespace("default")); err != nil {
					return err
				}
				for i := range children.Items {
					reference := metav1.GetControllerOfNoCopy(&children.Items[i])
					if reference != nil && reference.UID == owner.GetUID() && ptr.Deref(reference.BlockOwnerDeletion, false) {
						return nil
					}
				}
				if err := kube.Get(ctx, client.ObjectKeyFromObject(owner), owner); err != nil {
					return err
				}
				return fmt.Errorf("none of %d is its own; its status: %v", len(children.Items), owner.Object["status"])
			})
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// disguises are what an object that is not the operator's may look like.
var disguises = []struct {
	name string
	wear func(theirs, owner *unstructured.Unstructured)
}{
	{"plain", func(_, _ *unstructured.Unstructured) {}},
	{"the operator's label", func(theirs, _ *unstructured.Unstructured) {
		theirs.SetLabels(map[string]string{apply.ManagedByLabel: apply.ManagedByValue})
	}},
	{"a former resource of the name", func(theirs, owner *unstructured.Unstructured) {
		theirs.SetLabels(map[string]string{apply.ManagedByLabel: apply.ManagedByValue})
		theirs.SetOwnerReferences([]metav1.OwnerReference{formerOwner(owner)})
	}},
}

func formerOwner(owner *unstructured.Unstructured) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(),
		UID: "00000000-0000-0000-0000-000000000000", Controller: ptr.To(true)}
}

// refusal is how every kind says that an object is not its own.
var refusal = regexp.MustCompile(`was not made (by this operator|for this cluster)|(?s:exists and\s+belongs\s+to)|does not belong to this`)

// The name of a child is somebody's before the resource is made: the resource says so, and neither it nor its deletion touches what
// is there, whatever it looks like. One disguise a child is tried, all of them with SIMULATION=all.
func TestNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	for file := range kinds {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			_, made := making(t, file)
			for i, child := range made {
				for j, disguise := range disguises {
					if os.Getenv("SIMULATION") != "all" && i%len(disguises) != j {
						continue
					}
					t.Run(child.GetKind()+" "+child.GetName()+", "+disguise.name, func(t *testing.T) {
						t.Parallel()
						taken(t, newResource(t, file), child, disguise.wear)
					})
				}
			}
		})
	}
}

func taken(t *testing.T, resource, child *unstructured.Unstructured, wear func(theirs, owner *unstructured.Unstructured)) {
	t.Helper()
	theirs := likeness(child, resource.GetNamespace())
	wear(theirs, resource)
	environment.Check(t, api.Create(context.Background(), theirs))
	before := theirs.GetResourceVersion()
	environment.Check(t, api.Create(context.Background(), resource))
	environment.Eventually(t, "a refusal that names "+child.GetName(), func() string {
		text := strings.Join(strings.Fields(statusOf(t, resource)), " ")
		if !strings.Contains(text, child.GetKind()+" ") || !strings.Contains(text, child.GetName()) || !refusal.MatchString(text) {
			return text
		}
		return ""
	})
	unchanged := func() {
		if !environment.Get(t, api, theirs) || theirs.GetResourceVersion() != before || theirs.GetDeletionTimestamp() != nil {
			t.Errorf("what is not the operator's was changed: %v", theirs)
		}
	}
	unchanged()
	environment.Check(t, api.Delete(context.Background(), resource.DeepCopy()))
	environment.Eventually(t, "the resource is gone", func() string {
		if environment.Get(t, api, resource) {
			return statusOf(t, resource)
		}
		return ""
	})
	unchanged()
}

// likeness is an object of a child's kind and name that somebody else made.
func likeness(child *unstructured.Unstructured, namespace string) *unstructured.Unstructured {
	theirs := child.DeepCopy()
	delete(theirs.Object, "metadata")
	delete(theirs.Object, "status")
	theirs.SetName(child.GetName())
	theirs.SetNamespace(namespace)
	for _, assigned := range [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}} {
		unstructured.RemoveNestedField(theirs.Object, assigned...)
	}
	if theirs.GetKind() == "Job" {
		unstructured.RemoveNestedField(theirs.Object, "spec", "selector")
		unstructured.RemoveNestedField(theirs.Object, "spec", "template", "metadata")
	}
	return theirs
}

// An owner that is taken off a child comes back. A child whose owner somebody has replaced is theirs: it stays as it is, and the
// resource says so.
func TestOwnersThatAreChanged(t *testing.T) {
	t.Parallel()
	for file := range kinds {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			resource, made := making(t, file)
			for _, child := range made {
				if child.GetKind() == "Secret" {
					continue // it is read, not applied
				}
				environment.Change(t, api, child, func(c *unstructured.Unstructured) { c.SetOwnerReferences(nil) })
				environment.Eventually(t, "the owner of "+child.GetKind()+" "+child.GetName(), func() string {
					if environment.Get(t, api, child); !metav1.IsControlledBy(child, resource) {
						return statusOf(t, resource)
					}
					return ""
				})
			}
			child := made[0]
			environment.Change(t, api, child, func(c *unstructured.Unstructured) {
				c.SetOwnerReferences([]metav1.OwnerReference{formerOwner(resource)})
			})
			before := child.GetResourceVersion()
			environment.Eventually(t, "what is said of "+child.GetName(), func() string {
				text := strings.Join(strings.Fields(statusOf(t, resource)), " ")
				if !refusal.MatchString(text) || !strings.Contains(text, child.GetName()) {
					return text
				}
				return ""
			})
			if environment.Get(t, api, child); child.GetResourceVersion() != before {
				t.Errorf("it was changed: %v", child.GetOwnerReferences())
			}
		})
	}
}

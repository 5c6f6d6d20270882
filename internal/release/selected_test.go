// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A resource that a watch once selected and that lost its label is still to be forgotten when it is deleted, in memory and metrics.
func TestDeletionOfWhatIsNotSelectedIsHeard(t *testing.T) {
	object := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: {name: web, generation: 1}}")
	changed := object.DeepCopy()
	changed.SetGeneration(2)
	changed.SetCreationTimestamp(metav1.Now())
	hears := ownPredicate(func(client.Object) bool { return false })
	if hears.Create(event.CreateEvent{Object: object}) || hears.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: changed}) {
		t.Error("what is not selected wakes its controller")
	}
	if !hears.Delete(event.DeleteEvent{Object: object}) {
		t.Error("the deletion is not heard")
	}
	until := ownPredicate(func(o client.Object) bool { return o == client.Object(object) })
	if !until.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: changed}) {
		t.Error("it is not heard that it is selected no longer")
	}
	if !until.Update(event.UpdateEvent{ObjectOld: changed, ObjectNew: object}) {
		t.Error("it is not heard that it is selected from now on")
	}
}

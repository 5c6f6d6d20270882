// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/operator-lib/handler"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var (
	t0       = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	ownerGVK = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}
)

// entry is a managedFields entry of ours over the given set of fields.
func entry(fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func metadataOf(uid, version string, managed ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version, ManagedFields: managed}}
}

func TestVerdict(t *testing.T) {
	ours := entry(`{"f:data":{"f:text":{}}}`)
	theirs := metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1",
		FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:more":{}}}`)}
	was := func(seen bool) *applied {
		return &applied{ref: Ref{UID: "u"}, digest: "d", mark: markOf([]metav1.ManagedFieldsEntry{ours}), version: "100", at: t0,
			seen: seen}
	}
	known, later := markOf([]metav1.ManagedFieldsEntry{ours}), ours
	later.Time = ptr.To(metav1.NewTime(t0))
	recalled := func(uid, mark string) *applied {
		return &applied{ref: Ref{UID: types.UID(uid)}, mark: mark, at: t0, seen: true, recalled: true}
	}
	beingDeleted := metadataOf("u", "101", ours)
	beingDeleted.DeletionTimestamp = ptr.To(metav1.NewTime(t0))
	for _, tc := range []struct {
		name   string
		was    *applied
		digest string
		cached *metav1.PartialObjectMetadata
		after  time.Duration
		want   verdict
	}{
		{"as applied", was(true), "d", metadataOf("u", "100", ours), 0, upToDate},
		{"someone added a field", was(true), "d", metadataOf("u", "120", ours, theirs), 0, upToDate},
		{"someone took a field of ours", was(true), "d", metadataOf("u", "120", entry(`{"f:data":{}}`), theirs), 0, outdated},
		{"someone removed all traces of us", was(true), "d", metadataOf("u", "120", theirs), 0, outdated},
		{"something else is wanted", was(true), "e", metadataOf("u", "100", ours), 0, outdated},
		{"nothing is remembered", nil, "d", metadataOf("u", "100", ours), 0, outdated},
		{"nothing is there yet", nil, "d", nil, 0, outdated},
		{"the cache shows the time before our write", was(false), "d", metadataOf("u", "99"), Lag - 1, lagging},
		{"etcd was restored from before our write", was(false), "d", metadataOf("u", "99", ours), Lag, outdated},
		{"etcd was restored, and the cache had shown our write", was(true), "d", metadataOf("u", "99", ours), time.Hour, outdated},
		{"etcd was restored, and another object has our version", was(true), "d", metadataOf("u", "100", theirs), time.Hour, outdated},
		{"a version of fewer digits is older", was(false), "d", metadataOf("u", "9"), 0, lagging},
		{"the cache does not show our new object yet", was(false), "d", nil, Lag - 1, lagging},
		{"our new object never appeared", was(false), "d", nil, Lag, outdated},
		{"it was there and is gone", was(true), "d", nil, 0, outdated},
		{"the cache shows what our new object replaced", was(false), "d", metadataOf("v", "90", ours), Lag - 1, lagging},
		{"what our object replaced is there again", was(false), "d", metadataOf("v", "90", ours), Lag, outdated},
		{"it was replaced by another of its name", was(true), "d", metadataOf("v", "90", ours), 0, outdated},
		{"recalled, as it was", recalled("u", known), "", metadataOf("u", "100", ours), 0, upToDate},
		{"recalled, a field was taken", recalled("u", known), "", metadataOf("u", "100", entry(`{"f:data":{}}`)), 0, outdated},
		{"recalled, applied once more", recalled("u", known), "", metadataOf("u", "100", later), 0, outdated},
		{"applied once more, by another process of ours", was(true), "d", metadataOf("u", "120", later), 0, outdated},
		{"recalled, its fields unknown", recalled("u", ""), "", metadataOf("u", "100", ours), 0, upToDate},
		{"applied, and the answer told nothing of ours", &applied{ref: Ref{UID: "u"}, digest: "d", version: "100", at: t0, seen: true}, "d",
			metadataOf("u", "100", ours), 0, outdated},
		{"recalled, its UID unknown", recalled("", known), "", metadataOf("u", "100", ours), 0, upToDate},
		{"recalled, replaced", recalled("v", known), "", metadataOf("u", "100", ours), 0, outdated},
		{"recalled, and gone", recalled("u", known), "", nil, 0, outdated},
		{"recalled, something is wanted", recalled("u", known), "d", metadataOf("u", "100", ours), 0, outdated},
		{"it is being deleted", was(true), "e", beingDeleted, 0, deleting},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := verdictOf(tc.was, tc.digest, tc.cached, t0.Add(tc.after)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func web() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(ownerGVK)
	o.SetNamespace("shop")
	o.SetName("web")
	o.SetUID("web-uid")
	return o
}

func configMap(annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	o.SetName("config")
	o.SetAnnotations(annotations)
	return o
}

// Helm 3 compares the value without regard to case and spaces (filterManifestsToKeep): who wrote Keep means it.
func TestIsKept(t *testing.T) {
	for value, kept := range map[string]bool{"keep": true, "Keep": true, " KEEP ": true, "": false, "kept": false, "delete": false} {
		if got := IsKept(map[string]string{"helm.sh/resource-policy": value}); got != kept {
			t.Errorf("%q: kept %t", value, got)
		}
	}
	if IsKept(nil) {
		t.Error("an object without annotations is kept")
	}
}

func TestOwnership(t *testing.T) {
	plain := Stamp(configMap(nil), web(), ownerGVK, true)
	kept := Stamp(configMap(map[string]string{"helm.sh/resource-policy": "keep"}), web(), ownerGVK, true)
	elsewhere := configMap(nil)
	elsewhere.SetNamespace("other")
	elsewhere = Stamp(elsewhere, web(), ownerGVK, true)

	if plain.GetNamespace() != "shop" || plain.GetLabels()[ManagedByLabel] != ManagedByValue || len(plain.GetOwnerReferences()) != 1 {
		t.Errorf("a child in its owner's namespace has label and owner reference: %v", plain.Object)
	}
	for name, o := range map[string]*unstructured.Unstructured{"an object that is kept": kept, "an object elsewhere": elsewhere} {
		if len(o.GetOwnerReferences()) != 0 || o.GetAnnotations()[handler.NamespacedNameAnnotation] != "shop/web" ||
			o.GetAnnotations()[handler.TypeAnnotation] != "Web.example.com" {
			t.Errorf("%s has annotations instead of an owner reference: %v", name, o.Object)
		}
	}
	other := web()
	other.SetUID("another")
	other.SetName("other")
	taken := Stamp(elsewhere, web(), ownerGVK, true)
	taken.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Shop", Name: "web", UID: "foreign", Controller: ptr.To(true)}})
	otherKind := elsewhere.DeepCopy()
	otherKind.SetAnnotations(map[string]string{handler.NamespacedNameAnnotation: "shop/web", handler.TypeAnnotation: "Shop.example.com"})
	for name, tc := range map[string]struct {
		object metav1.Object
		owner  *unstructured.Unstructured
		ours   bool
	}{
		"by reference":                                {plain, web(), true},
		"by annotations":                              {elsewhere, web(), true},
		"another's, by reference":                     {plain, other, false},
		"another's, by annotations":                   {elsewhere, other, false},
		"labelled, but nobody's":                      {configMap(nil), web(), false},
		"by annotations, but another controls it":     {taken, web(), false},
		"by annotations, of another kind of the name": {otherKind, web(), false},
	} {
		err := ownedBy(tc.owner, ownerGVK, Ref{}, tc.object)
		var foreign *NotOursError
		if (err == nil) != tc.ours || err != nil && !errors.As(err, &foreign) {
			t.Errorf("%s: got %v, want ours = %v", name, err, tc.ours)
		}
	}
}

// A cluster-scoped object is in no namespace, whatever the chart says, and follows an owner that is in none either.
func TestStampClusterScoped(t *testing.T) {
	rendered := configMap(nil)
	rendered.SetNamespace("shop")
	if stamped := Stamp(rendered, web(), ownerGVK, false); stamped.GetNamespace() != "" || len(stamped.GetOwnerReferences()) != 0 {
		t.Errorf("of a namespaced owner: %v", stamped.Object)
	}
	owner := web()
	owner.SetNamespace("")
	if stamped := Stamp(rendered, owner, ownerGVK, true); stamped.GetNamespace() != "shop" || len(stamped.GetOwnerReferences()) != 1 {
		t.Errorf("of a cluster-scoped owner: %v", stamped.Object)
	}
}

// Whose an object is, is said with what it is.
func TestOwnedBySaysWhose(t *testing.T) {
	theirs := configMap(nil)
	theirs.SetNamespace("other")
	other := web()
	other.SetName("other")
	for name, tc := range map[string]struct{ object, want string }{
		"another's": {"shop/other", "ConfigMap other/config exists and belongs to Web.example.com shop/other: "},
		"nobody's":  {"", "ConfigMap other/config exists and was not made by this operator: "},
		"ours":      {"shop/web", ""},
	} {
		object := theirs.DeepCopy()
		if tc.object != "" {
			object.SetAnnotations(map[string]string{handler.NamespacedNameAnnotation: tc.object, handler.TypeAnnotation: "Web.example.com"})
		}
		err := OwnedBy(web(), object)
		if (err != nil) != (tc.want != "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestSame(t *testing.T) {
	a := refs("a")[0]
	change := func(change func(*Ref)) Ref {
		b := a
		change(&b)
		return b
	}
	for name, tc := range map[string]struct {
		other Ref
		want  bool
	}{
		"another version": {change(func(r *Ref) { r.Version = "v2" }), true},
		"another UID":     {change(func(r *Ref) { r.UID = "x" }), true},
		"another kind":    {change(func(r *Ref) { r.Kind = "Secret" }), false},
		"elsewhere":       {change(func(r *Ref) { r.Namespace = "x" }), false},
		"another name":    {change(func(r *Ref) { r.Name = "x" }), false},
	} {
		if a.Same(tc.other) != tc.want {
			t.Errorf("%s: %v", name, !tc.want)
		}
	}
}

func TestImmutable(t *testing.T) {
	refusal := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			`Job.batch "x" is invalid: spec.template: Invalid value: …: field is immutable`), true},
		{refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			`StatefulSet.apps "x" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden`), true},
		{refusal(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Service "x" is invalid: spec.ports: Required value`), false},
		{refusal(http.StatusForbidden, metav1.StatusReasonForbidden, "field is immutable"), false},
		{errors.New("field is immutable"), false},
	} {
		if got := isImmutable(tc.err); got != tc.want {
			t.Errorf("%v: got %v", tc.err, got)
		}
	}
}

func TestChangeSetString(t *testing.T) {
	deployment := Ref{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "shop",
		Name: "web"}
	service := Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Namespace: "shop", Name: "web"}
	set := ChangeSet{{Ref: deployment, Action: Configured}, {Ref: service, Action: Unchanged}, {Ref: service, Action: Deleting},
		{Ref: service, Action: Deleted}, {Ref: Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "ClusterRole"}, Name: "web"}, Action: Created}}
	if got, want := set.String(), "configured Deployment shop/web, deleted Service shop/web, created ClusterRole web"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if awaited := set.Awaited(); len(awaited) != 2 {
		t.Errorf("what is being deleted is awaited: %v", awaited)
	}
	if got := (ChangeSet{{Ref: service, Action: Unchanged}}).String(); got != "nothing changed" {
		t.Errorf("got %q", got)
	}
}

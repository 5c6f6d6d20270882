// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/chart"
)

func everythingNamespaced(schema.GroupVersionKind) (bool, error) { return true, nil }

// archive is a reconciler of resource web, and the Secrets of its namespace.
type archive struct {
	t  *testing.T
	r  *Reconciler
	cr *unstructured.Unstructured
	// refusals answer requests by their verb, each once; deleted are the conditions of deletions.
	refusals map[string]error
	deleted  []string
	// asked counts requests by their verb.
	asked map[string]int
}

func newArchive(t *testing.T, secrets ...client.Object) *archive {
	t.Helper()
	loaded, err := chart.Load(fstest.MapFS{
		"Chart.yaml":               {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")},
		"templates/configmap.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := &archive{t: t, refusals: map[string]error{}, asked: map[string]int{},
		cr: parse(t, "{apiVersion: a/v1, kind: Web, metadata: {name: web, namespace: shop, uid: u, resourceVersion: '1'}}")}
	answer := func(verb string) error {
		a.asked[verb]++
		err := a.refusals[verb]
		delete(a.refusals, verb)
		return err
	}
	kube := fake.NewClientBuilder().WithScheme(known).WithObjects(append(secrets, a.cr.DeepCopy())...).
		WithIndex(a.cr, metav1.ObjectNameField, byName).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
			if err := answer("get"); err != nil {
				return err
			}
			return c.Get(ctx, key, o, how...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, how ...client.ListOption) error {
			if err := answer("list"); err != nil {
				return err
			}
			return c.List(ctx, list, how...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, how ...client.CreateOption) error {
			if err := answer("create"); err != nil {
				return err
			}
			return c.Create(ctx, o, how...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, how ...client.UpdateOption) error {
			if err := answer("update"); err != nil {
				return err
			}
			return c.Update(ctx, o, how...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, how ...client.DeleteOption) error {
			wanted := (&client.DeleteOptions{}).ApplyOptions(how)
			if wanted.Preconditions == nil || wanted.Preconditions.UID == nil || *wanted.Preconditions.UID != o.GetUID() {
				return errors.New("deleted whatever is there")
			}
			a.deleted = append(a.deleted, o.GetName())
			if err := answer("delete"); err != nil {
				return err
			}
			return c.Delete(ctx, o)
		},
	}).Build()
	a.r = &Reconciler{chart: loaded, live: kube, options: Options{Now: func() time.Time { return now }, MaxHistory: 2,
		ServiceAccount: "ops:op"}}
	reader := fake.NewClientBuilder().WithScheme(known).WithObjects(a.cr.DeepCopy()).Build()
	if _, ok := a.r.memory.Begin(t.Context(), reader, client.ObjectKeyFromObject(a.cr), a.cr, now); !ok {
		t.Fatal("the resource was not read")
	}
	return a
}

// byName is what API servers select objects by.
func byName(o client.Object) []string { return []string{o.GetName()} }

func (a *archive) record(revision int64) *metav1.Condition {
	a.t.Helper()
	return a.r.recordHistory(a.t.Context(), a.cr, &chart.Rendered{Manifest: fmt.Sprintf("# of revision %d\n", revision)}, revision)
}

// secrets are the Secrets of the namespace by name, each with its status and the manifest in it.
func (a *archive) secrets() map[string]string {
	a.t.Helper()
	var list corev1.SecretList
	if err := a.r.live.List(a.t.Context(), &list); err != nil {
		a.t.Fatal(err)
	}
	found := map[string]string{}
	for _, secret := range list.Items {
		text := "nothing"
		if stored, err := chart.DecodeRelease(secret.Data["release"]); err == nil {
			text = string(stored.Status) + ", first " + stored.FirstDeployed.UTC().Format(time.TimeOnly) + " " + stored.Rendered.Manifest
		}
		found[secret.Name] = strings.TrimSpace(secret.Labels["status"] + ": " + text)
	}
	return found
}

func (a *archive) wants(what string, want map[string]string) {
	a.t.Helper()
	if diff := cmp.Diff(want, a.secrets()); diff != "" {
		a.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// foreignRecord is a Secret with the name of a revision that another release of the name recorded.
func foreignRecord(revision int) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: chart.StoredName("web", revision), UID: "foreign",
		Labels:          map[string]string{"owner": "helm", "name": "web"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "a/v1", Kind: "Web", Name: "web", UID: "another"}}}}
}

// Each revision is recorded for Helm, the one before is marked as superseded, and what is older than the history is long goes.
func TestHistory(t *testing.T) {
	a := newArchive(t)
	for revision := int64(1); revision <= 4; revision++ {
		if c := a.record(revision); c.Status != metav1.ConditionTrue || c.Reason != ReasonRecorded ||
			!strings.Contains(c.Message, "helm history web -n shop") {
			t.Errorf("revision %d: %+v", revision, c)
		}
	}
	want := map[string]string{
		"sh.helm.release.v1.web.v3": "superseded: superseded, first 10:00:00 # of revision 3",
		"sh.helm.release.v1.web.v4": "deployed: deployed, first 10:00:00 # of revision 4",
	}
	a.wants("after four revisions", want)
	var secret corev1.Secret
	if err := a.r.live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "sh.helm.release.v1.web.v4"}, &secret); err != nil {
		t.Fatal(err)
	}
	if secret.Annotations[recordedByAnnotation] != recordedBy || len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != "u" ||
		secret.Type != chart.StoredType {
		t.Errorf("the record: %+v", secret.ObjectMeta)
	}
	a.record(4) // once more, after a crash
	a.wants("recorded again", want)
	if err := a.r.deleteHistory(t.Context(), a.cr); err != nil {
		t.Fatal(err)
	}
	a.wants("deleted", map[string]string{})
}

// When a release was first deployed is kept from revision to revision.
func TestHistoryKeepsWhenItBegan(t *testing.T) {
	a := newArchive(t)
	a.record(1)
	a.r.options.Now = func() time.Time { return now.Add(time.Hour) }
	a.record(2)
	a.record(2) // the one before is superseded already
	a.wants("an hour later", map[string]string{
		"sh.helm.release.v1.web.v1": "superseded: superseded, first 10:00:00 # of revision 1",
		"sh.helm.release.v1.web.v2": "deployed: deployed, first 10:00:00 # of revision 2",
	})
	a = newArchive(t) // whose first revision is not recorded
	a.record(2)
	a.wants("the first one is missing", map[string]string{"sh.helm.release.v1.web.v2": "deployed: deployed, first 10:00:00 # of revision 2"})
}

// Somebody may take all labels off a record, which is no reason to fail.
func TestHistoryWithoutLabels(t *testing.T) {
	a := newArchive(t)
	a.record(1)
	secret := &corev1.Secret{}
	if err := a.r.live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "sh.helm.release.v1.web.v1"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Labels = nil
	if err := a.r.live.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if c := a.record(2); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	a.wants("after the next revision", map[string]string{
		"sh.helm.release.v1.web.v1": "superseded: superseded, first 10:00:00 # of revision 1",
		"sh.helm.release.v1.web.v2": "deployed: deployed, first 10:00:00 # of revision 2",
	})
}

// Records of another release of the name are neither written nor deleted: not the one before, not the one that is due, none that is old.
func TestHistoryOfOthersStays(t *testing.T) {
	for _, foreign := range []int{1, 2, 5} {
		a := newArchive(t, foreignRecord(foreign))
		for revision := int64(1); revision <= 6; revision++ {
			c := a.record(revision)
			taken := revision == int64(foreign) || revision == int64(foreign)+1
			if taken != (c.Reason == ReasonHistoryNameTaken) || taken != (c.Status == metav1.ConditionFalse) {
				t.Errorf("another's revision %d, revision %d: %+v", foreign, revision, c)
			}
		}
		if known, err := a.r.recordedRevision(t.Context(), a.cr, int64(foreign)); known != nil || err != nil {
			t.Errorf("another's revision %d is believed: %v, %v", foreign, known, err)
		}
		if err := a.r.deleteHistory(t.Context(), a.cr); err != nil {
			t.Fatal(err)
		}
		a.wants("of another", map[string]string{chart.StoredName("web", foreign): ": nothing"})
	}
}

// A failure is told by a condition that says what helps; nothing is taken for recorded that is not.
func TestHistoryThatFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
	timeout := errors.New("timeout")
	for name, tt := range map[string]struct {
		verb   string
		answer error
		reason string
		says   string
	}{
		"may not be written":         {"create", forbidden, ReasonHistoryForbidden, "create rolebinding middleware-operator -n shop"},
		"is not written":             {"create", timeout, ReasonHistoryFailed, "record revision 5: timeout"},
		"the one before is not read": {"get", timeout, ReasonHistoryFailed, "read revision 4: timeout"},
		"it is not marked":           {"update", timeout, ReasonHistoryFailed, "mark revision 4 as superseded: timeout"},
		"an old one is not deleted":  {"delete", timeout, ReasonHistoryFailed, "forget sh.helm.release.v1.web.v3: timeout"},
		"an old one is gone by now":  {"delete", apierrors.NewNotFound(corev1.Resource("secrets"), "x"), ReasonRecorded, "helm history"},
	} {
		a := newArchive(t)
		for revision := int64(1); revision <= 4; revision++ {
			a.record(revision)
		}
		a.refusals[tt.verb] = tt.answer
		if c := a.record(5); c.Reason != tt.reason || !strings.Contains(c.Message, tt.says) {
			t.Errorf("%s: %+v", name, c)
		}
		if c := a.record(5); c.Status != metav1.ConditionTrue {
			t.Errorf("%s, a second time: %+v", name, c)
		}
	}
	a := newArchive(t)
	a.record(1)
	for verb, says := range map[string]string{"get": "read the recorded revision: timeout", "update": "record the revision again: timeout"} {
		a.refusals[verb] = timeout
		if c := a.record(1); c.Reason != ReasonHistoryFailed || !strings.Contains(c.Message, says) {
			t.Errorf("%s: %+v", verb, c)
		}
	}
	a.cr.SetNamespace("")
	if c := a.record(1); c.Reason != ReasonHistoryClusterScoped {
		t.Errorf("a resource in no namespace: %+v", c)
	}
	if err := a.r.deleteHistory(t.Context(), a.cr); err != nil || len(a.deleted) > 0 {
		t.Errorf("its history: %v, deleted %v", err, a.deleted)
	}
	if recorded, err := a.r.recordedRevision(t.Context(), a.cr, 1); err != nil || recorded != nil {
		t.Errorf("it is asked for: %v, %v", recorded, err)
	}
}

// What an operator describes with annotations is what helm history shows.
func TestHistoryDescriptions(t *testing.T) {
	a := newArchive(t)
	a.cr.SetAnnotations(map[string]string{annotationDomain + "install-description": "first", annotationDomain + "upgrade-description": "next"})
	for revision, want := range map[int64]string{1: "first", 2: "next"} {
		a.record(revision)
		var secret corev1.Secret
		if err := a.r.live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: chart.StoredName("web", int(revision))},
			&secret); err != nil {
			t.Fatal(err)
		}
		if stored, err := chart.DecodeRelease(secret.Data["release"]); err != nil || stored.Description != want ||
			stored.Revision != int(revision) {
			t.Errorf("revision %d: %+v, %v", revision, stored, err)
		}
	}
}

// A deletion takes along what is recorded of the resource; what may not be listed is the garbage collector's.
func TestDeleteHistory(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
	for name, tt := range map[string]struct {
		verb   string
		answer error
		fails  bool
		left   int
	}{
		"deleted":             {"", nil, false, 0},
		"may not be listed":   {"list", forbidden, false, 2},
		"is not listed":       {"list", errors.New("timeout"), true, 2},
		"one is not deleted":  {"delete", errors.New("timeout"), true, 2},
		"one is gone by then": {"delete", apierrors.NewNotFound(corev1.Resource("secrets"), "x"), false, 1},
		// it is there still: the answer was made up
	} {
		a := newArchive(t)
		a.record(1)
		a.record(2)
		a.refusals[tt.verb] = tt.answer
		if err := a.r.deleteHistory(t.Context(), a.cr); (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
		if left := len(a.secrets()); left != tt.left {
			t.Errorf("%s: %d are left", name, left)
		}
	}
}

// What a revision consisted of is known from its record, unless that cannot be had.
func TestRecordedRevision(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
	for name, tt := range map[string]struct {
		revision     int64
		answer       error
		known, fails bool
	}{
		"recorded": {1, nil, true, false}, "not recorded": {2, nil, false, false}, "forbidden": {1, forbidden, false, false},
		"not read": {1, errors.New("timeout"), false, true},
	} {
		a := newArchive(t)
		a.record(1)
		a.refusals["get"] = tt.answer
		known, err := a.r.recordedRevision(t.Context(), a.cr, tt.revision)
		if (known != nil) != tt.known || (err != nil) != tt.fails || err != nil && !strings.Contains(err.Error(), "timeout") || known != nil &&
			known.Manifest != "# of revision 1\n" {
			t.Errorf("%s: %+v, %v", name, known, err)
		}
	}
}

// Whoever may write Secrets may write a record: one of what the chart itself may not make is not believed.
func TestRecordedRevisionIsChecked(t *testing.T) {
	for kind, refused := range map[string]bool{"ConfigMap": false, "ServiceAccount": true} {
		a := newArchive(t)
		a.r.namespaced = everythingNamespaced
		a.r.recordHistory(t.Context(), a.cr, &chart.Rendered{Manifest: "{apiVersion: v1, kind: " + kind + ", metadata: {name: a}}\n"}, 1)
		if _, err := a.r.recordedRevision(t.Context(), a.cr, 1); (err != nil) != refused {
			t.Errorf("a %s: %v", kind, err)
		}
	}
}

// A record that somebody has broken is told by what needs it, and written anew by what does not.
func TestHistoryOfBrokenRecords(t *testing.T) {
	a := newArchive(t)
	a.record(1)
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "shop", Name: chart.StoredName("web", 1)}
	if err := a.r.live.Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	secret.Annotations, secret.Labels, secret.Data["release"] = nil, nil, []byte("nonsense")
	if err := a.r.live.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if c := a.record(2); c.Reason != ReasonHistoryFailed {
		t.Errorf("the next revision: %+v", c)
	}
	if known, err := a.r.recordedRevision(t.Context(), a.cr, 1); known != nil || err == nil {
		t.Errorf("what it consisted of: %v, %v", known, err)
	}
	a.record(1)
	a.wants("recorded again", map[string]string{chart.StoredName("web", 1): "deployed: deployed, first 10:00:00 # of revision 1"})
	if err := a.r.live.Get(t.Context(), key, secret); err != nil || secret.Annotations[recordedByAnnotation] != recordedBy {
		t.Errorf("whose it is: %v, %v", secret.Annotations, err)
	}
}

// A process that was stopped for a while does not write over what its successor recorded: that one applied what it rendered.
func TestHistoryOfASuccessorStays(t *testing.T) {
	a := newArchive(t)
	a.record(1)
	was := a.secrets()
	a.cr.SetResourceVersion("0")
	c := a.r.recordHistory(t.Context(), a.cr, &chart.Rendered{Manifest: "# of a former process\n"}, 1)
	if c.Status != metav1.ConditionFalse || c.Reason != ReasonHistoryFailed || !strings.Contains(c.Message, "has changed since it was read") {
		t.Errorf("%+v", c)
	}
	a.wants("what the successor recorded", was)
}

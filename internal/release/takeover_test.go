// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// All records are read, a few at a time, and only the newest keeps what its objects consist of.
func TestRecordsAreReadAFewAtATime(t *testing.T) {
	cr := parse(t, "{apiVersion: a/v1, kind: Web, metadata: {name: web, namespace: shop, uid: u}}")
	stored := fake.NewClientBuilder().WithScheme(known)
	for revision := range 2*recordsAtOnce + 1 {
		record := fmt.Sprintf(`{"version":%d,"info":{},"manifest":"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: b}}"}`, revision+1)
		stored.WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: chart.StoredName("web", revision+1),
				Labels: map[string]string{"owner": "helm", "name": "web"}, OwnerReferences: []metav1.OwnerReference{{UID: types.UID("u")}}},
			Type: chart.StoredType, Data: map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString([]byte(record)))},
		})
	}
	pages := 0
	live := interceptor.NewClient(stored.Build(), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, how ...client.ListOption) error {
			options := (&client.ListOptions{}).ApplyOptions(how)
			into, all := list.(*corev1.SecretList), &corev1.SecretList{}
			if err := c.List(ctx, all, &client.ListOptions{Namespace: options.Namespace, LabelSelector: options.LabelSelector}); err != nil {
				return err
			}
			from, _ := strconv.Atoi(options.Continue)
			to := min(from+int(options.Limit), len(all.Items))
			into.Items = append(into.Items, all.Items[from:to]...)
			if pages++; to < len(all.Items) { // what an answer leaves out stays as it was
				into.Continue = strconv.Itoa(to)
			}
			return nil
		}})
	past, err := (&Reconciler{live: live}).recordedReleases(t.Context(), cr)
	if err != nil || len(past) != 2*recordsAtOnce+1 || pages != 3 {
		t.Fatalf("%d records in %d pages, %v", len(past), pages, err)
	}
	for _, recorded := range past {
		object := recorded.Rendered.Objects[0]
		_, whole := object.Object["data"]
		if whole != (recorded.Revision == len(past)) || object.GetName() != "c" || object.GetKind() != "ConfigMap" {
			t.Errorf("revision %d: %v", recorded.Revision, object)
		}
	}
}

// Former revisions are looked for only where a sign of another operator is, and not again.
func TestFindFormer(t *testing.T) {
	signed := Snapshot{Finalizers: []string{Finalizer}}
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "x", errors.New("no"))
	record := func(a *archive, revision int64, by string) {
		a.record(revision)
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: "shop", Name: chart.StoredName("web", int(revision))}
		if err := a.r.live.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		secret.Annotations = map[string]string{recordedByAnnotation: by}
		if err := a.r.live.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		seen   Snapshot
		by     string
		answer error
		want   int64
		says   string
	}{
		"a former operator's":     {signed, "", nil, 2, ""},
		"by a name in the status": {Snapshot{Deployed: Deployed{Name: "web"}}, "", nil, 2, ""},
		"ours":                    {signed, recordedBy, nil, 0, ""},
		"no sign of any":          {Snapshot{}, "", nil, 0, ""},
		"deployed by us":          {Snapshot{Finalizers: signed.Finalizers, Deployed: Deployed{Name: "web", Digest: "d"}}, "", nil, 0, ""},
		"may not be listed":       {signed, "", forbidden, 0, "kubectl create role middleware-operator-takeover -n shop"},
		"is not listed":           {signed, "", errors.New("timeout"), 0, "look for a release that another operator left"},
	} {
		a := newArchive(t, foreignRecord(9))
		record(a, 1, tt.by)
		record(a, 2, tt.by)
		a.r.namespaced = everythingNamespaced
		a.refusals["list"] = tt.answer
		former, err := a.r.findFormer(t.Context(), a.cr, tt.seen)
		if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", name, err)
		}
		if (former != nil) != (tt.want > 0) || former != nil && (former.Revision != tt.want || !former.Complete) {
			t.Errorf("%s: %+v", name, former)
		}
		if unclaimed := a.r.memory.Get("u").unclaimed; unclaimed != (name == "no sign of any") {
			t.Errorf("%s: unclaimed %t", name, unclaimed)
		}
	}
	a := newArchive(t)
	record(a, 1, "")
	a.r.memory.Update("u", func(m *memory) { m.unclaimed = true })
	if former, err := a.r.findFormer(t.Context(), a.cr, signed); former != nil || err != nil {
		t.Errorf("it was unclaimed when it was first seen: %v, %v", former, err)
	}
}

// Of a former release the objects of all revisions since the last one that was deployed may exist.
func TestFormerOf(t *testing.T) {
	revision := func(number int, status chart.Status, names ...string) *chart.StoredRelease {
		stored := &chart.StoredRelease{Revision: number, Status: status, Rendered: &chart.Rendered{}}
		for _, name := range names {
			stored.Rendered.Objects = append(stored.Rendered.Objects, parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}}"))
		}
		return stored
	}
	a := newArchive(t)
	a.r.namespaced = everythingNamespaced
	past := []*chart.StoredRelease{revision(2, chart.StatusDeployed, "b", "c"), revision(1, chart.StatusSuperseded, "a"),
		revision(4, chart.StatusPendingUpgrade, "e", "b"), revision(3, chart.StatusFailed, "d")}
	former, err := formerOf(past, func(o *unstructured.Unstructured) (apply.Ref, error) { return a.r.refOf(o, a.cr) })
	if err != nil || former.Revision != 4 || former.Complete || len(former.Objects) != 2 {
		t.Fatalf("%+v, %v", former, err)
	}
	var names []string
	for _, ref := range former.Refs {
		names = append(names, ref.Name)
	}
	if !slices.Equal(names, []string{"e", "b", "d", "c"}) {
		t.Errorf("objects that may exist: %v", names)
	}
	if former, err := formerOf(nil, nil); former != nil || err != nil {
		t.Errorf("nothing is recorded: %v, %v", former, err)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Whichever dictionary an object was compressed with, and whoever compresses others meanwhile, it is read as it was.
func TestObjectsThatWereCompressedAreReadAsTheyWere(t *testing.T) {
	one := func(kind string, n int) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprint("a", n)}}}
		o.SetAPIVersion("example.com/v1")
		o.SetKind(kind)
		switch kind {
		case "Small":
			o.Object = map[string]any{"apiVersion": "example.com/v1", "kind": kind}
		case "Large":
			o.Object["spec"] = map[string]any{"text": strings.Repeat(fmt.Sprint(n, "é"), 1<<15)}
		default:
			o.Object["spec"] = map[string]any{"text": fmt.Sprint("text of ", n), "n": int64(n)}
		}
		return o
	}
	for _, kind := range []string{"Small", "Ordinary", "Large"} {
		var group sync.WaitGroup
		for worker := range 4 {
			group.Go(func() {
				var kept []*packed
				for n := range 40 { // four times as many are several dictionaries
					p, err := pack(one(kind, 100*worker+n))
					if err != nil {
						t.Error(err)
						return
					}
					kept = append(kept, p.DeepCopyObject().(*packed))
				}
				for n, p := range kept {
					got := &unstructured.Unstructured{}
					if err := p.unpack(got); err != nil {
						t.Error(err)
					}
					if diff := cmp.Diff(one(kind, 100*worker+n).Object, got.Object); diff != "" {
						t.Errorf("%s (-want +got):\n%s", kind, diff)
					}
				}
			})
		}
		group.Wait()
	}
}

// Objects of one owner keep each string that they have in common once; a table that is full begins again, and nobody fills it with a few
// long strings.
func TestStringsAreShared(t *testing.T) {
	pod := func(n int) *corev1.Pod {
		text := func(s string) string { return strings.Clone(s) }
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a", n), Namespace: text("n"),
			Labels:          map[string]string{text("example.com/label"): text("value")},
			Annotations:     map[string]string{text("example.com/annotation"): text(strings.Repeat("a", longestShared+1))},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: text("v1"), Kind: text("Owner"), Name: text("o"), UID: "2"}}}}
	}
	strs := func(p *corev1.Pod) (all []string) {
		for key, value := range p.Labels {
			all = append(all, key, value)
		}
		for key := range p.Annotations {
			all = append(all, key)
		}
		return append(all, p.Namespace, p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind, p.OwnerReferences[0].Name)
	}
	first, second := pod(1), pod(2)
	for _, p := range []*corev1.Pod{first, second} {
		want := p.DeepCopy()
		if _, err := CompactChild(p); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for i, s := range strs(first) {
		if unsafe.StringData(s) != unsafe.StringData(strs(second)[i]) {
			t.Errorf("%q is kept twice", s)
		}
	}
	for n := range 2 * mostShared {
		shareStrings(&metav1.ObjectMeta{Namespace: fmt.Sprint("namespace-", n)})
	}
	for s := range shared.by {
		if len(s) > longestShared {
			t.Errorf("a string of %d bytes is kept", len(s))
		}
	}
	if len(shared.by) > mostShared {
		t.Errorf("%d strings are kept", len(shared.by))
	}
}

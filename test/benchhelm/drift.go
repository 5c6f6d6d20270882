// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/test/measure"
)

const (
	// driftPause is how long after a drift the next one is made, so that they meet an operator that is not busy with the last.
	driftPause = 200 * time.Millisecond
	// driftLimit is how long a drift may last: two of helm-operator's periods.
	driftLimit = 2 * time.Minute
)

// drift is a child that was deleted or edited behind the operator's back.
type drift struct {
	// repaired reports whether a state of the child is as it was.
	repaired func(*unstructured.Unstructured) bool
	since    time.Time
	lasted   time.Duration // 0 as long as it is not repaired
}

// seen notes when a child that drifted is as it was.
func (w *world) seen(which child, object *unstructured.Unstructured) {
	now := time.Now()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if d := w.awaited[which]; d != nil && d.lasted == 0 && d.repaired(object) {
		d.lasted = now.Sub(d.since)
	}
}

// drifts are the times that repairs took.
type drifts struct {
	Deletes measure.Distribution `json:"deletes"`
	Edits   measure.Distribution `json:"edits"`
}

// edits are made by turns; each names a child's field, what it is changed to, and what it must be again.
var edits = []struct {
	child
	patch    string
	repaired func(*unstructured.Unstructured) bool
}{
	{child{resource: deployments}, `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example/other:1"}]`,
		func(o *unstructured.Unstructured) bool { return container(o)["image"] == image }},
	{child{resource: services}, `[{"op":"replace","path":"/spec/ports/0/port","value":8888}]`,
		func(o *unstructured.Unstructured) bool {
			ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
			first, _ := ports[0].(map[string]any)
			return first["port"] == int64(80)
		}},
}

// makeDrifts deletes and edits a child of each of the names, by turns, and waits until all are as they were.
func (s *server) makeDrifts(ctx context.Context, w *world, names []string) (drifts, error) {
	var deleted, edited []*drift
	for i, name := range names {
		var d *drift
		var err error
		if i%2 == 0 {
			d, err = s.deleteChild(ctx, w, child{children[i/2%len(children)], name})
			deleted = append(deleted, d)
		} else {
			d, err = s.editChild(ctx, w, i/2%len(edits), name)
			edited = append(edited, d)
		}
		if err != nil {
			return drifts{}, err
		}
		time.Sleep(driftPause)
	}
	all := append(append([]*drift(nil), deleted...), edited...)
	if err := w.awaitRepairs(ctx, all); err != nil {
		return drifts{}, err
	}
	return drifts{Deletes: w.distribution(deleted), Edits: w.distribution(edited)}, nil
}

func (s *server) deleteChild(ctx context.Context, w *world, which child) (*drift, error) {
	before := w.get(which.resource, which.name)
	if before == nil {
		return nil, fmt.Errorf("%s %s is not there", which.resource.Resource, which.name)
	}
	d := w.expect(which, func(o *unstructured.Unstructured) bool { return o.GetUID() != before.GetUID() })
	return d, s.dynamic.Resource(which.resource).Namespace(w.namespace).Delete(ctx, which.name, metav1.DeleteOptions{})
}

func (s *server) editChild(ctx context.Context, w *world, which int, name string) (*drift, error) {
	edit := edits[which]
	// The state before the edit is as wanted too: only what comes after the edit counts.
	changed := false
	d := w.expect(child{edit.resource, name}, func(o *unstructured.Unstructured) bool {
		changed = changed || !edit.repaired(o)
		return changed && edit.repaired(o)
	})
	_, err := s.dynamic.Resource(edit.resource).Namespace(w.namespace).Patch(ctx, name, types.JSONPatchType, []byte(edit.patch),
		metav1.PatchOptions{})
	return d, err
}

// expect begins to wait for a repair.
func (w *world) expect(which child, repaired func(*unstructured.Unstructured) bool) *drift {
	d := &drift{repaired: repaired, since: time.Now()}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.awaited[which] = d
	return d
}

func (w *world) awaitRepairs(ctx context.Context, all []*drift) error {
	deadline := time.After(driftLimit)
	for {
		if w.distribution(all).Never == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// distribution tells how long drifts lasted.
func (w *world) distribution(list []*drift) measure.Distribution {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var seconds []float64
	for _, d := range list {
		if d.lasted > 0 {
			seconds = append(seconds, d.lasted.Seconds())
		}
	}
	return measure.Distribute(seconds, len(list)-len(seconds))
}

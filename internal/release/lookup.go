// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

// lookupLive reads for the template function lookup, past every cache. A resource's chart sees what the resource may have objects
// in: its own namespace, and what the watch adds.
func (r *Reconciler) lookupLive(ctx context.Context, cr *unstructured.Unstructured) chart.Lookup {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, err
		}
		gvk := gv.WithKind(kind)
		inNamespace, err := r.namespaced(gvk)
		if err != nil {
			return nil, fmt.Errorf("find the scope of %s: %w", gvk, err)
		}
		if err := mayLookUp(cr, r.entry.Allow, inNamespace, namespace); err != nil {
			return nil, &chart.Error{Stage: chart.StageTemplate, Path: fmt.Sprintf("lookup %q %q %q %q", apiVersion, kind, namespace, name),
				Err:    err,
				Remedy: "let the watch of this kind have it: allow.namespaces, or allow.clusterScoped"}
		}
		if name == "" {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gv.WithKind(kind + "List"))
			if err := r.live.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return nil, fmt.Errorf("list %s: %w", kind, err)
			}
			return list.UnstructuredContent(), nil
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		err = r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
		}
		return object.Object, nil
	}
}

func mayLookUp(cr *unstructured.Unstructured, allow watches.Allow, namespaced bool, namespace string) error {
	switch {
	case !namespaced && !allow.ClusterScoped:
		return errors.New("the kind is cluster-scoped")
	case namespaced && namespace == "" && !mayReach(cr, allow, "*"):
		return errors.New("it reads all namespaces")
	case namespaced && namespace != "" && !mayReach(cr, allow, namespace):
		return fmt.Errorf("it reads namespace %q", namespace)
	}
	return nil
}

// looked remembers what lookup told a rendering. As long as the same questions have the same answers, what was rendered need not be
// rendered again to know it.
type looked struct {
	// input is the digest of everything else that the rendering depends on.
	input    string
	revision int64
	asked    []question
	// digest is what the rendering was found to be.
	digest string
}

type question struct{ apiVersion, kind, namespace, name, answer string }

// note returns a lookup that remembers what it was asked and what it said.
func (l *looked) note(lookup chart.Lookup) chart.Lookup {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		found, err := lookup(apiVersion, kind, namespace, name)
		if err == nil {
			l.asked = append(l.asked, question{apiVersion, kind, namespace, name, answerDigest(found)})
		}
		return found, err
	}
}

// same asks again.
func (l *looked) same(lookup chart.Lookup) (bool, error) {
	for _, q := range l.asked {
		found, err := lookup(q.apiVersion, q.kind, q.namespace, q.name)
		if err != nil || answerDigest(found) != q.answer {
			return false, err
		}
	}
	return true, nil
}

// answerDigest is empty for what cannot be encoded, which the API server does not send.
func answerDigest(found map[string]any) string {
	encoded, err := json.Marshal(found)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return string(sum[:])
}

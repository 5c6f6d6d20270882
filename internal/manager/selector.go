// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A selector says which custom resources are this operator's. Others never come into its cache, and what is not there is not
// reconciled; so an object whose labels change is let go of when the cache has heard of it. Operators whose selectors are disjoint
// work side by side: each has a Lease of its own.

// validateSelector wants the one form that a selector has: who writes the same in two ways would have two leaders for one object.
func validateSelector(o Options) []error {
	selector, err := labels.Parse(o.Selector)
	if err != nil {
		return []error{fmt.Errorf("--selector: %q is not a label selector; give one such as tier=gold, or tier!=gold: %w",
			o.Selector, err)}
	}
	if written := canonical(selector); written != o.Selector {
		return []error{fmt.Errorf("--selector: the name of the Lease follows from it, so it is written in one way only; write %q in place of %q",
			written, o.Selector)}
	}
	if reasons := validation.IsDNS1123Subdomain(o.leaseName()); o.Selector != "" && o.LeaderElection.Enabled && len(reasons) > 0 {
		return []error{fmt.Errorf("--leader-election-id: %q cannot name a Lease; give a shorter one", o.leaseName())}
	}
	return nil
}

// canonical is the one form of a selector. It does not see that two different ones select the same.
func canonical(selector labels.Selector) string {
	requirements, _ := selector.Requirements() // in the order of their keys
	var written []string
	for _, r := range requirements {
		operator, values := r.Operator(), r.ValuesUnsorted()
		switch one := len(values) == 1; {
		case one && (operator == selection.In || operator == selection.DoubleEquals):
			operator = selection.Equals
		case one && operator == selection.NotIn:
			operator = selection.NotEquals
		}
		if same, err := labels.NewRequirement(r.Key(), operator, values); err == nil {
			r = *same
		}
		written = append(written, r.String())
	}
	slices.Sort(written)
	return strings.Join(slices.Compact(written), ",")
}

// selector is that of the custom resources; one that Validate refuses selects nothing.
func (o Options) selector() labels.Selector {
	selector, err := labels.Parse(o.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// leaseName is the name of the Lease: operators with another selector do not wait for it. The chart makes it in the same way, for the
// right to it.
func (o Options) leaseName() string {
	if o.Selector == "" {
		return o.LeaderElection.ID
	}
	const digits = 8
	digest := sha256.Sum256([]byte(o.Selector))
	return o.LeaderElection.ID + "-" + hex.EncodeToString(digest[:])[:digits]
}

// selected are the kinds whose objects are selected: those of the controllers, and those custom ones of the scheme that the API server
// serves. Kubernetes' own kinds are not: children of scaffolded kinds are read from the same cache, and have labels of their own.
func (o Options) selected(api api, controllers []controller) (map[client.Object]cache.ByObject, error) {
	if o.Selector == "" {
		return nil, nil
	}
	kubernetes := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, operatorsv2.AddToScheme} {
		if err := add(kubernetes); err != nil {
			return nil, fmt.Errorf("making the scheme: %w", err)
		}
	}
	kinds := map[schema.GroupVersionKind]bool{}
	for _, c := range controllers {
		kinds[c.gvk] = true
	}
	for kind := range api.scheme.AllKnownTypes() {
		if kubernetes.Recognizes(kind) || kind.Version == runtime.APIVersionInternal {
			continue
		}
		object, err := api.scheme.New(kind)
		if err != nil {
			return nil, fmt.Errorf("making a %s: %w", kind, err)
		}
		if _, is := object.(client.Object); is {
			kinds[kind] = true
		}
	}
	selected := map[client.Object]cache.ByObject{}
	for kind := range kinds {
		_, err := api.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("asking the API server for %s: %w", kind, err)
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		selected[object] = cache.ByObject{Label: o.selector()}
	}
	return selected, nil
}

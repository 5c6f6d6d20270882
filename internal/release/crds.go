// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/conditions"
)

// errNotServed says that a CRD was made and its kind is not served yet.
var errNotServed = errors.New("the API server does not serve it yet")

// crdInstaller makes the CRDs of a chart's crds/ as Helm does: those that are missing, before the first release, and neither
// changes nor deletes one ever. No template touches them and no resource has a say in them.
type crdInstaller struct {
	client client.Client
	crds   []*unstructured.Unstructured

	mu   sync.Mutex
	done bool
}

// install returns an error as long as one of the CRDs cannot be used.
func (i *crdInstaller) install(ctx context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.done {
		return nil
	}
	for _, crd := range i.crds {
		if err := i.ensure(ctx, crd); err != nil {
			return err
		}
	}
	i.done = true
	return nil
}

func (i *crdInstaller) ensure(ctx context.Context, crd *unstructured.Unstructured) error {
	live := crd.DeepCopy()
	err := i.client.Get(ctx, client.ObjectKeyFromObject(crd), live)
	if apierrors.IsNotFound(err) {
		err = i.client.Create(ctx, live)
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s of the chart's crds/: %w; install the CRDs yourself, or let the operator get and create customresourcedefinitions", crd.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("%s of the chart's crds/: %w", crd.GetName(), err)
	}
	if c := conditions.Find(conditions.Read(live), "Established"); c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("%s of the chart's crds/: %w", crd.GetName(), errNotServed)
	}
	return nil
}

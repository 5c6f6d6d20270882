// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/conditions"
)

// errNotServed means that CRDs were made and their kinds are not served yet.
var errNotServed = errors.New("the API server does not serve them yet")

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
	var waiting []string
	for _, crd := range i.crds {
		established, err := i.ensure(ctx, crd)
		if err != nil {
			return fmt.Errorf("%s of the chart's crds/: %w", crd.GetName(), err)
		}
		if !established {
			waiting = append(waiting, crd.GetName())
		}
	}
	if len(waiting) > 0 {
		return fmt.Errorf("%s of the chart's crds/: %w", strings.Join(waiting, ", "), errNotServed)
	}
	i.done = true
	return nil
}

// ensure makes a CRD if it is missing, and reports whether its kind is served.
func (i *crdInstaller) ensure(ctx context.Context, crd *unstructured.Unstructured) (established bool, err error) {
	live := crd.DeepCopy()
	err = i.client.Get(ctx, client.ObjectKeyFromObject(crd), live)
	if apierrors.IsNotFound(err) {
		err = i.client.Create(ctx, live)
	}
	if apierrors.IsForbidden(err) {
		return false, fmt.Errorf("%w; install the CRDs yourself, or let the operator get and create customresourcedefinitions", err)
	}
	return meta.IsStatusConditionTrue(conditions.Read(live), "Established"), err
}

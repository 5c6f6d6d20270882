// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
)

// establishWithin is how long the API server may take to serve CRDs that were just applied.
const establishWithin = 30 * time.Second

// installCRDs applies the CRDs in files and waits until the API server serves them.
func installCRDs(ctx context.Context, c client.Client, files fs.FS) error {
	paths, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return errors.New("--install-crds: this build holds no CRDs; run `make manifests` and build again")
	}
	for _, path := range paths {
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		err = installCRD(ctx, c, text)
		if apierrors.IsForbidden(err) {
			return fmt.Errorf(
				"--install-crds: %w; install the operator with the right to it (kubectl apply --server-side -k config/overlays/install-crds), "+
					"or install the CRDs yourself (kubectl apply --server-side -k config/crd) and leave the flag out", err)
		}
		if err != nil {
			return fmt.Errorf("--install-crds: %s: %w", path, err)
		}
	}
	return nil
}

func installCRD(ctx context.Context, c client.Client, text []byte) error {
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		return err
	}
	owner := client.FieldOwner(apply.FieldManager)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), owner, client.ForceOwnership); err != nil {
		return err
	}
	key := types.NamespacedName{Name: crd.GetName()}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, establishWithin, true, func(ctx context.Context) (bool, error) {
		live := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, key, live); err != nil {
			return false, err
		}
		return established(live), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s is served: %w", crd.GetName(), err)
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// served returns the controllers whose kinds the API server serves. A kind that is missing is an error unless its controller is
// optional; none at all is one too.
func served(ctx context.Context, mapper meta.RESTMapper, controllers []controller) ([]controller, error) {
	var found []controller
	var errs, missing []error
	for _, c := range controllers {
		_, err := mapper.RESTMapping(c.gvk.GroupKind(), c.gvk.Version)
		switch {
		case err == nil:
			found = append(found, c)
		case meta.IsNoMatchError(err):
			err := fmt.Errorf(
				"the API server does not know %s (%s): install its CRD (kubectl apply --server-side -k config/crd, or --install-crds), or leave the controller out (--controllers=*,-%s)",
				c.gvk.Kind, c.gvk.GroupVersion(), c.name)
			missing = append(missing, err)
			if !c.optional {
				errs = append(errs, err)
			}
		default:
			errs = append(errs, fmt.Errorf("asking the API server for %s (%s): %w", c.gvk.Kind, c.gvk.GroupVersion(), err))
		}
	}
	if len(found) == 0 && len(errs) == 0 {
		errs = missing
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, c := range controllers {
		if !slices.ContainsFunc(found, func(f controller) bool { return f.name == c.name }) {
			log.FromContext(ctx).Info("A controller does not run because its CRD is not installed; install it and restart the operator to have it",
				"controller", c.name)
		}
	}
	return found, nil
}

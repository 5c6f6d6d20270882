// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
)

// applyCertificate has cert-manager make the certificate of the instances, or ends that. The Services come first: while somebody else
// has the name of one, no certificate is asked for that holds it. cert-manager writes over a Secret that is there, so one is to be meant
// for it.
func (a *Actor) applyCertificate(ctx context.Context, s Subject) error {
	if s.Certificate == nil {
		if s.NoCertificate == nil {
			return nil
		}
		_, err := a.Applier.Prune(ctx, s.Cluster, []apply.Ref{*s.NoCertificate}, nil)
		return err
	}
	name := s.Cluster.CertificateName()
	var secret corev1.Secret
	err := a.Client.Get(ctx, client.ObjectKey{Namespace: s.Cluster.Namespace, Name: name}, &secret)
	switch {
	case err == nil && secret.Labels[v1alpha1.LabelTLS] != "true":
		return &StallError{Cause: "NameTaken", Message: fmt.Sprintf(
			"spec.tls.issuerRef: Secret %s exists, and cert-manager would write over it: "+
				"delete it; or, if that is what is wanted: kubectl label secret %s --namespace %s %s=true", name, name, s.Cluster.Namespace,
			v1alpha1.LabelTLS)}
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("look for Secret %s: %w", name, err)
	}
	var objects []*unstructured.Unstructured
	for _, child := range s.Children {
		if child.GetKind() == "Service" && !Outside(s.Cluster, child.GetName()) {
			objects = append(objects, child)
		}
	}
	if _, err := a.Applier.Apply(ctx, s.Cluster, append(objects, s.Certificate)); err != nil {
		return asStall(err)
	}
	return nil
}

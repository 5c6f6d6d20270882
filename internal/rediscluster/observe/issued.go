// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// longestSaid is how much is told of what cert-manager says of a Certificate, in bytes.
const longestSaid = 400

// issuing says what becomes of the certificate that cert-manager is to make: Certificates tell nobody here of a change, so it is asked only
// while the Secret is not in order. waits reports whether it may come by itself.
func (o *Observer) issuing(ctx context.Context, cluster *v1alpha1.RedisCluster) (says string, waits bool, _ error) {
	name := cluster.CertificateName()
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(values.Certificate)
	switch err := o.Secrets.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, certificate); {
	case meta.IsNoMatchError(err):
		return "spec.tls.issuerRef: " + values.NoCertManager, false, nil
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("spec.tls.issuerRef: Certificate %s does not exist yet", name), true, nil
	case apierrors.IsForbidden(err):
		return fmt.Sprintf("spec.tls.issuerRef: the operator may not read Certificate %s (%v): install the roles of its version", name, err),
			false, nil
	case err != nil:
		return "", false, fmt.Errorf("read Certificate %s: %w", name, err)
	}
	return fmt.Sprintf("spec.tls.issuerRef: %s (kubectl describe certificate %s --namespace %s)", readiness(certificate), name,
		cluster.Namespace), true, nil
}

// readiness is what cert-manager says of a Certificate.
func readiness(certificate *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(certificate.Object, "status", "conditions") // what is not one says nothing
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition["type"] != "Ready" {
			continue
		}
		message, _ := condition["message"].(string)
		if condition["status"] == "True" {
			return fmt.Sprintf("Certificate %s is ready: %s", certificate.GetName(), excerpt.Of(message, longestSaid))
		}
		return fmt.Sprintf("Certificate %s is not ready: %s", certificate.GetName(), excerpt.Of(message, longestSaid))
	}
	return fmt.Sprintf("cert-manager has not said anything of Certificate %s yet; if it does not, look whether it runs", certificate.GetName())
}

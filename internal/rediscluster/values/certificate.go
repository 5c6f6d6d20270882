// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Certificate is cert-manager's kind.
var Certificate = schema.GroupVersionKind{Group: v1alpha1.IssuerGroup, Version: "v1", Kind: "Certificate"}

// NoCertManager says that there is none, and what helps.
const NoCertManager = "this cluster serves no Certificates of cert-manager.io/v1: install cert-manager, or name a Secret with a certificate " +
	"in spec.tls.secretName instead"

// CertificateOf are the values of the certificate that cert-manager is asked for; nil without an issuer. domain is the DNS domain of the
// Kubernetes cluster; empty when it is not known.
func CertificateOf(cr *v1alpha1.RedisCluster, domain string) map[string]any {
	issuer := cr.Issuer()
	if issuer == nil {
		return nil
	}
	var names []any
	for _, host := range []string{"*." + cr.HeadlessServiceName(), cr.Name} {
		name := fmt.Sprintf("%s.%s.svc", host, cr.Namespace)
		names = append(names, name)
		if domain != "" {
			names = append(names, name+"."+domain)
		}
	}
	v := map[string]any{"dnsNames": names,
		"issuerRef": map[string]any{"name": issuer.Name, "kind": string(issuer.Kind), "group": issuer.Group}}
	if d := cr.Spec.TLS.Duration; d != nil {
		v["duration"] = d.Duration.String()
	}
	return v
}

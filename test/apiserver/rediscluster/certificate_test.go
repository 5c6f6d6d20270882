// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/values"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

func certificateOf(cluster *v1alpha1.RedisCluster) *unstructured.Unstructured {
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(values.Certificate)
	certificate.SetNamespace(cluster.Namespace)
	certificate.SetName(cluster.CertificateName())
	return certificate
}

// A cluster with an issuer waits for cert-manager, as long as that is not installed and as long as nothing is signed, and says so; then it
// forms with the certificate. A change of what is asked for is asked for. The Certificate goes when it is not asked for any more.
//
// It is not parallel: it begins without cert-manager, which others install.
func TestCertificateOfAnIssuer(t *testing.T) {
	namespace := newNamespace(t)
	kubelet := startKubelet(t, namespace)
	signs := startIssuer(t, namespace)
	signs.paused.Store(true)
	mgr, err := newOperator(operatorConfig(), namespace, signs.dial(kubelet.world.Dial))
	check(t, err)
	environment.Start(t, mgr)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.TLS = &v1alpha1.TLS{IssuerRef: &v1alpha1.IssuerRef{Name: "own"}}
	create(t, cluster)
	awaitStalled(t, cluster, "CertificateUnavailable", "spec.tls.issuerRef: "+values.NoCertManager)

	installCertManager(t)
	inUse := func(reason, message string) string {
		get(t, cluster)
		c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionCertificateInUse)
		if c == nil || c.Reason != reason || !strings.Contains(c.Message, message) {
			return "CertificateInUse is " + conditionText(c)
		}
		return ""
	}
	eventually(t, "it says what cert-manager says", func() string {
		return inUse("NotIssued", "Certificate cache-tls is not ready: Issuing certificate as Secret does not exist")
	})
	signs.paused.Store(false)
	awaitWhole(t, cluster)
	eventually(t, "the certificate is in use", func() string { return inUse("InUse", "") })
	certificate := certificateOf(cluster)
	if !get(t, certificate) || !metav1.IsControlledBy(certificate, cluster) {
		t.Fatalf("Certificate: %v", certificate)
	}
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	want := []string{"*.cache-nodes." + namespace + ".svc", "*.cache-nodes." + namespace + ".svc.cluster.example",
		"cache." + namespace + ".svc", "cache." + namespace + ".svc.cluster.example"}
	if !slices.Equal(names, want) {
		t.Errorf("dnsNames are %v, want %v", names, want)
	}

	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.TLS.Duration = &metav1.Duration{Duration: 48 * 3600e9}
	})
	eventually(t, "it is asked for two days", func() string {
		get(t, certificate)
		if is, _, _ := unstructured.NestedString(certificate.Object, "spec", "duration"); is != "48h0m0s" {
			return "its duration is " + is
		}
		return ""
	})
	awaitWhole(t, cluster)

	// No webhook is here that would ask for a CA beside: the Secret stays the same.
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretName: "cache-tls"} })
	awaitGone(t, certificate)
	eventually(t, "nothing of it is left in the status", func() string {
		if get(t, cluster); cluster.Status.Certificate != "" {
			return cluster.Status.Certificate
		}
		return ""
	})
	awaitWhole(t, cluster)
}

func conditionText(c *metav1.Condition) string {
	if c == nil {
		return "unknown"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// What is somebody else's stays theirs: no certificate is asked for that would hold the name of their Service, or be written over their
// Secret, and their Certificate is not changed.
func TestCertificateTakesNothing(t *testing.T) {
	installCertManager(t)
	for name, one := range map[string]struct {
		theirs  func(t *testing.T, cluster *v1alpha1.RedisCluster)
		message string
	}{
		"Service": {func(t *testing.T, c *v1alpha1.RedisCluster) {
			create(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		}, "Service"},
		"Secret": {func(t *testing.T, c *v1alpha1.RedisCluster) {
			create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.CertificateName()}})
		}, "spec.tls.issuerRef: Secret cache-tls exists, and cert-manager would write over it"},
		"Certificate": {func(t *testing.T, c *v1alpha1.RedisCluster) {
			certificate := certificateOf(c)
			certificate.Object["spec"] = map[string]any{"secretName": "else", "issuerRef": map[string]any{"name": "a"},
				"dnsNames": []any{"a.example"}}
			create(t, certificate)
		}, "cache-tls"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			kubelet := startKubelet(t, namespace)
			startOperator(t, namespace, kubelet.world)
			cluster := newCluster(namespace, "cache")
			cluster.Spec.TLS = &v1alpha1.TLS{IssuerRef: &v1alpha1.IssuerRef{Name: "own"}}
			one.theirs(t, cluster)
			create(t, cluster)
			awaitStalled(t, cluster, "NameTaken", one.message)
			certificate := certificateOf(cluster)
			if get(t, certificate) && metav1.IsControlledBy(certificate, cluster) {
				t.Errorf("a certificate was asked for: %v", certificate.Object["spec"])
			}
		})
	}
}

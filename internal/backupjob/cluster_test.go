// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Programs show the certificate of the instances from before those want one until none does any more, and are given no other Secret than
// those that were looked at.
func TestLoginShowsACertificate(t *testing.T) {
	const required = v1alpha1.ClientCertificatesRequired
	for name, tt := range map[string]struct {
		spec  *v1alpha1.TLS
		is    v1alpha1.ClientCertificates
		shows bool
	}{
		"no TLS":       {},
		"optional":     {spec: &v1alpha1.TLS{SecretName: "own", CASecretName: "ca"}},
		"required":     {spec: &v1alpha1.TLS{SecretName: "own", CASecretName: "ca", ClientCertificates: required}, shows: true},
		"one Secret":   {spec: &v1alpha1.TLS{SecretName: "own", ClientCertificates: required}, shows: true},
		"not any more": {spec: &v1alpha1.TLS{SecretName: "own"}, is: required, shows: true},
	} {
		c := &v1alpha1.RedisCluster{Spec: v1alpha1.RedisClusterSpec{TLS: tt.spec}}
		if tt.spec != nil {
			c.Status.TLS = &v1alpha1.TLSStatus{Mode: v1alpha1.TLSRequired, ClientCertificates: tt.is}
		}
		pod := corev1.PodSpec{Containers: []corev1.Container{{Name: Container, Args: Login(c)}}}
		MountLogin(&pod, c)
		if Shows(pod) != tt.shows {
			t.Errorf("%s: %v", name, pod.Containers[0].Args)
		}
		var mounted, needed []string
		for _, v := range pod.Volumes {
			if v.Name != "login" {
				mounted = append(mounted, v.Secret.SecretName)
			}
		}
		if tt.spec != nil {
			for _, n := range NeedsOfTLS(c, "spec.tls") {
				needed = append(needed, n.Name)
			}
		}
		slices.Sort(mounted)
		slices.Sort(needed)
		if !slices.Equal(slices.Compact(mounted), needed) {
			t.Errorf("%s: %v are mounted, and %v looked at", name, mounted, needed)
		}
	}
}

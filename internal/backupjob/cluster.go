// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

// Where files are in the pod.
const (
	loginFile, trustFileOfCluster = "/etc/backup/login/password", "/etc/backup/trust/ca.crt"
	shownFile, shownKeyFile       = "/etc/backup/cert/tls.crt", "/etc/backup/key/tls.key"
)

// clientCertificate is the argument that names the certificate that instances are shown.
const clientCertificate = "--client-cert-file=" + shownFile

// Show are the arguments that have the program show instances a certificate.
func Show() []string { return []string{clientCertificate, "--client-key-file=" + shownKeyFile} }

// Shows reports whether a pod's program shows instances a certificate.
func Shows(pod corev1.PodSpec) bool {
	c := Of(pod)
	return c != nil && slices.Contains(c.Args, clientCertificate)
}

// MountShown gives the container the files that Show speaks of.
func MountShown(pod *corev1.PodSpec, secret string) {
	Mount(pod, "shown-cert", secret, corev1.TLSCertKey, shownFile)
	Mount(pod, "shown-key", secret, corev1.TLSPrivateKeyKey, shownKeyFile)
}

// NeedsOfTLS are the Secrets with certificates that a client of a cluster is given, which a field leads to.
func NeedsOfTLS(cluster *v1alpha1.RedisCluster, field string) []access.Needed {
	needed := []access.Needed{{Field: field, Name: cluster.TLSTrustSecretName(), Label: v1alpha1.LabelTLS}}
	if own := cluster.TLSSecretName(); cluster.ShowsCertificate() && own != needed[0].Name {
		needed = append(needed, access.Needed{Field: field, Name: own, Label: v1alpha1.LabelTLS})
	}
	return needed
}

// Login are the arguments that say how to log in to the instances of a cluster.
func Login(cluster *v1alpha1.RedisCluster) (args []string) {
	if cluster.AuthEnabled() {
		args = append(args, "--user="+access.BackupUser, "--password-file="+loginFile)
	}
	if _, secured := cluster.ClientTLS(); secured {
		args = append(args, "--ca-file="+trustFileOfCluster, "--server-name="+cluster.TLSServerName())
		if cluster.ShowsCertificate() {
			args = append(args, Show()...)
		}
	}
	return args
}

// MountLogin gives the container the files that Login speaks of.
func MountLogin(pod *corev1.PodSpec, cluster *v1alpha1.RedisCluster) {
	if cluster.AuthEnabled() {
		Mount(pod, "login", cluster.AuthSecretName(), access.KeyBackup, loginFile)
	}
	if _, secured := cluster.ClientTLS(); secured {
		Mount(pod, "trust", cluster.TLSTrustSecretName(), KeyTrusted, trustFileOfCluster)
		if cluster.ShowsCertificate() {
			MountShown(pod, cluster.TLSSecretName())
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

// Where files are in the pod.
const loginFile, trustFileOfCluster = "/etc/backup/login/password", "/etc/backup/trust/ca.crt"

// Login are the arguments that say how to log in to the instances of a cluster.
func Login(cluster *v1alpha1.RedisCluster) (args []string) {
	if cluster.AuthEnabled() {
		args = append(args, "--user="+access.BackupUser, "--password-file="+loginFile)
	}
	if _, secured := cluster.ClientTLS(); secured {
		args = append(args, "--ca-file="+trustFileOfCluster, "--server-name="+cluster.TLSServerName())
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
	}
}

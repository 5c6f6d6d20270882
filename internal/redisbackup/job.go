// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"net/url"
	"path"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

const (
	// container is the one that takes the backup or deletes it, and program what it runs in the operator's image: its commands are take
	// and erase.
	container = "backup"
	program   = "/backup"
	take      = "take"
	erase     = "delete"
	// requestFlag comes before the RedisBackup's UID in the arguments of its pods.
	requestFlag = "--request="
	// retries is how often a pod that failed is followed by another one.
	retries = 2
	// erasing is how long a deletion may take. The next one goes on where it was, so that the end is reached.
	erasing = 10 * time.Minute
	// stopping is how long a pod may take to delete what it wrote when it is stopped, in seconds. The program takes a minute at most.
	stopping = 70
	// mostSeeds are addresses that the pod is given. One that answers is enough.
	mostSeeds = 6
	// Where files are in the pod.
	loginDir, trustDir, storeDir = "/etc/backup/login", "/etc/backup/trust", "/etc/backup/store"
	loginFile, trustFile         = "password", "ca.crt"
	// keyTrusted is the key of trusted certificates in Secrets.
	keyTrusted = "ca.crt"
)

// Keys of the Secret of a store's credentials, which are the variables of the pod, too.
const (
	keyAccessID     = "AWS_ACCESS_KEY_ID"
	keyAccessSecret = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // the name of a key, not a credential
	keySession      = "AWS_SESSION_TOKEN"     //nolint:gosec // the name of a key, not a credential
)

// job is the Job that takes a backup. What the object's author wrote becomes arguments, each of one piece, and no shell sees it.
func job(s *Snapshot, image string) *batchv1.Job {
	backup, cluster := s.Backup, s.Cluster
	made := jobOf(backup, backup.JobName(), image, arguments(backup, cluster))
	pod := &made.Spec.Template.Spec
	if cluster.AuthEnabled() {
		mount(pod, "login", cluster.AuthSecretName(), access.KeyBackup, loginDir, loginFile)
	}
	if cluster.Spec.TLS != nil {
		mount(pod, "trust", cluster.TLSTrustSecretName(), keyTrusted, trustDir, trustFile)
	}
	pod.Containers[0].Resources = resources(int64(cluster.Status.Shards))
	made.Spec.ActiveDeadlineSeconds = ptr.To(max(1, int64(backup.Deadline().Sub(s.Now)/time.Second)))
	return made
}

// deletionJob is the Job that deletes a backup from its store. It needs nothing of the RedisCluster, which may be gone. No garbage
// collector that deletes a RedisBackup in the foreground is to delete it first.
func deletionJob(backup *v1alpha1.RedisBackup, image string) *batchv1.Job {
	made := jobOf(backup, backup.DeletionJobName(), image, []string{erase, backup.Name, "--store=" + storeURL(backup),
		requestFlag + string(backup.UID), "--report-file=" + corev1.TerminationMessagePathDefault})
	made.OwnerReferences[0].BlockOwnerDeletion = ptr.To(false)
	made.Spec.ActiveDeadlineSeconds = ptr.To(int64(erasing / time.Second))
	return made
}

// jobOf is what both Jobs have in common.
func jobOf(backup *v1alpha1.RedisBackup, name, image string, args []string) *batchv1.Job {
	labels := map[string]string{
		"app.kubernetes.io/name": "redisbackup", "app.kubernetes.io/instance": backup.Name, apply.ManagedByLabel: apply.ManagedByValue,
	}
	pod := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		AutomountServiceAccountToken:  ptr.To(false),
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](stopping),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: image, Command: []string{program}, Args: args, Env: variables(backup.Spec.Store.S3), Resources: resources(0),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
	if name := backup.Spec.Store.S3.CASecretName; name != "" {
		mount(&pod, "store", name, keyTrusted, storeDir, trustFile)
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(backup, kind)}},
		Spec: batchv1.JobSpec{
			BackoffLimit:         ptr.To[int32](retries),
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	}
}

// mount shows one key of a Secret to the container.
func mount(pod *corev1.PodSpec, name, secret, key, dir, file string) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: []corev1.KeyToPath{{Key: key, Path: file}}}}})
	c := &pod.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: dir, ReadOnly: true})
}

func arguments(backup *v1alpha1.RedisBackup, cluster *v1alpha1.RedisCluster) []string {
	args := []string{take, backup.Name, "--store=" + storeURL(backup), "--cluster=" + cluster.Namespace + "/" + cluster.Name,
		requestFlag + string(backup.UID), "--slots-stay", "--report-file=" + corev1.TerminationMessagePathDefault}
	for _, node := range seeds(cluster) {
		args = append(args, "--from="+node.Instance)
		if node.NodeID != "" {
			args = append(args, "--node="+node.NodeID)
		}
	}
	if cluster.AuthEnabled() {
		args = append(args, "--user="+access.BackupUser, "--password-file="+path.Join(loginDir, loginFile))
	}
	if cluster.Spec.TLS != nil {
		args = append(args, "--ca-file="+path.Join(trustDir, trustFile), "--server-name="+cluster.TLSServerName())
	}
	for _, recipient := range backup.Spec.Recipients {
		args = append(args, "--recipient="+recipient)
	}
	return args
}

// seeds are instances that serve, by their addresses and identities: somebody else may have an address when the pod starts.
func seeds(cluster *v1alpha1.RedisCluster) []v1alpha1.NodeStatus {
	var list []v1alpha1.NodeStatus
	for _, node := range cluster.Status.Nodes {
		if node.Status == metav1.ConditionTrue && node.Instance != "" && len(list) < mostSeeds {
			list = append(list, node)
		}
	}
	return list
}

// folder is where the backups of a cluster lie in the bucket: no two clusters share one.
func folder(backup *v1alpha1.RedisBackup) string {
	return path.Join(backup.Spec.Store.S3.Prefix, backup.Namespace, backup.Spec.Cluster) + "/"
}

func location(backup *v1alpha1.RedisBackup) string {
	return "s3://" + backup.Spec.Store.S3.Bucket + "/" + folder(backup) + backup.Name
}

func storeURL(backup *v1alpha1.RedisBackup) string {
	s3 := backup.Spec.Store.S3
	query := url.Values{"region": {s3.Region}, "prefix": {folder(backup)}}
	if s3.Endpoint != "" {
		query.Set("endpoint", s3.Endpoint)
		query.Set("use_path_style", "true")
	}
	return (&url.URL{Scheme: "s3", Host: s3.Bucket, RawQuery: query.Encode()}).String()
}

// variables are what the S3 client reads: three keys by name, and no other of the Secret.
func variables(s3 *v1alpha1.S3Store) []corev1.EnvVar {
	of := func(key string, optional bool) corev1.EnvVar {
		return corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: s3.CredentialsSecretName}, Key: key, Optional: ptr.To(optional)}}}
	}
	list := []corev1.EnvVar{of(keyAccessID, false), of(keyAccessSecret, false), of(keySession, true),
		{Name: "AWS_EC2_METADATA_DISABLED", Value: "true"}} // the node's own identity is not the author's
	if s3.CASecretName != "" {
		list = append(list, corev1.EnvVar{Name: "AWS_CA_BUNDLE", Value: path.Join(storeDir, trustFile)})
	}
	return list
}

// resources grow with the shards, whose streams are all open at once: 16 MiB of each wait to be sent, as much is on its way, and some more.
func resources(shards int64) corev1.ResourceRequirements {
	const base, each = 256 << 20, 48 << 20
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(base+shards*each, resource.BinarySI)},
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backupjob is what Jobs that run the backup program have in common: the container and its store, and reading what a pod of theirs
// said at its end.
package backupjob

import (
	"net/url"
	"path"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

const (
	// Container is the one that runs the program, and Program what it runs in the operator's image.
	Container = "backup"
	Program   = "/backup"
	// Take, Restore and Delete are its commands for backups.
	Take    = "take"
	Restore = "restore"
	Delete  = "delete"
	// Follow prepares an instance to follow a server outside, Relay is what it follows.
	Follow = "follow"
	Relay  = "relay"
	// requestFlag comes before the UID of the object that a pod works for.
	requestFlag = "--request="
	// storeDir is where the certificates of a store are in the pod, KeyTrusted what they are called in Secrets.
	storeDir, trustFile = "/etc/backup/store", "ca.crt"
	KeyTrusted          = "ca.crt"
)

// Keys of the Secret of a store's credentials, which are the variables of the pod, too.
const (
	keyAccessID     = "AWS_ACCESS_KEY_ID"
	keyAccessSecret = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // the name of a key, not a credential
	keySession      = "AWS_SESSION_TOKEN"     //nolint:gosec // the name of a key, not a credential
)

// Request is the argument that says whom a pod works for.
func Request(uid string) string { return requestFlag + uid }

// Store is the argument that says where the backups of a cluster lie.
func Store(l v1alpha1.BackupLocation) string {
	s3 := l.Store.S3
	query := url.Values{"region": {s3.Region}, "prefix": {l.Folder()}}
	if s3.Endpoint != "" {
		query.Set("endpoint", s3.Endpoint)
		query.Set("use_path_style", "true")
	}
	return "--store=" + (&url.URL{Scheme: "s3", Host: s3.Bucket, RawQuery: query.Encode()}).String()
}

// Add adds the container to a pod, with what its store needs, if it has one. It has no shell, and each argument is of one piece.
func Add(pod *corev1.PodSpec, image string, store v1alpha1.BackupStore, resources corev1.ResourceRequirements, args ...string) {
	c := corev1.Container{
		Name: Container, Image: image, Command: []string{Program}, Resources: resources, Env: variables(store.S3),
		Args: append(args, "--report-file="+corev1.TerminationMessagePathDefault),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	pod.Containers = append(pod.Containers, c)
	if store.S3 != nil && store.S3.CASecretName != "" {
		Mount(pod, "store", store.S3.CASecretName, KeyTrusted, path.Join(storeDir, trustFile))
	}
}

// Mount gives the container one key of a Secret, as a file.
func Mount(pod *corev1.PodSpec, name, secret, key, file string) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: []corev1.KeyToPath{{Key: key, Path: path.Base(file)}}}}})
	c := Of(*pod)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path.Dir(file), ReadOnly: true})
}

// Of is the container that runs the program; nil: the pod has none.
func Of(pod corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == Container {
			return &pod.Containers[i]
		}
	}
	return nil
}

// variables are what the S3 client reads: three keys by name, and no other of the Secret.
func variables(s3 *v1alpha1.S3Store) []corev1.EnvVar {
	if s3 == nil {
		return nil
	}
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

// Ended reports whether a Job is complete or has failed.
func Ended(job *batchv1.Job) bool {
	return Condition(job, batchv1.JobComplete) != nil || Condition(job, batchv1.JobFailed) != nil
}

// Condition is a condition of a Job that is True; nil: it is not.
func Condition(job *batchv1.Job, condition batchv1.JobConditionType) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if c.Type == condition && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

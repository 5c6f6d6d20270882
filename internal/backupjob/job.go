// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backupjob is what pods that run the backup program have in common: the container, its store and how it reaches a cluster; and, of
// Jobs, reading what a pod of theirs said at its end.
package backupjob

import (
	"net"
	"path"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

const (
	// Container is the one that runs the program, and Program what it runs in the operator's image.
	Container = "backup"
	Program   = "/backup"
	// Take, Archive, Restore and Delete are its commands for backups.
	Take    = "take"
	Archive = "archive"
	Restore = "restore"
	Delete  = "delete"
	// Follow prepares an instance to follow a server outside, Relay is what it follows.
	Follow = "follow"
	Relay  = "relay"
	// Gateway leads clients outside to instances.
	Gateway = "gateway"
	// requestFlag comes before the UID of the object that a pod works for.
	requestFlag = "--request="
	// KeyTrusted is what certificates to trust are called in Secrets.
	KeyTrusted = "ca.crt"
)

// masterFlag comes before what an instance is to follow.
const masterFlag = "--master="

// Master is the argument that says what an instance is to follow, IP:PORT.
func Master(address string) string { return masterFlag + address }

// MasterIP is the IP of what a pod says that an instance is to follow; empty: it says nothing.
func MasterIP(pod corev1.PodSpec) string {
	ip, _, _ := net.SplitHostPort(argument(pod, masterFlag)) // empty if it is none
	return ip
}

// fromFlag comes before where a server outside is.
const fromFlag = "--from="

// From is the argument that says where a server outside is, HOST:PORT.
func From(address string) string { return fromFlag + address }

// FromAddress is what a pod says of that; empty: nothing.
func FromAddress(pod corev1.PodSpec) string { return argument(pod, fromFlag) }

func argument(pod corev1.PodSpec, flag string) string {
	c := Of(pod)
	if c == nil {
		return ""
	}
	for _, arg := range c.Args {
		if value, is := strings.CutPrefix(arg, flag); is {
			return value
		}
	}
	return ""
}

// Request is the argument that says whom a pod works for.
func Request(uid string) string { return requestFlag + uid }

// Rate are the arguments that limit the bytes a second of a pod, which has its share of a limit; none without one.
func Rate(limit v1alpha1.ByteRate, shares int) []string {
	bytes, known := limit.Value()
	if !known {
		return nil
	}
	return []string{"--max-bytes-per-second=" + strconv.FormatInt(max(bytes/int64(max(shares, 1)), 1), 10)}
}

// Add adds the container to a pod, with what its store needs, if it has one. At its end it says what became of its work.
func Add(pod *corev1.PodSpec, image string, store v1alpha1.BackupStore, resources corev1.ResourceRequirements, args ...string) {
	AddUnending(pod, image, store, resources, append(args, "--report-file="+corev1.TerminationMessagePathDefault)...)
}

// AddUnending is Add for a command that runs until it is stopped. The container has no shell, and each argument is of one piece.
func AddUnending(pod *corev1.PodSpec, image string, store v1alpha1.BackupStore, resources corev1.ResourceRequirements, args ...string) {
	c := corev1.Container{
		Name: Container, Image: image, Command: []string{Program}, Resources: resources, Env: variables(store), Args: args,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	pod.Containers = append(pod.Containers, c)
	lead(pod, store, args[0] == Restore)
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

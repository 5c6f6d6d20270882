// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"net"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/backupjob"
)

const (
	// retries is how often a pod that failed is followed by another one.
	retries = 2
	// erasing is how long a deletion may take. The next one goes on where it was, so that the end is reached.
	erasing = 10 * time.Minute
	// stopping is how long a pod may take to delete what it wrote when it is stopped, in seconds. The program takes a minute at most.
	stopping = 70
	// mostSeeds are addresses that the pod is given. One that answers is enough.
	mostSeeds = 6
)

// job is the Job that takes a backup. What the object's author wrote becomes arguments, each of one piece, and no shell sees it.
func job(s *Snapshot, image string) *batchv1.Job {
	backup, cluster := s.Backup, s.Cluster
	made := jobOf(backup, backup.JobName(), image, int64(cluster.Status.Shards), arguments(backup, cluster)...)
	backupjob.MountLogin(&made.Spec.Template.Spec, cluster)
	made.Spec.ActiveDeadlineSeconds = ptr.To(max(1, int64(backup.Deadline().Sub(s.Now)/time.Second)))
	return made
}

// deletionJob is the Job that deletes a backup from its store. It needs nothing of the RedisCluster, which may be gone. No garbage
// collector that deletes a RedisBackup in the foreground is to delete it first.
func deletionJob(backup *v1alpha1.RedisBackup, image string) *batchv1.Job {
	made := jobOf(backup, backup.DeletionJobName(), image, 0,
		backupjob.Delete, backup.Name, backupjob.Store(backup.Location()), backupjob.Request(string(backup.UID)))
	made.OwnerReferences[0].BlockOwnerDeletion = ptr.To(false)
	made.Spec.ActiveDeadlineSeconds = ptr.To(int64(erasing / time.Second))
	return made
}

// jobOf is what both Jobs have in common.
func jobOf(backup *v1alpha1.RedisBackup, name, image string, shards int64, args ...string) *batchv1.Job {
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
	}
	backupjob.Add(&pod, image, backup.Spec.Store, resources(shards), args...)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(backup, kind)}},
		Spec: batchv1.JobSpec{
			BackoffLimit:         ptr.To[int32](retries),
			PodReplacementPolicy: ptr.To(batchv1.Failed),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: backupjob.Labels(backup.Spec.Store, labels)}, Spec: pod},
		},
	}
}

func arguments(backup *v1alpha1.RedisBackup, cluster *v1alpha1.RedisCluster) []string {
	args := []string{backupjob.Take, backup.Name, backupjob.Store(backup.Location()), "--cluster=" + cluster.Namespace + "/" + cluster.Name,
		backupjob.Request(string(backup.UID)), backupjob.Listen(), "--slots-stay"}
	for i, port := range ports(cluster) {
		for _, node := range seeds(cluster) {
			host, _, err := net.SplitHostPort(node.Instance)
			if err != nil {
				continue // it is the operator's own word
			}
			args = append(args, backupjob.From(net.JoinHostPort(host, strconv.Itoa(int(port)))))
			if node.NodeID != "" && i == 0 {
				args = append(args, "--node="+node.NodeID)
			}
		}
	}
	args = append(args, backupjob.Login(cluster)...)
	for _, recipient := range backup.Spec.Recipients {
		args = append(args, "--recipient="+recipient)
	}
	return append(args, backupjob.Rate(backup.Spec.MaxBytesPerSecond, 1)...)
}

// ports are those at which an instance may take the connections of a backup, the likeliest first: while TLS is switched, instances differ,
// and where the Service leads to is not where each of them listens.
func ports(cluster *v1alpha1.RedisCluster) []int32 {
	port, secured := cluster.ClientTLS()
	switch {
	case !secured:
		return []int32{port}
	case port == v1alpha1.PortRedisTLS:
		return []int32{port, v1alpha1.PortRedis}
	}
	return []int32{port, v1alpha1.PortRedisTLS}
}

// fit leaves out of a Job what the platform gives its pods.
func (r *reconciler) fit(job *batchv1.Job) *batchv1.Job {
	if r.platformUserIDs {
		backupjob.LeaveGroup(&job.Spec.Template.Spec)
	}
	return job
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

// resources grow with the shards, whose streams are all open at once: 16 MiB of each wait to be sent, as much is on its way, and some more.
func resources(shards int64) corev1.ResourceRequirements {
	const base, each = 256 << 20, 48 << 20
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(base+shards*each, resource.BinarySI)},
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
)

// Archive returns the values of the pod that writes the archive of a cluster, from an image that has the program. shards is how many there
// are, or are to be. The pod begins at the name of the cluster's Service: addresses of instances change, and the template would with them.
func Archive(cr *v1alpha1.RedisCluster, image string, shards int) map[string]any {
	archive, backup, location := cr.Archive(), cr.Spec.Backup, cr.ArchiveLocation()
	args := []string{backupjob.Archive, location.Name, backupjob.Store(location), "--cluster=" + cr.Namespace + "/" + cr.Name,
		backupjob.Request(string(cr.UID)), backupjob.From(cr.ServiceAddress()), backupjob.Listen()}
	for _, flag := range []struct {
		name string
		is   *metav1.Duration
	}{
		{"interval", archive.Interval}, {"mark-interval", archive.MarkInterval}, {"base-interval", archive.BaseInterval},
		{"keep", archive.Keep}, {"objective", archive.Objective},
	} {
		if flag.is != nil {
			args = append(args, "--"+flag.name+"="+flag.is.Duration.String())
		}
	}
	args = append(append(args, backupjob.Rate(backup.MaxBytesPerSecond, 1)...), backupjob.Login(cr)...)
	for _, recipient := range backup.Recipients {
		args = append(args, "--recipient="+recipient)
	}
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false),
		EnableServiceLinks:           ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	backupjob.AddUnending(&pod, image, backup.Store, archiveResources(shards), args...)
	backupjob.MountLogin(&pod, cr)
	c := backupjob.Of(pod)
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	c.Ports = []corev1.ContainerPort{{Name: "status", ContainerPort: backupjob.StatusPort, Protocol: corev1.ProtocolTCP}}
	asked := func(path string) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("status")}}
	}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: asked("/readyz"), PeriodSeconds: 5, TimeoutSeconds: 2, FailureThreshold: 1}
	values, labels := map[string]any{"pod": unstructured(&pod)}, map[string]any{}
	for key, value := range backupjob.Labels(backup.Store, nil) {
		labels[key] = value
	}
	if len(labels) > 0 {
		values["labels"] = labels
	}
	return values
}

// archiveResources grow with the shards: of each, five segments of 8 MiB may wait for the store, and one command may be long. They grow in
// steps, since the pod is replaced when they change.
func archiveResources(shards int) corev1.ResourceRequirements {
	const base, each, step = 512 << 20, 64 << 20, 16
	shards = (shards + step - 1) / step * step
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(base+int64(shards)*each, resource.BinarySI)},
	}
}

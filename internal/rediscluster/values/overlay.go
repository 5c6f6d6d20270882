// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/overlay"
)

// What of an overlay goes into the pod spec, into a container of the author's and into the container redis as it is. Admission refuses all
// else; here it does not get any further.
var (
	overlayFields   = []string{"serviceAccountName", "dnsPolicy", "dnsConfig", "hostAliases", "runtimeClassName"}
	containerFields = []string{"name", "image", "command", "args", "workingDir", "env", "ports", "volumeMounts", "restartPolicy",
		"startupProbe", "readinessProbe", "livenessProbe", "lifecycle"}
	securityFields = []string{"runAsUser", "runAsGroup", "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "seLinuxOptions", "sysctls"}
	volumeFields   = []string{"name", "configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
	timeFields     = []string{"initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold"}
)

// overlaid are the values of what is merged into the pods of instances.
func overlaid(template v1alpha1.PodTemplate) map[string]any {
	o, _ := overlay.Read(template) // one that is refused is not rendered
	if o == nil {
		return map[string]any{}
	}
	fields := unstructured(o)
	values := map[string]any{"spec": pick(fields, overlayFields)}
	if o.TerminationGracePeriodSeconds != nil {
		values["terminationGracePeriodSeconds"] = *o.TerminationGracePeriodSeconds
	}
	if context, set := fields["securityContext"].(map[string]any); set {
		values["securityContext"] = pick(context, securityFields)
	}
	volumes := make([]any, len(o.Volumes))
	for i := range o.Volumes {
		volumes[i] = pick(unstructured(&o.Volumes[i]), volumeFields)
	}
	containers := make([]any, len(o.InitContainers))
	for i := range o.InitContainers {
		containers[i] = overlayContainer(&o.InitContainers[i])
	}
	if len(containers) > 0 {
		values["initContainers"] = containers
	}
	if len(volumes) > 0 {
		values["volumes"] = volumes
	}
	own := unstructured(overlay.Redis(o))
	if mounts, set := own["volumeMounts"]; set {
		values["volumeMounts"] = mounts
	}
	for _, probe := range []string{"livenessProbe", "readinessProbe"} {
		if times, set := own[probe].(map[string]any); set {
			values[probe] = pick(times, timeFields)
		}
	}
	return values
}

// overlayContainer is a container of the author's with what every container of an instance has.
func overlayContainer(c *corev1.Container) map[string]any {
	fields := unstructured(c)
	values := pick(fields, containerFields)
	values["imagePullPolicy"] = string(corev1.PullIfNotPresent)
	if c.ImagePullPolicy != "" {
		values["imagePullPolicy"] = string(c.ImagePullPolicy)
	}
	if resources, set := fields["resources"].(map[string]any); set && len(resources) > 0 {
		values["resources"] = resources
	}
	security := map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
		"capabilities": map[string]any{"drop": []any{"ALL"}}}
	if own, set := fields["securityContext"].(map[string]any); set {
		for _, name := range []string{"runAsUser", "runAsGroup", "readOnlyRootFilesystem"} {
			if value, set := own[name]; set {
				security[name] = value
			}
		}
	}
	values["securityContext"] = security
	return values
}

// pick returns the fields of these names.
func pick(fields map[string]any, names []string) map[string]any {
	picked := map[string]any{}
	for _, name := range names {
		if value, set := fields[name]; set {
			picked[name] = value
		}
	}
	return picked
}

// service are the values of the Services of a cluster.
func service(s *v1alpha1.ClientService) map[string]any {
	if s == nil {
		return map[string]any{}
	}
	return pick(unstructured(s), []string{"labels", "annotations", "ipFamilies", "ipFamilyPolicy"})
}

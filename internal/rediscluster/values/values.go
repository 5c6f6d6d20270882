// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package values translates a RedisCluster and the topology it may have now into the
// values of the chart helm-charts/rediscluster, whose values.yaml describes them. The
// translation is typed and pure; what users write arrives in the chart as data, and in
// redis.conf as quoted arguments of one setting.
package values

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// Where an instance keeps its data, as the chart calls it.
const (
	dataClaim    = "claim"    // a claim an instance
	dataShared   = "shared"   // one existing claim, a directory an instance
	dataEmptyDir = "emptyDir" // gone with the pod
	dataHostPath = "hostPath" // a directory of the node
)

// Build returns the chart's values for a cluster of the given topology, which is the one
// that the plan permits now and not always spec's, with redis.conf of these settings and with that of TLS. The result holds only
// what a deep copy of unstructured content can hold. cr is not changed.
func Build(cr *v1alpha1.RedisCluster, topology v1alpha1.Topology, settings []redisconf.Setting, of redisconf.TLS) map[string]any {
	template := cr.Spec.Template()
	podValues := pod(template)
	annotate(podValues, settings, &cr.Spec)
	return map[string]any{
		"image":               cr.Spec.Image(),
		"shards":              shards(topology),
		"config":              config(cr, settings, of),
		"auth":                map[string]any{"enabled": cr.AuthEnabled()},
		"tls":                 tls(cr, of.Stage),
		"data":                data(&cr.Spec, template),
		"antiAffinity":        antiAffinity(cr.Spec.AntiAffinity),
		"pod":                 podValues,
		"metrics":             metrics(template),
		"init":                initial(template),
		"overlay":             overlaid(template),
		"service":             service(cr.Spec.Service),
		"networkPolicy":       toggle(cr.Spec.NetworkPolicy),
		"relay":               follows(cr),
		"podDisruptionBudget": toggle(cr.Spec.PodDisruptionBudget),
		"hibernated":          false, // the plan says when
	}
}

// OneShard returns the values with the first shard alone.
func OneShard(values map[string]any) map[string]any {
	one := maps.Clone(values)
	if all, ok := one["shards"].([]any); ok && len(all) > 1 {
		one["shards"] = all[:1]
	}
	return one
}

func shards(topology v1alpha1.Topology) []any {
	list := make([]any, len(topology))
	for i, instances := range topology {
		list[i] = map[string]any{"index": int64(i), "replicas": int64(instances)}
	}
	return list
}

// config is what stands in redis.conf: names with their arguments. The chart writes the quotes: most values hold no character that
// means something to YAML then, and a chart with such values is rendered three times (package shape).
func config(cr *v1alpha1.RedisCluster, settings []redisconf.Setting, of redisconf.TLS) []any {
	var all []any
	for _, setting := range redisconf.File(cr, settings, of) {
		entry := []any{setting.Name}
		for _, arg := range setting.Args {
			entry = append(entry, redisconf.Escape(arg))
		}
		all = append(all, entry)
	}
	return all
}

func data(spec *v1alpha1.RedisClusterSpec, template v1alpha1.PodTemplate) map[string]any {
	claim, volumes := spec.Claim(), template.Volumes
	switch {
	case claim == nil && volumes.Type == v1alpha1.VolumeEmptyDir:
		return map[string]any{"type": dataEmptyDir}
	case claim == nil && volumes.Type == v1alpha1.VolumeHostPath:
		return map[string]any{"type": dataHostPath}
	case claim == nil:
		return map[string]any{"type": dataShared, "claimName": volumes.PersistentVolumeClaimName}
	}
	values := map[string]any{"type": dataClaim, "size": claim.Size.String(), "retain": string(claim.Retain)}
	if claim.StorageClassName != nil {
		values["storageClassName"] = *claim.StorageClassName
	}
	return values
}

func antiAffinity(a v1alpha1.AntiAffinity) string {
	if a == "" {
		a = v1alpha1.AntiAffinityPreferred
	}
	return string(a)
}

// podFields are the fields of the pod template that the chart takes as they are.
var podFields = []string{
	"labels", "annotations", "affinity", "resources", "nodeSelector", "tolerations",
	"topologySpreadConstraints", "priorityClassName", "imagePullSecrets",
}

func pod(template v1alpha1.PodTemplate) map[string]any {
	fields := unstructured(&template)
	values := map[string]any{}
	for _, name := range podFields {
		if value, set := fields[name]; set {
			values[name] = value
		}
	}
	var env []any
	for i := range template.Env {
		if _, reserved := redisconf.ReservedEnv(template.Env[i].Name); !reserved {
			env = append(env, unstructured(&template.Env[i]))
		}
	}
	if len(env) > 0 {
		values["env"] = env
	}
	return values
}

// metrics are the values of the exporter's container.
func metrics(template v1alpha1.PodTemplate) map[string]any {
	values := map[string]any{"image": template.MonitorImage}
	if monitor := template.Monitor; monitor != nil {
		addArgs(values, monitor.Args)
		if resources := unstructured(&monitor.Resources); len(resources) > 0 {
			values["resources"] = resources
		}
	}
	return values
}

// initial are the values of the init container.
func initial(template v1alpha1.PodTemplate) map[string]any {
	values := map[string]any{"image": template.InitImage}
	if template.Init != nil {
		values["configured"] = true
		addArgs(values, template.Init.Args)
	}
	return values
}

func addArgs(values map[string]any, args []string) {
	if len(args) == 0 {
		return
	}
	list := make([]any, len(args))
	for i, arg := range args {
		list[i] = arg
	}
	values["args"] = list
}

// unstructured converts an API struct. It cannot fail for those of PodTemplate, whose
// fields are all of JSON's types or convert themselves.
func unstructured(from any) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(from)
	if err != nil {
		panic(fmt.Sprintf("values: %T does not convert to unstructured content: %v", from, err))
	}
	return fields
}

// follows reports whether instances are to reach the relay to a server outside.
func follows(cr *v1alpha1.RedisCluster) bool {
	return cr.Follows() && (cr.Status.Import == nil || cr.Status.Import.CutOverAt == nil)
}

func toggle(t v1alpha1.Toggle) map[string]any {
	return map[string]any{"enabled": t.Enabled == nil || *t.Enabled}
}

// MountTLS reports whether pods are to have the Secrets of spec.tls.
func MountTLS(cr *v1alpha1.RedisCluster, stage redisconf.TLSStage) bool {
	return cr.Spec.TLS != nil && (cr.TLSMode() != v1alpha1.TLSDisabled || stage != redisconf.TLSPlain)
}

// tls are the Secrets to mount, and which ports pods have. Pods have both ports from when they get a certificate until redis.conf has but
// the first for TLS, or none; the Service leads to the second one when it is open, and plainly to the first one as long as that is plain.
// Policies let connections to the second port through as long as there is spec.tls: what is dropped there costs who asks a timeout, and
// what is refused costs nothing.
func tls(cr *v1alpha1.RedisCluster, stage redisconf.TLSStage) map[string]any {
	switch {
	case cr.Spec.TLS == nil:
		return map[string]any{"enabled": false}
	case !MountTLS(cr, stage):
		return map[string]any{"enabled": false, "secondPort": true, "plain": true} // pods that are to restart still have two ports
	}
	return map[string]any{"enabled": true, "secondPort": true, "secretName": cr.TLSSecretName(),
		"caSecretName": cr.TLSClientTrustSecretName(), "showCertificate": cr.ShowsCertificate(),
		"twoPorts": stage != redisconf.TLSRequired, "plain": stage <= redisconf.TLSBoth, "open": stage >= redisconf.TLSBoth}
}

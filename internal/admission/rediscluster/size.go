// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
)

// What one RedisCluster may cost: with these limits the largest takes about a second and some tens of MiB to render.
var (
	// maxTemplate: a pod template with an agent's annotations, a hundred variables and all kinds of affinity has 20 KiB.
	maxTemplate = shared.Size{Bytes: 64 << 10, Entries: 2000}
	// maxTemplates is the template once a shard, which is how often it is rendered: 4 KiB at 500 shards, more than twice what
	// the samples set, and the whole of maxTemplate at 32.
	maxTemplates = shared.Size{Bytes: 2 << 20, Entries: 100_000}
	// maxConfig: the longest value of a setting has 1 KiB, and few have more than 20 bytes.
	maxConfig = shared.Size{Bytes: 64 << 10, Entries: 200}
	// maxModuleText: in redis.conf a byte may become four, and its ConfigMap has 1 MiB.
	maxModuleText = shared.Size{Bytes: 16 << 10, Entries: 2000}
)

const (
	// maxSources is how many node IDs all entries of assignStrategies may name: twenty new masters that take from a hundred name 2000.
	maxSources = 3000
	// maxProblems ends a list that nobody reads to its end.
	maxProblems = 50
)

// checkSize bounds what the other rules, and rendering, have to look at.
func checkSize(cr *v1alpha1.RedisCluster) field.ErrorList {
	refused := CheckTemplate(cr, int(cr.Spec.ShardCount()))
	refused = append(refused, shared.AtMost(specPath.Child("config"), cr.Spec.Config, maxConfig)...)
	refused = append(refused, shared.AtMost(modulesPath, cr.Spec.Modules, maxModuleText)...)
	sources := 0
	for _, entry := range cr.Spec.UpdateStrategy.AssignStrategies {
		sources += 1 + strings.Count(entry.FromReplicas, ",")
	}
	if sources > maxSources {
		refused = append(refused, field.TooMany(specPath.Child("updateStrategy", "assignStrategies"), sources, maxSources))
	}
	return refused
}

// CheckTemplate bounds the pod template where it is rendered for a number of shards, which while a cluster scales in is not
// what the spec asks for. It names the field of the template that holds most.
func CheckTemplate(cr *v1alpha1.RedisCluster, shards int) field.ErrorList {
	if len(cr.Spec.Pod) == 0 {
		return nil
	}
	template := cr.Spec.Template()
	size := shared.SizeOf(template)
	if template.Init != nil { // env is rendered twice
		env := shared.SizeOf(template.Env)
		size.Bytes, size.Entries = size.Bytes+env.Bytes, size.Entries+env.Entries
	}
	shards = min(max(shards, 1), int(maxShards))
	switch {
	case !size.Within(maxTemplate):
		return field.ErrorList{field.Invalid(largest(cr), size.String(), fmt.Sprintf(
			"is what the pod template has altogether, most of it here, and must be at most %s (of lists and maps, at any depth); shorten it, or put large texts into the image or its entrypoint", maxTemplate))}
	case !size.Times(shards).Within(maxTemplates):
		return field.ErrorList{field.Invalid(largest(cr), size.String(), fmt.Sprintf(
			"is what the pod template has altogether, most of it here, and with %d shards it must be at most %s; shorten it, or lower the number of shards", shards,
			shared.Size{Bytes: maxTemplates.Bytes / shards, Entries: maxTemplates.Entries / shards}))}
	}
	return nil
}

// largest is the field of the pod template that costs most.
func largest(cr *v1alpha1.RedisCluster) *field.Path {
	var fields map[string]any
	encoded, err := json.Marshal(cr.Spec.Template())
	if err != nil || json.Unmarshal(encoded, &fields) != nil {
		return podPath // cannot happen: it came out of JSON
	}
	cost := func(name string) int {
		size := shared.SizeOf(fields[name])
		return size.Bytes + 100*size.Entries
	}
	names := slices.Sorted(maps.Keys(fields))
	if len(names) == 0 {
		return podPath
	}
	return podPath.Child(slices.MaxFunc(names, func(a, b string) int { return cost(a) - cost(b) }))
}

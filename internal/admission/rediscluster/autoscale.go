// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

var autoscalePath = specPath.Child("autoscale")

// Limits of the times in spec.autoscale.
const leastStabilization, mostStabilization = time.Minute, 24 * time.Hour

// CheckAutoscale returns what is wrong with spec.autoscale, and with what says the same as it, of a defaulted RedisCluster.
func CheckAutoscale(cr *v1alpha1.RedisCluster) field.ErrorList {
	a := cr.Spec.Autoscale
	if a == nil {
		return nil
	}
	refused := shared.OneOf(autoscalePath.Child("mode"), a.Mode, v1alpha1.AutoscaleAuto, v1alpha1.AutoscaleDryRun)
	if cr.Spec.Shards != nil {
		refused = append(refused, field.Forbidden(specPath.Child("shards"),
			"autoscale says how many shards there are: remove shards, or remove autoscale"))
	}
	if n := cr.Spec.InstanceCount(); n != v1alpha1.DefaultReplicas { // which the schema writes
		refused = append(refused, field.Invalid(specPath.Child("replicas"), n,
			"autoscale says how many instances there are: remove replicas and set autoscale.instancesPerShard, or remove autoscale"))
	}
	if cr.Spec.UpdateStrategy.Type == v1alpha1.AssignReceive {
		refused = append(refused, field.Invalid(specPath.Child("updateStrategy", "type"), cr.Spec.UpdateStrategy.Type,
			"says who gives slots to shards that nobody knows yet: set it to AutoReceive, or remove autoscale"))
	}
	refused = append(refused, checkAutoscaleBounds(a)...)
	refused = append(refused, checkTargets(a.Targets)...)
	between := func(at *field.Path, d *metav1.Duration, least time.Duration) {
		if d != nil && (d.Duration < least || d.Duration > mostStabilization) {
			refused = append(refused, field.Invalid(at, d.Duration.String(), fmt.Sprintf("must be from %s to %s", least, mostStabilization)))
		}
	}
	between(autoscalePath.Child("scaleOut", "stabilization"), a.ScaleOut.Stabilization, leastStabilization)
	between(autoscalePath.Child("scaleIn", "stabilization"), a.ScaleIn.Stabilization, leastStabilization)
	between(autoscalePath.Child("coolDown"), a.CoolDown, 0)
	return append(refused, checkWindows(a)...)
}

func checkAutoscaleBounds(a *v1alpha1.Autoscale) field.ErrorList {
	var refused field.ErrorList
	least, most, each := autoscalePath.Child("minShards"), autoscalePath.Child("maxShards"), a.PerShard()
	if a.MinShards < v1alpha1.MinShards {
		refused = append(refused, field.Invalid(least, a.MinShards,
			"must be at least 3, so that masters elect the successor of one that is lost; a smaller cluster has shards instead of autoscale"))
	}
	switch {
	case a.MaxShards < a.MinShards:
		refused = append(refused, field.Invalid(most, a.MaxShards, fmt.Sprintf("must be at least minShards, which is %d", a.MinShards)))
	case a.MaxShards > maxShards:
		refused = append(refused, field.Invalid(most, a.MaxShards, fmt.Sprintf("must be at most %d; use several clusters", maxShards)))
	case each < 1 || each > v1alpha1.MaxExternalPerShard:
		refused = append(refused, field.Invalid(autoscalePath.Child("instancesPerShard"), each,
			fmt.Sprintf("must be from 1 to %d", v1alpha1.MaxExternalPerShard)))
	case a.MaxShards*each > maxReplicas:
		refused = append(refused, field.Invalid(most, a.MaxShards, fmt.Sprintf(
			"makes %d instances, with %d in each shard, and must make at most %d: lower it, or instancesPerShard", a.MaxShards*each, each,
			maxReplicas)))
	}
	return refused
}

func checkTargets(targets v1alpha1.AutoscaleTargets) field.ErrorList {
	var refused field.ErrorList
	at := autoscalePath.Child("targets")
	if n := targets.MemoryPercent; n != nil && (*n < 10 || *n > 90) {
		refused = append(refused, field.Invalid(at.Child("memoryPercent"), *n, "must be from 10 to 90"))
	}
	if n := targets.OperationsPerSecond; n != nil && *n < 100 {
		refused = append(refused, field.Invalid(at.Child("operationsPerSecond"), *n,
			"must be at least 100: looking after a cluster takes some itself"))
	}
	if n := targets.NetworkBytesPerSecond; n != nil && *n < 1<<16 {
		refused = append(refused, field.Invalid(at.Child("networkBytesPerSecond"), *n,
			"must be at least 65536: looking after a cluster takes some itself"))
	}
	return refused
}

// adviseAutoscale is about a cache that evicts: it is full at all times, and would grow to the largest size.
func adviseAutoscale(cr *v1alpha1.RedisCluster) []string {
	a := cr.Spec.Autoscale
	if a == nil || a.Asked().MemoryPercent == nil {
		return nil
	}
	for name, policy := range cr.Spec.Config {
		if redisconf.Canonical(name) == "maxmemory-policy" && policy != "noeviction" {
			return []string{fmt.Sprintf(
				"spec.autoscale.targets: with maxmemory-policy %s an instance is always full, and memory asks for maxShards: set other targets than memoryPercent",
				strconv.Quote(policy))}
		}
	}
	return nil
}

// AfterAutoscale says that nothing says any more how many shards there are, of a cluster that is not autoscaled any more; nil: something
// does.
func AfterAutoscale(cr *v1alpha1.RedisCluster) *field.Error {
	was := cr.Status.Autoscale
	if cr.Spec.Autoscale != nil || was == nil || cr.Spec.Shards != nil {
		return nil
	}
	return field.Required(specPath.Child("shards"), fmt.Sprintf(
		"with autoscale removed, say how many shards there are: %d is what there are to be now; and set replicas to the instances of all shards",
		was.Shards))
}

// replicasAfterAutoscale refuses the default number of instances when it would take replicas from the shards of a cluster that is not
// autoscaled any more: it has been in the spec since nothing was said of it.
func replicasAfterAutoscale(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was := before.Spec.Autoscale
	if was == nil || after.Spec.Autoscale != nil || after.Spec.Shards == nil || after.Spec.InstanceCount() != v1alpha1.DefaultReplicas {
		return nil
	}
	if have := min(after.Spec.ShardCount(), v1alpha1.MaxShards) * was.PerShard(); have > v1alpha1.DefaultReplicas {
		return field.ErrorList{field.Invalid(specPath.Child("replicas"), v1alpha1.DefaultReplicas, fmt.Sprintf(
			"with autoscale removed, set replicas to the instances of all shards, which are %d; if they are to be %d, do that in a change of its own",
			have, v1alpha1.DefaultReplicas))}
	}
	return nil
}

// largestOf is a cluster with as many shards as spec.autoscale lets it have: what is allowed to it is allowed to a smaller one.
func largestOf(cr *v1alpha1.RedisCluster) *v1alpha1.RedisCluster {
	if cr.Spec.Autoscale == nil {
		return cr
	}
	return cr.WithShards(cr.Spec.Autoscale.LargestShards())
}

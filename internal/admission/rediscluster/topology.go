// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
)

// Limits of the API (the markers of RedisClusterSpec say the same).
const (
	maxName     = 40
	maxReplicas = v1alpha1.MaxReplicas
	maxShards   = v1alpha1.MaxShards
	maxPipeline = 10000
	slotCount   = 16384
)

var clusterName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func checkName(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	at := field.NewPath("metadata", "name")
	var refused field.ErrorList
	if len(cr.Name) > maxName {
		refused = append(refused,
			field.Invalid(at, cr.Name, fmt.Sprintf("must be at most %d characters: names of StatefulSets and of their pods are made of it",
				maxName)))
	}
	if !clusterName.MatchString(cr.Name) {
		refused = append(refused,
			field.Invalid(at, cr.Name,
				"must begin with a letter and hold only lower-case letters, digits and hyphens: names of Services are made of it"))
	}
	if other, ends := strings.CutSuffix(cr.Name, "-nodes"); ends {
		refused = append(refused,
			field.Invalid(at, cr.Name, fmt.Sprintf("must not end in -nodes: that is the name of a Service of a RedisCluster %s; choose another name",
				other)))
	}
	return refused
}

func checkReplicas(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	at, instances := specPath.Child("replicas"), cr.Spec.InstanceCount()
	switch {
	case instances < 1:
		return field.ErrorList{field.Invalid(at, instances, "must be at least 1; spec.hibernate stops all instances and keeps their data")}
	case instances < v1alpha1.MinShards && cr.Spec.Shards == nil:
		return field.ErrorList{
			field.Invalid(at, instances,
				"must be at least 3 unless shards says how many masters there are: set replicas to 6 to give each of 3 masters a replica, or set shards to 1")}
	}
	if instances > maxReplicas {
		return field.ErrorList{field.Invalid(at, instances, fmt.Sprintf("must be at most %d; use several clusters", maxReplicas))}
	}
	if cr.Spec.Shards == nil {
		return nil
	}
	at, shards := specPath.Child("shards"), *cr.Spec.Shards
	switch {
	case shards < 1:
		return field.ErrorList{
			field.Invalid(at, shards, "must be at least 1; set it to 3 or more, so that masters elect the successor of one that is lost, or remove it")}
	case shards > maxShards:
		return field.ErrorList{field.Invalid(at, shards, fmt.Sprintf("must be at most %d; use several clusters", maxShards))}
	case shards > instances:
		return field.ErrorList{
			field.Invalid(at, shards,
				fmt.Sprintf("every shard needs at least one instance, and replicas is %d; raise replicas to %d (one replica a shard), or lower shards",
					instances, 2*shards))}
	}
	return nil
}

// adviseReplicas names the shards whose master has no replica.
func adviseReplicas(cr *v1alpha1.RedisCluster) []string {
	topology, alone := cr.Spec.Topology(), 0
	for _, instances := range topology {
		if instances == 1 {
			alone++
		}
	}
	if alone == 0 {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"spec.replicas: %d instances in %d shards leave %d of them without a replica: when its only instance is lost, so is a part of the data; set replicas to %d or more",
			topology.Instances(), len(topology), alone, 2*len(topology))}
}

// adviseElections says what two masters are not good for. One is the small form of a cluster, and means what it says.
func adviseElections(cr *v1alpha1.RedisCluster) []string {
	if cr.Spec.ShardCount() != 2 {
		return nil
	}
	return []string{
		"spec.shards: two masters cannot elect a successor of either, and one that is alone stops serving: until the operator has proof that the lost one has stopped and appoints its successor, the whole cluster stalls; set shards to 3, or to 1"}
}

func checkEnums(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	refused := shared.OneOf(specPath.Child("finalizers"), cr.Spec.Finalizers,
		v1alpha1.DeletionForeground, v1alpha1.DeletionBackground, v1alpha1.DeletionOrphan)
	if len(cr.Spec.Pod) > 1 {
		refused = append(refused, field.TooMany(specPath.Child("pod"), len(cr.Spec.Pod), 1))
	}
	refused = append(refused, shared.OneOf(specPath.Child("antiAffinity"), cr.Spec.AntiAffinity,
		v1alpha1.AntiAffinityPreferred, v1alpha1.AntiAffinityRequired)...)
	return append(refused, shared.OneOf(podPath.Child("updateStrategy", "type"), cr.Spec.Template().UpdateStrategy.Type,
		v1alpha1.RollingUpdate, v1alpha1.OnDelete)...)
}

func checkSlotStrategy(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	at, strategy := specPath.Child("updateStrategy"), cr.Spec.UpdateStrategy
	refused := shared.OneOf(at.Child("type"), strategy.Type, v1alpha1.AutoReceive, v1alpha1.AssignReceive)
	if n, err := strconv.Atoi(strategy.Pipeline); strategy.Pipeline != "" && (err != nil || n < 1 || n > maxPipeline) {
		refused = append(refused,
			field.Invalid(at.Child("pipeline"), strategy.Pipeline,
				fmt.Sprintf(`must be a number of keys from 1 to %d, as a string such as "100"`, maxPipeline)))
	}
	if strategy.KeysPerSecond < 0 {
		refused = append(refused, field.Invalid(at.Child("keysPerSecond"), strategy.KeysPerSecond, "must be a number of keys, or 0 for no limit"))
	}
	at = at.Child("assignStrategies")
	assigned := len(strategy.AssignStrategies)
	if strategy.Type == v1alpha1.AssignReceive && assigned == 0 {
		return append(refused,
			field.Required(at,
				"type AssignReceive needs one entry {slots, fromReplicas} for each new master, or {slots, fromReplicas, toShard} for a shard that exists; add them, or set type to AutoReceive"))
	}
	if strategy.Type != v1alpha1.AssignReceive && assigned > 0 {
		return append(refused, field.Forbidden(at, "assignStrategies belong to type AssignReceive: remove them, or set type to AssignReceive"))
	}
	refused = append(refused, checkSlots(at, strategy.AssignStrategies)...)
	return append(refused, checkReceivers(at, cr)...)
}

// checkReceivers wants each shard to receive by one entry.
func checkReceivers(at *field.Path, cr *v1alpha1.RedisCluster) field.ErrorList {
	var refused field.ErrorList
	seen := map[int]bool{}
	for i, entry := range cr.Spec.UpdateStrategy.AssignStrategies {
		to := entry.To()
		switch at := at.Index(i).Child("toShard"); {
		case to == nil:
			continue
		case *to < 0 || *to >= int(cr.Spec.ShardCount()):
			refused = append(refused,
				field.Invalid(at, *to, fmt.Sprintf("must be the number of a shard, from 0 to %d; leave it out for a master that joins",
					cr.Spec.ShardCount()-1)))
		case seen[*to]:
			refused = append(refused, field.Duplicate(at, *to))
		}
		seen[*to] = true
	}
	return refused
}

// adviseAssignment says when entries do nothing by themselves.
func adviseAssignment(cr *v1alpha1.RedisCluster) []string {
	strategy := cr.Spec.UpdateStrategy
	if strategy.Type != v1alpha1.AssignReceive ||
		!slices.ContainsFunc(strategy.AssignStrategies, func(a v1alpha1.AssignStrategy) bool { return a.ToShard == nil }) {
		return nil
	}
	return []string{
		"spec.updateStrategy.assignStrategies: entries without toShard are for masters that join, and move nothing before; name the shard that receives in toShard to move slots between masters that exist"}
}

func checkSlots(at *field.Path, assigned []v1alpha1.AssignStrategy) field.ErrorList {
	var refused field.ErrorList
	var total int64
	for i, entry := range assigned {
		total += int64(entry.Slots)
		if entry.Slots < 1 || entry.Slots > slotCount {
			refused = append(refused,
				field.Invalid(at.Index(i).Child("slots"), entry.Slots,
					fmt.Sprintf("must be from 1 to %d, the number of slots of a cluster", slotCount)))
		}
	}
	if total > slotCount && refused == nil {
		refused = append(refused,
			field.Invalid(at, total, fmt.Sprintf("shards would receive %d slots together, and a cluster has %d; lower some entry's slots", total,
				slotCount)))
	}
	return refused
}

var nodeID = regexp.MustCompile(`^[0-9a-f]{40}$`)

func checkNodeIDs(cr *v1alpha1.RedisCluster) field.ErrorList {
	var refused field.ErrorList
	for i, entry := range cr.Spec.UpdateStrategy.AssignStrategies {
		at := specPath.Child("updateStrategy", "assignStrategies").Index(i).Child("fromReplicas")
		seen := map[string]bool{}
		if len(refused) >= maxProblems {
			return refused
		}
		for _, id := range entry.From() {
			if !nodeID.MatchString(id) {
				refused = append(refused,
					field.Invalid(at, id, "is not a node ID; name masters by their 40 hex digits, which status.nodes[].nodeId shows, separated by commas"))
			}
			if seen[id] {
				refused = append(refused, field.Duplicate(at, id))
			}
			seen[id] = true
		}
	}
	return refused
}

// advisePipeline warns of a number of keys that no command carries.
func advisePipeline(cr *v1alpha1.RedisCluster) []string {
	strategy := cr.Spec.UpdateStrategy
	e, known := engineOf(cr.Spec.Image())
	if strategy.Pipeline == v1alpha1.DefaultPipeline || strategy.KeysPerSecond > 0 || !known || !e.movesSlots() {
		return nil
	}
	return []string{
		fmt.Sprintf(
			"spec.updateStrategy.pipeline: %s moves whole slots by itself, and no MIGRATE carries keys; remove it, or set spec.updateStrategy.keysPerSecond to have the operator move keys", e)}
}

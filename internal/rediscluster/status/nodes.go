// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// nodes lists the instances. lastTransitionTime stays while the status of an instance does.
func nodes(before []v1alpha1.NodeStatus, p Reconciliation, now time.Time) []v1alpha1.NodeStatus {
	s := p.Snapshot
	transitions := make(map[string]v1alpha1.NodeStatus, len(before))
	for _, n := range before {
		transitions[n.Name] = n
	}
	list := make([]v1alpha1.NodeStatus, 0, len(s.Instances))
	for i := range s.Instances {
		node := nodeOf(&s.Instances[i])
		if node.DomainName != "" && p.ClusterDomain != "" {
			node.DomainName += "." + p.ClusterDomain
		}
		node.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		if was, ok := transitions[node.Name]; ok && was.Status == node.Status {
			node.LastTransitionTime = was.LastTransitionTime
		}
		list = append(list, node)
	}
	return list
}

func nodeOf(in *snapshot.Instance) v1alpha1.NodeStatus {
	node := v1alpha1.NodeStatus{
		Name: in.Name, Shard: int32(in.Shard), //nolint:gosec // at most 500 shards
		DomainName: in.DomainName, Hostname: in.NodeName, HostIP: in.HostIP,
	}
	if in.IP != "" {
		node.Instance = snapshot.Address(in.IP)
	}
	switch {
	case in.Redis == nil && in.Waiting != "":
		node.Status, node.Reason, node.Message = metav1.ConditionFalse, "NotRunning", in.Waiting
	case in.Redis == nil:
		node.Status, node.Reason, node.Message = metav1.ConditionUnknown, "NotReached", in.Error
	case in.Terminating:
		node.Status, node.Reason = metav1.ConditionFalse, "Terminating"
	case !in.Redis.ClusterOK:
		node.Status, node.Reason, node.Message = metav1.ConditionFalse, "ClusterDown", "the instance sees the cluster as down"
	case !in.Redis.Master && !in.Redis.MasterLinkUp:
		node.Status, node.Reason, node.Message = metav1.ConditionFalse, "NotInSync", "the replica is not in sync with its master"
	case in.SidecarFailure != "":
		node.Status, node.Reason, node.Message = metav1.ConditionFalse, "NotReady", in.SidecarFailure
	default:
		node.Status, node.Reason = metav1.ConditionTrue, "Serving"
	}
	if r := in.Redis; r != nil {
		node.NodeID, node.Type, node.MasterNodeID, node.Slots = r.NodeID, "slave", r.MasterID, excerpt.Of(r.Slots.String(), longestSlots)
		if r.Master {
			node.Type, node.MasterNodeID = "master", r.NodeID
		}
	}
	return node
}

// longestSlots is how much is told of the slots of an instance, which may be up to 8192 ranges.
const longestSlots = 2 << 10

// ReadyInstances counts the instances that serve.
func ReadyInstances(s *snapshot.Snapshot) int {
	ready := 0
	for i := range s.Instances {
		if nodeOf(&s.Instances[i]).Status == metav1.ConditionTrue {
			ready++
		}
	}
	return ready
}

// oldestVersion is the lowest version that an instance runs, and its engine.
func oldestVersion(s *snapshot.Snapshot) (oldest, engine string) {
	var lowest *version.Version
	for _, in := range s.Reachable() {
		v, err := version.ParseGeneric(in.Redis.Version)
		if err != nil || lowest != nil && !v.LessThan(lowest) {
			continue
		}
		lowest, oldest, engine = v, in.Redis.Version, in.Redis.Engine
	}
	return oldest, engine
}

// targetVersion is the version asked for. What middlewareImage, or a digest alone, holds is known
// from the instances that run it, the newest if they differ; empty until one has answered.
func targetVersion(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) string {
	if cluster.Spec.Template().MiddlewareImage == "" && cluster.Spec.Version == "" {
		return v1alpha1.DefaultVersion
	}
	if tag := cluster.Spec.Tag(); cluster.Spec.Template().MiddlewareImage == "" && tag != "" {
		return tag
	}
	image := cluster.Spec.Image()
	var highest *version.Version
	target := ""
	if cluster.Status.ObservedGeneration == cluster.Generation {
		target = cluster.Status.TargetVersion // those that told it may not answer now
	}
	for _, in := range s.Reachable() {
		v, err := version.ParseGeneric(in.Redis.Version)
		if err == nil && in.Image == image && (highest == nil || highest.LessThan(v)) {
			highest, target = v, in.Redis.Version
		}
	}
	return target
}

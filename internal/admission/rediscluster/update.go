// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// transitions are what a running cluster cannot follow, paused or not: a pause ends, and
// nobody compares with the old spec then.
var transitions = []func(before, after *v1alpha1.RedisCluster) field.ErrorList{
	keepDataPlace,
	keepStorageClass,
	neverShrink,
	keepAuth,
	keepTLS,
	keepExternal,
	keepBootstrap,
	keepMajorVersion,
	keepModules,
	keepUser,
	keepFamily,
}

// ValidateUpdate returns what is wrong with changing a RedisCluster from before to after,
// of which Validate has nothing to say. Both are defaulted.
func ValidateUpdate(before, after *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	var refused field.ErrorList
	with := *after
	with.Status.Autoscale = before.Status.Autoscale
	if problem := AfterAutoscale(&with); problem != nil {
		refused = append(refused, problem)
	}
	refused = append(refused, replicasAfterAutoscale(before, after)...)
	autoscaled := before.Spec.Autoscale != nil || after.Spec.Autoscale != nil
	before, after = largestOf(before), largestOf(after)
	if !neverRan(before) {
		for _, transition := range transitions {
			refused = append(refused, transition(before, after)...)
		}
	}
	if !after.Spec.Pause && !autoscaled {
		refused = append(refused, assignEveryNewMaster(before, after)...)
	}
	return refused
}

// neverRan is true for a draft: paused, and no trace of an instance in its status.
func neverRan(cr *v1alpha1.RedisCluster) bool {
	s := cr.Status
	return cr.Spec.Pause && s.Replicas == 0 && len(s.Nodes) == 0 && s.CurrentVersion == "" && s.SecretName == ""
}

// dataPlace says where data is kept, in comparable form.
func dataPlace(cr *v1alpha1.RedisCluster) v1alpha1.Volumes {
	volumes := cr.Spec.Template().Volumes
	if volumes == nil {
		return v1alpha1.Volumes{Type: v1alpha1.VolumePVC}
	}
	return *volumes
}

func keepDataPlace(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, is := dataPlace(before), dataPlace(after)
	const remedy = "instances would come back without their data; keep it, or make a new RedisCluster and copy the data"
	switch {
	case was.Type != is.Type:
		return field.ErrorList{field.Invalid(volumesPath.Child("type"), is.Type, fmt.Sprintf("cannot change from %s: %s", was.Type, remedy))}
	case was.PersistentVolumeClaimName != is.PersistentVolumeClaimName:
		return field.ErrorList{
			field.Invalid(volumesPath.Child("persistentVolumeClaimName"), is.PersistentVolumeClaimName,
				fmt.Sprintf("cannot change from %q: %s", was.PersistentVolumeClaimName, remedy))}
	}
	return nil
}

// claimEach reports whether each instance has a claim of its own, which spec.storage describes.
func claimEach(cr *v1alpha1.RedisCluster) bool {
	return dataPlace(cr) == v1alpha1.Volumes{Type: v1alpha1.VolumePVC}
}

func keepStorageClass(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, is := before.Spec.Claim(), after.Spec.Claim()
	if was == nil || is == nil || ptr.Equal(was.StorageClassName, is.StorageClassName) {
		return nil
	}
	return field.ErrorList{
		field.Invalid(storagePath.Child("storageClassName"), ptr.Deref(is.StorageClassName, ""),
			fmt.Sprintf("a claim keeps its class for life, and this was %s; put it back, or make a new RedisCluster and copy the data",
				className(was.StorageClassName)))}
}

func className(name *string) string {
	if name == nil {
		return "unset"
	}
	return fmt.Sprintf("%q", *name)
}

// neverShrink lets a size that the claims could not grow to be taken back.
func neverShrink(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, is := before.Spec.Claim(), after.Spec.Claim()
	if was == nil || is == nil || is.Size.Cmp(was.Size) >= 0 {
		return nil
	}
	if stalled := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.ConditionStalled); stalled != nil &&
		stalled.Reason == v1alpha1.ReasonCannotExpand {
		return nil
	}
	return field.ErrorList{
		field.Invalid(storagePath.Child("size"), is.Size.String(), fmt.Sprintf("a claim cannot shrink; set %s or more", was.Size.String()))}
}

// keepBootstrap refuses what only a new cluster can begin with, and to let one go on without the data that it is being given.
func keepBootstrap(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, is := before.DeepCopy(), after.DeepCopy()
	if from, to := was.Import(), is.Import(); from != nil && to != nil { // when it ends may be said at any time
		from.CutOver, from.PauseSeconds = to.CutOver, to.PauseSeconds
	}
	if equality.Semantic.DeepEqual(was.Spec.Bootstrap, is.Spec.Bootstrap) || putsSourceBack(before, after) {
		return nil
	}
	return field.ErrorList{field.Forbidden(specPath.Child("bootstrap"),
		"it is what a new cluster begins with, and can be neither set, changed nor removed later, but for import.cutOver and import.pauseSeconds: put it back, or make another RedisCluster")}
}

// putsSourceBack reports whether a source is removed that is not what the cluster began with, or what it began with is set again: the
// schema refuses both in one change.
func putsSourceBack(before, after *v1alpha1.RedisCluster) bool {
	began := before.Status.Import
	if began == nil || began.Address == "" || began.CutOverAt != nil {
		return false
	}
	if after.Spec.Bootstrap == nil {
		return before.Follows() && before.SourceAddress() != began.Address
	}
	return before.Spec.Bootstrap == nil && after.SourceAddress() == began.Address
}

// keepMajorVersion refuses a version that cannot read what the present one wrote: an
// older major of the same engine, and the other engine, but for Redis before 7.4, whose
// files Valkey reads.
func keepMajorVersion(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, wasKnown := engineOf(before.Spec.Image())
	is, isKnown := engineOf(after.Spec.Image())
	if !wasKnown || !isKnown {
		return nil
	}
	at := specPath.Child("version")
	if after.Spec.Template().MiddlewareImage != "" {
		at = podPath.Child("middlewareImage")
	}
	switch {
	case was.name == is.name && is.major < was.major:
		return field.ErrorList{
			field.Invalid(at, after.Spec.Image(),
				fmt.Sprintf("cannot go back from %s to %s: an older major version does not read the newer one's files; use %s %d or later", was, is,
					was.name, was.major))}
	case was.name != is.name && !readByValkey(was, is):
		return field.ErrorList{
			field.Invalid(at, after.Spec.Image(),
				fmt.Sprintf(
					"cannot go from %s to %s: it does not read the other engine's files; stay with %s, or make a new RedisCluster and copy the data", was,
					is, was.name))}
	}
	return nil
}

func readByValkey(was, is engine) bool {
	return is.name == "valkey" && was.name == "redis" && was.major == 7 && was.minor < 4
}

// assignEveryNewMaster wants one entry of assignStrategies for each master that joins.
func assignEveryNewMaster(before, after *v1alpha1.RedisCluster) field.ErrorList {
	strategy := after.Spec.UpdateStrategy
	joining, entries := int(after.Spec.ShardCount()-before.Spec.ShardCount()), 0
	for _, entry := range strategy.AssignStrategies {
		if entry.ToShard == nil {
			entries++
		}
	}
	if strategy.Type != v1alpha1.AssignReceive || joining <= 0 || entries == joining {
		return nil
	}
	return field.ErrorList{
		field.Invalid(specPath.Child("updateStrategy", "assignStrategies"), entries,
			fmt.Sprintf(
				"%d new masters join, and each entry without toShard says what one of them receives; write %d of them, or set type to AutoReceive",
				joining, joining))}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// archive says in the status what is written of the cluster, and whether it is far enough. What changes all the time is not said as long as
// it is.
func archive(cluster *v1alpha1.RedisCluster, status *v1alpha1.RedisClusterStatus, p Reconciliation, now time.Time) {
	asked, a := cluster.Archive(), p.Snapshot.Archive
	if asked == nil || a == nil {
		status.Archive = nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionArchiving)
		return
	}
	location := cluster.ArchiveLocation()
	is := &v1alpha1.ArchiveStatus{Name: location.Name, Location: location.String()}
	if was := cluster.Status.Archive; was != nil && was.Location == is.Location { // until its pod has been asked
		is.FirstMoment, is.LastMoment = was.FirstMoment, was.LastMoment
	}
	if a.Said != nil && !a.Said.First.IsZero() {
		is.FirstMoment, is.LastMoment = first(a.Said.First), last(a.Said.Last)
	}
	objective := v1alpha1.DefaultArchiveObjective
	if asked.Objective != nil {
		objective = asked.Objective.Duration
	}
	condition := archiving(p, is, objective, now)
	if s := p.Decision.Situation; s == plan.Hibernating || s == plan.Hibernated || Asleep(p) {
		condition = archiveSleeps()
	}
	if condition.Status == metav1.ConditionTrue {
		is.LastMoment = nil
	}
	status.Archive = is
	status.Conditions = conditions.Set(status.Conditions, now, cluster.Generation, condition)
}

// first is a moment to the second, not before it; last, not after it: what is said to be restorable is.
func first(t time.Time) *metav1.Time { return last(t.Add(timeUnit - 1)) }

func last(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.UTC().Truncate(timeUnit))
	return &at
}

// ArchiveBehind is how far the archive is behind; false when that is not known.
func ArchiveBehind(a *snapshot.Archive, now time.Time) (time.Duration, bool) {
	if a == nil || a.Said == nil || a.Said.Behind < 0 {
		return 0, false
	}
	return time.Duration(a.Said.Behind*float64(time.Second)) + max(0, now.Sub(a.SaidAt)), true
}

// archiving reports whether the archive is behind no further than its objective: by what its pod said, and by its kubelet, who asks it all
// the time.
func archiving(p Reconciliation, is *v1alpha1.ArchiveStatus, objective time.Duration, now time.Time) metav1.Condition {
	a := p.Snapshot.Archive
	behind, known := ArchiveBehind(a, now)
	if a.Ready || known && behind <= objective {
		message := ""
		if p.ArchiveWithheld != "" {
			message = "it goes on as it was: " + p.ArchiveWithheld
		}
		return conditions.Condition(v1alpha1.ConditionArchiving, metav1.ConditionTrue, v1alpha1.ReasonArchiveWithin, cut(message))
	}
	why := func(reason, format string, args ...any) metav1.Condition {
		message := fmt.Sprintf(format, args...)
		if is.LastMoment != nil {
			message += fmt.Sprintf("; the last moment that is known to be restorable is %s", is.LastMoment.UTC().Format(time.RFC3339))
		}
		return conditions.Condition(v1alpha1.ConditionArchiving, metav1.ConditionFalse, reason, cut(message))
	}
	waits := "it does not say what for"
	if a.Said != nil {
		waits = waitsFor[a.Said.Waits] + ", and its log says more"
	}
	switch {
	case !p.Snapshot.Formed:
		return why(v1alpha1.ReasonArchiveNotBegun, "the archive begins when the cluster has formed")
	case p.ArchiveWithheld != "":
		return why(v1alpha1.ReasonArchiveWithheld, "%s", p.ArchiveWithheld)
	case a.Pod == "":
		return why(v1alpha1.ReasonArchiveNotRunning, "no pod writes the archive")
	case a.Waiting != "":
		return why(v1alpha1.ReasonArchiveNotRunning, "%s", strings.TrimSuffix(fmt.Sprintf("pod %s: %s: %s", a.Pod, a.Waiting, a.Ended), ": "))
	case is.FirstMoment == nil:
		return why(v1alpha1.ReasonArchiveNotBegun, "pod %s reads all data before there is a first moment, and waits: %s", a.Pod, waits)
	case movingSlots(p):
		return why(v1alpha1.ReasonArchiveSlotsMove,
			"there is no moment while slots move; what is written meanwhile is kept, and is in the first one after that")
	}
	return why(v1alpha1.ReasonArchiveBehind, "it is further behind than the objective, %s: pod %s waits: %s", objective, a.Pod, waits)
}

// waitsFor is what a pod says that it waits for.
var waitsFor = map[report.Wait]string{
	"": "for nothing", report.WaitStore: "for the store", report.WaitBases: "for data that is being read",
	report.WaitInstances: "for instances to answer, or for slots or roles to rest", report.WaitRoom: "for room in the store, which is full",
}

// movingSlots reports whether slots move, or are about to.
func movingSlots(p Reconciliation) bool {
	if p.Decision.Goal != nil {
		return true
	}
	for _, in := range p.Snapshot.Reachable() {
		if len(in.Redis.Migrating)+len(in.Redis.Importing)+len(in.Redis.Jobs) > 0 {
			return true
		}
	}
	return false
}

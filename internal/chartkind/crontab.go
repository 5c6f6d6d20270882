// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	v1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	"middleware.hc.cn/operator/internal/admission/crontab"
)

// CronTabStatus computes lastRunTime, nextRunTime and active of a CronTab from its
// CronJob. The next run depends on now only in so far as runs have passed: between
// two runs every reconciliation computes the same, so nothing is written.
func CronTabStatus(object *unstructured.Unstructured, children []*unstructured.Unstructured, now time.Time) (map[string]any,
	[]metav1.Condition) {
	fields := map[string]any{"lastRunTime": nil, "nextRunTime": nil, "active": nil}
	cronJob := newest[batchv1.CronJob](children, schema.GroupKind{Group: "batch", Kind: "CronJob"}, nil)
	if cronJob != nil {
		if last := cronJob.Status.LastScheduleTime; last != nil {
			fields["lastRunTime"] = timestamp(last.Time)
		}
		if active := len(cronJob.Status.Active); active > 0 {
			fields["active"] = int64(active)
		}
	}
	if next, ok := nextRun(convert[v1beta1.CronTab](object), now); ok {
		fields["nextRunTime"] = timestamp(next)
	}
	return fields, nil
}

// nextRun is when a CronTab runs next after now. Without a time zone it takes UTC,
// which is what the controller manager of most clusters runs in.
func nextRun(c *v1beta1.CronTab, now time.Time) (time.Time, bool) {
	if c == nil || ptr.Deref(c.Spec.Suspend, false) {
		return time.Time{}, false
	}
	schedule, err := crontab.ParseSchedule(c.Spec.CronSpec)
	if err != nil {
		return time.Time{}, false
	}
	zone := time.UTC
	if c.Spec.TimeZone != "" {
		if zone, err = time.LoadLocation(c.Spec.TimeZone); err != nil {
			return time.Time{}, false
		}
	}
	next := schedule.Next(now.In(zone))
	return next, !next.IsZero()
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

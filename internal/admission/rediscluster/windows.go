// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/crontab"
)

// Limits of spec.autoscale.windows.
const (
	maxWindows                 = 16
	maxStart                   = 100
	leastWindow, longestWindow = 10 * time.Minute, 7 * 24 * time.Hour
)

// checkWindows returns what is wrong with spec.autoscale.windows. More than are allowed are not looked at.
func checkWindows(a *v1alpha1.Autoscale) field.ErrorList {
	at := autoscalePath.Child("windows")
	if len(a.Windows) > maxWindows {
		return field.ErrorList{field.TooMany(at, len(a.Windows), maxWindows)}
	}
	var refused field.ErrorList
	names := map[string]bool{}
	for i := range a.Windows {
		w, at := &a.Windows[i], at.Index(i)
		switch {
		case len(validation.IsDNS1123Label(w.Name)) > 0:
			refused = append(refused, field.Invalid(at.Child("name"), w.Name, "must be lower case letters, digits and -, at most 63 characters"))
		case names[w.Name]:
			refused = append(refused, field.Duplicate(at.Child("name"), w.Name))
		}
		names[w.Name] = true
		refused = append(refused, checkWindowTimes(at, w)...)
		refused = append(refused, checkWindowBounds(at, w, a)...)
	}
	return refused
}

func checkWindowTimes(at *field.Path, w *v1alpha1.AutoscaleWindow) field.ErrorList {
	var refused field.ErrorList
	if len(w.Start) > maxStart {
		refused = append(refused, field.TooLong(at.Child("start"), w.Start, maxStart))
	} else if _, err := crontab.ParseSchedule(w.Start); err != nil {
		refused = append(refused, field.Invalid(at.Child("start"), w.Start, err.Error()))
	}
	if _, err := crontab.ParseZone(w.TimeZone); err != nil {
		refused = append(refused, field.Invalid(at.Child("timeZone"), w.TimeZone, err.Error()))
	}
	if d := w.Duration.Duration; d < leastWindow || d > longestWindow {
		refused = append(refused, field.Invalid(at.Child("duration"), d.String(),
			fmt.Sprintf("must be from %s to %s", leastWindow, longestWindow)))
	}
	return refused
}

func checkWindowBounds(at *field.Path, w *v1alpha1.AutoscaleWindow, a *v1alpha1.Autoscale) field.ErrorList {
	if w.MinShards == nil && w.MaxShards == nil {
		return field.ErrorList{field.Required(at.Child("minShards"), "set minShards, maxShards or both: without them the window does nothing")}
	}
	var refused field.ErrorList
	bound := func(name string, n *int32) {
		switch {
		case n == nil:
		case *n < v1alpha1.MinShards || *n > maxShards:
			refused = append(refused, field.Invalid(at.Child(name), *n, fmt.Sprintf("must be from %d to %d", v1alpha1.MinShards, maxShards)))
		case *n*a.PerShard() > maxReplicas:
			refused = append(refused, field.Invalid(at.Child(name), *n, fmt.Sprintf(
				"makes %d instances, with %d in each shard, and must make at most %d: lower it, or instancesPerShard", *n*a.PerShard(), a.PerShard(),
				maxReplicas)))
		}
	}
	bound("minShards", w.MinShards)
	bound("maxShards", w.MaxShards)
	switch most := w.MaxShards; {
	case most == nil:
	case w.MinShards != nil && *most < *w.MinShards:
		refused = append(refused, field.Invalid(at.Child("maxShards"), *most,
			fmt.Sprintf("must be at least minShards, which is %d", *w.MinShards)))
	case w.MinShards == nil && *most < a.MinShards:
		refused = append(refused, field.Invalid(at.Child("maxShards"), *most, fmt.Sprintf(
			"must be at least the minShards of autoscale, which is %d: set minShards of the window, too", a.MinShards)))
	}
	return refused
}

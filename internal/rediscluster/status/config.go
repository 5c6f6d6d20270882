// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// settingsOf are the settings that redis.conf holds after a reconciliation.
func settingsOf(d plan.Decision) []v1alpha1.SettingStatus {
	var list []v1alpha1.SettingStatus
	for _, name := range slices.Sorted(maps.Keys(d.Settings)) {
		list = append(list, v1alpha1.SettingStatus{Name: name, Value: d.Settings[name]})
	}
	return list
}

// refusals are those that are remembered, and those of this reconciliation. One that was told again
// replaces the former.
func refusals(p Reconciliation) []v1alpha1.RefusedSetting {
	var list []v1alpha1.RefusedSetting
	for _, r := range slices.Concat(p.Snapshot.Refusals, p.Refusals) {
		list = slices.DeleteFunc(list, func(other v1alpha1.RefusedSetting) bool {
			return other.Name == r.Name && other.Engine == r.Engine
		})
		list = append(list, v1alpha1.RefusedSetting{Name: r.Name, Value: r.Value, Engine: r.Engine, Message: cut(r.Message),
			Immutable: r.Immutable, Time: metav1.Time{Time: r.At.Truncate(timeUnit)}})
	}
	slices.SortFunc(list, func(a, b v1alpha1.RefusedSetting) int {
		return strings.Compare(a.Name+" "+a.Engine, b.Name+" "+b.Engine)
	})
	return list
}

// settingChanges are the settings that are not in force everywhere.
func settingChanges(d plan.Decision) []v1alpha1.SettingChange {
	var list []v1alpha1.SettingChange
	for _, c := range d.SettingChanges {
		list = append(list, v1alpha1.SettingChange{Name: c.Name, From: cut(c.From), To: c.To, ApplyMethod: string(c.Method),
			Instances: c.Instances,
			Reason:    cut(c.Reason)})
	}
	return list
}

// configured reports whether the settings asked for are in force.
func configured(p Reconciliation) metav1.Condition {
	d := p.Decision
	switch {
	case len(d.SettingProblems) > 0:
		return conditions.Condition(v1alpha1.ConditionConfigured, metav1.ConditionFalse, "SettingRefused", settingProblems(d))
	case len(d.SettingChanges) > 0:
		names := make([]string, len(d.SettingChanges))
		for i, c := range d.SettingChanges {
			names[i] = fmt.Sprintf("%s (%s)", c.Name, c.Method)
		}
		return conditions.Condition(v1alpha1.ConditionConfigured, metav1.ConditionFalse, "Changing",
			cut("not yet in force on every instance: "+strings.Join(names, ", ")))
	case d.Settings == nil:
		return conditions.Condition(v1alpha1.ConditionConfigured, metav1.ConditionUnknown, "NotKnown", "no redis.conf has been made yet")
	default:
		return conditions.Condition(v1alpha1.ConditionConfigured, metav1.ConditionTrue, "InForce", "")
	}
}

// settingProblems are the sentences about settings that do not come into force.
func settingProblems(d plan.Decision) string {
	messages := make([]string, len(d.SettingProblems))
	for i, problem := range d.SettingProblems {
		messages[i] = problem.Message
	}
	return cut(strings.Join(messages, "; "))
}

// cut bounds what others have written, to what an Event may say.
func cut(text string) string {
	const most = 1000
	return excerpt.Of(text, most)
}

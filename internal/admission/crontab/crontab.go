// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crontab sets the defaults of a CronTab and says what is wrong with one.
// The webhook and the operator call the same functions.
package crontab

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	v1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	"middleware.hc.cn/operator/internal/admission/rules"
)

// maxName is the length of a CronJob's name: its Jobs append 11 characters to it
// and a name has at most 63 (Kubernetes, CronJob concepts).
const maxName = 52

// maxEnv: a hundred variables have 10 KiB in 400 entries. They are rendered several times, to see what their strings make of the objects.
var maxEnv = rules.Size{Bytes: 64 << 10, Entries: 2000}

// Default sets what the CRD's schema sets too; a test holds them together.
func Default(c *v1beta1.CronTab) {
	spec := &c.Spec
	if spec.Replicas == nil {
		spec.Replicas = ptr.To[int32](1)
	}
	if spec.Suspend == nil {
		spec.Suspend = ptr.To(false)
	}
	if spec.ConcurrencyPolicy == "" {
		spec.ConcurrencyPolicy = v1beta1.AllowConcurrent
	}
	if spec.HistoryLimit == nil {
		spec.HistoryLimit = ptr.To[int32](3)
	}
}

// Validate says everything that is wrong with a CronTab.
func Validate(c *v1beta1.CronTab) field.ErrorList {
	spec, at := &c.Spec, field.NewPath("spec")
	var refused field.ErrorList
	if len(c.Name) > maxName {
		refused = append(refused, field.Invalid(field.NewPath("metadata", "name"), c.Name,
			fmt.Sprintf("must have at most %d characters, because the names of a CronJob's Jobs append 11; choose a shorter name", maxName)))
	}
	refused = append(refused, schedule(at.Child("cronSpec"), spec.CronSpec)...)
	refused = append(refused, rules.Image(at.Child("image"), spec.Image)...)
	refused = append(refused, rules.Range(at.Child("replicas"), spec.Replicas, 1, 1000)...)
	refused = append(refused, rules.Texts(at.Child("command"), spec.Command)...)
	refused = append(refused, rules.Texts(at.Child("args"), spec.Args)...)
	refused = append(refused, timeZone(at.Child("timeZone"), spec.TimeZone)...)
	refused = append(refused, rules.OneOf(at.Child("concurrencyPolicy"), spec.ConcurrencyPolicy,
		v1beta1.AllowConcurrent, v1beta1.ForbidConcurrent, v1beta1.ReplaceConcurrent)...)
	refused = append(refused, rules.Range(at.Child("historyLimit"), spec.HistoryLimit, 0, 100)...)
	refused = append(refused, rules.AtMost(at.Child("env"), spec.Env, maxEnv)...)
	refused = append(refused, rules.Env(at.Child("env"), spec.Env)...)
	refused = append(refused, rules.EnvFrom(at.Child("envFrom"), spec.EnvFrom)...)
	refused = append(refused, rules.Placement(at, spec.PodPlacement)...)
	refused = append(refused, rules.PodVolumes(at, spec.PodVolumes)...)
	return refused
}

// ValidateUpdate says everything that is wrong with a change. Every field may
// change; runs that have begun go on as they were.
func ValidateUpdate(_, updated *v1beta1.CronTab) field.ErrorList { return Validate(updated) }

// Warnings says what is allowed and probably not meant.
func Warnings(c *v1beta1.CronTab) []string {
	return rules.UntaggedImage(field.NewPath("spec", "image"), c.Spec.Image)
}

func schedule(at *field.Path, spec string) field.ErrorList {
	if spec == "" {
		return field.ErrorList{field.Required(at, "write five cron fields, such as \"*/5 * * * *\" for every five minutes")}
	}
	if _, err := ParseSchedule(spec); err != nil {
		return field.ErrorList{field.Invalid(at, spec, err.Error())}
	}
	return nil
}

func timeZone(at *field.Path, name string) field.ErrorList {
	if name == "" {
		return nil
	}
	if _, err := ParseZone(name); err != nil {
		return field.ErrorList{field.Invalid(at, name, err.Error())}
	}
	return nil
}

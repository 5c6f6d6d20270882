// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// longestQuote is how much of a variable's value a refusal repeats.
const longestQuote = 64

func checkEnv(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	var refused field.ErrorList
	seen := map[string]bool{}
	for i, v := range cr.Spec.Template().Env {
		at := podPath.Child("env").Index(i)
		for _, problem := range validation.IsEnvVarName(v.Name) {
			refused = append(refused, field.Invalid(at.Child("name"), v.Name, problem))
		}
		if remedy, reserved := redisconf.ReservedEnv(v.Name); reserved {
			refused = append(refused, field.Forbidden(at.Child("name"), v.Name+" is set by the operator; "+remedy))
		}
		if seen[v.Name] {
			refused = append(refused, field.Duplicate(at.Child("name"), v.Name))
		}
		seen[v.Name] = true
		refused = append(refused, shared.Text(at.Child("value"), v.Value)...)
		refused = append(refused, checkEnvSource(at.Child("valueFrom"), v)...)
		if err := redisconf.CheckEnv(v); err != nil && v.ValueFrom != nil {
			refused = append(refused, field.Forbidden(at.Child("valueFrom"), err.Error()))
		} else if err != nil {
			refused = append(refused, field.Invalid(at.Child("value"), excerpt.Of(v.Value, longestQuote), err.Error()))
		}
	}
	return refused
}

// checkEnvSource lets values come from the pod itself only: whoever may write a
// RedisCluster may not be allowed to read Secrets.
func checkEnvSource(at *field.Path, v corev1.EnvVar) field.ErrorList {
	source := v.ValueFrom
	if source == nil {
		return nil
	}
	if v.Value != "" {
		return field.ErrorList{field.Forbidden(at, "a variable has a value or a valueFrom; remove one of them")}
	}
	const own = "values cannot come from Secrets, ConfigMaps or files; write the value into the manifest, or use fieldRef or resourceFieldRef"
	var refused field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"secretKeyRef", source.SecretKeyRef != nil},
		{"configMapKeyRef", source.ConfigMapKeyRef != nil},
		{"fileKeyRef", source.FileKeyRef != nil},
	} {
		if f.set {
			refused = append(refused, field.Forbidden(at.Child(f.name), own))
		}
	}
	if refused == nil && (source.FieldRef == nil) == (source.ResourceFieldRef == nil) {
		refused = append(refused, field.Invalid(at, field.OmitValueType{}, "must have either fieldRef or resourceFieldRef"))
	}
	refused = append(refused, shared.FieldOfPod(at.Child("fieldRef"), source.FieldRef, ofVariable...)...)
	refused = append(refused, shared.QuantityOfPod(at.Child("resourceFieldRef"), source.ResourceFieldRef, false)...)
	return refused
}

// imageVariables are those that the entrypoints of known images turn into settings, which an
// instance does not run, and what to use instead. Names that could mean something to
// another program, such as TIMEOUT, are left out.
var imageVariables = map[string]string{ //nolint:gosec // names of variables, and no password
	"ALLOW_EMPTY_PASSWORD":    "spec.auth.enabled",
	"APPENDFSYNC":             "spec.config[appendfsync]",
	"APPENDONLY":              "spec.config[appendonly]",
	"MASTERAUTH":              "spec.auth",
	"MAXCLIENTS":              "spec.config[maxclients]",
	"MAXMEMORY_POLICY":        "spec.config[maxmemory-policy]",
	"MAXMEMORY_SAMPLES":       "spec.config[maxmemory-samples]",
	"REDIS_AOF_ENABLED":       "spec.config[appendonly]",
	"REDIS_ARGS":              "spec.config",
	"REDIS_CLUSTER_REPLICAS":  "spec.replicas and spec.shards",
	"REDIS_EXTRA_FLAGS":       "spec.config",
	"REDIS_REPLICATION_MODE":  "spec.replicas and spec.shards",
	"REQUIREPASS":             "spec.auth",
	"VALKEY_AOF_ENABLED":      "spec.config[appendonly]",
	"VALKEY_CLUSTER_REPLICAS": "spec.replicas and spec.shards",
	"VALKEY_EXTRA_FLAGS":      "spec.config",
	"VALKEY_PASSWORD":         "spec.auth",
	"VALKEY_REPLICATION_MODE": "spec.replicas and spec.shards",
}

// adviseEnv warns of variables that look like settings: no engine reads any from its
// environment.
func adviseEnv(cr *v1alpha1.RedisCluster) []string {
	var warnings []string
	for i, v := range cr.Spec.Template().Env {
		if instead, found := settingOf(v.Name); found {
			warnings = append(warnings, fmt.Sprintf("%s: %s changes nothing in Redis, which reads no settings from its environment; use %s",
				podPath.Child("env").Index(i).Child("name"), v.Name, instead))
		}
	}
	return warnings
}

// settingOf is the field to use in place of a variable that looks like a setting.
func settingOf(variable string) (instead string, found bool) {
	if instead, found = imageVariables[variable]; found {
		return instead, true
	}
	for _, prefix := range []string{"REDIS_", "VALKEY_"} {
		if name, is := strings.CutPrefix(variable, prefix); is {
			name = redisconf.Canonical(strings.ReplaceAll(name, "_", "-"))
			if _, reserved := redisconf.Reserved(name); !reserved && redisconf.Known(name) {
				return "spec.config[" + name + "]", true
			}
		}
	}
	return "", false
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// DataPercent is how much of a container's memory limit maxmemory is. The rest is for what
// does not count as data: the pages that are written while a fork saves or synchronizes, the
// replication backlog, clients' buffers and fragmentation. A quarter is what Amazon ElastiCache
// reserves by default and recommends for most cases ("Managing reserved memory").
const DataPercent = 75

// MaxMemory is the maxmemory in bytes that follows from a memory limit in bytes; 0 without one.
func MaxMemory(limit int64) int64 { return limit / 100 * DataPercent }

const maxMemory = "maxmemory"

// EnvMaxMemory is the variable of pod[0].env that is taken for the setting maxmemory where
// neither spec.config nor the user's ConfigMap has one.
const EnvMaxMemory = "MAXMEMORY"

var errEnvMaxMemory = errors.New("must be a memory size as in redis.conf, digits and b, k, kb, m, mb, g or gb, such as 2gb; " +
	"it is taken for the setting maxmemory where spec.config and the ConfigMap have none")

// CheckEnv says why a variable of pod[0].env cannot be taken for the setting that it stands
// for; nil when it can, or stands for none.
func CheckEnv(v corev1.EnvVar) error {
	if v.Name != EnvMaxMemory {
		return nil
	}
	if v.ValueFrom != nil {
		return errors.New(
			"cannot come from a field of the pod: the operator does not know it; write a memory size such as 2gb, or use another name")
	}
	if _, ok := Memory(v.Value); !ok {
		return errEnvMaxMemory
	}
	return nil
}

// AskedFor are the settings that a cluster asks for: Settings, and where those have no
// maxmemory the one of the variable MAXMEMORY, else the one that follows from the memory limit.
func AskedFor(cr *v1alpha1.RedisCluster, configMap map[string]string) []Setting {
	asked := Settings(cr.Spec.Config, configMap)
	size, source, implied := impliedMaxMemory(cr.Spec.Template())
	if !implied {
		return asked
	}
	for i, setting := range asked {
		switch {
		case setting.Name == maxMemory:
			return asked
		case setting.Name > maxMemory:
			derived := Setting{Name: maxMemory, Args: []string{strconv.FormatInt(size, 10)}, Source: source}
			return append(asked[:i:i], append([]Setting{derived}, asked[i:]...)...)
		}
	}
	return asked
}

// impliedMaxMemory is the maxmemory of a cluster whose settings have none. A variable that
// CheckEnv refuses counts as absent.
func impliedMaxMemory(template v1alpha1.PodTemplate) (size int64, source Source, implied bool) {
	for _, v := range template.Env {
		if v.Name == EnvMaxMemory && CheckEnv(v) == nil {
			size, _ = Memory(v.Value)
			return size, FromEnv, true
		}
	}
	limit := MaxMemory(template.Resources.Limits.Memory().Value())
	return limit, FromLimit, limit > 0
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/settings"
)

// DataPercent is how much of a container's memory limit maxmemory is. The rest is for what
// does not count as data: the pages that are written while a fork saves or synchronizes, the
// replication backlog, clients' buffers and fragmentation. A quarter is what Amazon ElastiCache
// reserves by default and recommends for most cases ("Managing reserved memory").
const DataPercent = 75

// MaxMemory is the maxmemory in bytes that follows from a memory limit in bytes; 0 without one.
func MaxMemory(limit int64) int64 { return limit / 100 * DataPercent }

const maxMemory = "maxmemory"

// AskedFor are the settings that a cluster asks for: Settings, and a maxmemory that follows
// from the memory limit when nobody sets one.
func AskedFor(cr *v1alpha1.RedisCluster, configMap map[string]string) []Setting {
	asked := Settings(cr.Spec.Config, configMap)
	limits := cr.Spec.Template().Resources.Limits
	limit := MaxMemory(limits.Memory().Value())
	if limit == 0 {
		return asked
	}
	for i, setting := range asked {
		switch {
		case setting.Name == maxMemory:
			return asked
		case setting.Name > maxMemory:
			derived := Setting{Name: maxMemory, Args: []string{strconv.FormatInt(limit, 10)}, Source: FromLimit}
			return append(asked[:i:i], append([]Setting{derived}, asked[i:]...)...)
		}
	}
	return asked
}

// AnnotationSettings is the annotation of the pod template that stands for the settings which
// instances take only when they start: a change of one of them changes the template, and so
// restarts the instances one after the other. It is absent when all of them are what the
// engines have anyway.
const AnnotationSettings = "redis.middleware.hc.cn/settings-at-start"

// annotate adds AnnotationSettings to the values of the pod template.
func annotate(pod map[string]any, all []Setting) {
	hash := sha256.New()
	found := false
	for _, s := range all {
		if s.Source == FromOperator || !settings.NeedsRestart(s.Name) || settings.IsDefault(s.Name, s.Value()) {
			continue
		}
		found = true
		_, _ = hash.Write([]byte(s.Line() + "\n")) // a hash takes everything
	}
	if !found {
		return
	}
	annotations := map[string]any{}
	if users, ok := pod["annotations"].(map[string]any); ok {
		for name, value := range users {
			annotations[name] = value
		}
	}
	const digits = 16
	annotations[AnnotationSettings] = hex.EncodeToString(hash.Sum(nil))[:digits]
	pod["annotations"] = annotations
}

func (in Inputs) settings(cr *v1alpha1.RedisCluster) []Setting {
	if in.Settings != nil {
		return in.Settings
	}
	return AskedFor(cr, in.ConfigMapSettings)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"maps"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// AnnotationSettings is the annotation of the pod template that stands for the settings which
// instances take only when they start: a change of one of them changes the template, and so
// restarts the instances one after the other. It is absent when all of them are what the
// engines have anyway.
const AnnotationSettings = "redis.middleware.hc.cn/settings-at-start"

// AnnotationModules is the annotation of the pod template that stands for the modules with their
// arguments: an instance loads them when it starts, so a change of them restarts the instances
// one after the other. It is absent without modules.
const AnnotationModules = "redis.middleware.hc.cn/modules"

// AnnotationHibernated is the annotation of a StatefulSet that was told to ask for no instance, by spec.hibernate: how many there were. It
// is written with the 0, and goes with it.
const AnnotationHibernated = "redis.middleware.hc.cn/hibernated-instances"

// annotate adds what restarts instances when it changes to the annotations of the pod template:
// AnnotationSettings and AnnotationModules. A user's annotations of these names do not count.
func annotate(pod map[string]any, settings []redisconf.Setting, spec *v1alpha1.RedisClusterSpec) {
	annotations := map[string]any{}
	if users, ok := pod["annotations"].(map[string]any); ok {
		maps.Copy(annotations, users)
	}
	delete(annotations, AnnotationSettings)
	delete(annotations, AnnotationModules)
	if digest := redisconf.AtStartDigest(settings); digest != "" {
		annotations[AnnotationSettings] = digest
	}
	if digest := redisconf.ModulesDigest(spec); digest != "" {
		annotations[AnnotationModules] = digest
	}
	delete(pod, "annotations")
	if len(annotations) > 0 {
		pod["annotations"] = annotations
	}
}

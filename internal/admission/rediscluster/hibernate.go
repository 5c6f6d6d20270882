// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// checkHibernate refuses to stop all instances of a cluster whose data would go with them.
func checkHibernate(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	if !cr.Spec.Hibernate {
		return nil
	}
	at := specPath.Child("hibernate")
	var refused field.ErrorList
	if volumes := cr.Spec.Template().Volumes; volumes != nil && volumes.Type == v1alpha1.VolumeEmptyDir {
		refused = append(refused, field.Forbidden(at,
			"all data would be lost: with pod[0].volumes.type emptyDir it goes with the pods; take a RedisBackup and delete the RedisCluster"))
	}
	for _, setting := range redisconf.Settings(cr.Spec.Config, nil) {
		if setting.Name == "appendonly" && !strings.EqualFold(setting.Value(), "yes") {
			refused = append(refused, field.Forbidden(at,
				"data would be lost: config[appendonly] keeps it out of files; set that to yes first, and hibernate when the condition Configured is True"))
		}
	}
	return refused
}

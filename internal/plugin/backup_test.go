// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Whatever the name of the RedisCluster, that of its backup is one that is taken.
func TestNamesOfBackups(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for cluster, want := range map[string]string{
		"cache":                           "cache-20261124-120000",
		strings.Repeat("c", 36):           strings.Repeat("c", 36) + "-20261124-120000",
		strings.Repeat("c", 40):           strings.Repeat("c", 36) + "-20261124-120000",
		strings.Repeat("c-", 18) + "shop": strings.Repeat("c-", 17) + "c-20261124-120000",
	} {
		got := backupName(cluster, now)
		if got != want || len(got) > longestBackup || len(validation.IsDNS1123Label(got)) > 0 {
			t.Errorf("%s: %s", cluster, got)
		}
	}
}

// Each field of a schedule is either copied or its own, and one that is not known is refused, not left out.
func TestFieldsOfSchedules(t *testing.T) {
	all := map[string]any{}
	kind := reflect.TypeOf(v1alpha1.RedisBackupScheduleSpec{})
	for i := range kind.NumField() {
		name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
		all[name] = name
	}
	spec, err := backupSpec(all)
	if err != nil || len(spec) != len(copied) || spec["store"] != "store" {
		t.Errorf("%v, %v", spec, err)
	}
	backup := reflect.TypeOf(v1alpha1.RedisBackupSpec{})
	for i := range backup.NumField() {
		name, _, _ := strings.Cut(backup.Field(i).Tag.Get("json"), ",")
		if _, both := all[name]; both && !slices.Contains(copied, name) {
			t.Errorf("%s of a schedule does not get into its backups", name)
		}
	}
	all["encryption"] = "strong"
	if _, err := backupSpec(all); err == nil || !strings.Contains(err.Error(), "spec.encryption") {
		t.Errorf("a field that is not known: %v", err)
	}
}

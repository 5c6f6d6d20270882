// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// knownSettings are those of all engines that the operator knows.
func knownSettings() []string {
	names := map[string]string{}
	for _, engine := range redisconf.Engines() {
		maps.Copy(names, redisconf.Defaults(engine))
	}
	return slices.Sorted(maps.Keys(names))
}

// listedAfter are the code-quoted texts that a pattern finds in the paragraph of a page that begins so.
func listedAfter(t *testing.T, page, beginning, pattern string) [][]string {
	t.Helper()
	for _, l := range linesOf(t, page) {
		if strings.HasPrefix(l.text, beginning) {
			return regexp.MustCompile(pattern).FindAllStringSubmatch(l.text, -1)
		}
	}
	t.Fatalf("%s has no paragraph that begins with %q", page, beginning)
	return nil
}

// The settings that the page says are refused are, and those of which it says that they can be set are not.
func TestRefusedSettingsAreThoseOfThePage(t *testing.T) {
	redis := kinds(t)["redis.middleware.hc.cn/v1alpha1 RedisCluster"]
	refused := func(name, value string) field.ErrorList {
		return redis.refuses(t, nil, redis.with(t, fmt.Sprintf("spec: {config: {%s: %q}}", name, value)))
	}
	can := map[string]string{"cluster-node-timeout": "5000", "cluster-replica-validity-factor": "10", "cluster-link-sendbuf-limit": "0",
		"cluster-slot-stats-enabled": "yes"}
	for _, match := range listedAfter(t, redisRefusalsPage, "Of `cluster-*` these can be set:", "`(cluster-[a-z-]+)`") {
		if err := refused(match[1], cmp.Or(can[match[1]], "yes")); len(err) > 0 {
			t.Errorf("%s says that %s can be set: %v", redisRefusalsPage, match[1], err)
		}
	}
	for _, row := range rowsOf(t, redisRefusalsPage, "| settings | why |") {
		for _, match := range regexp.MustCompile("`([a-z-]+?)(-?\\*)?`").FindAllStringSubmatch(row[0], -1) {
			one := false
			for _, name := range []string{match[1], match[1] + "-any"} { // a star stands for nothing or for more
				one = one || refusedAt(refused(name, "yes"), "spec.config["+name+"]") && (name == match[1] || match[2] != "")
			}
			if !one {
				t.Errorf("%s says that the setting %s is refused; it is not", redisRefusalsPage, match[0])
			}
		}
	}
}

// The operator's defaults are those that the page lists, and the settings that restart instances are, too.
func TestDefaultSettingsAreThoseOfThePage(t *testing.T) {
	defaults := map[string]string{}
	for _, match := range listedAfter(t, redisPage, "5. the operator's defaults:", "`([a-z-]+) ([a-z0-9]+)`") {
		defaults[match[1]] = match[2]
	}
	got := map[string]string{}
	for _, setting := range redisconf.Settings(nil, nil) {
		if setting.Source == redisconf.FromDefaults {
			got[setting.Name] = setting.Value()
		}
	}
	if diff := gocmp.Diff(got, defaults); diff != "" {
		t.Errorf("the operator's default settings are not those of %s (-code +page):\n%s", redisPage, diff)
	}
	var atStart []string
	for _, row := range rowsOf(t, redisPage, "| setting | way | what happens |") {
		for _, match := range regexp.MustCompile("`([a-z*-]+)`").FindAllStringSubmatch(row[0], -1) {
			atStart = append(atStart, match[1])
		}
	}
	for _, name := range knownSettings() {
		said := slices.ContainsFunc(atStart, func(n string) bool {
			ending, is := strings.CutPrefix(n, "*")
			return n == name || is && strings.HasSuffix(name, ending)
		})
		byDefault, _ := redisconf.Default(name, "redis", "7.0")
		if redisconf.NeedsRestart(name) != said && redisconf.CheckSetting(name, byDefault) == nil {
			t.Errorf("%s takes effect with a restart: %v; %s says %v", name, !said, redisPage, said)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func TestAutoscaleIsChecked(t *testing.T) {
	for spec, want := range map[string]string{
		"autoscale: {minShards: 3, maxShards: 9}":                                      "",
		"{replicas: 6, autoscale: {minShards: 3, maxShards: 3, mode: DryRun}}":         "",
		"{shards: 3, autoscale: {minShards: 3, maxShards: 9}}":                         "spec.shards: Forbidden",
		"{replicas: 8, autoscale: {minShards: 3, maxShards: 9}}":                       "spec.replicas: Invalid",
		"autoscale: {minShards: 1, maxShards: 9}":                                      "spec.autoscale.minShards: Invalid",
		"autoscale: {minShards: 5, maxShards: 4}":                                      "must be at least minShards, which is 5",
		"autoscale: {minShards: 3, maxShards: 501}":                                    "spec.autoscale.maxShards: Invalid",
		"autoscale: {minShards: 3, maxShards: 400, instancesPerShard: 3}":              "makes 1200 instances",
		"autoscale: {minShards: 3, maxShards: 4, instancesPerShard: 11}":               "spec.autoscale.instancesPerShard: Invalid",
		"autoscale: {minShards: 3, maxShards: 4, mode: Off}":                           "spec.autoscale.mode: Unsupported",
		"autoscale: {minShards: 3, maxShards: 4, targets: {memoryPercent: 95}}":        "spec.autoscale.targets.memoryPercent: Invalid",
		"autoscale: {minShards: 3, maxShards: 4, targets: {operationsPerSecond: 1}}":   "spec.autoscale.targets.operationsPerSecond: Invalid",
		"autoscale: {minShards: 3, maxShards: 4, targets: {networkBytesPerSecond: 1}}": "spec.autoscale.targets.networkBytesPerSecond: Invalid",
		"autoscale: {minShards: 3, maxShards: 4, scaleIn: {stabilization: 30s}}":       "spec.autoscale.scaleIn.stabilization: Invalid",
		"autoscale: {minShards: 3, maxShards: 4, scaleOut: {stabilization: 25h}}":      "spec.autoscale.scaleOut.stabilization: Invalid",
		"autoscale: {minShards: 3, maxShards: 4, coolDown: -1s}":                       "spec.autoscale.coolDown: Invalid",
		"{autoscale: {minShards: 3, maxShards: 60}, external: {type: LoadBalancer}}":   "spec.replicas: Invalid value: 120",
		"{autoscale: {minShards: 3, maxShards: 4}, " +
			"updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 5, fromReplicas: a}]}}": "spec.updateStrategy.type: Invalid",
	} {
		all := strings.Join(sentences(Validate(cluster(t, spec), Options{})), "\n")
		if want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%s: %q, want %q", spec, all, want)
		}
	}
}

func TestWindowsAreChecked(t *testing.T) {
	const eight = "{name: a, start: '0 8 * * *', "
	many := strings.Repeat(eight+"duration: 1h, minShards: 5}, ", 17)
	for _, tt := range []struct{ windows, want string }{
		{"{name: a, start: '0 8 * * 1-5', timeZone: Asia/Shanghai, duration: 10h, minShards: 6}, " +
			"{name: b, start: '0 0 * * *', duration: 168h, maxShards: 3}",
			""},
		{eight + "duration: 1h, minShards: 20, maxShards: 20}", ""},
		{"{name: 'A B', start: '0 8 * * *', duration: 1h, minShards: 5}", "spec.autoscale.windows[0].name: Invalid"},
		{"{start: '0 8 * * *', duration: 1h, minShards: 5}", "spec.autoscale.windows[0].name: Invalid"},
		{eight + "duration: 1h, minShards: 5}, {name: a, start: '0 9 * * *', duration: 1h, minShards: 5}",
			"spec.autoscale.windows[1].name: Duplicate"},
		{"{name: a, duration: 1h, minShards: 5}", "spec.autoscale.windows[0].start: Invalid"},
		{"{name: a, start: '0 0 30 2 *', duration: 1h, minShards: 5}", "never comes"},
		{"{name: a, start: '@every 1h', duration: 1h, minShards: 5}", "@every has no fixed times"},
		{"{name: a, start: '" + strings.Repeat("1", 101) + "', duration: 1h, minShards: 5}", "spec.autoscale.windows[0].start: Too long"},
		{eight + "timeZone: Mars/Olympus, duration: 1h, minShards: 5}",
			"spec.autoscale.windows[0].timeZone: Invalid value: \"Mars/Olympus\": is not a time zone; write an IANA name"},
		{eight + "timeZone: Local, duration: 1h, minShards: 5}", "spec.autoscale.windows[0].timeZone: Invalid"},
		{eight + "minShards: 5}", "spec.autoscale.windows[0].duration: Invalid"},
		{eight + "duration: 9m, minShards: 5}", "must be from 10m0s to 168h0m0s"},
		{eight + "duration: 169h, minShards: 5}", "must be from 10m0s to 168h0m0s"},
		{eight + "duration: 1h}", "spec.autoscale.windows[0].minShards: Required"},
		{eight + "duration: 1h, minShards: 2}", "spec.autoscale.windows[0].minShards: Invalid"},
		{eight + "duration: 1h, maxShards: 501}", "spec.autoscale.windows[0].maxShards: Invalid"},
		{eight + "duration: 1h, minShards: 500}", "makes 1500 instances"},
		{eight + "duration: 1h, minShards: 6, maxShards: 5}", "must be at least minShards, which is 6"},
		{eight + "duration: 1h, maxShards: 3}", "set minShards of the window, too"},
		{many, "spec.autoscale.windows: Too many: 17: must have at most 16 items"},
	} {
		windows, want := tt.windows, tt.want
		spec := "autoscale: {minShards: 4, maxShards: 9, instancesPerShard: 3, windows: [" + windows + "]}"
		if want == "" {
			spec = "autoscale: {minShards: 3, maxShards: 9, windows: [" + windows + "]}"
		}
		all := strings.Join(sentences(Validate(cluster(t, spec), Options{})), "\n")
		if want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%s: %q, want %q", windows, all, want)
		}
	}
	// What a window allows counts as what the spec does.
	outside := "{autoscale: {minShards: 3, maxShards: 4, windows: [{name: a, start: '0 8 * * *', duration: 1h, maxShards: 60}]}, " +
		"external: {type: LoadBalancer}}"
	all := strings.Join(sentences(Validate(cluster(t, outside), Options{})), "\n")
	if !strings.Contains(all, "spec.replicas: Invalid value: 120") {
		t.Errorf("%q", all)
	}
}

// A cache that evicts is always full.
func TestAutoscaleOfACacheThatEvicts(t *testing.T) {
	for spec, want := range map[string]bool{
		"{autoscale: {minShards: 3, maxShards: 9}, config: {maxmemory-policy: allkeys-lru}}":                                      true,
		"{autoscale: {minShards: 3, maxShards: 9}, config: {maxmemory-policy: noeviction}}":                                       false,
		"{autoscale: {minShards: 3, maxShards: 9}}":                                                                               false,
		"{autoscale: {minShards: 3, maxShards: 9, targets: {operationsPerSecond: 500}}, config: {maxmemory-policy: allkeys-lru}}": false,
	} {
		if got := strings.Contains(strings.Join(Warnings(cluster(t, spec)), "\n"), "memory asks for maxShards"); got != want {
			t.Errorf("%s: %v", spec, Warnings(cluster(t, spec)))
		}
	}
}

// Who removes autoscale says how many shards there are, or the cluster would become one of the default size.
func TestAutoscaleIsRemoved(t *testing.T) {
	before := cluster(t, "autoscale: {minShards: 3, maxShards: 9}")
	before.Status.Autoscale = &v1alpha1.AutoscaleStatus{Shards: 7}
	if refused := ValidateUpdate(before, cluster(t, "{}"), Options{}); len(refused) != 1 ||
		!strings.Contains(refused[0].Error(), "spec.shards: Required value: with autoscale removed, say how many shards there are: 7 is") {
		t.Errorf("%v", refused)
	}
	// The schema's default is stored since the cluster was autoscaled: nobody asks for shards without replicas.
	if refused := ValidateUpdate(before, cluster(t, "{shards: 5, replicas: 6}"), Options{}); len(refused) != 1 ||
		!strings.Contains(refused[0].Error(), "spec.replicas: Invalid value: 6: with autoscale removed, set replicas to the instances of all shards") {
		t.Errorf("%v", refused)
	}
	for _, spec := range []string{"{shards: 7, replicas: 14}", "{shards: 7, replicas: 7}", "{shards: 3, replicas: 6}",
		"autoscale: {minShards: 4, maxShards: 4}"} {
		if refused := ValidateUpdate(before, cluster(t, spec), Options{}); len(refused) > 0 {
			t.Errorf("%s: %v", spec, refused)
		}
	}
}

// A status that is lost does not scale: what is there counts.
func TestShardsInForce(t *testing.T) {
	c := cluster(t, "autoscale: {minShards: 4, maxShards: 9, instancesPerShard: 3}")
	for exist, want := range map[int32]int32{0: 4, 3: 4, 7: 7, 12: 9} {
		if got := c.ShardsInForce(exist, 4); got != want {
			t.Errorf("%d shards exist: %d", exist, got)
		}
	}
	c.Spec.Autoscale.Windows = []v1alpha1.AutoscaleWindow{{MinShards: ptr.To[int32](11)}, {MaxShards: ptr.To[int32](10)}}
	for exist, want := range map[int32]int32{0: 6, 10: 10, 12: 11} { // what a window allowed goes by the load
		if got := c.ShardsInForce(exist, 6); got != want {
			t.Errorf("%d shards exist, in a window: %d", exist, got)
		}
	}
	c.Spec.Autoscale.Windows = nil
	c.Spec.Autoscale.Mode = v1alpha1.AutoscaleDryRun // which changes nothing, whatever the bounds
	for exist, want := range map[int32]int32{0: 4, 1: 4, 7: 7} {
		if got := c.ShardsInForce(exist, 4); got != want {
			t.Errorf("a dry run of a new cluster, %d shards exist: %d", exist, got)
		}
	}
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFormed, Status: metav1.ConditionTrue}}
	for exist, want := range map[int32]int32{0: 4, 1: 1, 3: 3, 12: 12, 1 << 30: v1alpha1.MaxShards} {
		if got := c.ShardsInForce(exist, 4); got != want {
			t.Errorf("a dry run, %d shards exist: %d", exist, got)
		}
	}
	c.Spec.Autoscale.Mode = v1alpha1.AutoscaleAuto
	c.Status.Autoscale = &v1alpha1.AutoscaleStatus{Shards: 5}
	with := c.WithShards(c.ShardsInForce(8, 4))
	if *with.Spec.Shards != 5 || *with.Spec.Replicas != 15 || with.Spec.Autoscale != nil || c.Spec.Shards != nil || c.Spec.Autoscale == nil ||
		*c.Spec.Replicas != *ptr.To(v1alpha1.DefaultReplicas) {
		t.Errorf("%+v", with.Spec)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// series are time series in the notation of promtool: one value a minute, from the start on.
type series map[string]string

const (
	redis    = `middleware_operator_rediscluster_`
	instance = redis + `instance_`
	cart     = `{namespace="shop",name="cart"}`
	pod      = `{namespace="shop",name="cart",shard="0",pod="cart-0-0"}`
	up       = `middleware_operator_build_info{version="1"}`
	certs    = redis + `certificate_expiry_timestamp_seconds` + cart
)

// of is a condition of an object.
func of(kind, condition, reason string) string {
	return `middleware_operator_resource_condition{group="g",kind="` + kind + `",namespace="shop",name="cart",type="` + condition +
		`",reason="` + reason + `"}`
}

func phase(is string) string { return redis + `phase{namespace="shop",name="cart",phase="` + is + `"}` }

// staged are, for each alert, series with which it fires, and by when; and what is part of ordinary work, with which it never does.
var staged = map[string]struct {
	fires  series
	within string
	silent map[string]series
}{
	"MiddlewareOperatorDown": {fires: series{}, within: "90s", silent: map[string]series{
		"it restarts": {`middleware_operator_build_info{version="1"}`: "1x20 stale 1x60"}}},
	"MiddlewareOperatorFailing": {
		fires: series{`controller_runtime_reconcile_errors_total{controller="app"}`: "0+8x60",
			`controller_runtime_reconcile_total{controller="app"}`: "0+10x60"}, within: "20m",
		silent: map[string]series{"conflicts now and then": {`controller_runtime_reconcile_errors_total{controller="app"}`: "0+2x90",
			`controller_runtime_reconcile_total{controller="app"}`: "0+10x90"}}},
	"MiddlewareObjectStalled": {fires: series{of("App", "Stalled", "RenderFailed"): "1x60"}, within: "90s", silent: map[string]series{
		"corrected at once": {of("App", "Stalled", "RenderFailed"): "1 0x60"}}},
	"MiddlewareObjectNotReady": {fires: series{of("App", "Ready", "ChildNotReady"): "0x20", of("App", "Ready", "ChildFailed"): "_x21 0x40"},
		within: "31m", silent: map[string]series{
			"a rollout":              {of("RedisCluster", "Ready", "Upgrading"): "0x20 1x60"},
			"Stalled tells it":       {of("App", "Ready", "RenderFailed"): "0x90", of("App", "Stalled", "RenderFailed"): "1x90"},
			"paused":                 {of("App", "Ready", "Paused"): "0x90", of("App", "Paused", "Paused"): "1x90"},
			"hibernated":             {of("RedisCluster", "Ready", "Hibernated"): "0x90", of("RedisCluster", "Hibernated", "Stopped"): "1x90"},
			"its data is let go":     {of("RedisCluster", "Ready", "Deleting"): "0x90", phase("Deleting"): "1x90"},
			"not known for a moment": {of("App", "Ready", "ChildNotReady"): "0x10 -1x5 1x60"}}},
	"MiddlewareChangeNotSeen": {
		fires: series{`middleware_operator_resource_generations_behind{kind="App",namespace="shop",name="web"}`: "2x60"}, within: "6m",
		silent: map[string]series{"ordinary": {`middleware_operator_resource_generations_behind{kind="App",name="web"}`: "1 0x10 1 0x60"}}},
	"RedisClusterSlotsUncovered": {fires: series{redis + "slots_covered" + cart: "16384x5 10923x30"}, within: "7m30s",
		silent: map[string]series{
			"a failover": {redis + "slots_covered" + cart: "16384x5 10923 16384x60", phase("Running"): "1x60"},
			"it forms":   {redis + "slots_covered" + cart: "0x15 16384x60", phase("Creating"): "1x15 0x60"}}},
	"RedisClusterFailed": {fires: series{phase("Failed"): "1x60"}, within: "90s", silent: map[string]series{
		"an upgrade": {phase("Upgrading"): "1x90"},
		"a failover": {phase("Failed"): "0x5 1 0x60"}}},
	"RedisClusterInstancesNotReady": {
		fires: series{redis + "instances_ready" + cart: "5x60", redis + "instances" + cart: "6x60"}, within: "16m",
		silent: map[string]series{"a rollout, one instance after the other": {redis + "instances_ready" + cart: "5 6 5 5 6 5 6 5 5 6 5 6x60",
			redis + "instances" + cart: "6x90"}}},
	"RedisClusterMemoryNearlyFull": {
		fires: series{instance + "memory_used_bytes" + pod: "95x60", instance + "memory_max_bytes" + pod: "100x60",
			instance + "memory_full_refuses" + pod: "1x60"}, within: "11m",
		silent: map[string]series{
			"a cache": {instance + "memory_used_bytes" + pod: "99x90", instance + "memory_max_bytes" + pod: "100x90",
				instance + "memory_full_refuses" + pod: "0x90"},
			"no limit": {instance + "memory_used_bytes" + pod: "99x90", instance + "memory_max_bytes" + pod: "0x90",
				instance + "memory_full_refuses" + pod: "1x90"}}},
	"RedisClusterCannotWriteToDisk": {fires: series{instance + "append_only_file_written" + pod: "1x3 0x60"}, within: "5m30s",
		silent: map[string]series{"well": {instance + "append_only_file_written" + pod: "1x90", instance + "snapshot_saved" + pod: "1x90"}}},
	"RedisClusterAnomalous": {fires: series{of("RedisCluster", "Anomalous", "SlowFork"): "1x60"}, within: "11m", silent: map[string]series{
		"for a while":              {of("RedisCluster", "Anomalous", "FailsOver"): "1x8 0x60"},
		"another alert tells that": {of("RedisCluster", "Anomalous", "ReplicaBehind"): "1x60"}}},
	"UpgradeFails": {fires: series{`middleware_operator_fleet_objects{kind="App.apps",state="failed"}`: "1x60",
		`middleware_operator_fleet_objects{kind="App.apps",state="waiting"}`: "20x60"}, within: "6m", silent: map[string]series{
		"it is well again": {`middleware_operator_fleet_objects{kind="App.apps",state="failed"}`: "1x4 0x60",
			`middleware_operator_fleet_objects{kind="App.apps",state="waiting"}`: "20x60"},
		"none waits for it": {`middleware_operator_fleet_objects{kind="App.apps",state="failed"}`: "1x60",
			`middleware_operator_fleet_objects{kind="App.apps",state="waiting"}`: "0x60"}}},
	"RedisClusterReplicaBehind": {fires: series{instance + "replication_behind_bytes" + pod: "100000000x60"}, within: "11m",
		silent: map[string]series{"a copy": {instance + "replication_behind_bytes" + pod: "100000000x5 1000x60"}}},
	"RedisClusterRejectsConnections": {fires: series{instance + "rejected_connections_total" + pod: "0+3x60"}, within: "8m",
		silent: map[string]series{
			"once":      {instance + "rejected_connections_total" + pod: "0x5 4x90"},
			"a restart": {instance + "rejected_connections_total" + pod: "50x10 0x60"}}},
	"RedisClusterArchiveBehind": {fires: series{redis + "archiving" + cart: "0x60"}, within: "6m",
		silent: map[string]series{
			"slots move": {redis + "archiving" + cart: "0x30 1x60", redis + "slots_to_move" + cart: "900x30 0x60"},
			"it goes":    {redis + "archiving" + cart: "0x90", phase("Deleting"): "1x90"}}},
	"RedisClusterCertificateExpiresSoon": {fires: series{certs: "1000000x90"}, within: "90s",
		silent: map[string]series{"renewed in time": {certs: "2592000x90"}}},
	"RedisClusterCertificateExpires": {fires: series{certs: "100000x60"}, within: "90s",
		silent: map[string]series{"a week is left": {certs: "604800x90"}}},
	"RedisBackupFails": {fires: series{of("RedisBackupSchedule", "BackedUp", "BackupFailed"): "0x60"}, within: "90s",
		silent: map[string]series{"none was taken yet": {of("RedisBackupSchedule", "BackedUp", "NoBackup"): "-1x90"}}},
	"RedisBackupNotScheduled": {fires: series{of("RedisBackupSchedule", "Scheduled", "ClusterNotFound"): "0x60"}, within: "90s",
		silent: map[string]series{"suspended": {of("RedisBackupSchedule", "Scheduled", "Suspended"): "0x90"}}},
	"RedisBackupNotVerified": {fires: series{of("RedisBackupSchedule", "Verified", "KeysMissing"): "0x60"}, within: "90s",
		silent: map[string]series{"it is being found out": {of("RedisBackupSchedule", "Verified", "Restoring"): "-1x90"}}},
}

type seriesOf struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

type expression struct {
	Expr    string   `json:"expr"`
	At      string   `json:"eval_time"`
	Samples []sample `json:"exp_samples"`
}

type sample struct {
	Labels string  `json:"labels"`
	Value  float64 `json:"value"`
}

type ruleTest struct {
	Name     string       `json:"name"`
	Interval string       `json:"interval"`
	Input    []seriesOf   `json:"input_series"`
	Exprs    []expression `json:"promql_expr_test"`
}

func (s series) input() (list []seriesOf) {
	for name, values := range s {
		list = append(list, seriesOf{name, values})
	}
	return list
}

// ordinary is work during which no alert fires, whichever: what all of it looks like, minute by minute.
var ordinary = map[string]series{
	"a rollout": {up: "1x90", phase("Upgrading"): "1x30 0x60", of("RedisCluster", "Ready", "Upgrading"): "0x25 1x60",
		redis + "instances" + cart: "6x90", redis + "instances_ready" + cart: "5x4 6 5x6 6 5x3 6 5x3 6 5x5 6x60",
		redis + "slots_covered" + cart: "16384x90", instance + "replication_behind_bytes" + pod: "300000000x6 0x80",
		`middleware_operator_resource_generations_behind{kind="RedisCluster",namespace="shop",name="cart"}`: "1 0x90"},
	"a scaling": {up: "1x90", phase("Scaling"): "1x40 0x50", redis + "instances" + cart: "8x90",
		redis + "instances_ready" + cart: "6x4 7 8x85", redis + "slots_covered" + cart: "16384x90",
		redis + "slots_to_move" + cart: "900-30x29 0x60",
		redis + "archiving" + cart:     "0x30 1x60", instance + "memory_used_bytes" + pod: "80x10 93x5 60x75",
		instance + "memory_max_bytes" + pod: "100x90", instance + "memory_full_refuses" + pod: "1x90"},
	"a backup": {up: "1x90", of("RedisBackupSchedule", "BackedUp", "BackupComplete"): "1x90",
		of("RedisBackupSchedule", "Scheduled", "FormerStillTaken"): "1x90", of("RedisBackupSchedule", "Verified", "Restoring"): "-1x20 1x70",
		of("RedisBackup", "Completed", "Taking"): "0x30 1x60", instance + "snapshot_saved" + pod: "1x90",
		instance + "append_only_file_written" + pod: "1x90", redis + "instances" + cart: "6x90", redis + "instances_ready" + cart: "6x90"},
	"a drain, also of the operator's node": {up: "1x10 stale 1x80", redis + "instances" + cart: "6x10 stale 6x80",
		redis + "instances_ready" + cart: "6x7 5x3 stale 5x4 6x75", redis + "slots_covered" + cart: "16384x10 stale 16384x80",
		of("RedisCluster", "Ready", "InstancesNotReady"): "1x7 0x3 stale 0x4 1x75", redis + "archiving" + cart: "1x10 stale 0x2 1x78"},
	"the operator restarts": {up: "1x10 stale 1x80", redis + "slots_covered" + cart: "16384x10 stale 16384x80",
		of("App", "Ready", "Ready"):                                   "1x10 stale -1 1x80",
		`controller_runtime_reconcile_errors_total{controller="app"}`: "3x10 stale 0+4x3 12x80",
		`controller_runtime_reconcile_total{controller="app"}`:        "900x10 stale 4+4x3 16+1x80",
		instance + "rejected_connections_total" + pod:                 "7x10 stale 7x80"},
}

// TestAlertsAreSilentInOrdinaryWork: none fires, at no minute of an hour and a half.
func TestAlertsAreSilentInOrdinaryWork(t *testing.T) {
	var tests []ruleTest
	for what, input := range ordinary {
		tests = append(tests, ruleTest{Name: what, Interval: "1m", Input: input.input(),
			Exprs: []expression{{Expr: `count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[89m]))`, At: "89m"}}})
	}
	promtool(t, tests)
}

// TestAlertsFire stages each alert in Prometheus' own engine: it fires in time, and never in ordinary work, at no minute of an hour.
func TestAlertsFire(t *testing.T) {
	var tests []ruleTest
	for _, rule := range rules(t) {
		if rule.Alert == "" {
			continue
		}
		stage, is := staged[rule.Alert]
		if !is || len(stage.silent) == 0 {
			t.Errorf("%s is not staged", rule.Alert)
			continue
		}
		firing := `count(ALERTS{alertname="` + rule.Alert + `",alertstate="firing"})`
		tests = append(tests, ruleTest{Name: rule.Alert + " fires", Interval: "1m", Input: stage.fires.input(),
			Exprs: []expression{{Expr: firing, At: stage.within, Samples: []sample{{"{}", 1}}}}})
		for what, ordinary := range stage.silent {
			tests = append(tests, ruleTest{Name: rule.Alert + " is silent: " + what, Interval: "1m", Input: ordinary.input(),
				Exprs: []expression{{Expr: "count_over_time(" + strings.TrimSuffix(strings.TrimPrefix(firing, "count("), ")") + "[80m])", At: "80m"}}})
		}
	}
	promtool(t, tests)
}

// TestSums are those of masters, cluster by cluster.
func TestSums(t *testing.T) {
	in := func(metric, shard, pod string) string {
		return instance + metric + `{namespace="shop",name="cart",shard="` + shard + `",pod="` + pod + `"}`
	}
	input := series{
		in("master", "0", "a"): "1x30", in("master", "0", "b"): "0x30", in("master", "1", "c"): "1x30",
		in("keys", "0", "a"): "10x30", in("keys", "0", "b"): "9x30", in("keys", "1", "c"): "5x30",
		in("memory_used_bytes", "0", "a"): "100x30", in("memory_used_bytes", "0", "b"): "90x30", in("memory_used_bytes", "1", "c"): "50x30",
		in("commands_total", "0", "a"): "0+60x30", in("commands_total", "0", "b"): "0+6x30", in("commands_total", "1", "c"): "0+120x30",
		in("clients", "0", "a"): "3x30", in("clients", "1", "c"): "4x30",
		in("hits_total", "0", "a"): "0+30x30", in("misses_total", "0", "a"): "0+10x30",
	}
	of := func(labels string) string { return `{name="cart", namespace="shop"` + labels + `}` }
	var exprs []expression
	for name, value := range map[string]float64{"commands:rate5m": 3.1, "keys:sum": 15, "memory_used_bytes:sum": 150, "clients:sum": 7,
		"hit_ratio:rate5m": 0.75} {
		record := "namespace_name:rediscluster_" + name
		exprs = append(exprs, expression{record, "20m", []sample{{strings.Replace(of(""), "{", record+"{", 1), value}}})
	}
	for name, values := range map[string][2]float64{"commands:rate5m": {1.1, 2}, "keys:sum": {10, 5}, "memory_used_bytes:sum": {100, 50}} {
		record := "namespace_name_shard:rediscluster_" + name
		exprs = append(exprs, expression{record, "20m", []sample{
			{strings.Replace(of(`, shard="0"`), "{", record+"{", 1), values[0]},
			{strings.Replace(of(`, shard="1"`), "{", record+"{", 1), values[1]}}})
	}
	failover := series{in("master", "0", "a"): "1x5 0x30", in("master", "0", "b"): "0x5 1x30"}
	record := "namespace_name_shard:rediscluster_master_changes:changes15m"
	promtool(t, []ruleTest{
		{Name: "sums", Interval: "1m", Input: input.input(), Exprs: exprs},
		{Name: "failover", Interval: "1m", Input: failover.input(), Exprs: []expression{{record, "12m",
			[]sample{{strings.Replace(of(`, shard="0"`), "{", record+"{", 1), 1}}}}},
	})
}

// promtool runs tests of the rules as a file of their own, as who has no Prometheus operator takes them.
func promtool(t *testing.T, tests []ruleTest) {
	t.Helper()
	tool, err := exec.CommandContext(t.Context(), "../../hack/tool.sh", "prometheus", "promtool").Output()
	if err != nil {
		t.Fatalf("promtool cannot be built: %v", err)
	}
	var rule struct{ Spec map[string]any }
	read(t, "rules.yaml", &rule)
	dir := t.TempDir()
	write := func(file string, what any) {
		text, err := yaml.Marshal(what)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write("rules.yaml", rule.Spec)
	write("test.yaml", map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "30s", "tests": tests})
	run := exec.CommandContext(t.Context(), string(bytes.TrimSpace(tool)), "test", "rules", filepath.Join(dir, "test.yaml"))
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

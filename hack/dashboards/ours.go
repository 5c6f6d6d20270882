// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

func all() []Dashboard {
	return []Dashboard{fleet(), redisCluster(), chartKinds(), operator()}
}

const (
	condition = "middleware_operator_resource_condition"
	chosen    = `{group=~"$group",kind=~"$kind",namespace=~"$namespace"}`
	object1   = "{{kind}} {{namespace}}/{{name}}"
	all24     = columns
	half      = columns / 2
	third     = columns / 3
	quarter   = columns / 4
	eighth    = columns / 8
)

// with is the condition of the chosen objects that have a value of it.
func with(kind string, value int) string {
	return fmt.Sprintf(`%s{type="%s",group=~"$group",kind=~"$kind",namespace=~"$namespace"} == %d`, condition, kind, value)
}

func objectVariables() []Variable {
	return []Variable{{Name: "group", Series: condition, All: true}, {Name: "kind", Series: condition + `{group=~"$group"}`, All: true},
		{Name: "namespace", Series: condition + `{group=~"$group",kind=~"$kind"}`, All: true}}
}

func stat(title, expr, unit string) Panel {
	return Panel{Title: title, Form: Stat, Unit: unit, Width: eighth, Queries: []Query{{Expr: expr}}}
}

func lines(title, expr, legend, unit string) Panel {
	return Panel{Title: title, Form: Lines, Unit: unit, Width: third, Queries: []Query{{expr, legend}}}
}

func sometimes(p Panel) Panel {
	p.Sometimes = true
	return p
}

func count(of string) string { return fmt.Sprintf("count(%s) or vector(0)", of) }

func fleet() Dashboard {
	return Dashboard{
		UID: "middleware-fleet", Title: "Middleware / Fleet", About: "Every object of every kind that the Middleware Operator reconciles.",
		Variables: objectVariables(),
		Rows: []Row{
			{"Now", []Panel{
				stat("Objects", count(`count by (group, kind, namespace, name) (`+condition+chosen+`)`), "short"),
				stat("Ready", count(with("Ready", 1)), "short"),
				stat("Not ready", count(with("Ready", 0)), "short"),
				stat("Need somebody", count(with("Stalled", 1)), "short"),
				stat("Paused", count(with("Paused", 1)), "short"),
				stat("Changes not seen", `count(middleware_operator_resource_generations_behind`+chosen+` > 0) or vector(0)`, "short"),
			}},
			{"Objects", []Panel{
				{Title: "Not ready, and why", Form: Table, Width: half, Sometimes: true, Queries: []Query{{Expr: with("Ready", 0)}}},
				{Title: "Need somebody, and why", Form: Table, Width: half, Sometimes: true, Queries: []Query{{Expr: with("Stalled", 1)}}},
				{Title: "Ready", Form: States, Width: all24, Queries: []Query{{
					fmt.Sprintf(`max without (reason) (%s{type="Ready",group=~"$group",kind=~"$kind",namespace=~"$namespace"})`, condition), object1}}},
				{Title: "Ready or not for", Form: Table, Unit: "s", Width: all24, Queries: []Query{{
					Expr: `sort(time() - middleware_operator_resource_ready_changed_timestamp_seconds` + chosen + `)`}}},
			}},
			reconciliations(`{controller=~".+"}`),
		},
	}
}

func reconciliations(selector string) Row {
	return Row{"Reconciliations", []Panel{
		lines("By outcome", `sum by (controller, result) (rate(controller_runtime_reconcile_total`+selector+`[5m]))`,
			"{{controller}} {{result}}", "ops"),
		lines("Half take less than", `histogram_quantile(0.5, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket`+
			selector+`[5m])))`, "{{controller}}", "s"),
		lines("Waiting", `sum by (name) (workqueue_depth{name=~".+"})`, "{{name}}", "short"),
	}}
}

func chartKinds() Dashboard {
	release := func(name, reason string) Panel {
		return stat(name, count(fmt.Sprintf(`%s{type="Deployed",reason=~"%s",group=~"$group",kind=~"$kind",namespace=~"$namespace"}`, condition,
			reason)), "short")
	}
	return Dashboard{
		UID: "middleware-chart-kinds", Title: "Middleware / Chart kinds",
		About: "Objects that are releases of a chart: App, CronTab, FooBar, and kinds of yours.",
		Variables: []Variable{{Name: "group", Series: condition + `{type="Deployed"}`, All: true},
			{Name: "kind", Series: condition + `{type="Deployed",group=~"$group"}`, All: true},
			{Name: "namespace", Series: condition + `{type="Deployed",group=~"$group",kind=~"$kind"}`, All: true}},
		Rows: []Row{
			{"Releases", []Panel{
				release("Installed", "InstallSuccessful"), release("Upgraded", "UpgradeSuccessful"), release("Not deployed", "NotDeployed"),
				stat("Failed", count(with("ReleaseFailed", 1)), "short"),
				stat("Need somebody", count(with("Irreconcilable", 1)), "short"),
				stat("Not in Helm's history", count(with("HistoryRecorded", 0)), "short"),
				{Title: "By kind", Form: Band, Unit: "short", Width: half, Queries: []Query{{
					fmt.Sprintf(`count by (kind) (%s{type="Deployed",group=~"$group",kind=~"$kind",namespace=~"$namespace"})`, condition), "{{kind}}"}}},
				{Title: "Failed, and why", Form: Table, Width: half, Sometimes: true, Queries: []Query{{Expr: with("ReleaseFailed", 1)}}},
			}},
			reconciliations(`{controller!~"rediscluster|redisbackup.*"}`),
		},
	}
}

func operator() Dashboard {
	return Dashboard{
		UID: "middleware-operator", Title: "Middleware / Operator", About: "The Middleware Operator itself.",
		Rows: []Row{
			{"Now", []Panel{
				{Title: "Version", Form: Table, Width: half, Queries: []Query{{Expr: "middleware_operator_build_info"}}},
				{Title: "Leads", Form: States, Width: half, Queries: []Query{{
					"max by (name, instance, pod) (leader_election_master_status)", "{{pod}} {{instance}}"}}},
			}},
			reconciliations(`{controller=~".+"}`),
			{"Redis", []Panel{
				sometimes(lines("Steps", `sum by (step, outcome) (rate(middleware_operator_rediscluster_step_duration_seconds_count[5m]))`,
					"{{step}} {{outcome}}", "ops")),
				sometimes(lines("Mean time of a step", `sum by (step) (rate(middleware_operator_rediscluster_step_duration_seconds_sum[5m]))
  / sum by (step) (rate(middleware_operator_rediscluster_step_duration_seconds_count[5m]) > 0)`, "{{step}}", "s")),
				sometimes(lines("Held back", `count by (predicate) (middleware_operator_rediscluster_blocked)`, "{{predicate}}", "short")),
			}},
			{"What it costs", []Panel{
				lines("Processor", `rate(process_cpu_seconds_total{job=~".*middleware-operator.*"}[5m])`, "{{instance}}", "short"),
				lines("Memory", `process_resident_memory_bytes{job=~".*middleware-operator.*"}`, "{{instance}}", "bytes"),
				lines("Requests to the API server", `sum by (method, code) (rate(rest_client_requests_total[5m]))`, "{{method}} {{code}}", "ops"),
			}},
		},
	}
}

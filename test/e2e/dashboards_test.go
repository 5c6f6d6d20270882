// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// dashboard is what a test reads of a file of config/grafana.
type dashboard struct {
	Title  string
	Panels []struct {
		Title, Description string
		Targets            []struct{ Expr string }
	}
}

func dashboards(t *testing.T) (all []dashboard) {
	t.Helper()
	files, err := filepath.Glob("../../config/grafana/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	for _, file := range files {
		var one dashboard
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, one)
	}
	return all
}

// Every panel of every dashboard shows something, by a Prometheus that scrapes the operator, and no alert is about a cluster that is well.
func TestDashboardsHaveData(t *testing.T) {
	t.Parallel() // it waits for scrapes most of the time
	if !live.Local() {
		t.Skip("runs Prometheus in the network of the local cluster")
	}
	namespace := live.NewNamespace(t)
	prometheus := live.StartPrometheus(t, namespace)
	var app appv1alpha1.App
	place(t, "appcontroller_v1alpha1_app.yaml", &app, namespace)
	var clusters []*v1alpha1.RedisCluster
	for _, engine := range newest() {
		cluster := newCluster(namespace, engine.name)
		cluster.Name = strings.ReplaceAll(engine.name, ".", "-")
		cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
		live.Create(t, cluster)
		clusters = append(clusters, cluster)
	}
	live.Ready(t, &app)
	for _, cluster := range clusters {
		live.Ready(t, cluster)
		write(t, cluster, 100)
		for _, board := range dashboards(t) {
			for _, panel := range board.Panels {
				if strings.HasPrefix(panel.Description, "Empty while") {
					continue
				}
				for _, target := range panel.Targets {
					shows(t, prometheus, cluster, board.Title+", "+panel.Title, target.Expr)
				}
			}
		}
	}
	firing, err := prometheus.Query(t.Context(), fmt.Sprintf(`ALERTS{alertstate="firing",namespace=%q}`, namespace))
	if err != nil || len(firing) > 0 {
		t.Errorf("alerts: %v, %v", firing, err)
	}
}

func shows(t *testing.T, prometheus *live.Prometheus, cluster *v1alpha1.RedisCluster, what, expr string) {
	t.Helper()
	expr = strings.NewReplacer("$namespace", cluster.Namespace, "$name", cluster.Name, "$group", ".*", "$kind", ".*").Replace(expr)
	live.Eventually(t, what+" has data", func() error {
		series, err := prometheus.Query(t.Context(), expr)
		if err == nil && len(series) == 0 {
			return fmt.Errorf("%s: there is none of %s", cluster.Name, expr)
		}
		return err
	})
}

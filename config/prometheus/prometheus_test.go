// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus tests that what this directory watches is what the operator gives.
package prometheus

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestTheMetricsServiceIsScraped: that one and no other, since the webhooks' Service has a port of the same name.
func TestTheMetricsServiceIsScraped(t *testing.T) {
	var monitor struct {
		Spec struct {
			Selector  metav1.LabelSelector
			Endpoints []struct{ Port string }
		}
	}
	read(t, "service_monitor.yaml", &monitor)
	selector, err := metav1.LabelSelectorAsSelector(&monitor.Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	var scraped []string
	for _, file := range []string{"../manager/metrics_service.yaml", "../webhook/service.yaml"} {
		var service corev1.Service
		read(t, file, &service)
		for _, port := range service.Spec.Ports {
			if selector.Matches(labels.Set(service.Labels)) && port.Name == monitor.Spec.Endpoints[0].Port {
				scraped = append(scraped, service.Name+" "+port.TargetPort.String())
			}
		}
	}
	if diff := cmp.Diff([]string{"middleware-operator-metrics metrics"}, scraped); diff != "" {
		t.Error(diff)
	}
}

var (
	metricName = regexp.MustCompile(`middleware_operator_[a-z_]+`)
	phaseList  = regexp.MustCompile(`phase=~?"([A-Za-z|]+)"`)
)

// TestAlertsAreAboutMetricsThatExist: an alert on a metric that was renamed never fires.
func TestAlertsAreAboutMetricsThatExist(t *testing.T) {
	reference, err := os.ReadFile("../../docs/reference/metrics.md") // made from the code
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` ").FindAllStringSubmatch(string(reference), -1) {
		known = append(known, row[1])
	}
	phases := []redisv1alpha1.Phase{redisv1alpha1.PhaseNone, redisv1alpha1.PhaseCreating, redisv1alpha1.PhaseRunning,
		redisv1alpha1.PhaseFailed,
		redisv1alpha1.PhaseScaling, redisv1alpha1.PhaseUpgrading, redisv1alpha1.PhaseHibernating, redisv1alpha1.PhaseHibernated,
		redisv1alpha1.PhaseWaking, redisv1alpha1.PhasePaused, redisv1alpha1.PhaseDeleting}

	for _, rule := range rules(t) {
		for _, name := range metricName.FindAllString(rule.Expr, -1) {
			if !slices.Contains(known, name) {
				t.Errorf("%s%s: there is no metric %s", rule.Alert, rule.Record, name)
			}
		}
		for _, list := range phaseList.FindAllStringSubmatch(rule.Expr, -1) {
			for _, phase := range strings.Split(list[1], "|") {
				if !slices.Contains(phases, redisv1alpha1.Phase(phase)) {
					t.Errorf("%s: there is no phase %s", rule.Alert, phase)
				}
			}
		}
	}
}

// TestAlertsSayWhatToDo: a severity to route by, one line for a pager, what to look at, and a page with more.
func TestAlertsSayWhatToDo(t *testing.T) {
	runbooks, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules(t) {
		if rule.Alert == "" {
			continue
		}
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has the severity %q", rule.Alert, s)
		}
		if rule.Annotations["summary"] == "" || !strings.Contains(rule.Annotations["description"], "kubectl ") {
			t.Errorf("%s lacks a summary, or a description with a command to look further", rule.Alert)
		}
		_, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "docs/troubleshooting.md#")
		if anchor != strings.ToLower(rule.Alert) || !strings.Contains(string(runbooks), "\n### "+rule.Alert+"\n") {
			t.Errorf("%s: docs/troubleshooting.md has no heading for %s", rule.Alert, rule.Annotations["runbook_url"])
		}
		if _, entry, _ := strings.Cut(string(runbooks), "\n### "+rule.Alert+"\n\n"); !strings.HasPrefix(entry, "`kubectl ") &&
			!strings.HasPrefix(entry, "```sh\nkubectl ") {
			t.Errorf("%s: its runbook does not begin with what to type", rule.Alert)
		}
	}
}

// TestTimesAreThoseOfThePage: the page lists each alert with its severity and time; one that waits for longer than a minute,
// and so may fire later than two minutes after its fault, has a reason.
func TestTimesAreThoseOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	var said, are []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (\\w+) \\| (.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		said = append(said, strings.Join(row[1:4], " "))
		if late := row[3] != "1m"; late != (row[4] != "") {
			t.Errorf("%s fires after %s because of %q", row[1], row[3], row[4])
		}
	}
	for _, rule := range rules(t) {
		if rule.Alert != "" {
			are = append(are, rule.Alert+" "+rule.Labels["severity"]+" "+rule.For)
		}
	}
	if diff := cmp.Diff(are, said); diff != "" {
		t.Errorf("the alerts are not those of docs/monitoring.md (-rules +page):\n%s", diff)
	}
}

// alert is a rule; one that records a series has no Alert.
type alert struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

func rules(t *testing.T) []alert {
	t.Helper()
	var rule struct {
		Spec struct{ Groups []struct{ Rules []alert } }
	}
	read(t, "rules.yaml", &rule)
	var all []alert
	for _, group := range rule.Spec.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("rules.yaml has no alert")
	}
	return all
}

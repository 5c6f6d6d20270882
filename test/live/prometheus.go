// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	root       = "../../"
	listen     = "127.0.0.1:19090" // in the cluster's network
	scrapeEach = "5s"
)

// Prometheus scrapes the operator as the ServiceMonitor of config/prometheus says, with the labels that the Prometheus operator adds, and
// has the rules beside it. It runs in the network of the local cluster until the test ends.
type Prometheus struct{ promtool string }

// StartPrometheus starts one, whose service account is in the namespace.
func StartPrometheus(t *testing.T, namespace string) *Prometheus {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content any) string {
		text, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	var rules struct{ Spec map[string]any }
	text, err := os.ReadFile(root + "config/prometheus/rules.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	relabel := func(from, to, keep string) map[string]any {
		if keep != "" {
			return map[string]any{"source_labels": []string{from}, "action": "keep", "regex": keep}
		}
		return map[string]any{"source_labels": []string{from}, "target_label": to}
	}
	const meta = "__meta_kubernetes_"
	config := write("prometheus.yaml", map[string]any{
		"global":     map[string]any{"scrape_interval": scrapeEach, "evaluation_interval": scrapeEach},
		"rule_files": []string{write("rules.yaml", rules.Spec)},
		"scrape_configs": []any{map[string]any{
			"job_name": "operator", "honor_labels": true, "scheme": "https", "tls_config": map[string]any{"insecure_skip_verify": true},
			"authorization": map[string]any{"credentials": metricsToken(t, namespace)},
			"kubernetes_sd_configs": []any{map[string]any{"role": "endpointslice", "kubeconfig_file": os.Getenv("KUBECONFIG"),
				"namespaces": map[string]any{"names": []string{OperatorNamespace}}}},
			"relabel_configs": []any{
				relabel(meta+"service_label_app_kubernetes_io_component", "", "metrics"), relabel(meta+"endpointslice_port_name", "", "https"),
				relabel(meta+"namespace", "namespace", ""), relabel(meta+"pod_name", "pod", ""), relabel(meta+"service_name", "job", ""),
			},
		}},
	})
	run := func(binary string) string {
		path, err := exec.CommandContext(t.Context(), root+"hack/tool.sh", "prometheus", binary).Output() //nolint:gosec // a binary of our own
		if err != nil {
			t.Fatalf("%s cannot be built: %v", binary, err)
		}
		return strings.TrimSpace(string(path))
	}
	server := exec.Command(root+"hack/cluster.sh", "exec-net", "--", run("prometheus"), //nolint:noctx,gosec // stopped below
		"--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+listen)
	var log strings.Builder
	server.Stdout, server.Stderr = &log, &log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGTERM)
		_ = server.Wait()
		if t.Failed() {
			t.Logf("Prometheus wrote: %.4000s", log.String())
		}
	})
	p := &Prometheus{promtool: run("promtool")}
	Eventually(t, "Prometheus has scraped the operator", func() error {
		up, err := p.Query(t.Context(), `up{job="middleware-operator-metrics"} == 1`)
		return errors.Join(err, missing(len(up) > 0, "it has not"))
	})
	return p
}

func missing(holds bool, text string) error {
	if holds {
		return nil
	}
	return errors.New(text)
}

// metricsToken is one of a new service account that may read metrics.
func metricsToken(t *testing.T, namespace string) string {
	t.Helper()
	const name = "prometheus"
	Create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "middleware-operator-metrics-reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}}
	Create(t, binding)
	t.Cleanup(func() { _ = Kube.Delete(context.Background(), binding) })
	token, err := Clientset.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// Series is one of an answer.
type Series struct {
	Metric map[string]string `json:"metric"`
}

// Query asks for what an expression has now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	out, err := exec.CommandContext(ctx, root+"hack/cluster.sh", "exec-net", "--", p.promtool, "query", "instant", "-o", //nolint:gosec // ours
		"json", "http://"+listen, expr).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %.300s", expr, err, out)
	}
	var series []Series
	if err := json.Unmarshal(out, &series); err != nil {
		return nil, fmt.Errorf("%s: %w: %.300s", expr, err, out)
	}
	return series, nil
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// sdk runs operator-sdk and returns what it prints.
func sdk(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), given.sdk, args...)
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+given.ca)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	t.Logf("operator-sdk %v: %.0f s", args, time.Since(start).Seconds())
	if err != nil {
		t.Fatalf("operator-sdk %v: %v\n%s%s", args, err, out.String(), errs.String())
	}
	return out.String()
}

// The operator is run, upgraded and cleaned up by operator-sdk, with a RedisCluster that stays as it is.
func TestRunBundle(t *testing.T) {
	// The registry that operator-sdk runs in the namespace has an init container that the level restricted refuses.
	namespace := namespaceAt(t, "run-bundle", "baseline")
	installed := installation{t, namespace}
	sdk(t, "run", "bundle", bundleImage(given.previous), "--namespace", namespace, "--index-image", given.opm, "--timeout", "4m",
		"--security-context-config", "restricted")
	installed.succeeded(given.previous)
	installed.enable(namespace)
	cluster := applySample(t, namespace, "redis_v1alpha1_rediscluster_full.yaml", &redisv1alpha1.RedisCluster{})
	live.Ready(t, cluster)
	before := containers(t, namespace)

	sdk(t, "run", "bundle-upgrade", bundleImage(given.current), "--namespace", namespace, "--timeout", "4m", "--security-context-config",
		"restricted")
	installed.succeeded(given.current)
	live.Ready(t, cluster)
	for name, is := range containers(t, namespace) {
		if before[name] != is {
			t.Errorf("%s was restarted by the upgrade: %q before, %q now", name, before[name], is)
		}
	}
	if err := live.Kube.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	gone(t, cluster)
	installed.disable(namespace)
	sdk(t, "cleanup", "middleware-operator", "--namespace", namespace, "--delete-crds=false", "--timeout", "4m")
	live.Eventually(t, "nothing is left of the operator", func() error { return nothingLeft(t, namespace) })
}

// All tests of the scorecard pass: operator-sdk's six, and one for each of the five kinds.
func TestScorecard(t *testing.T) {
	serve(t, given.current)
	namespace := namespaceOf(t, "scorecard")
	group(t, namespace, namespace)
	installed := subscribe(t, namespace)
	installed.succeeded(given.current)
	installed.enable(namespace)
	applyFile(t, namespace, "../scorecard/rbac.yaml")

	out := sdk(t, "scorecard", given.bundle, "--namespace", namespace, "--service-account", "scorecard", "--output", "json",
		"--wait-time", "6m", "--pod-security", "restricted", "--untar-image", given.untar, "--storage-image", given.storage)
	var tests struct {
		Items []struct {
			Spec   struct{ Labels map[string]string }
			Status struct {
				Results []struct {
					Name, State, Log    string
					Errors, Suggestions []string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &tests); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	passed := 0
	for _, item := range tests.Items {
		for _, r := range item.Status.Results {
			t.Logf("%s: %s", r.Name, r.State)
			if r.State != "pass" {
				t.Errorf("%s: %s %v\n%s", r.Name, r.State, r.Errors, r.Log)
			}
			for _, suggestion := range r.Suggestions {
				// The examples are what people write, and the status is what the operator does.
				if !strings.Contains(suggestion, "does not have status spec") {
					t.Errorf("%s suggests: %s", r.Name, suggestion)
				}
			}
			passed++
		}
	}
	if passed != 11 {
		t.Errorf("%d tests ran, want 6 of operator-sdk and 5 of our own", passed)
	}
	installed.remove(given.current)
}

// applyFile creates the objects of a file in a namespace.
func applyFile(t *testing.T, namespace, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); err != nil {
			return
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw.Raw); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		o.SetNamespace(namespace)
		live.Create(t, o)
	}
}

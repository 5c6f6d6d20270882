// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
)

// repository is the directory of the project.
var repository = ".."

// command runs the program with arguments, as a shell would.
func command(t *testing.T, arguments ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	root := newRoot(os.LookupEnv)
	root.SetArgs(arguments)
	root.SetOut(&out)
	root.SetErr(&errs)
	code = codeOf(root.ExecuteContext(context.Background()), &errs)
	return code, out.String(), errs.String()
}

func in(path ...string) string { return filepath.Join(append([]string{repository}, path...)...) }

func TestExitCodes(t *testing.T) {
	shipped := []string{"--watches-file=" + in("watches.yaml"), "--crds=" + in("config", "crd", "bases")}
	missing := "--watches-file=" + filepath.Join(t.TempDir(), "watches.yaml")
	crontab := in("config", "samples", "stable_v1beta1_crontab.yaml")
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	for _, tc := range []struct {
		name      string
		arguments []string
		code      int
		// stdout and stderr are parts of what is printed.
		stdout, stderr string
	}{
		{"validate", append([]string{"validate", "--strict", "--sample=" + in("config", "samples")}, shipped...), 0, "CronTab", ""},
		{"validate what is not there", []string{"validate", missing}, 1, "check the path given with --watches-file",
			"Error: validation failed: 1 error, 0 warnings"},
		{"a warning", append([]string{"validate"}, shipped...), 0, "give a custom resource with --sample", ""},
		{"a warning that counts", append([]string{"validate", "--strict"}, shipped...), 1, "give a custom resource with --sample",
			"validation failed: 0 errors, "},
		{"validate in an unknown form", []string{"validate", "-o=xml"}, 1, "", `--output: "xml" is neither text nor json`},
		{"render", append([]string{"render", "-f", crontab}, shipped...), 0, "kind: CronJob", ""},
		{"render nothing", []string{"render"}, 1, "", "give -f FILE"},
		{"render what is not there", append([]string{"render", "-f", "nowhere.yaml"}, shipped...), 1, "",
			"nowhere.yaml: no such file or directory"},
		{"compare nothing", []string{"render", "--diff"}, 2, "", "give -f FILE"},
		{"compare what is no flag", []string{"render", "--diff", "app.yaml"}, 2, "", "unknown command"},
		{"compare with no cluster", append([]string{"render", "--diff", "-f", crontab}, shipped...), 2, "", "finding the cluster"},
		{"the build, asked for as Kubernetes' components are", []string{"--version"}, 0, "middleware-operator " + manager.Version, ""},
		{"the build, of the command", []string{"run", "--version", "--skip_headers=false"}, 0, "middleware-operator " + manager.Version, ""},
		{"an unknown flag", []string{"render", "--colour"}, 2, "", "unknown flag"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, stdout, stderr := command(t, tc.arguments...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("got %d\nstdout:\n%s\nstderr:\n%s\nwant %d, %q and %q", code, stdout, stderr, tc.code, tc.stdout, tc.stderr)
			}
		})
	}
	if code := codeOf(&exitCode{code: exitDifferent}, os.Stderr); code != 1 {
		t.Errorf("differences end with %d, want 1", code)
	}
}

func TestOutputForMachines(t *testing.T) {
	shipped := []string{"validate", "--watches-file=" + in("watches.yaml"), "--sample=" + in("config", "samples")}
	_, stdout, _ := command(t, append(shipped, "-o=json")...)
	report := struct {
		Kinds    []map[string]any `json:"kinds"`
		Findings []map[string]any `json:"findings"`
	}{}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Kinds) == 0 || len(report.Findings) == 0 {
		t.Errorf("%v:\n%s", err, stdout)
	}
	_, stdout, stderr := command(t, append(shipped, "--print-rbac", "--rbac-name=shop")...)
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(stdout), &role); err != nil || role.Name != "shop" || len(role.Rules) == 0 {
		t.Errorf("%v:\n%s", err, stdout)
	}
	if !strings.Contains(stderr, "no watch runs RedisCluster") {
		t.Errorf("the findings go to standard error: %s", stderr)
	}
}

func TestHelp(t *testing.T) {
	for name, want := range map[string][]string{
		"validate": {"What is checked:", "What is printed:", "--print-rbac", "Examples:"},
		"render":   {"What is rendered:", "Comparison:", "--diff", "2 it failed"},
		"run":      {"Leader election:", "--watches-file"},
	} {
		code, stdout, _ := command(t, name, "--help")
		for _, text := range want {
			if code != 0 || !strings.Contains(stdout, text) {
				t.Errorf("%s --help does not say %q (exit code %d):\n%s", name, text, code, stdout)
			}
		}
	}
	if _, stdout, _ := command(t, "--help"); !strings.Contains(stdout, "  validate") || !strings.Contains(stdout, "  render") {
		t.Errorf("manager --help does not list the commands:\n%s", stdout)
	}
}

// Pods are rendered as an operator of the same flag does.
func TestRenderedUserIDs(t *testing.T) {
	const name = "runAsUser"
	render := []string{"render", "-f", in("config", "samples", "stable_v1beta1_crontab.yaml"), "--watches-file=" + in("watches.yaml"),
		"--crds=" + in("config", "crd", "bases")}
	for mode, want := range map[string]bool{"auto": true, "off": true, "on": false} {
		code, stdout, stderr := command(t, append(render, "--platform-user-ids="+mode)...)
		if code != 0 || strings.Contains(stdout, name) != want {
			t.Errorf("%s: code %d, has %s: %t\n%s", mode, code, name, !want, stderr)
		}
	}
	if code, _, stderr := command(t, append(render, "--platform-user-ids=maybe")...); code != 1 ||
		!strings.Contains(stderr, "give auto, on or off") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
)

func TestCommandLine(t *testing.T) {
	tests := map[string]struct {
		args           []string
		namespace      string
		code           int
		stdout, stderr string
	}{
		"list": {
			args: []string{"-list"}, code: passed, stdout: "rediscluster-ready\napp-ready\napplication-ready\ncrontab-ready\nfoobar-ready\n"},
		"help":    {args: []string{"--help"}, code: passed, stderr: "Usage: scorecard [flags] TEST..."},
		"nothing": {namespace: "shop", code: misused, stderr: "name a test, or several: rediscluster-ready, app-ready"},
		"unknown test": {args: []string{"mysql-ready"}, namespace: "shop", code: misused,
			stderr: `there is no test "mysql-ready"; there are rediscluster-ready`},
		"unknown flag": {args: []string{"-x"}, namespace: "shop", code: misused, stderr: "flag provided but not defined: -x"},
		"no namespace": {args: []string{"app-ready"}, code: misused,
			stderr: "-namespace: give the namespace to make the examples in, or set SCORECARD_NAMESPACE"},
		"no time": {args: []string{"-timeout=0", "app-ready"}, namespace: "shop", code: misused,
			stderr: "-timeout: 0s is too short; give 1s or more"},
		"no bundle": {args: []string{"-bundle=nowhere", "app-ready", "foobar-ready"}, namespace: "shop", code: failed,
			stdout: "nowhere has no ClusterServiceVersion"},
		"no kubeconfig": {args: []string{"-bundle=../../bundle", "-kubeconfig=nowhere", "app-ready"}, namespace: "shop", code: failed,
			stdout: "find the cluster: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := run(t.Context(), test.args, test.namespace, &stdout, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
				t.Errorf("stdout: %s\nstderr: %s\nwant %s and %s", &stdout, &stderr, test.stdout, test.stderr)
			}
		})
	}
}

// The scorecard reads all that a pod writes as one document with a result for each test.
func TestOutputIsOneDocument(t *testing.T) {
	var stdout, stderr strings.Builder
	run(t.Context(), []string{"-bundle=nowhere", "app-ready", "foobar-ready"}, "shop", &stdout, &stderr)
	var status v1alpha3.TestStatus
	if err := json.Unmarshal([]byte(stdout.String()+stderr.String()), &status); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"app-ready", "foobar-ready"} {
		if r := status.Results[i]; r.Name != name || r.State != v1alpha3.ErrorState || len(r.Errors) != 1 {
			t.Errorf("result %d is %+v, want an error of %s", i, r, name)
		}
	}
}

func TestTheJournalTellsChanges(t *testing.T) {
	now := time.Unix(0, 0)
	var live strings.Builder
	j := newJournal(func() time.Time { return now }, &live)
	for _, state := range []string{"a", "a", "b"} {
		j.change(state)
		now = now.Add(10 * time.Second)
	}
	if want := "   0s a\n  20s b\n"; j.String() != want || live.String() != want {
		t.Errorf("got %q and live %q, want %q", j, &live, want)
	}
}

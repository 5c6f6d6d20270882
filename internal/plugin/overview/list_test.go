// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// An upgrade of many objects is one line for each kind, and none once all are up to date.
func TestUpgrades(t *testing.T) {
	object := func(kind, status, reason string) unstructured.Unstructured {
		var conditions []any
		if status != "" {
			conditions = []any{map[string]any{"type": "Upgraded", "status": status, "reason": reason}}
		}
		return unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "x"},
			"status": map[string]any{"conditions": conditions}}}
	}
	list := ListOf(SeenList{Objects: []unstructured.Unstructured{
		object("App", "", ""), object("App", "True", "UpToDate"), object("App", "False", "Upgrading"), object("App", "False", "WaitsForTurn"),
		object("App", "False", "WaitsForTurn"), object("RedisCluster", "False", "UpgradeStopped"), object("FooBar", "True", "UpToDate"),
	}})
	want := []Upgrade{{Kind: "App", UpToDate: 2, Upgrading: 1, Waiting: 2}, {Kind: "RedisCluster", Waiting: 1, Stopped: true}}
	if diff := cmp.Diff(want, list.Upgrades); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text := list.Text(terminal.Page{Width: 120}, now)
	for _, line := range []string{"App: 2 of 5 up to date with the operator, 1 being upgraded, 2 waiting\n",
		"RedisCluster: 0 of 1 up to date with the operator, 0 being upgraded, 1 waiting until one that was upgraded is well\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("%q is not in\n%s", line, text)
		}
	}
}

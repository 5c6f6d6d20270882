// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"
)

func TestBalanceIsChecked(t *testing.T) {
	for spec, want := range map[string]string{
		"balance: {}": "",
		"{balance: {mode: Report, megabytesPerHour: 5}, autoscale: {minShards: 3, maxShards: 9}}": "",
		"balance: {mode: Off}":                  "spec.balance.mode: Unsupported",
		"balance: {megabytesPerHour: -1}":       "spec.balance.megabytesPerHour: Invalid",
		"balance: {megabytesPerHour: 1048577}":  "spec.balance.megabytesPerHour: Invalid",
		"{shards: 1, replicas: 2, balance: {}}": "spec.balance: Forbidden",
		"{balance: {}, updateStrategy: {type: AssignReceive, " +
			"assignStrategies: [{slots: 5, fromReplicas: a}]}}": "spec.updateStrategy.type: Invalid",
	} {
		all := strings.Join(sentences(Validate(cluster(t, spec), Options{})), "\n")
		if want == "" && all != "" || !strings.Contains(all, want) {
			t.Errorf("%s: %q, want %q", spec, all, want)
		}
	}
}

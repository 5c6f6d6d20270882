// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
)

// TestUnseenTemplate: as long as the StatefulSet's controller has not seen the template of now,
// nothing is known to be as asked for; the cluster is on its way, and serves.
func TestUnseenTemplate(t *testing.T) {
	s := formed()
	s.Shards[1].Unobserved = true
	decision := decide(desired(), s, now)
	if wait, ok := decision.Step.(Wait); !ok || !strings.Contains(wait.Why(), "c-1") || wait.After != soon ||
		decision.Situation != RollingOut || !decision.Healthy {
		t.Errorf("%s, %s: %s", decision.Situation, decision.Step.Name(), decision.Step.Why())
	}
	s.Shards[1].Terminating = true
	if step := decide(desired(), s, now).Step; step.Name() != "None" {
		t.Errorf("%s: %s", step.Name(), step.Why())
	}
}

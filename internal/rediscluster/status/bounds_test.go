// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// What instances claim and what they say does not make a status that the API server refuses.
func TestStatusIsBounded(t *testing.T) {
	s := healthy()
	var every []uint16
	for slot := uint16(0); slot < slots.Count; slot += 2 {
		every = append(every, slot)
	}
	for i := range s.Instances {
		s.Instances[i].Redis.Slots = slots.Of(every...)
	}
	decision := decide(s, nil)
	decision.SettingChanges = []plan.SettingChange{{Name: "save", From: strings.Repeat("a", 1<<14), To: "b"}}
	status := Compute(cluster(), Reconciliation{Snapshot: s, Decision: decision, Err: errors.New(strings.Repeat("no\n", 1<<16))}, now)
	text, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > 32<<10 || strings.Contains(string(text), `\n`) {
		t.Errorf("the status has %d bytes, or several lines", len(text))
	}
}

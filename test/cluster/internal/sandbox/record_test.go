// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestParseStat(t *testing.T) {
	// The name holds what would mislead a reader that splits at blanks.
	stat := "42 (a) b (c) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 0 0"
	state, start, err := parseStat(stat)
	if err != nil || state != "S" || start != "98765" {
		t.Errorf("got %q, %q, %v", state, start, err)
	}
	for _, wrong := range []string{"", "42 (a) S 1 2"} {
		if _, _, err := parseStat(wrong); err == nil {
			t.Errorf("%q was accepted", wrong)
		}
	}
}

func TestOnlyTheVeryProcessIsAlive(t *testing.T) {
	self, err := NewRecord(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	otherStart, otherBoot := self, self
	otherStart.Start += "1"
	otherBoot.Boot = "another"
	for name, test := range map[string]struct {
		record Record
		want   bool
	}{
		"this process":                          {self, true},
		"its number, used again":                {otherStart, false},
		"its number and start, in another boot": {otherBoot, false},
	} {
		if got := test.record.Alive(); got != test.want {
			t.Errorf("%s: alive is %t, want %t", name, got, test.want)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	if _, running, err := Find(dir); running || err != nil {
		t.Errorf("never started: %t, %v", running, err)
	}
	file := filepath.Join(dir, recordFile)
	if err := os.WriteFile(file, []byte(`{"pid":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, running, err := Find(dir); running || err != nil {
		t.Errorf("half a record: %t, %v", running, err)
	}
	self, err := NewRecord(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := writeJSON(file, self); err != nil {
		t.Fatal(err)
	}
	if got, running, err := Find(dir); got != self || !running || err != nil {
		t.Errorf("running: %v, %t, %v", got, running, err)
	}
}

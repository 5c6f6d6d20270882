// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package contain

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

func TestCall(t *testing.T) {
	var logged []string
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	ctx := logr.NewContext(t.Context(), log)
	failed := errors.New("failed")
	if err := Call(ctx, "try", func() error { return failed }); !errors.Is(err, failed) || len(logged) > 0 {
		t.Errorf("an error becomes %v, logged %q", err, logged)
	}
	if err := Call(ctx, "try", func() error { return nil }); err != nil {
		t.Errorf("success becomes %v", err)
	}
	err := Call(ctx, "describe c-0-1", func() error { panic("makeslice:\nlen " + strings.Repeat("9", 1000)) })
	if err == nil || !strings.HasPrefix(err.Error(), "describe c-0-1: panic: makeslice: len 99") || len(err.Error()) > 250 {
		t.Errorf("a panic becomes %v", err)
	}
	if len(logged) != 1 || !strings.Contains(logged[0], "TestCall") {
		t.Errorf("logged %q, want the stack, once", logged)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package foobar_test

import (
	"strings"
	"testing"

	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	"middleware.hc.cn/operator/internal/admission/foobar"
)

func TestValidateRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*foobarv1.FooBar)
		want   string
	}{
		{"nothing", func(*foobarv1.FooBar) {}, ""},
		{"no defaults yet", func(f *foobarv1.FooBar) { f.Spec.Barz, f.Spec.Image = "", "" }, ""},
		{"shell text is the author's own", func(f *foobarv1.FooBar) { f.Spec.Command = "echo {{ .Values }} $(date)\n---\nkind: Secret" }, ""},
		{"no command", func(f *foobarv1.FooBar) { f.Spec.Command = " \n" },
			`spec.command: Required value: write a shell command, such as "echo foobar"`},
		{"NUL in the command", func(f *foobarv1.FooBar) { f.Spec.Command = "a\x00" },
			`spec.command: Invalid value: "a\x00": must not hold a NUL character; remove it`},
		{"long command", func(f *foobarv1.FooBar) { f.Spec.Command = strings.Repeat("x", 16385) },
			`spec.command: Too long: may not be more than 16384 bytes`},
		{"long foo", func(f *foobarv1.FooBar) { f.Spec.Foo = strings.Repeat("x", 4097) }, `spec.foo: Too long: may not be more than 4096 bytes`},
		{"NUL in foo", func(f *foobarv1.FooBar) { f.Spec.Foo = "\x00" }, `spec.foo: Invalid value: "\x00": must not hold a NUL character`},
		{"barz", func(f *foobarv1.FooBar) { f.Spec.Barz = "yes" }, `spec.barz: Unsupported value: "yes": supported values: "true", "false"`},
		{"image", func(f *foobarv1.FooBar) { f.Spec.Image = "a b" },
			`spec.image: Invalid value: "a b": is not an image reference (invalid reference format); write registry/repository:tag`},
		{"name", func(f *foobarv1.FooBar) { f.Name = strings.Repeat("n", 53) },
			`must have at most 52 characters, because the name of its Job appends 11`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &foobarv1.FooBar{Spec: foobarv1.FooBarSpec{Foo: "bar", Barz: "false", Command: "echo foobar", Image: "busybox:1"}}
			f.Name = "foobar-sample"
			tt.change(f)
			refused := foobar.Validate(f)
			if tt.want == "" {
				if len(refused) > 0 {
					t.Errorf("refused: %v", refused.ToAggregate())
				}
				return
			}
			if len(refused) != 1 || !strings.Contains(refused[0].Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", refused, tt.want)
			}
		})
	}
}

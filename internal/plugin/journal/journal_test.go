// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

func TestLogsAreMergedByTime(t *testing.T) {
	a := Parse("cache-0-0", "2026-11-24T12:00:00.1Z first\n2026-11-24T12:00:00.3Z third\nits second line\n")
	b := Parse("cache-10-0", "2026-11-24T12:00:00.200000001Z second \x1b[2J\r\n\n")
	want := `2026-11-24T12:00:00.100Z cache-0-0  first
2026-11-24T12:00:00.200Z cache-10-0 second ?[2J
2026-11-24T12:00:00.300Z cache-0-0  third
2026-11-24T12:00:00.300Z cache-0-0  its second line
`
	if diff := cmp.Diff(want, Text(terminal.Page{Width: 80}, Merge(a, b))); diff != "" {
		t.Error(diff)
	}
	coloured := Text(terminal.Page{Width: 80, Colour: true}, Merge(a, b))
	if strings.Contains(coloured, "\x1b[2J") || !strings.Contains(coloured, "\x1b[32m") {
		t.Errorf("%q", coloured)
	}
}

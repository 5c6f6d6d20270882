// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each time that a document states is what the code says. Who changes one changes the other, and the row.
func TestDocumentedTimes(t *testing.T) {
	for _, row := range []struct{ document, sentence, file, code string }{
		{"docs/chart-kinds.md", "5 minutes for each; the annotation `middleware.hc.cn/hook-timeout", "internal/release/hooks.go", "hookTimeout = 5 * time.Minute"},
		{"docs/chart-kinds.md", "tried again after 10 s, then after twice as long, up to 10 minutes", "internal/release/hooks.go", "hookRetryFirst, hookRetryMost = 10 * time.Second, 10 * time.Minute"},
		{"docs/chart-kinds.md", "such a resource is looked at every minute unless `reconcilePeriod` says otherwise", "internal/release/reconciler.go", "lookupPeriod = time.Minute"},
		{"docs/conditions.md", "delete it or choose another name; it is tried again every minute", "internal/release/act.go", "retryForeign = time.Minute"},
		{"docs/conditions.md", "after three seconds and then ever more rarely", "internal/release/diagnose.go", "diagnoseFirst, diagnoseMost = 3 * time.Second, 5 * time.Minute"},
		{"docs/application.md", "It is looked at again every minute", "internal/application/act.go", "lookAgain = time.Minute"},
		{"docs/installation.md", "A serving certificate lives 90 days and is replaced 30 days before its end", "internal/webhook/certs/rotation.go", "servingLife  = 90 * 24 * time.Hour"},
		{"docs/installation.md", "A serving certificate lives 90 days and is replaced 30 days before its end", "internal/webhook/certs/rotation.go", "servingAhead = 30 * 24 * time.Hour"},
		{"docs/olm.md", "neither does one that has made no progress for 30 minutes", "internal/upgradeable/judge.go", "Progress: 30 * time.Minute"},
		{"docs/olm.md", "OLM is told a minute after the last one", "internal/upgradeable/judge.go", "Calm: time.Minute"},
		{"docs/chart-kinds.md", "the last ten are kept (`--max-release-history`)", "internal/manager/options.go", "MaxReleaseHistory:       10"},
		{"docs/chart-kinds.md", "the last ten are kept (`--max-release-history`)", "internal/release/add.go", "defaultMaxHistory = 10"},
		{"config/manager/deployment.yaml", "terminationGracePeriodSeconds: 40", "internal/manager/options.go", "GracefulShutdownTimeout: 30 * time.Second"},
	} {
		for file, part := range map[string]string{row.document: row.sentence, row.file: row.code} {
			text, err := os.ReadFile(filepath.Join(repository, file))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), part) {
				t.Errorf("%s does not say %q; %s is to say %q, because %s says %q", file, part, row.document, row.sentence, row.file, row.code)
			}
		}
	}
}

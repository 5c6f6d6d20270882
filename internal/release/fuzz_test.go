// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

// FuzzStatus reads back a status that somebody else wrote: it points at nothing out of reach, counts nothing that cannot be, and
// is written again as it was read.
func FuzzStatus(f *testing.F) {
	for _, status := range []string{
		"{}", "null", "[]", `{"deployedRelease":{"name":"web","revision":3,"digest":"d"},"hooks":{"event":"pre-delete","completed":9223372036854775807}}`,
		`{"deployedRelease":{"revision":-9223372036854775808},"hooks":{"event":"post-delete","completed":-1,"failures":9223372036854775807}}`,
		`{"deployedRelease":{"revision":9223372036854775807,"digest":"d"},"hooks":{"event":"post-install","failures":1,"failedAt":"9999-12-31T23:59:59Z"}}`,
		`{"inventory":[{"version":"v1","kind":"Secret","namespace":"kube-system","name":"token"},{"version":"v1","kind":"Node","name":"a"},null,1]}`,
		`{"inventory":[{"version":"v1","kind":"ConfigMap","namespace":"shop","name":"a","uid":"u","fields":"f"}],"conditions":[{"type":1}]}`,
		`{"inventory":{"a":"b"},"deployedRelease":[],"hooks":"x"}`,
	} {
		f.Add(status, true)
	}
	job := parse(f, "{apiVersion: batch/v1, kind: Job, metadata: {name: a}}")
	hooks := []chart.Hook{{Object: job, DeletePolicies: []string{"hook-failed"}}}
	for _, event := range []hookEvent{preInstall, postInstall, preUpgrade, postUpgrade, preDelete, postDelete} {
		hooks[0].Events = append(hooks[0].Events, string(event))
	}
	f.Fuzz(func(t *testing.T, text string, deleting bool) {
		var status any
		if json.Unmarshal([]byte(text), &status) != nil {
			return
		}
		cr := parse(t, "{apiVersion: a/v1, kind: Web, metadata: {name: web, namespace: shop}}")
		cr.Object["status"] = status
		seen := Snapshot{Deployed: readDeployed(cr), Inventory: readInventory(cr, watches.Allow{}), Hooks: readProgress(cr), Deleting: deleting,
			Finalizers: []string{Finalizer}}
		for _, known := range seen.Inventory {
			if known.Namespace != "shop" || known.Name == "" || known.Kind == "" {
				t.Errorf("%s: it reaches %s", text, known)
			}
		}
		if r := seen.nextRevision(); r < 1 || r > math.MaxInt32+1 || seen.Hooks.Completed < 0 || seen.Hooks.Failures < 0 {
			t.Errorf("%s: revision %d, %+v", text, r, seen.Hooks)
		}
		for _, digest := range []string{"d", "other"} {
			desired := Desired{Digest: digest, Revision: seen.nextRevision(), Rendered: &chart.Rendered{Hooks: hooks}}
			await, waits := Plan(desired, seen, now).(AwaitHook)
			if waits && await.Until.Sub(now) > hookRetryMost && seen.Hooks.FailedAt.Before(now) {
				t.Errorf("%s: it waits for %v", text, await.Until.Sub(now))
			}
		}
		cr.Object["status"] = map[string]any{fieldDeployedRelease: seen.Deployed.write(), fieldInventory: writeInventory(seen.Inventory)}
		if readDeployed(cr) != seen.Deployed || len(readInventory(cr, watches.Allow{})) != len(seen.Inventory) {
			t.Errorf("%s: what was read is not what is written", text)
		}
	})
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// unfilled is a cache of a kind that may not be listed.
type unfilled struct{ client.Reader }

func (unfilled) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// A status may name any kind, also many that the operator may not list: that holds a worker for a second, not for as long as the
// chart's own kinds may take.
func TestKindsOfTheStatusAreNotWaitedFor(t *testing.T) {
	loaded, err := chart.Load(fstest.MapFS{
		"Chart.yaml":               {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")},
		"templates/configmap.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{chart: loaded, children: childReader{unfilled{}}}
	for kind, want := range map[string]time.Duration{"ConfigMap": cacheTimeout, "Secret": otherKinds} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), cacheTimeout)
			defer cancel()
			start := time.Now() // of the test's own clock
			ref := apply.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: "n", Name: "a"}
			if _, err := r.observeChildren(ctx, []apply.Known{{Ref: ref}}); err == nil || time.Since(start) != want {
				t.Errorf("a %s was waited for %s, want %s (%v)", kind, time.Since(start), want, err)
			}
		})
	}
}

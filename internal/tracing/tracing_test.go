// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A request to the API server is part of the reconciliation that makes it; one that belongs to none is not told.
func TestSpans(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	stop := provide(sdktrace.WithSyncer(spans), "1.0.0")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	client, err := rest.HTTPClientFor(Config(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, path string) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	ask(t.Context(), "/watch")
	refused := errors.New("refused")
	r := Reconciler("app", reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		ask(ctx, "/api/v1/namespaces/shop/configmaps/web")
		return ctrl.Result{}, refused
	}))
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}); !errors.Is(
		err, refused) {
		t.Errorf("it returns %v", err)
	}
	var got []string
	traces := map[string]bool{}
	for _, span := range spans.GetSpans() {
		got = append(got, span.Name+" "+span.Status.Code.String())
		traces[span.SpanContext.TraceID().String()] = true
	}
	stop()
	slices.Sort(got)
	want := []string{"GET /api/v1/namespaces/shop/configmaps/web Error", "Reconcile app Error"}
	if diff := cmp.Diff(want, got); diff != "" || len(traces) != 1 {
		t.Errorf("%d traces (-want +got):\n%s", len(traces), diff)
	}
}

func TestWanted(t *testing.T) {
	for name, want := range map[string]bool{"OTEL_EXPORTER_OTLP_ENDPOINT": true, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": true, "OTEL": false} {
		if Wanted(func(asked string) string {
			if asked == name {
				return "http://collector:4317"
			}
			return ""
		}) != want {
			t.Errorf("%s: not %t", name, want)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing tells an OpenTelemetry collector what a reconciliation did and how long that took, if there is one. It knows no kind.
package tracing

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// service is who says it.
const service = "middleware-operator"

// flushWithin is how long spans that were not sent yet may take when the operator stops.
const flushWithin = 5 * time.Second

// Wanted reports whether a collector is named, in the variables that OpenTelemetry specifies.
func Wanted(get func(name string) string) bool {
	return get("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Start sends spans by OTLP over gRPC until stop is called. Where to, with which headers and certificates, and which share of them, say
// the environment variables OTEL_EXPORTER_OTLP_… and OTEL_TRACES_SAMPLER. A collector that does not answer holds nobody up: spans are lost.
func Start(ctx context.Context, version string) (stop func(), err error) {
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("the collector that OTEL_EXPORTER_OTLP_ENDPOINT names: %w", err)
	}
	return provide(sdktrace.WithBatcher(exporter), version), nil
}

func provide(to sdktrace.TracerProviderOption, version string) (stop func()) {
	provider := sdktrace.NewTracerProvider(to, sdktrace.WithResource(resource.NewSchemaless(
		attribute.String("service.name", service), attribute.String("service.version", version))))
	otel.SetTracerProvider(provider)
	return func() {
		within, cancel := context.WithTimeout(context.Background(), flushWithin)
		defer cancel()
		_ = provider.Shutdown(within) // what cannot be sent is lost
	}
}

// Config has each request to the API server be a span of its reconciliation.
func Config(config *rest.Config) *rest.Config {
	traced := rest.CopyConfig(config)
	traced.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return otelhttp.NewTransport(next, otelhttp.WithFilter(ofReconciliation),
			otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method + " " + r.URL.Path }))
	})
	return traced
}

// ofReconciliation leaves out what goes on for ever, such as watches.
func ofReconciliation(r *http.Request) bool {
	return trace.SpanContextFromContext(r.Context()).IsValid()
}

// Span begins a span; end says how it ended. Without a collector both do nothing.
func Span(ctx context.Context, name string, attributes ...attribute.KeyValue) (_ context.Context, end func(error)) {
	ctx, span := otel.Tracer(service).Start(ctx, name, trace.WithAttributes(attributes...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// Reconciler has each reconciliation of a controller be a span.
func Reconciler(controller string, next reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
		ctx, end := Span(ctx, "Reconcile "+controller, attribute.String("k8s.namespace.name", request.Namespace),
			attribute.String("middleware.name", request.Name))
		defer func() { end(err) }()
		return next.Reconcile(ctx, request)
	})
}

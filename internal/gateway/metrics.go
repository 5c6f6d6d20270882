// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"middleware.hc.cn/operator/internal/gateway/protocol"
)

// refusal is why a connection was not served.
type refusal int

const (
	admitted refusal = iota
	tooMany
	tooManyOfSource
	noHandshake
	unreachable
	refusals
)

// reasons are the refusals as metrics name them.
var reasons = [refusals]string{tooMany: "limit", tooManyOfSource: "source_limit", noHandshake: "handshake", unreachable: "unreachable"}

// figures are what the gateway counts.
type figures struct {
	accepted, open, filesInvalid  atomic.Int64
	brokenByClient, brokenByOther atomic.Int64
	refused                       [refusals]atomic.Int64
	protocol.Counts
}

// Handler answers /healthz, /readyz, /metrics, and at /status which map it serves.
func (g *Gateway) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	counter := func(name, help string, labels prometheus.Labels, of *atomic.Int64) {
		registry.MustRegister(prometheus.NewCounterFunc(
			prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 { return float64(of.Load()) }))
	}
	gauge := func(name, help string, of *atomic.Int64) {
		registry.MustRegister(prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of.Load()) }))
	}
	f := &g.figures
	gauge("redis_gateway_connections", "Connections of clients that are open.", &f.open)
	counter("redis_gateway_connections_total", "Connections of clients that were accepted.", nil, &f.accepted)
	for why := tooMany; why < refusals; why++ {
		counter("redis_gateway_connections_refused_total", "Connections that were closed before anything was passed on, by reason.",
			prometheus.Labels{"reason": reasons[why]}, &f.refused[why])
	}
	const broken, brokenHelp = "redis_gateway_protocol_errors_total", "Connections that were closed because one side could not be understood."
	counter(broken, brokenHelp, prometheus.Labels{"side": "client"}, &f.brokenByClient)
	counter(broken, brokenHelp, prometheus.Labels{"side": "instance"}, &f.brokenByOther)
	counter("redis_gateway_commands_refused_total", "Administrative commands that were not passed on.", nil, &f.Refused)
	counter("redis_gateway_addresses_rewritten_total", "Addresses in replies that were rewritten.", nil, &f.Rewritten)
	gauge("redis_gateway_files_invalid", "1 while the map or a certificate cannot be used as its file is; what was read before stays.",
		&f.filesInvalid)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(to http.ResponseWriter, _ *http.Request) {
		if !g.ready.Load() {
			http.Error(to, "not ready", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /status", func(to http.ResponseWriter, _ *http.Request) {
		sum := g.serves.Load()
		if sum == nil {
			http.Error(to, "not ready", http.StatusServiceUnavailable)
			return
		}
		to.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(to, "{\"map\":%q}\n", *sum) // who asked is gone
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
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
	tooManyOfInstance
	noHandshake
	noEntry
	unreachable
	refusals
)

// reasons are the refusals as metrics name them.
var reasons = [refusals]string{tooMany: "limit", tooManyOfSource: "source_limit", tooManyOfInstance: "instance_limit",
	noHandshake: "handshake", noEntry: "login", unreachable: "unreachable"}

// figures are what the gateway counts.
type figures struct {
	accepted, open, filesInvalid  atomic.Int64
	brokenByClient, brokenByOther atomic.Int64
	refused                       [refusals]atomic.Int64
	protocol.Counts
}

// Served is what /readyz answers, as JSON: with status 200 if Map is there, else with 503.
type Served struct {
	// Map is the SHA-256 of the map's file as it was read, in hexadecimal, of which all ports are open.
	Map string `json:"map,omitempty"`
	// Unknown are the instances of it that no IP address is known of: their addresses are not rewritten yet.
	Unknown []string `json:"unknown,omitempty"`
	// Addresses are, by the names of the other instances of it, where connections to them go: IP:PORT.
	Addresses map[string][]string `json:"addresses,omitempty"`
	// Reason is why there is no Map.
	Reason string `json:"reason,omitempty"`
}

// ServeHTTP implements http.Handler.
func (s *Served) ServeHTTP(to http.ResponseWriter, _ *http.Request) {
	to.Header().Set("Content-Type", "application/json")
	if s.Map == "" {
		to.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(to).Encode(s) // who asked may be gone
}

// Handler answers /healthz, /readyz and /metrics; /status is what the operator asks of all its pods, and here /readyz.
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
		counter("redis_gateway_connections_refused_total", "Connections that were closed before the instance had let the client in, by reason.",
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
	served := func(to http.ResponseWriter, request *http.Request) { g.served.Load().ServeHTTP(to, request) }
	mux.HandleFunc("GET /readyz", served)
	mux.HandleFunc("GET /status", served)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway is Traefik as an implementation of the Gateway API and of ingress-nginx's annotations: its providers, which read the
// cluster and answer in the routes' status, its rules and its weighted balancer, without what else it can do, which builds in a small
// part of the time of the full one. It serves HTTP at one address, and heeds no middlewares (redirects, rewrites, headers).
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/rs/zerolog/log"
	"github.com/traefik/traefik/v3/pkg/config/dynamic"
	"github.com/traefik/traefik/v3/pkg/middlewares/requestdecorator"
	muxer "github.com/traefik/traefik/v3/pkg/muxer/http"
	"github.com/traefik/traefik/v3/pkg/provider/kubernetes/gateway"
	ingressnginx "github.com/traefik/traefik/v3/pkg/provider/kubernetes/ingress-nginx"
	"github.com/traefik/traefik/v3/pkg/safe"
	"github.com/traefik/traefik/v3/pkg/server/service/loadbalancer/wrr"
)

func main() {
	listen := flag.String("listen", ":8080", "address to serve HTTP at; Gateways need a listener of its port")
	namespace := flag.String("namespace", "", "the only namespace to look at; empty for all")
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.InfoLevel)
	if err := run(*listen, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// provider reads routes from the cluster that KUBECONFIG names, or the pod's own.
type provider interface {
	Init() error
	Provide(chan<- dynamic.Message, *safe.Pool) error
}

func run(listen, namespace string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	routes := &gateway.Provider{EntryPoints: map[string]gateway.Entrypoint{"web": {Address: listen}}}
	routes.SetDefaults()
	ingresses := &ingressnginx.Provider{}
	ingresses.SetDefaults()
	ingresses.HTTPEntryPoint = "web"
	if namespace != "" {
		routes.Namespaces, ingresses.WatchNamespace = []string{namespace}, namespace
	}

	pool := safe.NewPool(ctx)
	defer pool.Stop()
	messages := make(chan dynamic.Message)
	for _, p := range []provider{routes, ingresses} {
		if err := p.Init(); err != nil {
			return err
		}
		if err := p.Provide(messages, pool); err != nil {
			return err
		}
	}
	parser, err := muxer.NewSyntaxParser()
	if err != nil {
		return err
	}
	var current atomic.Pointer[http.Handler]
	go func() {
		known := map[string]*dynamic.Configuration{}
		for message := range messages {
			known[message.ProviderName] = message.Configuration
			handler := route(parser, known)
			current.Store(&handler)
		}
	}()
	server := &http.Server{Addr: listen, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler := current.Load(); handler != nil {
			(*handler).ServeHTTP(w, r)
			return
		}
		http.Error(w, "nothing is known of any route yet", http.StatusServiceUnavailable)
	})}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// route makes one handler of what all providers found.
func route(parser muxer.SyntaxParser, known map[string]*dynamic.Configuration) http.Handler {
	providers := slices.Sorted(maps.Keys(known))
	mux := muxer.NewMuxer(parser, providers)
	for _, name := range providers {
		found := known[name].HTTP
		built := map[string]http.Handler{}
		for _, key := range slices.Sorted(maps.Keys(found.Routers)) {
			router := found.Routers[key]
			if !slices.Contains(router.EntryPoints, "web") || router.TLS != nil {
				continue
			}
			priority := router.Priority
			if priority == 0 {
				priority = muxer.GetRulePriority(router.Rule)
			}
			if err := mux.AddRoute(router.Rule, router.RuleSyntax, priority, name, serve(found, built, router.Service)); err != nil {
				log.Error().Err(err).Msg(key)
			}
		}
	}
	decorator := requestdecorator.New(nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { decorator.ServeHTTP(w, r, mux.ServeHTTP) })
}

// serve returns the handler of a service. Each is built once, so that routers that lead to the same share its turns.
func serve(found *dynamic.HTTPConfiguration, built map[string]http.Handler, name string) http.Handler {
	if handler := built[name]; handler != nil {
		return handler
	}
	balancer := wrr.New(nil, false)
	built[name] = balancer
	service := found.Services[name]
	switch {
	case service == nil:
		log.Error().Msgf("no service %s", name)
	case service.Weighted != nil:
		for _, part := range service.Weighted.Services {
			if part.Status != nil {
				status := *part.Status
				balancer.Add(part.Name, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }), part.Weight, false)
				continue
			}
			balancer.Add(part.Name, serve(found, built, part.Name), part.Weight, false)
		}
	case service.LoadBalancer != nil:
		for _, server := range service.LoadBalancer.Servers {
			target, err := url.Parse(server.URL)
			if err != nil {
				log.Error().Err(err).Msg(name)
				continue
			}
			proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host
			}}
			balancer.AddServer(server.URL, proxy, server)
		}
	}
	return balancer
}

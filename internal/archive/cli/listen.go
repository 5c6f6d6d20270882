// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"middleware.hc.cn/operator/internal/archive"
)

// serving answers with a handler for as long as run runs; at no address, nobody.
func serving(ctx context.Context, address string, handler http.Handler, run func(context.Context) error) error {
	if address == "" {
		return run(ctx)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	const (
		within    = 5 * time.Second
		mostBytes = 8 << 10
	)
	server := &http.Server{Handler: handler, ReadTimeout: within, WriteTimeout: within, IdleTimeout: within, MaxHeaderBytes: mostBytes}
	server.SetKeepAlivesEnabled(false)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(atMost(listener)) }()
	err = run(ctx)
	if failed := errors.Join(server.Close(), <-ended); !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

// telling answers with what is said at that moment, as JSON.
func telling(say func() ([]byte, error)) http.HandlerFunc {
	return func(to http.ResponseWriter, _ *http.Request) {
		text, err := say()
		if err != nil {
			http.Error(to, "it cannot be said", http.StatusInternalServerError)
			return
		}
		to.Header().Set("Content-Type", "application/json")
		_, _ = to.Write(text) // who asked is gone
	}
}

// progress answers anybody with how far a backup or a restore is: numbers of bytes, and nothing of what is in it.
func progress(meter *archive.Meter, request string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", telling(func() ([]byte, error) {
		p := meter.Report()
		p.Request = request
		return p.Encode()
	}))
	return mux
}

// atMost is a listener with a few connections at a time: whoever opens more waits.
func atMost(l net.Listener) net.Listener {
	const most = 16
	return &limited{Listener: l, free: make(chan struct{}, most)}
}

type limited struct {
	net.Listener
	free chan struct{}
}

// Accept waits for a connection that has ended if there are too many. All end soon, by the server's times.
func (l *limited) Accept() (net.Conn, error) {
	l.free <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &counted{Conn: conn, end: func() { <-l.free }}, nil
}

type counted struct {
	net.Conn
	end func()
	sync.Once
}

func (c *counted) Close() error {
	c.Do(c.end)
	return c.Conn.Close()
}

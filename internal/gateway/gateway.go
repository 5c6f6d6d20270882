// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is what clients outside reach a cluster through: a proxy with one port for each instance. It rewrites the addresses that
// instances tell to those that clients outside can reach, and passes all else as bytes. It keeps no state, knows no passwords, and passes
// on no replication.
package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"

	"middleware.hc.cn/operator/internal/gateway/protocol"
)

// Options are how a gateway is run.
type Options struct {
	// MapFile has the map; it is read again all the time.
	MapFile string
	// Host is what is listened on; empty: all addresses.
	Host string
	// CertFile and KeyFile have the certificate for clients; empty: no TLS.
	CertFile, KeyFile string
	// CAFile has the certificates that those of instances are signed with, and ServerName what these are for; empty: no TLS.
	CAFile, ServerName string
	// MaxConnections and MaxPerSource bound connections.
	MaxConnections, MaxPerSource int
	// DrainDelay is for how long connections are accepted after the gateway was told to end, since others hear of it late, and
	// DrainTimeout for how long connections may go on after that.
	DrainDelay, DrainTimeout time.Duration
	Log                      logr.Logger
}

// Gateway passes connections on.
type Gateway struct {
	options     Options
	directory   *directory
	certificate *certificate // nil: clients speak plain
	authority   *authority   // nil: instances do
	limits      limits
	figures     figures
	ready       atomic.Bool
	serves      atomic.Pointer[string] // the sum of the map of which all ports are open; nil: of none
	draining    atomic.Bool
	says        *rate.Limiter

	mu        sync.Mutex
	listeners map[uint16]*listener
	open      map[*connection]bool
	accepting sync.WaitGroup
	wait      sync.WaitGroup
}

// listener is the port of an instance.
type listener struct {
	net.Listener
	instance atomic.Pointer[Instance]
}

// New is a gateway. Its files must be there, and must be valid.
func New(ctx context.Context, o Options) (*Gateway, error) {
	const saysEvery, saysAtOnce = 100 * time.Millisecond, 50
	g := &Gateway{options: o, directory: newDirectory(find), says: rate.NewLimiter(rate.Every(saysEvery), saysAtOnce),
		limits:    limits{total: o.MaxConnections, perSource: o.MaxPerSource},
		listeners: map[uint16]*listener{}, open: map[*connection]bool{}}
	if o.CertFile != "" {
		g.certificate = &certificate{certFile: o.CertFile, keyFile: o.KeyFile}
	}
	if o.CAFile != "" {
		g.authority = &authority{file: o.CAFile, serverName: o.ServerName}
	}
	m, err := g.read()
	if err != nil {
		return nil, err
	}
	g.directory.update(ctx, m, time.Now())
	return g, nil
}

// Run serves until the context ends, and then lets connections finish.
func (g *Gateway) Run(ctx context.Context) error {
	const every = time.Second
	running := logr.NewContext(context.WithoutCancel(ctx), g.options.Log)
	running, stop := context.WithCancel(running)
	defer stop()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var m *Map
	fault := "" // what was said of files
	for {
		next, err := g.read()
		if err != nil {
			g.figures.filesInvalid.Store(1)
			if err.Error() != fault {
				fault = err.Error()
				g.say(err, "A file cannot be used; what was read before stays")
			}
		} else {
			g.figures.filesInvalid.Store(0)
			fault = ""
		}
		if next != nil { // certificates have nothing to do with who is where
			m = next
		}
		if m != nil {
			g.directory.update(running, m, time.Now())
			g.ready.Store(g.listen(running, m))
			g.serves.Store(nil)
			if g.ready.Load() {
				g.serves.Store(&m.sum)
			}
		}
		select {
		case <-ctx.Done():
			g.drain(stop)
			return nil
		case <-ticker.C:
		}
	}
}

// read reads all files.
func (g *Gateway) read() (*Map, error) {
	m, err := ReadMap(g.options.MapFile)
	if g.certificate != nil {
		err = errors.Join(err, g.certificate.refresh())
	}
	if g.authority != nil {
		err = errors.Join(err, g.authority.refresh())
	}
	return m, err
}

// listen opens the ports of the map, and closes those that are not in it. It reports whether all are open.
func (g *Gateway) listen(ctx context.Context, m *Map) bool {
	wanted, all := map[uint16]bool{}, true
	for _, instance := range m.Instances {
		wanted[instance.Port] = true
		if l, found := g.listeners[instance.Port]; found {
			l.instance.Store(&instance)
			continue
		}
		opened, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(g.options.Host, strconv.Itoa(int(instance.Port))))
		if err != nil {
			g.say(err, "A port cannot be opened", "instance", instance.Name)
			all = false
			continue
		}
		l := &listener{Listener: opened}
		l.instance.Store(&instance)
		g.listeners[instance.Port] = l
		g.options.Log.Info("Instance is served", "instance", instance.Name, "port", instance.Port, "outside", instance.Outside)
		g.accepting.Go(func() { g.accept(ctx, l) })
	}
	for port, l := range g.listeners {
		if !wanted[port] {
			_ = l.Close() // connections stay until the instance goes
			delete(g.listeners, port)
			g.options.Log.Info("Instance is no longer served", "instance", l.instance.Load().Name)
		}
	}
	return all
}

// accept serves the connections of a port until it is closed.
func (g *Gateway) accept(ctx context.Context, l *listener) {
	const rest = 50 * time.Millisecond
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as that there are too many open files
			g.say(err, "A connection cannot be accepted")
			time.Sleep(rest)
			continue
		}
		g.figures.accepted.Add(1)
		leave, why := g.limits.enter(conn.RemoteAddr())
		if why != admitted {
			g.refuse(conn, why)
			continue
		}
		g.wait.Go(func() {
			defer leave()
			g.serve(ctx, conn, l.instance.Load())
		})
	}
}

// refuse closes a connection with what an instance says when there are too many.
func (g *Gateway) refuse(conn net.Conn, why refusal) {
	g.figures.refused[why].Add(1)
	if g.certificate == nil {
		if err := conn.SetWriteDeadline(time.Now().Add(time.Millisecond)); err == nil {
			_, _ = io.WriteString(conn, "-ERR max number of clients reached\r\n") // the closing says it, too
		}
	}
	_ = conn.Close() // it was never served
}

// serve passes on one connection of a client.
func (g *Gateway) serve(ctx context.Context, conn net.Conn, instance *Instance) {
	defer func() { _ = conn.Close() }() // what was to be passed on was
	g.figures.open.Add(1)
	defer g.figures.open.Add(-1)
	source := conn.RemoteAddr().String()
	client, err := g.secure(ctx, conn)
	if err != nil {
		g.figures.refused[noHandshake].Add(1)
		return
	}
	behind, err := g.dial(ctx, instance.Inside[0])
	if err != nil {
		g.figures.refused[unreachable].Add(1)
		g.say(err, "An instance is not reached", "instance", instance.Name)
		return
	}
	err = g.pass(ctx, conn, client, behind)
	switch {
	case errors.Is(err, protocol.ErrClient):
		g.figures.brokenByClient.Add(1)
		g.say(err, "A connection is closed", "instance", instance.Name, "client", source)
	case errors.Is(err, protocol.ErrServer):
		g.figures.brokenByOther.Add(1)
		g.say(err, "A connection is closed", "instance", instance.Name, "client", source)
	}
}

// enter notes a connection, and leave that it has ended.
func (g *Gateway) enter(c *connection) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open[c] = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.open, c)
	}
}

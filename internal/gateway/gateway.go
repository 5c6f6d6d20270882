// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is what clients outside reach a cluster through: a proxy with a port for each instance, or one for all of them that the
// server name of TLS tells apart. It rewrites the addresses that instances tell to those that clients outside can reach, and passes all
// else as bytes. It keeps no state, knows no passwords, and passes on no replication.
package gateway

import (
	"context"
	"crypto/tls"
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
	// ClientCertFile and ClientKeyFile have the certificate for instances that want one; empty: they are shown none.
	ClientCertFile, ClientKeyFile string
	// ClientCAFile has the certificates that those of clients are signed with, of whom each has to show one; empty: nobody is asked.
	ClientCAFile string
	// MaxConnections, MaxPerSource and MaxPerInstance bound connections.
	MaxConnections, MaxPerSource, MaxPerInstance int
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
	served      atomic.Pointer[Served]
	draining    atomic.Bool // connections are closed when they rest
	stopping    atomic.Bool // no more commands are passed on
	says        *rate.Limiter

	mu        sync.Mutex
	listeners map[uint16]*listener
	open      map[*connection]bool
	accepting sync.WaitGroup
	wait      sync.WaitGroup
}

// listener is a port.
type listener struct {
	net.Listener
	entrance atomic.Pointer[entrance]
	tls      *tls.Config // nil: clients speak plain
}

// New is a gateway. Its files must be there, and must be valid.
func New(ctx context.Context, o Options) (*Gateway, error) {
	const saysEvery, saysAtOnce = 100 * time.Millisecond, 50
	g := &Gateway{options: o, directory: newDirectory(find, o.CAFile != ""), says: rate.NewLimiter(rate.Every(saysEvery), saysAtOnce),
		limits:    limits{total: o.MaxConnections, perSource: o.MaxPerSource, perInstance: o.MaxPerInstance},
		listeners: map[uint16]*listener{}, open: map[*connection]bool{}}
	if o.CertFile != "" {
		g.certificate = &certificate{what: "the certificate for clients", certFile: o.CertFile, keyFile: o.KeyFile}
		if o.ClientCAFile != "" {
			g.certificate.clients = &authority{what: "the authority of clients", file: o.ClientCAFile}
		}
	}
	if o.CAFile != "" {
		g.authority = &authority{what: "the authority of instances", file: o.CAFile, serverName: o.ServerName}
		if o.ClientCertFile != "" {
			g.authority.shows = &certificate{what: "the certificate for instances", certFile: o.ClientCertFile, keyFile: o.ClientKeyFile}
		}
	}
	m, err := g.read()
	if err != nil {
		return nil, err
	}
	g.directory.update(ctx, m, time.Now())
	g.served.Store(&Served{Reason: "it starts"})
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
			g.served.Store(g.serves(m, g.listen(running, m)))
		}
		select {
		case <-ctx.Done():
			g.drain(stop)
			return nil
		case <-ticker.C:
		}
	}
}

// serves says what is served of a map.
func (g *Gateway) serves(m *Map, all bool) *Served {
	if !all {
		return &Served{Reason: "not all ports of the map are open"}
	}
	return &Served{Map: m.digest, Unknown: g.directory.unknown(m), Addresses: g.directory.addresses(m)}
}

// read reads all files.
func (g *Gateway) read() (*Map, error) {
	m, err := ReadMap(g.options.MapFile)
	if m != nil && m.Port != 0 && g.certificate == nil {
		m, err = nil, errors.New("the map: port: clients must use TLS there, and there is no certificate for them")
	}
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
	wanted, all := m.entrances(), true
	for port, e := range wanted {
		if l, found := g.listeners[port]; found {
			l.entrance.Store(e)
			continue
		}
		config := net.ListenConfig{}
		config.SetMultipathTCP(false) // what is sent together with the end must arrive together
		opened, err := config.Listen(ctx, "tcp", net.JoinHostPort(g.options.Host, strconv.Itoa(int(port))))
		if err != nil {
			g.say(err, "A port cannot be opened", "instance", e.name())
			all = false
			continue
		}
		l := &listener{Listener: opened}
		l.entrance.Store(e)
		if g.certificate != nil {
			l.tls = g.certificate.config(func(server string) bool { return l.entrance.Load().choose(server) != nil })
		}
		g.listeners[port] = l
		g.options.Log.Info("Port is open", "port", port, "instance", e.name())
		g.accepting.Go(func() { g.accept(ctx, l) })
	}
	for port, l := range g.listeners {
		if wanted[port] == nil {
			_ = l.Close() // connections stay until the instance goes
			delete(g.listeners, port)
			g.options.Log.Info("Port is closed", "port", port, "instance", l.entrance.Load().name())
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
			g.refuse(conn, why, l.tls == nil)
			continue
		}
		g.wait.Go(func() {
			defer leave()
			g.serve(ctx, conn, l)
		})
	}
}

// refuse closes a connection with what an instance says when there are too many, if the client would hear it.
func (g *Gateway) refuse(client net.Conn, why refusal, hears bool) {
	g.figures.refused[why].Add(1)
	if hears {
		if err := client.SetWriteDeadline(time.Now().Add(time.Millisecond)); err == nil {
			_, _ = io.WriteString(client, "-ERR max number of clients reached\r\n") // the closing says it, too
		}
	}
	_ = client.Close() // it was never served
}

// serve passes on one connection of a client.
func (g *Gateway) serve(ctx context.Context, raw net.Conn, l *listener) {
	defer func() { _ = raw.Close() }() // what was to be passed on was
	g.figures.open.Add(1)
	defer g.figures.open.Add(-1)
	client, instance, err := secure(ctx, raw, l)
	if err != nil {
		g.figures.refused[noHandshake].Add(1)
		return
	}
	c := g.newConnection(raw, client)
	defer g.enter(c)()
	defer context.AfterFunc(ctx, c.close)()
	defer c.entry.Stop()
	first, err := c.begin()
	if err != nil {
		return
	}
	leave, ok := g.limits.reach(instance.Name)
	if !ok {
		g.refuse(client, tooManyOfInstance, true)
		return
	}
	defer leave()
	behind, err := g.dial(ctx, instance.Name)
	if err != nil {
		g.figures.refused[unreachable].Add(1)
		g.say(err, "An instance is not reached", "instance", instance.Name)
		return
	}
	err = c.pass(ctx, first, behind)
	switch {
	case errors.Is(err, protocol.ErrClient):
		g.figures.brokenByClient.Add(1)
		g.say(err, "A connection is closed", "instance", instance.Name, "client", raw.RemoteAddr().String())
	case errors.Is(err, protocol.ErrServer):
		g.figures.brokenByOther.Add(1)
		g.say(err, "A connection is closed", "instance", instance.Name, "client", raw.RemoteAddr().String())
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

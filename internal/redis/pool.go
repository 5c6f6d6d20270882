// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The library writes lines of its own to standard error when a dial fails. Every failure is returned to the caller
// here, so those lines would say the same again, without structure.
func init() { redis.SetLogger(&logging.VoidLogger{}) }

// Options configures a Pool. The zero value is usable.
type Options struct {
	// Dialer opens connections to a node's ip:port; by default TCP. It must return when its context ends.
	Dialer func(ctx context.Context, addr string) (net.Conn, error)
	// DialTimeout is for opening a connection, by default 1 s. IOTimeout is for the command, by default 2 s. Both
	// together, or the caller's context when that is shorter, bound every call.
	DialTimeout, IOTimeout time.Duration
	// IdleTimeout is how long connections to a node are kept after their last use, by default 1 min.
	IdleTimeout time.Duration
	// MostConns is how many connections to a node there are at once at most, by default 8; others wait for one.
	MostConns int
	// Now is the clock that measures idleness, by default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Dialer == nil {
		dialer := &net.Dialer{}
		o.Dialer = func(ctx context.Context, addr string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", addr)
		}
	}
	if o.DialTimeout <= 0 {
		o.DialTimeout = time.Second
	}
	if o.IOTimeout <= 0 {
		o.IOTimeout = 2 * time.Second
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = time.Minute
	}
	if o.MostConns <= 0 {
		o.MostConns = 8
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Pool keeps a few connections to each node in use and closes those that are not needed any more: after IdleTimeout,
// and all those of a node that did not answer. It is safe for concurrent use.
type Pool struct {
	options Options

	// large is held by whoever reads an answer of largeLimits: one at a time in the process.
	large chan struct{}

	mu      sync.Mutex
	clients map[clientKey]*client
	closed  bool
}

// clientKey holds the password, so that a changed one opens new connections.
type clientKey struct {
	addr        string
	credentials Credentials
	// parallel clients keep parallelLanes connections while they are in use, others a few.
	parallel bool
	// large clients read answers of largeLimits.
	large bool
}

func (k clientKey) limits() limits {
	if k.large {
		return largeLimits
	}
	return ordinaryLimits
}

const parallelLanes = 32

// client is guarded by Pool.mu.
type client struct {
	*redis.Client
	inUse    int
	lastUsed time.Time
	// retired clients are no longer in the pool and are closed by whoever uses them last.
	retired bool
}

// NewPool makes a pool; it opens no connection.
func NewPool(options Options) *Pool {
	return &Pool{options: options.withDefaults(), large: make(chan struct{}, 1), clients: map[clientKey]*client{}}
}

// Node is the node at addr (ip:port). It makes no contact. A Node is cheap and need not be kept.
func (p *Pool) Node(addr string, credentials Credentials) *Node {
	return &Node{pool: p, key: &clientKey{addr: addr, credentials: credentials}}
}

// Refuses reports whether a connection to each of the addresses is refused: the machine answers, and nobody listens there. Whatever
// else happens, that it cannot be reached or does not answer in time, is no refusal; accepts reports whether it is because the first that
// does not refuse accepts a connection. Nothing is sent.
func (p *Pool) Refuses(ctx context.Context, addrs ...string) (refuse, accepts bool) {
	for _, addr := range addrs {
		within, cancel := context.WithTimeout(ctx, p.options.DialTimeout)
		conn, err := p.options.Dialer(within, addr)
		cancel()
		if err == nil {
			_ = conn.Close()
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return false, err == nil
		}
	}
	return len(addrs) > 0, false
}

// Start closes idle connections until the context ends, then the pool. It has the shape of a controller-runtime
// Runnable.
func (p *Pool) Start(ctx context.Context) error {
	ticker := time.NewTicker(p.options.IdleTimeout)
	defer ticker.Stop()
	defer p.Close()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			p.CloseIdle()
		}
	}
}

// NeedLeaderElection has every replica close what it opened, whoever leads.
func (p *Pool) NeedLeaderElection() bool { return false }

// CloseIdle closes the connections to nodes that were last used IdleTimeout ago or earlier. Start calls it regularly.
func (p *Pool) CloseIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.options.Now().Add(-p.options.IdleTimeout)
	for key, c := range p.clients {
		if c.inUse == 0 && !c.lastUsed.After(limit) {
			p.retire(key, c)
		}
	}
}

// Close closes all connections, those in use as soon as their command ends. Later commands fail with ErrClosed.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for key, c := range p.clients {
		p.retire(key, c)
	}
}

// acquire returns the client for the key; the caller must release it.
func (p *Pool) acquire(key clientKey) (*client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	c, found := p.clients[key]
	if !found {
		c = &client{Client: p.newClient(key)}
		p.clients[key] = c
	}
	c.inUse++
	return c, nil
}

// release gives the client back. A node that did not answer loses all its connections: the library would go on
// to return the error of its last dial for a while after the node is back.
func (p *Pool) release(key clientKey, c *client, unreachable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.inUse--
	c.lastUsed = p.options.Now()
	if unreachable || c.retired {
		p.retire(key, c)
	}
}

// retire takes the client out of the pool and closes it unless it is in use. It needs the lock.
func (p *Pool) retire(key clientKey, c *client) {
	c.retired = true
	if p.clients[key] == c {
		delete(p.clients, key)
	}
	if c.inUse == 0 {
		_ = c.Close() // the connections are gone either way
	}
}

// newClient makes a client that asks one node once: no retries of commands or dials, no redirections, no commands of
// its own but the authentication.
func (p *Pool) newClient(key clientKey) *redis.Client {
	// One connection is kept of thousands of instances, and its buffers with it. Longer answers are read in several pieces.
	mostConns, mostIdle, read, write := p.options.MostConns, 1, 1<<10, 1<<10
	if key.parallel {
		mostConns, mostIdle, read, write = max(mostConns, parallelLanes), parallelLanes, 8<<10, 4<<10
	}
	return redis.NewClient(&redis.Options{
		Addr: key.addr,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			conn, err := p.dial(ctx, addr, key.credentials)
			if err != nil {
				return nil, unsent{err}
			}
			return newGuard(conn, key.limits()), nil
		},
		Protocol:              2, // the answers are parsed as text
		Username:              userOf(key.credentials),
		Password:              key.credentials.Password,
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           p.options.DialTimeout,
		ReadTimeout:           p.options.IOTimeout,
		WriteTimeout:          p.options.IOTimeout,
		ContextTimeoutEnabled: true,
		PoolSize:              mostConns,
		PipelinePoolSize:      -1, // no second pool for pipelines
		MaxIdleConns:          mostIdle,
		ReadBufferSize:        read,
		WriteBufferSize:       write,
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	})
}

// dial opens a connection on which nothing was said.
func (p *Pool) dial(ctx context.Context, addr string, credentials Credentials) (net.Conn, error) {
	conn, err := p.options.Dialer(ctx, addr)
	if err != nil || credentials.TLS == nil {
		return conn, err
	}
	secure, err := credentials.TLS.wrap(ctx, conn)
	if err != nil {
		return nil, err
	}
	return secure, nil
}

// userOf names the default user where there is a password: AUTH with a name also succeeds at a node that asks for no
// password (yet), AUTH without one is refused there.
func userOf(credentials Credentials) string {
	if credentials.Password == "" {
		return ""
	}
	return cmp.Or(credentials.User, "default")
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"time"
)

const (
	// mostConnections are open at once of those that have logged in, and mostStrangers of those that have not: the latter take no place of
	// the former.
	mostConnections, mostStrangers = 32, 32
	// keptForReplicas of the former are only for who says PSYNC.
	keptForReplicas = 2
	// loginWithin is how long a connection has to log in, whatever it says meanwhile.
	loginWithin = 5 * time.Second
)

// connections are those to a relay. They need its lock.
type connections struct {
	// known have logged in: true are those that have said PSYNC. strangers have not, the first that came first.
	known     map[net.Conn]bool
	strangers []net.Conn
}

var (
	errEnded   = errors.New("there were too many connections that had not logged in")
	errTooMany = errors.New("max number of clients reached")
)

// enter notes a connection that has not logged in; leave, that it is closed. Of too many such ones, one goes that came from the address
// that most of them are from: who opens many ends his own.
func (r *Relay) enter(conn net.Conn) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open.strangers = append(r.open.strangers, conn)
	if len(r.open.strangers) > mostStrangers {
		ends := r.open.excess()
		sever(r.open.strangers[ends])
		r.open.strangers = slices.Delete(r.open.strangers, ends, ends+1)
	}
	return func() {
		sever(conn)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.open.known, conn)
		r.open.strangers = slices.DeleteFunc(r.open.strangers, func(c net.Conn) bool { return c == conn })
	}
}

// excess is which stranger goes: any of the address, so that none of it can be sure to outlast another.
func (c *connections) excess() int {
	from, most := map[string][]int{}, ""
	for i, conn := range c.strangers {
		is := host(conn)
		if from[is] = append(from[is], i); len(from[is]) > len(from[most]) {
			most = is
		}
	}
	return from[most][rand.IntN(len(from[most]))] //nolint:gosec // whom it hits is no secret
}

// admit lets a connection go on that has logged in: kept reports that its place is only for who says PSYNC.
func (r *Relay) admit(conn net.Conn) (kept bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, others := slices.Index(r.open.strangers, conn), 0
	for _, replica := range r.open.known {
		if !replica {
			others++
		}
	}
	switch {
	case at < 0:
		return false, errEnded
	case len(r.open.known) >= mostConnections:
		return false, errTooMany
	case r.open.known == nil:
		r.open.known = map[net.Conn]bool{}
	}
	r.open.strangers = slices.Delete(r.open.strangers, at, at+1)
	r.open.known[conn] = false
	return others >= mostConnections-keptForReplicas, nil
}

// replicates notes that a connection has said PSYNC.
func (r *Relay) replicates(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.open.known[conn]; known {
		r.open.known[conn] = true
	}
}

// Drop closes all connections: the server is another one.
func (r *Relay) Drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.open.known {
		sever(conn) // who is interested connects again
	}
}

// sever closes a connection without a word, for which an encrypted one would wait until the other side reads it.
func sever(conn net.Conn) {
	if secure, is := conn.(interface{ NetConn() net.Conn }); is {
		conn = secure.NetConn()
	}
	_ = conn.Close() // nothing is lost with it
}

// host is where a connection is from.
func host(conn net.Conn) string {
	from, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return ""
	}
	return from
}

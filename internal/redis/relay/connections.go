// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"errors"
	"net"
	"slices"
	"time"
)

const (
	// mostConnections are open at once of those that have logged in, and mostStrangers of those that have not: the latter take no place of
	// the former.
	mostConnections, mostStrangers = 32, 32
	// loginWithin is how long a connection has to log in, whatever it says meanwhile.
	loginWithin = 5 * time.Second
)

// connections are those to a relay. They need its lock.
type connections struct {
	// known have logged in. strangers have not, the first that came first.
	known     map[net.Conn]bool
	strangers []net.Conn
}

var (
	errEnded   = errors.New("there were too many connections that had not logged in")
	errTooMany = errors.New("max number of clients reached")
)

// enter notes a connection that has not logged in; leave, that it is closed. Of too many such ones, the first goes that came from the
// address that most of them are from: who opens many ends his own.
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

// excess is which stranger goes.
func (c *connections) excess() int {
	count, first, most := map[string]int{}, map[string]int{}, 0
	for i, conn := range c.strangers {
		from := host(conn)
		if count[from]++; count[from] == 1 {
			first[from] = i
		}
		if count[from] > count[host(c.strangers[most])] {
			most = first[from]
		}
	}
	return most
}

// admit lets a connection go on that has logged in.
func (r *Relay) admit(conn net.Conn) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.open.strangers, conn)
	switch {
	case at < 0:
		return errEnded
	case len(r.open.known) >= mostConnections:
		return errTooMany
	case r.open.known == nil:
		r.open.known = map[net.Conn]bool{}
	}
	r.open.strangers = slices.Delete(r.open.strangers, at, at+1)
	r.open.known[conn] = true
	return nil
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

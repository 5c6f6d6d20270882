// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"net/netip"
	"sync"
)

// limits bounds connections: all of them, those of one source, and those to one instance.
type limits struct {
	total, perSource, perInstance int

	mu        sync.Mutex
	all       int
	sources   map[netip.Prefix]int
	instances map[string]int
}

// enter counts a connection in; why is empty if it may come, and leave is called when it has ended.
func (l *limits) enter(from net.Addr) (leave func(), why refusal) {
	source := sourceOf(from)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.all >= l.total:
		return nil, tooMany
	case l.sources[source] >= l.perSource:
		return nil, tooManyOfSource
	}
	if l.sources == nil {
		l.sources = map[netip.Prefix]int{}
	}
	l.all++
	l.sources[source]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all--
		if l.sources[source]--; l.sources[source] == 0 {
			delete(l.sources, source)
		}
	}, admitted
}

// reach counts a connection to an instance in; leave is called when it has ended.
func (l *limits) reach(instance string) (leave func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.instances[instance] >= l.perInstance {
		return nil, false
	}
	if l.instances == nil {
		l.instances = map[string]int{}
	}
	l.instances[instance]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.instances[instance]--; l.instances[instance] == 0 {
			delete(l.instances, instance)
		}
	}, true
}

// count is how many connections there are.
func (l *limits) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// sourceOf is who counts as one: an IPv4 address, or the network of 64 bits of an IPv6 address, which is one customer's.
func sourceOf(from net.Addr) netip.Prefix {
	const network, host = 64, 32
	address, err := netip.ParseAddrPort(from.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := address.Addr().Unmap().WithZone(""), network
	if ip.Is4() {
		bits = host
	}
	source, _ := ip.Prefix(bits) // the number of bits fits the address
	return source
}

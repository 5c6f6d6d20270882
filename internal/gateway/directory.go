// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"middleware.hc.cn/operator/internal/gateway/protocol"
)

const (
	// remembered is for how long an address is rewritten that an instance had before: others announce it until they have heard of the new
	// one, and clients use it until they ask anew, which go-redis does once a minute.
	remembered = 75 * time.Second
	// believed is for how long an address is connected to whose name cannot be looked up, where nothing but the address says who is there.
	believed = 30 * time.Second
)

// errGone is that a name has no address, in contrast to that it could not be looked up.
var errGone = errors.New("the name has no address")

// lookup is how the addresses of a name are found.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// directory says where clients reach an instance, by the addresses that the instance has, or had a moment ago; and at which it is reached
// itself.
type directory struct {
	find lookup
	// certified reports that instances show who they are: then an address is connected to however old it is.
	certified bool
	view      atomic.Pointer[view]
	// claims are the addresses of instances, by their names, turn is how many names were looked up. One goroutine uses them.
	claims map[string]map[protocol.Address]claim
	turn   int
}

// view is what is known at a moment.
type view struct {
	outside map[protocol.Address]protocol.Address
	inside  map[string][]string // of an instance, HOST:PORT
}

// claim is an address that an instance has or had.
type claim struct {
	present bool
	since   time.Time // when it was found first; zero: the map says it
	until   time.Time // when it was found last
	first   bool      // connections go there
}

// newer reports whether an address is an instance's by this claim rather than by another.
func (c claim) newer(than claim) bool {
	if c.present != than.present {
		return c.present
	}
	if c.present {
		return !c.since.Before(than.since)
	}
	return !c.until.Before(than.until)
}

func newDirectory(find lookup, certified bool) *directory {
	d := &directory{find: find, certified: certified, claims: map[string]map[protocol.Address]claim{}}
	d.view.Store(&view{})
	return d
}

// Outside implements protocol.Addresses.
func (d *directory) Outside(host string, port uint16) (protocol.Address, bool) {
	outside, found := d.view.Load().outside[protocol.Address{Host: bare(host), Port: port}]
	return outside, found
}

// inside are the IP addresses that an instance is reached at, with its port. It may be none.
func (d *directory) inside(name string) []string { return d.view.Load().inside[name] }

// bare is a host as it is compared.
func bare(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// unknown are the instances, in the order of the map, that no IP address is known of.
func (d *directory) unknown(m *Map) []string {
	var names []string
	for _, i := range m.Instances {
		known := false
		for _, c := range d.claims[i.Name] {
			known = known || c.present && c.first
		}
		if !known {
			names = append(names, i.Name)
		}
	}
	return names
}

// addresses are where connections to the instances of a map go.
func (d *directory) addresses(m *Map) map[string][]string {
	all, view := map[string][]string{}, d.view.Load()
	for _, i := range m.Instances {
		if at := view.inside[i.Name]; len(at) > 0 {
			all[i.Name] = at
		}
	}
	return all
}

// update takes a map, and looks its names up.
func (d *directory) update(ctx context.Context, m *Map, now time.Time) {
	found := d.lookUp(ctx, m)
	claims := map[string]map[protocol.Address]claim{}
	owners, outside := map[protocol.Address]string{}, map[protocol.Address]protocol.Address{}
	for _, i := range m.Instances {
		claims[i.Name] = claimed(i, found, d.claims[i.Name], now)
		place, _ := parseAddress(i.Outside) // the map was checked
		for address, c := range claims[i.Name] {
			if other, taken := owners[address]; !taken || c.newer(claims[other][address]) {
				owners[address], outside[address] = i.Name, place
			}
		}
	}
	inside := map[string][]string{}
	for address, name := range owners {
		if c := claims[name][address]; c.present && c.first && (d.certified || c.since.IsZero() || now.Sub(c.until) <= believed) {
			inside[name] = append(inside[name], netip.AddrPortFrom(netip.MustParseAddr(address.Host), address.Port).String())
		}
	}
	for _, addresses := range inside {
		slices.Sort(addresses)
	}
	d.claims = claims
	d.view.Store(&view{outside: outside, inside: inside})
}

// claimed are the addresses of an instance: what the map says, what its name has now, and what it had. While the name cannot be looked up,
// it has what it had.
func claimed(i Instance, found map[string]answer, before map[protocol.Address]claim, now time.Time) map[protocol.Address]claim {
	all, unsure := map[protocol.Address]claim{}, false
	for n, text := range i.Inside {
		address, _ := parseAddress(text)
		_, err := netip.ParseAddr(address.Host)
		all[protocol.Address{Host: bare(address.Host), Port: address.Port}] = claim{present: true, until: now, first: n == 0 && err == nil}
		if n > 0 || err == nil {
			continue
		}
		said, asked := found[address.Host]
		unsure = !asked || said.unsure
		for _, ip := range said.ips {
			at := protocol.Address{Host: ip.Unmap().WithZone("").String(), Port: address.Port}
			c := claim{present: true, since: now, until: now, first: true}
			if old, found := before[at]; found && old.present {
				c.since = old.since
			}
			all[at] = c
		}
	}
	for at, old := range before {
		if _, has := all[at]; !has {
			old.present = old.present && unsure && !old.since.IsZero()
			all[at] = old
		}
	}
	maps.DeleteFunc(all, func(_ protocol.Address, c claim) bool { return !c.present && now.Sub(c.until) > remembered })
	return all
}

// answer is what is known of a name.
type answer struct {
	ips    []netip.Addr
	unsure bool // it could not be looked up
}

// lookUp finds the addresses of names, a few at a time: of all that there are, or in turn of so many that each is asked every few seconds.
func (d *directory) lookUp(ctx context.Context, m *Map) map[string]answer {
	const (
		atOnce   = 16
		within   = 2 * time.Second
		most     = 100
		eachTime = 10 // in so many seconds
	)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var names []string
	for _, i := range m.Instances {
		address, _ := parseAddress(i.Inside[0])
		if _, err := netip.ParseAddr(address.Host); err != nil {
			names = append(names, address.Host)
		}
	}
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		found = map[string]answer{}
		slots = make(chan struct{}, atOnce)
	)
	for range min(len(names), max(most, len(names)/eachTime+1)) {
		name := names[d.turn%len(names)]
		d.turn++
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ips, err := d.find(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			found[name] = answer{ips: ips[:min(len(ips), mostInside)], unsure: err != nil && !errors.Is(err, errGone)}
		})
	}
	group.Wait()
	return found
}

// find looks a name up. A partial answer counts, but that there is none must be certain.
func find(ctx context.Context, host string) ([]netip.Addr, error) {
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if !isNotFound(err) {
		return ips, err
	}
	strict := &net.Resolver{PreferGo: true, StrictErrors: true}
	if ips, err = strict.LookupNetIP(ctx, "ip", host); isNotFound(err) {
		err = errGone
	}
	return ips, err
}

func isNotFound(err error) bool {
	var failed *net.DNSError
	return errors.As(err, &failed) && failed.IsNotFound
}

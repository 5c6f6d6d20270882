// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"middleware.hc.cn/operator/internal/gateway/protocol"
)

// remembered is for how long an address is rewritten that an instance had before: others announce it until they have heard of the new one,
// and clients use it until they ask anew, which go-redis does once a minute.
const remembered = 75 * time.Second

// lookup is how the addresses of a name are found.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// directory says where clients reach an instance, by the addresses that the instance has, or had a moment ago.
type directory struct {
	find  lookup
	table atomic.Pointer[map[protocol.Address]protocol.Address]
	// seen is when an address was last an instance's, current which an instance has now. One goroutine updates them.
	seen    map[string]map[protocol.Address]time.Time
	current map[string]map[protocol.Address]bool
}

func newDirectory(find lookup) *directory {
	d := &directory{find: find, seen: map[string]map[protocol.Address]time.Time{}, current: map[string]map[protocol.Address]bool{}}
	d.table.Store(&map[protocol.Address]protocol.Address{})
	return d
}

// Outside implements protocol.Addresses.
func (d *directory) Outside(host string, port uint16) (protocol.Address, bool) {
	outside, found := (*d.table.Load())[protocol.Address{Host: host, Port: port}]
	return outside, found
}

// unknown are the instances, in the order of the map, that no IP address is known of.
func (d *directory) unknown(m *Map) []string {
	var names []string
	for _, i := range m.Instances {
		known := false
		for address := range d.current[i.Name] {
			_, err := netip.ParseAddr(address.Host)
			known = known || err == nil
		}
		if !known {
			names = append(names, i.Name)
		}
	}
	return names
}

// update takes a map, and looks its names up.
func (d *directory) update(ctx context.Context, m *Map, now time.Time) {
	found := d.lookUp(ctx, m)
	table := map[protocol.Address]protocol.Address{}
	seen, current := map[string]map[protocol.Address]time.Time{}, map[string]map[protocol.Address]bool{}
	for _, i := range m.Instances {
		outside, _ := parseAddress(i.Outside) // the map was checked
		seen[i.Name] = map[protocol.Address]time.Time{}
		maps.Copy(seen[i.Name], d.seen[i.Name])
		current[i.Name] = d.addresses(i, found)
		for address := range current[i.Name] {
			seen[i.Name][address] = now
		}
		for address, at := range seen[i.Name] {
			if now.Sub(at) > remembered {
				delete(seen[i.Name], address)
				continue
			}
			table[address] = outside
		}
	}
	for _, i := range m.Instances { // what one has now may be what another had
		outside, _ := parseAddress(i.Outside)
		for address := range current[i.Name] {
			table[address] = outside
		}
	}
	d.seen, d.current = seen, current
	d.table.Store(&table)
}

// addresses are those that an instance has. While a name cannot be looked up, they are those that were found last.
func (d *directory) addresses(i Instance, found map[string][]netip.Addr) map[protocol.Address]bool {
	all := map[protocol.Address]bool{}
	for _, text := range i.Inside {
		address, _ := parseAddress(text)
		all[address] = true
		if _, err := netip.ParseAddr(address.Host); err == nil {
			continue
		}
		if len(found[address.Host]) == 0 {
			maps.Copy(all, d.current[i.Name])
		}
		for _, ip := range found[address.Host] {
			all[protocol.Address{Host: ip.Unmap().String(), Port: address.Port}] = true
		}
	}
	return all
}

// lookUp finds the addresses of all names, a few at a time.
func (d *directory) lookUp(ctx context.Context, m *Map) map[string][]netip.Addr {
	const (
		atOnce = 16
		within = 2 * time.Second
	)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		found = map[string][]netip.Addr{}
		slots = make(chan struct{}, atOnce)
		asked = map[string]bool{}
	)
	for _, i := range m.Instances {
		for _, text := range i.Inside {
			address, _ := parseAddress(text)
			if _, err := netip.ParseAddr(address.Host); err == nil || asked[address.Host] {
				continue
			}
			asked[address.Host] = true
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				ips, err := d.find(ctx, address.Host)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				found[address.Host] = ips[:min(len(ips), mostInside)]
			})
		}
	}
	group.Wait()
	return found
}

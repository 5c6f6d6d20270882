// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package address is the cluster's address plan.
//
// Addresses between host, control plane and nodes come from the ranges that RFC
// 5737 reserves for documentation, which no real network uses. Only the link to
// the control plane is visible on the host; everything else exists inside the
// cluster's network namespaces, which have no default route.
package address

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Fixed addresses inside the cluster.
const (
	// Bridge is the control plane's address on the network of the nodes.
	Bridge = "203.0.113.1"
	// NodePrefixLength is that of the network of the nodes.
	NodePrefixLength = 24
	// Pods holds one /24 for each node.
	Pods = "10.244.0.0/16"
	// Services is the range of cluster IPs.
	Services = "10.96.0.0/16"
	// KubernetesService is the API server's cluster IP: the first of Services.
	KubernetesService = "10.96.0.1"
	// DNSService is CoreDNS' cluster IP.
	DNSService = "10.96.0.10"
	// APIPort is the API server's.
	APIPort = 6443
	// MaxNodes bounds the plan; a machine runs out of memory long before.
	MaxNodes = 20
)

// Node is the address of node number n, counted from 1.
func Node(n int) string { return fmt.Sprintf("203.0.113.%d", 10+n) }

// PodRange is the range of the pods of node number n.
func PodRange(n int) string { return fmt.Sprintf("10.244.%d.0/24", n) }

// HostLink is the link between the host and the control plane.
type HostLink struct {
	Host, ControlPlane netip.Addr
}

// hostLinks are tried in this order: one for each of three clusters, and one more,
// since a machine may use one of them already.
var hostLinks = []netip.Prefix{
	netip.MustParsePrefix("198.51.100.0/30"),
	netip.MustParsePrefix("198.51.100.240/30"),
	netip.MustParsePrefix("198.51.100.120/30"),
	netip.MustParsePrefix("192.0.2.240/30"),
}

// ChooseHostLink picks the first link range that overlaps none of the used ones.
func ChooseHostLink(used []netip.Prefix) (HostLink, error) {
	for _, candidate := range hostLinks {
		if !overlapsAny(candidate, used) {
			return linkIn(candidate), nil
		}
	}
	return HostLink{}, fmt.Errorf("this machine uses all of %v itself; free one of them for the cluster's link to the host", hostLinks)
}

// ControlPlanes are the addresses that ChooseHostLink may give a control plane.
func ControlPlanes() []netip.Addr {
	var all []netip.Addr
	for _, candidate := range hostLinks {
		all = append(all, linkIn(candidate).ControlPlane)
	}
	return all
}

func linkIn(p netip.Prefix) HostLink {
	host := p.Addr().Next()
	return HostLink{Host: host, ControlPlane: host.Next()}
}

func overlapsAny(p netip.Prefix, others []netip.Prefix) bool {
	for _, o := range others {
		if o.Overlaps(p) {
			return true
		}
	}
	return false
}

// UsedByMachine lists the IPv4 ranges of the machine's interfaces and routes,
// without the default route.
func UsedByMachine() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("listing the machine's addresses: %w", err)
	}
	var used []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
			used = append(used, p.Masked())
		}
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return nil, fmt.Errorf("listing the machine's routes: %w", err)
	}
	return append(used, parseRoutes(string(routes))...), nil
}

// parseRoutes reads the format of /proc/net/route: one header line, then
// interface, destination, gateway, flags, refcount, use, metric, mask, … where
// addresses are little-endian hexadecimal numbers.
func parseRoutes(text string) []netip.Prefix {
	var out []netip.Prefix
	for _, line := range strings.Split(text, "\n")[1:] {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		destination, err1 := parseHexAddr(f[1])
		mask, err2 := parseHexAddr(f[7])
		if err1 != nil || err2 != nil {
			continue
		}
		ones, _ := net.IPMask(mask.AsSlice()).Size()
		if ones > 0 {
			out = append(out, netip.PrefixFrom(destination, ones))
		}
	}
	return out
}

func parseHexAddr(s string) (netip.Addr, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 4 {
		return netip.Addr{}, fmt.Errorf("not an address: %q", s)
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], binary.LittleEndian.Uint32(b))
	return netip.AddrFrom4(a), nil
}

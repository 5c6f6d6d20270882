// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/internal/gateway/protocol"
)

const (
	// mostInstances and mostInside bound a map, longestMap its file.
	mostInstances, mostInside = 1000, 8
	longestMap                = 1 << 20
	longestName               = 253
)

// Map is which instances are reached from outside, and where.
type Map struct {
	// Port is what the gateway listens on for all instances that have no port of their own; a client says by the server name of TLS which
	// it wants. 0: there are none.
	Port      uint16     `json:"port,omitempty"`
	Instances []Instance `json:"instances"`
	// digest is the SHA-256 of the file, in hexadecimal.
	digest string
}

// Instance is one instance of the cluster.
type Instance struct {
	// Name is told in logs.
	Name string `json:"name"`
	// Port is what the gateway listens on for it alone; 0: it is reached at the map's, by the name in Outside.
	Port uint16 `json:"port,omitempty"`
	// Outside is where clients reach that port, HOST:PORT.
	Outside string `json:"outside"`
	// Inside are its addresses, HOST:PORT. Connections go to the first, which is looked up if it is a name; in replies all of them become
	// Outside, and those that the first has.
	Inside []string `json:"inside"`
}

// ReadMap reads a map from a file.
func ReadMap(path string) (*Map, error) {
	file, err := os.Open(path) //nolint:gosec // it is the one that the command line names
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, longestMap+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return ParseMap(text)
}

// ParseMap reads a map, and refuses one with which a connection could lead to the wrong instance.
func ParseMap(text []byte) (*Map, error) {
	if len(text) > longestMap {
		return nil, fmt.Errorf("the map is longer than %d bytes", longestMap)
	}
	sum := sha256.Sum256(text)
	m := &Map{digest: hex.EncodeToString(sum[:])}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(m); err != nil {
		return nil, fmt.Errorf("the map: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the map: something follows it")
	}
	if len(m.Instances) > mostInstances {
		return nil, fmt.Errorf("the map has %d instances, and %d may be in it", len(m.Instances), mostInstances)
	}
	t := taken{port: m.Port, names: map[string]bool{}, servers: map[string]bool{}, ports: map[uint16]bool{},
		outside: map[protocol.Address]bool{}, inside: map[protocol.Address]bool{}}
	for i, instance := range m.Instances {
		if err := t.take(instance); err != nil {
			return nil, fmt.Errorf("instances[%d]: %w", i, err)
		}
	}
	return m, nil
}

// taken is what instances of a map have, that no other may have.
type taken struct {
	port            uint16 // the map's
	names, servers  map[string]bool
	ports           map[uint16]bool
	outside, inside map[protocol.Address]bool
}

func (t taken) take(i Instance) error {
	outside, err := parseAddress(i.Outside)
	outside.Host = bare(outside.Host)
	_, noName := netip.ParseAddr(outside.Host)
	switch {
	case !isName.MatchString(i.Name) || len(i.Name) > longestName:
		return errors.New("name: it must be letters, digits, hyphens and dots")
	case t.names[i.Name]:
		return fmt.Errorf("name: there is another %s", i.Name)
	case i.Port == 0 && t.port == 0:
		return errors.New("port: there must be one, here or for the whole map")
	case i.Port != 0 && (i.Port == t.port || t.ports[i.Port]):
		return fmt.Errorf("port: %d is another instance's, or the map's", i.Port)
	case err != nil:
		return fmt.Errorf("outside: %w", err)
	case t.outside[outside]:
		return fmt.Errorf("outside: %s is another instance's", i.Outside)
	case i.Port == 0 && noName == nil:
		return fmt.Errorf("outside: %s has no name that tells the instance apart at the map's port", i.Outside)
	case i.Port == 0 && t.servers[outside.Host]:
		return fmt.Errorf("outside: the name of %s is another instance's at the map's port", i.Outside)
	case len(i.Inside) == 0 || len(i.Inside) > mostInside:
		return fmt.Errorf("inside: there must be 1 to %d addresses", mostInside)
	}
	t.names[i.Name], t.outside[outside] = true, true
	if i.Port == 0 {
		t.servers[outside.Host] = true
	} else {
		t.ports[i.Port] = true
	}
	return t.takeInside(i.Inside)
}

func (t taken) takeInside(inside []string) error {
	for n, text := range inside {
		at, err := parseAddress(text)
		at.Host = bare(at.Host)
		switch {
		case err != nil:
			return fmt.Errorf("inside[%d]: %w", n, err)
		case t.inside[at]:
			return fmt.Errorf("inside[%d]: %s is there twice", n, text)
		}
		t.inside[at] = true
	}
	return nil
}

// entrance is which instances a port leads to.
type entrance struct {
	only  *Instance            // nil: one of those
	named map[string]*Instance // by the name of the server that a client wants
}

// choose is the instance that a client wants; nil: there is none.
func (e *entrance) choose(server string) *Instance {
	if e.only != nil {
		return e.only
	}
	return e.named[bare(server)]
}

// name is what logs call it.
func (e *entrance) name() string {
	if e.only != nil {
		return e.only.Name
	}
	return "all by their names"
}

// entrances are the ports of the map.
func (m *Map) entrances() map[uint16]*entrance {
	all := map[uint16]*entrance{}
	if m.Port != 0 {
		all[m.Port] = &entrance{named: map[string]*Instance{}}
	}
	for n := range m.Instances {
		i := &m.Instances[n]
		if i.Port != 0 {
			all[i.Port] = &entrance{only: i}
			continue
		}
		outside, _ := parseAddress(i.Outside) // the map was checked
		all[m.Port].named[bare(outside.Host)] = i
	}
	return all
}

var isName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?\.?$`)

// parseAddress reads HOST:PORT of an IP address or a DNS name. What is told to clients has no other characters than such have.
func parseAddress(text string) (protocol.Address, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return protocol.Address{}, fmt.Errorf("%.80q is not HOST:PORT", text)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return protocol.Address{}, fmt.Errorf("%.80q has no port from 1 to 65535", text)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		return protocol.Address{Host: ip.String(), Port: uint16(n)}, nil
	}
	if len(host) > longestName || !isName.MatchString(host) {
		return protocol.Address{}, fmt.Errorf("%.80q has no IP address and no DNS name", text)
	}
	return protocol.Address{Host: strings.ToLower(host), Port: uint16(n)}, nil
}

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
	Instances []Instance `json:"instances"`
	// sum is the SHA-256 of its text, in hex.
	sum string
}

// Instance is one instance of the cluster.
type Instance struct {
	// Name is told in logs.
	Name string `json:"name"`
	// Port is what the gateway listens on for it.
	Port uint16 `json:"port"`
	// Outside is where clients reach that port, HOST:PORT.
	Outside string `json:"outside"`
	// Inside are its addresses, HOST:PORT. Connections go to the first; in replies all of them become Outside, and those that a name has.
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
	m := &Map{}
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
	names, ports, places, inside := map[string]bool{}, map[uint16]bool{}, map[protocol.Address]bool{}, map[protocol.Address]bool{}
	for i, instance := range m.Instances {
		if err := instance.check(names, ports, places, inside); err != nil {
			return nil, fmt.Errorf("instances[%d]: %w", i, err)
		}
	}
	sum := sha256.Sum256(text)
	m.sum = hex.EncodeToString(sum[:])
	return m, nil
}

func (i Instance) check(names map[string]bool, ports map[uint16]bool, places, inside map[protocol.Address]bool) error {
	outside, err := parseAddress(i.Outside)
	switch {
	case !isName.MatchString(i.Name) || len(i.Name) > longestName:
		return errors.New("name: it must be letters, digits, hyphens and dots")
	case names[i.Name]:
		return fmt.Errorf("name: there is another %s", i.Name)
	case i.Port == 0 || ports[i.Port]:
		return fmt.Errorf("port: %d is none, or another instance's", i.Port)
	case err != nil:
		return fmt.Errorf("outside: %w", err)
	case places[outside]:
		return fmt.Errorf("outside: %s is another instance's", i.Outside)
	case len(i.Inside) == 0 || len(i.Inside) > mostInside:
		return fmt.Errorf("inside: there must be 1 to %d addresses", mostInside)
	}
	names[i.Name], ports[i.Port], places[outside] = true, true, true
	for n, text := range i.Inside {
		switch at, err := parseAddress(text); {
		case err != nil:
			return fmt.Errorf("inside[%d]: %w", n, err)
		case inside[at]:
			return fmt.Errorf("inside[%d]: %s is there twice", n, text)
		default:
			inside[at] = true
		}
	}
	return nil
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

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"strconv"
)

const (
	// longestNodes is how long a table of nodes may be: a thousand nodes have a quarter of it.
	longestNodes = 2 << 20
	// longestEntry and mostParts bound what a table says of one node.
	longestEntry, mostParts = 16 << 10, 256
	deepestEntry            = 4
)

func isRedirection(text []byte) bool {
	return bytes.HasPrefix(text, []byte("MOVED ")) || bytes.HasPrefix(text, []byte("ASK "))
}

// redirection passes on an error; MOVED and ASK say the address of another instance.
func (r *replies) redirection(h header, to *bufio.Writer) error {
	words := bytes.Split(h.text, []byte{' '})
	if len(words) != 3 || !isRedirection(h.text) {
		return write(to, h.line)
	}
	outside, found := r.lookup(words[2])
	if !found {
		return write(to, h.line)
	}
	text := append([]byte{'-'}, words[0]...)
	text = append(append(append(text, ' '), words[1]...), ' ')
	text = append(outside.append(text), '\r', '\n')
	return write(to, text)
}

// lookup is where clients reach HOST:PORT.
func (r *replies) lookup(address []byte) (Address, bool) {
	colon := bytes.LastIndexByte(address, ':')
	if colon < 0 {
		return Address{}, false
	}
	return r.outside(address[:colon], address[colon+1:])
}

func (r *replies) outside(host, port []byte) (Address, bool) {
	n, err := strconv.ParseUint(string(port), 10, 16)
	if err != nil || len(host) == 0 {
		return Address{}, false
	}
	outside, found := r.session.addresses.Outside(string(host), uint16(n))
	if found {
		r.session.counts.Rewritten.Add(1)
	}
	return outside, found
}

func (a Address) append(to []byte) []byte {
	return strconv.AppendUint(append(append(to, a.Host...), ':'), uint64(a.Port), 10)
}

// addresses rewrites what tells addresses in the reply to a command. handled reports that the value was passed on.
func (r *replies) addresses(h header, to *bufio.Writer, k kind, depth int) (handled bool, err error) {
	isAggregate, isText := h.prefix == '*' || h.prefix == '%', h.prefix == '$' || h.prefix == '='
	switch {
	case k == clusterSlots && depth == 2 && isAggregate:
		return true, r.entry(h, to, r.slotsEntry)
	case k == clusterShards && depth == 3 && isAggregate:
		return true, r.entry(h, to, r.shardsEntry)
	case k == clusterNodes && depth == 0 && isText, k == clusterReplicas && depth == 1 && isText:
		return true, r.nodes(h, to)
	}
	return false, nil
}

// nodes rewrites lines of CLUSTER NODES.
func (r *replies) nodes(h header, to *bufio.Writer) error {
	prefix := h.prefix
	n, err := r.from.length(h, longestNodes)
	if err != nil {
		return err
	}
	if n < 0 {
		return write(to, h.line)
	}
	text, err := r.from.collect(n)
	if err != nil || to == nil {
		return err
	}
	changed := make([]byte, 0, len(text))
	for line := range bytes.Lines(text) {
		changed = r.node(changed, line)
	}
	if err := writeHeader(to, prefix, int64(len(changed))); err != nil {
		return err
	}
	return write(to, append(changed, '\r', '\n'))
}

// node rewrites a line of CLUSTER NODES: ID HOST:PORT@BUSPORT[,HOSTNAME] FLAGS ... A name that an instance has inside is left out.
func (r *replies) node(to, line []byte) []byte {
	id, rest, found := bytes.Cut(line, []byte{' '})
	address, others, isNode := bytes.Cut(rest, []byte{' '})
	hostPort, bus, hasBus := bytes.Cut(address, []byte{'@'})
	outside, known := r.lookup(hostPort)
	if !found || !isNode || !hasBus || !known {
		return append(to, line...)
	}
	bus, _, _ = bytes.Cut(bus, []byte{','})
	to = append(append(to, id...), ' ')
	to = append(append(outside.append(to), '@'), bus...)
	return append(append(to, ' '), others...)
}

// part is a value in what a table says of a node.
type part struct {
	prefix byte
	text   []byte // of anything but an aggregate: what follows the prefix, or of a string its content
	isNull bool
	parts  []part
}

// entry rewrites what a table says of one node, which is read whole.
func (r *replies) entry(h header, to *bufio.Writer, rewrite func(*part)) error {
	e, err := r.part(h, deepestEntry, &budget{bytes: longestEntry, parts: mostParts})
	if err != nil || to == nil {
		return err
	}
	rewrite(&e)
	return write(to, e.append(nil))
}

// budget is what is left of what may be read of one node.
type budget struct{ bytes, parts int }

func (r *replies) part(h header, depth int, left *budget) (part, error) {
	p := part{prefix: h.prefix}
	left.parts--
	if left.bytes -= len(h.line); left.bytes < 0 || left.parts < 0 || depth == 0 || !h.whole {
		return p, r.from.broken("a table of instances is too large")
	}
	switch h.prefix {
	case '*', '%':
		n, err := r.from.length(h, mostParts)
		if h.prefix == '%' {
			n *= 2
		}
		p.isNull = n < 0
		for i := int64(0); i < n && err == nil; i++ {
			var next part
			if h, err = r.from.header(); err == nil {
				next, err = r.part(h, depth-1, left)
				p.parts = append(p.parts, next)
			}
		}
		return p, err
	case '$':
		n, err := r.from.length(h, int64(left.bytes))
		if p.isNull = n < 0; err != nil || p.isNull {
			return p, err
		}
		left.bytes -= int(n)
		p.text, err = r.from.collect(n)
		return p, err
	case ':', '+', '_', '#', ',':
		p.text = bytes.Clone(h.text)
		return p, nil
	}
	return p, r.from.broken("a table of instances has a value of an unknown type")
}

func (p *part) append(to []byte) []byte {
	switch {
	case p.isNull:
		return appendHeader(to, p.prefix, -1)
	case p.prefix == '$':
		return append(append(appendHeader(to, '$', int64(len(p.text))), p.text...), '\r', '\n')
	case p.prefix != '*' && p.prefix != '%':
		return append(append(append(to, p.prefix), p.text...), '\r', '\n')
	}
	n := len(p.parts)
	if p.prefix == '%' {
		n /= 2
	}
	to = appendHeader(to, p.prefix, int64(n))
	for i := range p.parts {
		to = p.parts[i].append(to)
	}
	return to
}

// slotsEntry rewrites a node of CLUSTER SLOTS: host, port, ID, and further names and addresses, which are left out.
func (r *replies) slotsEntry(e *part) {
	const host, port, metadata = 0, 1, 3
	if len(e.parts) <= port || e.parts[port].prefix != ':' {
		return
	}
	outside, found := r.outside(e.parts[host].text, e.parts[port].text)
	if !found {
		return
	}
	e.parts[host].set(outside.Host)
	e.parts[port].text = strconv.AppendUint(nil, uint64(outside.Port), 10)
	if len(e.parts) > metadata {
		e.parts[metadata].remove("ip", "hostname")
	}
}

// shardsEntry rewrites a node of CLUSTER SHARDS, which is pairs.
func (r *replies) shardsEntry(e *part) {
	var outside Address
	found := false
	for _, host := range []string{"ip", "endpoint"} {
		for _, port := range []string{"port", "tls-port"} {
			if h, p := e.get(host), e.get(port); !found && h != nil && p != nil {
				outside, found = r.outside(h.text, p.text)
			}
		}
	}
	if !found {
		return
	}
	used, other := "port", "tls-port"
	if r.session.secure {
		used, other = other, used
	}
	if e.get(used) == nil {
		e.rename(other, used)
	}
	e.remove("hostname", other)
	e.get(used).text = strconv.AppendUint(nil, uint64(outside.Port), 10)
	for _, name := range []string{"ip", "endpoint"} {
		if host := e.get(name); host != nil {
			host.set(outside.Host)
		}
	}
}

func (p *part) set(text string) { p.prefix, p.text, p.isNull = '$', []byte(text), false }

// get is the value of a key among pairs.
func (p *part) get(key string) *part {
	for i := 0; i+1 < len(p.parts); i += 2 {
		if string(p.parts[i].text) == key {
			return &p.parts[i+1]
		}
	}
	return nil
}

func (p *part) rename(key, to string) {
	for i := 0; i+1 < len(p.parts); i += 2 {
		if string(p.parts[i].text) == key {
			p.parts[i].set(to)
		}
	}
}

// remove takes pairs away.
func (p *part) remove(keys ...string) {
	var kept []part
	for i := 0; i+1 < len(p.parts); i += 2 {
		gone := false
		for _, key := range keys {
			gone = gone || string(p.parts[i].text) == key
		}
		if !gone {
			kept = append(kept, p.parts[i], p.parts[i+1])
		}
	}
	p.parts = kept
}

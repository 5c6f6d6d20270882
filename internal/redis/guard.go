// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// limits are what one exchange (all answers to the commands that were written together) may come to. The library allocates
// what a header announces before anything else has arrived, so announced lengths count, not only bytes that came.
type limits struct {
	// bytes is the most that an exchange may make the library allocate: lengths of bulk strings and of lines, and
	// bytesPerElement for each element of an array. elements is the most elements of arrays, nested ones included.
	bytes, elements int
}

const (
	// bytesPerElement is what an element of an array takes before it has arrived (any).
	bytesPerElement = 16
	// longestLine is for simple strings, errors and numbers, without their end. Errors repeat what they refuse, such as a
	// rule of an ACL.
	longestLine = 16 << 10
	// longestHeader is for the digits of a length.
	longestHeader = 10
	// deepest is how far arrays may be nested. COMMAND INFO nests six deep.
	deepest = 16
)

var (
	// handshakeLimits are for the first answer on a connection: whoever answers may not even know the password.
	handshakeLimits = limits{bytes: 64 << 10, elements: 2 << 10}
	// ordinaryLimits hold what a cluster of the largest topology that admission allows can answer
	// (TestGuardLetsThroughWhatHonestServersAnswer).
	ordinaryLimits = limits{bytes: 768 << 10, elements: 32 << 10}
	// largeLimits are for what users decide the size of: a key, all functions. See Node.read.
	largeLimits = limits{bytes: 32 << 20, elements: 256 << 10}
)

// badAnswer is why a connection is not read any further. Another attempt finds the same, but for one that is too long for
// its limits.
type badAnswer struct {
	why  string
	long bool
}

func (e *badAnswer) Error() string { return e.why }

// tooLong reports whether an answer was cut off because it is over the limits.
func tooLong(err error) bool {
	var bad *badAnswer
	return errors.As(err, &bad) && bad.long
}

// guard is a connection whose answers are judged before the library sees them. A header that announces more than the limits
// is not delivered: Read fails instead, now and ever after. It expects RESP2, in plain text, and answers that are read by one
// goroutine at a time and not while commands are written.
type guard struct {
	net.Conn
	limits limits

	handshaken bool // the first exchange is over
	reading    bool // answers are being read
	spent      limits
	nested     [deepest]int // how many elements each open array still lacks
	depth      int
	line       [1 + longestHeader]byte // type and length of the header that is being read
	lineSize   int                     // of the line so far, its type included; 0: between two elements
	sawCR      bool
	bulk       int // bytes of a bulk string that are still to come, its end included
	failed     error
}

// tcpGuard is the guard of a connection whose socket may be looked at: the library sees there that the other side has closed it.
type tcpGuard struct {
	*guard
	syscall.Conn
}

// newGuard wraps a connection that carries RESP2 in plain text.
func newGuard(conn net.Conn, l limits) net.Conn {
	g := &guard{Conn: conn, limits: l}
	if socket, ok := conn.(syscall.Conn); ok {
		return tcpGuard{guard: g, Conn: socket}
	}
	return g
}

// Write begins an exchange.
func (g *guard) Write(p []byte) (int, error) {
	if g.reading {
		g.reading, g.handshaken, g.spent = false, true, limits{}
	}
	return g.Conn.Write(p)
}

// Read delivers what is within the limits.
func (g *guard) Read(p []byte) (int, error) {
	if g.failed != nil {
		return 0, g.failed
	}
	g.reading = true
	n, err := g.Conn.Read(p)
	for at := 0; at < n; {
		used, bad := g.judge(p[at:n])
		if bad != nil {
			g.failed = bad
			return at, bad
		}
		at += used
	}
	return n, err
}

// judge takes the next piece of one kind: bytes of a bulk string, or of a line up to its end.
func (g *guard) judge(p []byte) (used int, bad error) {
	if g.bulk > 0 {
		return g.takeBulk(p)
	}
	if g.lineSize == 0 {
		return 1, g.begin(p[0])
	}
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		g.sawCR = p[len(p)-1] == '\r'
		return len(p), g.extend(p)
	}
	body := p[:end]
	if len(body) > 0 {
		g.sawCR = body[len(body)-1] == '\r'
	}
	if !g.sawCR {
		return 0, badText("a line of the answer does not end as lines of the protocol do")
	}
	if bad := g.extend(body); bad != nil {
		return 0, bad
	}
	return end + 1, g.endLine()
}

// takeBulk passes bytes of a bulk string on, and checks its end.
func (g *guard) takeBulk(p []byte) (int, error) {
	const end = "\r\n"
	if g.bulk > len(end) {
		n := min(len(p), g.bulk-len(end))
		g.bulk -= n
		return n, nil
	}
	if p[0] != end[len(end)-g.bulk] {
		return 0, badText("a string of the answer is longer than it was announced")
	}
	if g.bulk--; g.bulk == 0 {
		g.endElement()
	}
	return 1, nil
}

// begin takes the type of an element.
func (g *guard) begin(kind byte) error {
	switch kind {
	case '+', '-', ':', '$', '*':
		g.line[0], g.lineSize, g.sawCR = kind, 1, false
		return nil
	default:
		return badText(fmt.Sprintf("the answer has an element that begins with %q, which is none of RESP2", kind))
	}
}

// isHeader reports whether the line that is being read announces a length.
func (g *guard) isHeader() bool { return g.line[0] == '$' || g.line[0] == '*' }

// extend takes bytes of a line, perhaps with its carriage return.
func (g *guard) extend(p []byte) error {
	const end = len("\r")
	if g.isHeader() {
		if g.lineSize+len(p) > len(g.line)+end {
			return badText("the answer announces a length that is no number")
		}
		copy(g.line[min(g.lineSize, len(g.line)):], p)
	} else if g.lineSize+len(p) > longestLine+end {
		return tooLongText(fmt.Sprintf("a line of the answer is longer than %s", size(longestLine)))
	}
	g.lineSize += len(p)
	return nil
}

// endLine judges a line that has arrived but for its last byte.
func (g *guard) endLine() error {
	size := g.lineSize - len("\r")
	g.lineSize = 0
	if !g.isHeader() {
		g.endElement()
		return g.spend(size, 0)
	}
	length, ok := parseLength(g.line[1:size])
	switch {
	case !ok:
		return badText("the answer announces a length that is no number")
	case length < 0: // nil
		g.endElement()
		return nil
	case g.line[0] == '$':
		g.bulk = length + len("\r\n")
		return g.spend(g.bulk, 0)
	}
	return g.openArray(length)
}

func (g *guard) openArray(length int) error {
	if err := g.spend(0, length); err != nil {
		return err
	}
	if length == 0 {
		g.endElement()
		return nil
	}
	if g.depth == deepest {
		return badText(fmt.Sprintf("the answer is nested deeper than %d levels", deepest))
	}
	g.nested[g.depth] = length
	g.depth++
	return nil
}

// endElement counts an element, and the arrays that are complete with it.
func (g *guard) endElement() {
	for g.depth > 0 {
		if g.nested[g.depth-1]--; g.nested[g.depth-1] > 0 {
			return
		}
		g.depth--
	}
}

// spend counts what the answers of this exchange announce.
func (g *guard) spend(bytes, elements int) error {
	most := g.limits
	if !g.handshaken {
		most = handshakeLimits
	}
	g.spent.elements += elements
	if g.spent.elements > most.elements {
		return tooLongText(fmt.Sprintf("the answer has more than %d elements", most.elements))
	}
	g.spent.bytes += bytes + elements*bytesPerElement
	if g.spent.bytes > most.bytes {
		return tooLongText(fmt.Sprintf("the answer is longer than %s", size(most.bytes)))
	}
	return nil
}

// parseLength reads the length in a header; -1 stands for nil. It is at most 10^longestHeader.
func parseLength(digits []byte) (int, bool) {
	if string(digits) == "-1" {
		return -1, true
	}
	if len(digits) == 0 || len(digits) > longestHeader || len(bytes.Trim(digits, "0123456789")) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(string(digits))
	return n, err == nil
}

func badText(why string) error     { return &badAnswer{why: why} }
func tooLongText(why string) error { return &badAnswer{why: why, long: true} }

// size is a number of bytes for people.
func size(bytes int) string {
	if bytes >= 1<<20 && bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

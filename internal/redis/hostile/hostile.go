// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile is a server that means harm to whoever manages it: it listens as a Redis does, and answers with what
// exhausts, confuses or delays a client. It is for tests and benchmarks.
package hostile

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/resp"
)

// A Kind is what a server does.
type Kind string

// The kinds. All but those that are marked so misbehave with the first answer, before anybody has logged in; the others
// answer as an instance of a cluster would, and lie in one command.
const (
	// BulkOverflow announces a string of 9223372036854775805 bytes.
	BulkOverflow Kind = "bulk-overflow"
	// BulkHuge announces a string of 2 GiB.
	BulkHuge Kind = "bulk-huge"
	// HugeArray announces an array of 60,000,000 elements.
	HugeArray Kind = "huge-array"
	// EndlessString is a simple string that does not end, EndlessError an error.
	EndlessString Kind = "endless-string"
	EndlessError  Kind = "endless-error"
	// Nested is an array in an array in an array, and so on.
	Nested Kind = "nested"
	// Negative announces a string of -5 bytes.
	Negative Kind = "negative"
	// Map and Push are types of RESP3 that nobody asked for.
	Map  Kind = "map"
	Push Kind = "push"
	// Drip answers with a byte a second.
	Drip Kind = "drip"
	// Silent accepts and never answers.
	Silent Kind = "silent"
	// Closing ends each connection at once.
	Closing Kind = "closing"
	// Garbage answers with random bytes.
	Garbage Kind = "garbage"

	// LongNodes answers like an instance; its CLUSTER NODES has 100,000 lines.
	LongNodes Kind = "lies-nodes"
	// LongError answers like an instance; each command but those that describe it is refused with a long error.
	LongError Kind = "lies-error"
	// Numbers answers like an instance; its INFO has numbers that are out of every range.
	Numbers Kind = "lies-numbers"
	// LateOverflow answers like an instance, but to CLUSTER NODES as BulkOverflow.
	LateOverflow Kind = "lies-overflow"
	// LateDrip answers like an instance, but to CLUSTER NODES as Drip.
	LateDrip Kind = "lies-drip"
)

// Kinds are all kinds.
func Kinds() []Kind {
	return []Kind{BulkOverflow, BulkHuge, HugeArray, EndlessString, EndlessError, Nested, Negative, Map, Push, Drip, Silent, Closing,
		Garbage, LongNodes, LongError, Numbers, LateOverflow, LateDrip}
}

// Serve answers on a listener until that is closed.
func Serve(listener net.Listener, kind Kind) error {
	if !slices.Contains(Kinds(), kind) {
		return fmt.Errorf("there is no kind %q: choose one of %q", kind, Kinds())
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = conn.Close() }()
			converse(conn, kind)
		}()
	}
}

// fixed are the answers of servers that do not even read what they are asked.
var fixed = map[Kind]string{
	BulkOverflow: "$9223372036854775805\r\n",
	BulkHuge:     "$2147483647\r\n",
	HugeArray:    "*60000000\r\n",
	Negative:     "$-5\r\n",
	Map:          "%60000000\r\n",
	Push:         ">60000000\r\n",
	Closing:      "",
}

// endless are answers that do not end: how they begin, and what goes on for ever.
var endless = map[Kind][2]string{
	EndlessString: {"+", strings.Repeat("a", 1<<16)},
	EndlessError:  {"-ERR ", strings.Repeat("no ", 1<<14)},
	Nested:        {"", strings.Repeat("*1\r\n", 1<<14)},
}

// converse answers on one connection.
func converse(conn net.Conn, kind Kind) {
	if kind == Closing {
		return
	}
	in := bufio.NewReader(conn)
	for {
		args, err := resp.ReadCommand(in)
		if err != nil || !answer(conn, kind, strings.ToUpper(strings.Join(args, " "))) {
			return
		}
		if kind == Silent || fixed[kind] != "" { // whoever waits for the rest waits
			_, _ = io.Copy(io.Discard, conn)
			return
		}
	}
}

// answer answers a command; false when the connection is over.
func answer(conn net.Conn, kind Kind, command string) bool {
	if parts, found := endless[kind]; found {
		_, err := io.WriteString(conn, parts[0])
		for err == nil {
			_, err = io.WriteString(conn, parts[1])
		}
		return false
	}
	if kind == Silent {
		return true
	}
	if kind == Drip || kind == LateDrip && command == "CLUSTER NODES" {
		return drip(conn)
	}
	text, isFixed := fixed[kind]
	if kind == Garbage {
		text = noise()
	} else if !isFixed {
		text = plausible(kind, command)
	}
	_, err := io.WriteString(conn, text)
	return err == nil
}

func noise() string {
	bytes := make([]byte, 1<<12)
	for i := range bytes {
		bytes[i] = byte(rand.Uint32()) //nolint:gosec // it need not be hard to guess
	}
	return string(bytes)
}

func drip(conn net.Conn) bool {
	_, err := io.WriteString(conn, "$500000\r\n")
	for ; err == nil; time.Sleep(time.Second) {
		_, err = io.WriteString(conn, "a")
	}
	return false
}

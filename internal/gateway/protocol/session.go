// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is what a gateway has to understand of a connection between a client and an instance: which replies tell addresses of
// instances, and which commands are not passed on. All else passes as bytes, in bounded memory.
//
// An instance gets what the client said in a form of its own: headers are written anew, commands as plain text become arrays. So the two
// never read a command differently.
package protocol

import (
	"bufio"
	"errors"
	"fmt"
	"sync/atomic"
)

// Errors of Requests and Replies. Their texts say nothing of what was in a command or a reply.
var (
	ErrClient = errors.New("the client's commands cannot be understood")
	ErrServer = errors.New("the instance's replies cannot be understood")
)

// Addresses are those of instances.
type Addresses interface {
	// Outside is where clients reach the instance that announces a host and a port.
	Outside(host string, port uint16) (outside Address, found bool)
}

// Address is a name or an IP address, and a port.
type Address struct {
	Host string
	Port uint16
}

// Phase is what the next bytes of a client belong to.
type Phase uint8

// Phases of a client.
const (
	Idle Phase = iota // none of a command has come
	Head              // the first words of a command
	Body              // the rest
)

// Session is one connection of a client, and the one to the instance behind it. Requests and Replies run at the same time.
type Session struct {
	addresses   Addresses
	secure      bool
	outstanding *outstanding
	head        head
	replies     replies
	// held reports that the connection is in a state that a client would miss after it connected again.
	held   atomic.Bool
	counts *Counts
}

// Counts are what sessions have done, of all that share them.
type Counts struct {
	Rewritten atomic.Int64 // addresses
	Refused   atomic.Int64 // commands
}

// New is a session. secure is whether clients use TLS: they look for the port of an instance under another key then.
func New(addresses Addresses, secure bool, counts *Counts) *Session {
	return &Session{addresses: addresses, secure: secure, counts: counts, outstanding: newOutstanding()}
}

// Finish ends a session that is at rest: nothing is outstanding, and no subscription, transaction, watched key or feed would be missed, if
// it was not stopped. Commands that come later are not passed on. It reports whether it did.
func (s *Session) Finish() bool { return s.outstanding.finish(s.held.Load) }

// Stop has no more commands passed on; Requests returns ErrFinished at the next one. Replies to those that were passed on come.
func (s *Session) Stop() { s.outstanding.stop() }

// Entry is whether a reply has shown that the instance has let the client in, and if not, whether none is awaited that could. An instance
// that wants a password answers nothing but errors before it has got it.
func (s *Session) Entry() (admitted, resting bool) { return s.outstanding.entry() }

// Abort makes Requests end that waits for replies. The connections have to be closed besides.
func (s *Session) Abort() { s.outstanding.finish(nil) }

// source is what is read from, in one direction.
type source struct {
	*bufio.Reader
	fault error // what an error of this side wraps
}

func (s source) broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", s.fault, fmt.Sprintf(format, args...))
}

// longestHeader bounds a line that announces a number.
const longestHeader = 32

// line reads a line without its end, which must be there within the buffer; the slice is good until the next read.
func (s source) line(most int) ([]byte, error) {
	line, err := s.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	n := len(line) - len("\r\n")
	if err != nil || n < 1 || n > most || line[n] != '\r' {
		return nil, s.broken("a line has no end, or is too long")
	}
	return line[:n], nil
}

// number is a decimal as engines write it: no sign but a minus, no zeros in front.
func (s source) number(text []byte, most int64) (int64, error) {
	digits, sign := text, int64(1)
	if len(digits) > 1 && digits[0] == '-' {
		digits, sign = digits[1:], -1
	}
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(text) > 1 {
		return 0, s.broken("a number is none")
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, s.broken("a number is none")
		}
		n = n*10 + int64(c-'0')
	}
	if n > most {
		return 0, s.broken("a number is too large")
	}
	return sign * n, nil
}

// copyTo passes on n bytes, or drops them without a destination, through the buffer alone.
func (s source) copyTo(to *bufio.Writer, n int64) error {
	for n > 0 {
		if s.Buffered() == 0 {
			if _, err := s.Peek(1); err != nil {
				return err
			}
		}
		part, err := s.Peek(int(min(n, int64(s.Buffered()))))
		if err != nil {
			return err
		}
		if to != nil {
			if _, err := to.Write(part); err != nil {
				return err
			}
		}
		if _, err := s.Discard(len(part)); err != nil {
			return err
		}
		n -= int64(len(part))
	}
	return nil
}

// end reads what ends a string, and passes it on.
func (s source) end(to *bufio.Writer) error {
	two, err := s.Peek(len("\r\n"))
	if err != nil {
		return err
	}
	if two[0] != '\r' || two[1] != '\n' {
		return s.broken("a string is longer than it says")
	}
	return s.copyTo(to, int64(len(two)))
}

// writeHeader writes a type and a number.
func writeHeader(to *bufio.Writer, prefix byte, n int64) error {
	_, err := to.Write(appendHeader(to.AvailableBuffer(), prefix, n))
	return err
}

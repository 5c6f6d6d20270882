// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"errors"
)

const (
	// deepest is how deep a reply may be nested.
	deepest = 1024
	// mostElements and longestString bound what a header of a reply may say; nothing is allocated for it.
	mostElements  = 1 << 31
	longestString = 1 << 40
)

// header is the first line of a value.
type header struct {
	prefix byte
	line   []byte // as it came; good until the next read
	text   []byte // without the prefix and the end; the beginning of it, if the line is not whole
	whole  bool   // false: the end of the line has not been read
}

func (h header) is(status string) bool { return h.prefix == '+' && string(h.text) == status }

func (s source) header() (header, error) {
	line, err := s.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		if line[0] != '+' && line[0] != '-' && line[0] != '(' {
			return header{}, s.broken("a header is too long")
		}
		return header{prefix: line[0], line: line, text: line[1:]}, nil
	}
	if err != nil {
		return header{}, err
	}
	n := len(line) - len("\r\n")
	if n < 1 || line[n] != '\r' {
		return header{}, s.broken("a line has no end")
	}
	return header{prefix: line[0], line: line, text: line[1:n], whole: true}, nil
}

// length is what the header of a string or of an aggregate says; null is -1.
func (s source) length(h header, most int64) (int64, error) {
	n, err := s.number(h.text, most)
	if err == nil && n < -1 {
		err = s.broken("a length is negative")
	}
	return n, err
}

// pass passes on a value whose header was read, or drops it without a destination. Addresses are rewritten in redirections, wherever they
// are, and in the places that the kind of the command says.
func (r *replies) pass(h header, to *bufio.Writer, k kind) error {
	base := len(r.stack)
	element := int64(0)
	for {
		depth := len(r.stack) - base
		handled, err := false, error(nil)
		if depth > 0 && h.prefix == '>' {
			r.stack[len(r.stack)-1]++ // Redis 7.0 sends what is published in a transaction in between, and it is no element
		} else if k == exec && depth == 1 {
			handled, err = r.element(h, to, element)
			element++
		} else if k != ordinary {
			handled, err = r.addresses(h, to, k, depth)
		}
		if err != nil {
			return err
		}
		if !handled {
			children, err := r.shallow(h, to)
			if err != nil {
				return err
			}
			if len(r.stack) == deepest {
				return r.from.broken("a reply is nested too deep")
			}
			r.stack = append(r.stack, children)
		}
		for len(r.stack) > base && r.stack[len(r.stack)-1] == 0 {
			r.stack = r.stack[:len(r.stack)-1]
		}
		if len(r.stack) == base {
			return nil
		}
		r.stack[len(r.stack)-1]--
		if h, err = r.from.header(); err != nil {
			return err
		}
	}
}

// shallow passes on a header, and of a string what follows. It returns how many values follow of an aggregate.
func (r *replies) shallow(h header, to *bufio.Writer) (children int64, err error) {
	switch h.prefix {
	case '-':
		if h.whole {
			return 0, r.redirection(h, to)
		}
		return 0, r.line(h, to)
	case '+', ':', '_', ',', '#', '(':
		return 0, r.line(h, to)
	case '$', '=', '!':
		n, err := r.from.length(h, longestString)
		if err != nil {
			return 0, err
		}
		if err := write(to, h.line); err != nil || n < 0 {
			return 0, err
		}
		if err := r.from.copyTo(to, n); err != nil {
			return 0, err
		}
		return 0, r.from.end(to)
	case '*', '~', '>', '%', '|':
		n, err := r.from.length(h, mostElements)
		if err != nil {
			return 0, err
		}
		if h.prefix == '%' || h.prefix == '|' {
			n *= 2
		}
		if h.prefix == '|' {
			n++ // what it is an attribute of
		}
		return max(n, 0), write(to, h.line)
	}
	return 0, r.from.broken("a value has no type that is known")
}

// line passes on a line, of which there may be more than the buffer holds.
func (r *replies) line(h header, to *bufio.Writer) error {
	if err := write(to, h.line); err != nil {
		return err
	}
	for whole := h.whole; !whole; {
		part, err := r.from.ReadSlice('\n')
		if whole = err == nil; !whole && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if err := write(to, part); err != nil {
			return err
		}
	}
	return nil
}

// element is one reply in that of EXEC.
func (r *replies) element(h header, to *bufio.Writer, i int64) (handled bool, err error) {
	if len(r.special) == 0 || r.special[0].index != i {
		return false, nil
	}
	k := r.special[0].kind
	r.special = r.special[1:]
	if k == hello {
		r.greeted(h)
	}
	return true, r.pass(h, to, k)
}

// collect reads a string of n bytes and its end.
func (s source) collect(n int64) ([]byte, error) {
	var text bytes.Buffer // grows as it comes
	for n > 0 {
		part, err := s.Peek(int(max(1, min(n, int64(s.Buffered())))))
		if err != nil {
			return nil, err
		}
		text.Write(part)
		n -= int64(len(part))
		if _, err := s.Discard(len(part)); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), s.end(nil)
}

func write(to *bufio.Writer, text []byte) error {
	if to == nil {
		return nil
	}
	_, err := to.Write(text)
	return err
}

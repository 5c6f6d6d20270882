// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
)

const (
	// mostArguments and longestArgument bound a command, as engines do by default.
	mostArguments   = 1 << 20
	longestArgument = 512 << 20
	// longestInline bounds a command as plain text.
	longestInline = 1 << 10
)

// Requests passes a client's commands on until it has ended between two of them. Each is noted before it is passed on. pace is told what
// the next bytes belong to.
func (s *Session) Requests(commands *Pipe, pace func(Phase)) error {
	defer commands.release()
	for {
		pace(Idle)
		err := commands.await()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		pace(Head)
		from := source{Reader: commands.reader, fault: ErrClient}
		first, err := from.Peek(1)
		if err == nil && first[0] == '*' {
			err = s.command(from, commands.writer, pace)
		} else if err == nil {
			err = s.inline(from, commands.writer)
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return errors.Join(err, commands.flush()) // what came before is carried out
		}
	}
}

// command passes on a command that is an array.
func (s *Session) command(from source, to *bufio.Writer, pace func(Phase)) error {
	args, err := from.count('*', mostArguments)
	if err != nil || args <= 0 {
		return err // engines say nothing to an empty one
	}
	h := &s.head
	h.known, h.args = 0, args
	open := -1 // the length of a string whose header was read, and no more
	for h.known < min(args, mostHead) && (h.known == 0 || h.isParent()) {
		length, err := from.count('$', longestArgument)
		if err != nil {
			return err
		}
		if length < 0 {
			return from.broken("an argument is null")
		}
		if length > longestWord {
			open = length
			break
		}
		text, err := from.Peek(length + len("\r\n"))
		if err != nil {
			return err
		}
		h.sizes[h.known] = copy(h.words[h.known][:], text[:length])
		h.known++
		if _, err := from.Discard(length); err != nil {
			return err
		}
		if err := from.end(nil); err != nil {
			return err
		}
	}
	pace(Body)
	to, err = s.begin(to)
	if err != nil {
		return err
	}
	return rest(from, to, args-h.known, open)
}

// begin notes the command, and writes what is known of it. Without a destination the rest of the command is dropped.
func (s *Session) begin(to *bufio.Writer) (*bufio.Writer, error) {
	h, r := &s.head, run{kind: s.head.classify(), count: 1}
	if r.kind.isSubscription() {
		r.count = uint32(h.args - 1) //nolint:gosec // an array is bounded
		if r.count == 0 && r.kind <= ssubscribe {
			r = run{kind: ordinary, count: 1} // an error
		}
	}
	if full, err := s.outstanding.add(r); err != nil {
		return nil, err
	} else if full {
		if err := to.Flush(); err != nil { // what is outstanding may be in the buffer
			return nil, err
		}
		if err := s.outstanding.await(r); err != nil {
			return nil, err
		}
	}
	switch {
	case r.kind == refused:
		s.counts.Refused.Add(1)
		return nil, writeCommand(to, refusedCommand)
	case replyOn <= r.kind && r.kind <= replySkip:
		return nil, writeCommand(to, "CLIENT", "REPLY", "ON")
	}
	if err := writeHeader(to, '*', int64(h.args)); err != nil {
		return nil, err
	}
	for i := range h.known {
		if err := writeString(to, h.word(i)); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// rest passes on the strings of a command that are left. open is the length of the first of them if its header was read.
func rest(from source, to *bufio.Writer, args, open int) error {
	for range args {
		length := open
		open = -1
		if length < 0 {
			var err error
			if length, err = from.count('$', longestArgument); err != nil {
				return err
			}
			if length < 0 {
				return from.broken("an argument is null")
			}
		}
		if to != nil {
			if err := writeHeader(to, '$', int64(length)); err != nil {
				return err
			}
		}
		if err := from.copyTo(to, int64(length)); err != nil {
			return err
		}
		if err := from.end(to); err != nil {
			return err
		}
	}
	return nil
}

// inline passes on a command that is a line of plain words, as an array. What engines read in a way of their own, such as quotes, is
// refused: a word that means something else to an instance would get past.
func (s *Session) inline(from source, to *bufio.Writer) error {
	line, err := from.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	if err != nil || len(line) > longestInline {
		return from.broken("a command in plain text is too long")
	}
	plain := func(c rune) bool { return c == ' ' || '!' <= c && c <= '~' && c != '"' && c != '\'' && c != '\\' }
	line = bytes.TrimRight(line, "\r\n")
	if bytes.ContainsFunc(line, func(c rune) bool { return !plain(c) }) {
		return from.broken("a command in plain text has other characters than plain ones")
	}
	words := bytes.Fields(line)
	if len(words) == 0 {
		return nil
	}
	h := &s.head
	h.known, h.args = 0, len(words)
	for _, word := range words[:min(len(words), mostHead)] {
		if len(word) > longestWord {
			break
		}
		h.sizes[h.known] = copy(h.words[h.known][:], word)
		h.known++
	}
	known := h.known
	to, err = s.begin(to)
	if err != nil || to == nil {
		return err
	}
	for _, word := range words[known:] {
		if err := writeString(to, word); err != nil {
			return err
		}
	}
	return nil
}

// count reads a header; none is -1.
func (s source) count(prefix byte, most int64) (int, error) {
	line, err := s.line(longestHeader)
	if err != nil {
		return 0, err
	}
	if line[0] != prefix {
		return 0, s.broken("a header is missing")
	}
	n, err := s.number(line[1:], most)
	if err == nil && n < -1 {
		err = s.broken("a number is negative")
	}
	return int(n), err
}

func appendHeader(to []byte, prefix byte, n int64) []byte {
	to = strconv.AppendInt(append(to, prefix), n, 10)
	return append(to, '\r', '\n')
}

func writeString(to *bufio.Writer, text []byte) error {
	if err := writeHeader(to, '$', int64(len(text))); err != nil {
		return err
	}
	if _, err := to.Write(text); err != nil {
		return err
	}
	_, err := to.WriteString("\r\n")
	return err
}

func writeCommand(to *bufio.Writer, words ...string) error {
	if err := writeHeader(to, '*', int64(len(words))); err != nil {
		return err
	}
	for _, word := range words {
		if err := writeString(to, []byte(word)); err != nil {
			return err
		}
	}
	return nil
}

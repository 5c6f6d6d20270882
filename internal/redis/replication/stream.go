// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a command.
const (
	// mostWords is how many strings a command has at most. The engines take 1 Mi from clients (PROTO_REQ_MULTIBULK_MAX); what they
	// send to replicas can be somewhat longer.
	mostWords = 2 << 20
	// longestName is more than any command's name has.
	longestName = 64
	// held is how much of a command is kept until it is there whole.
	held = 1 << 20
)

// ErrTorn is a command of which a part may have been written, and not all: what was written cannot be continued.
var ErrTorn = errors.New("a command was not written whole")

// dropped are commands that belong to the replication or to the cluster and not to the data; of CLUSTER those two.
var (
	dropped          = []string{"PING", "REPLCONF", "PUBLISH", "SPUBLISH"}
	droppedOfCluster = []string{setSlot, "SYNCSLOTS"}
)

// administrative are commands that change a server, not its data. No server sends them to its replicas, which would carry them out with all
// rights; but for CLUSTER SETSLOT, by which Valkey tells them of slots that move, and waits for their answer. Engines call most of them
// admin. Scripts and functions may call such commands: what they wrote comes as commands of its own, but from Redis 6.2 with
// lua-replicate-commands no.
var administrative = []string{"ACL", "BGREWRITEAOF", "BGSAVE", "CLIENT", "CLUSTER", "COMMANDLOG", "CONFIG", "DEBUG", "FAILOVER", "LATENCY",
	"MODULE", "MONITOR", "PFSELFTEST", "PSYNC", "REPLICAOF", "SAVE", "SHUTDOWN", "SLAVEOF", "SLOWLOG", "SYNC",
	"AUTH", "HELLO", "MIGRATE", "RESET",
	"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO"}

// ofData is an error for a command that is none of the data, by its first two strings; the second is empty as long as it is not known.
func ofData(name, second string) error {
	if !slices.Contains(administrative, name) || name == "CLUSTER" && (second == "" || strings.EqualFold(second, setSlot)) {
		return nil
	}
	return fmt.Errorf("%w: the stream has the command %s, which is none of the data", ErrRefused, name)
}

const setSlot = "SETSLOT"

// Copy reads the next command of the stream and writes it as it came, which is how append-only files have it, unless it is none of the
// data. It waits for one. Commands above 1 MiB are passed on while they arrive. If one does not arrive whole, or cannot be written, the
// error is ErrTorn. Until the base is read there is no stream.
func (s *Session) Copy(w io.Writer) error {
	c := &command{session: s, out: w}
	err := c.read()
	switch {
	case err != nil && c.passed > 0:
		return fmt.Errorf("%w: %w", ErrTorn, err)
	case err != nil:
		return err
	case c.name == "SELECT" && c.second != "0":
		return fmt.Errorf("%w: the stream has commands for database %.20q, and backups have one, 0", ErrRefused, c.second)
	}
	if err := c.flush(); err != nil {
		return err
	}
	switch c.name {
	case "MULTI":
		s.inside = true
	case "EXEC":
		s.inside = false
	}
	s.mu.Lock()
	s.position.Offset += c.size
	s.mu.Unlock()
	s.ofCluster = 0
	if c.name == "CLUSTER" {
		s.ofCluster = c.size
	}
	if c.name == "REPLCONF" && s.conn != nil && strings.EqualFold(c.second, "GETACK") {
		return s.acknowledge()
	}
	return nil
}

// command is one that is being read.
type command struct {
	session      *Session
	out          io.Writer
	name, second string // the first two strings; the second at most longestName bytes of it
	size, passed int64
	buffer       bytes.Buffer
	drop         bool
}

func (c *command) read() error {
	words, err := c.header('*', mostWords)
	if err != nil {
		return err
	}
	if words == 0 {
		return protocolError("a command is empty")
	}
	for i := range words {
		if err := c.word(i); err != nil {
			return err
		}
	}
	return nil
}

// word reads the nth string.
func (c *command) word(n int64) error {
	const longestWord = 1 << 40 // nothing is allocated by it
	length, err := c.header('$', longestWord)
	if err != nil {
		return err
	}
	if n == 0 && length > longestName {
		return protocolError("the name of a command has %d bytes", length)
	}
	start := c.buffer.Len()
	known := min(length, longestName)
	if n < 2 {
		if err := c.take(known); err != nil {
			return err
		}
		text := string(c.buffer.Bytes()[start:])
		length -= known
		if n == 0 {
			c.name = strings.ToUpper(text)
			c.drop = slices.Contains(dropped, c.name)
		} else {
			c.second = text
			c.drop = c.drop || c.name == "CLUSTER" && slices.Contains(droppedOfCluster, strings.ToUpper(text))
		}
		if err := ofData(c.name, c.second); c.session.dataOnly && err != nil {
			return err
		}
	}
	for length > 0 {
		part := min(length, bufferSize)
		if err := c.take(part); err != nil {
			return err
		}
		length -= part
		if err := c.relieve(); err != nil {
			return err
		}
	}
	start = c.buffer.Len()
	if err := c.take(int64(len("\r\n"))); err != nil {
		return err
	}
	if string(c.buffer.Bytes()[start:]) != "\r\n" {
		return protocolError("a string is longer than it was announced")
	}
	return c.relieve()
}

// take reads so many bytes into the buffer.
func (c *command) take(n int64) error {
	read, err := io.CopyN(&c.buffer, c.session.in, n)
	c.size += read
	return err
}

// relieve empties a buffer that is full.
func (c *command) relieve() error {
	switch {
	case c.drop:
		c.buffer.Reset()
	case c.buffer.Len() > held:
		return c.flush()
	}
	return nil
}

// flush writes what is held, unless the command is dropped.
func (c *command) flush() error {
	if c.drop {
		return nil
	}
	n, err := c.buffer.WriteTo(c.out)
	c.passed += n
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTorn, err)
	}
	return nil
}

// header reads a line with a number.
func (c *command) header(kind byte, most int64) (int64, error) {
	line, err := c.session.in.ReadSlice('\n')
	if err != nil && len(line) == 0 {
		return 0, err
	}
	digits, ends := bytes.CutSuffix(line, []byte("\r\n"))
	if !ends || len(digits) < 2 || digits[0] != kind || len(digits) > 20 {
		if err != nil && len(line) < longestLine {
			return 0, err
		}
		return 0, protocolError("%.40q where a command was expected", line)
	}
	n, err := strconv.ParseInt(string(digits[1:]), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, protocolError("%.40q announces no length", line)
	}
	c.size += int64(len(line))
	c.buffer.Write(line)
	return n, nil
}

// Wait returns when the next command begins to arrive, or never will.
func (s *Session) Wait() error {
	_, err := s.in.Peek(1)
	return err
}

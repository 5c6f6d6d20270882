// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/replication"
)

// send writes a command to the server.
func send(server net.Conn, words []string) error {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, word := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(word), word)
	}
	if err := server.SetWriteDeadline(time.Now().Add(commandTimeout)); err != nil {
		return err
	}
	_, err := server.Write(text)
	return err
}

// passAnswer passes on one answer, a line or a string; to INFO, the relay adds why the server is not followed.
func (c *client) passAnswer(isInfo bool) error {
	if err := c.server.SetReadDeadline(time.Now().Add(commandTimeout)); err != nil {
		return err
	}
	line, err := c.from.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	length, isString := strings.CutPrefix(strings.TrimRight(string(line), "\r\n"), "$")
	if !isString {
		return c.write(slices.Clone(line))
	}
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 || n > mostAnswer {
		return fmt.Errorf("the server's answer: %.40q announces no string", line)
	}
	text := make([]byte, n+len("\r\n"))
	if _, err := io.ReadFull(c.from, text); err != nil {
		return fmt.Errorf("the server's answer: %w", err)
	}
	if why := c.relay.why(); isInfo && why != "" {
		text = fmt.Appendf(text[:n], "\r\n%s:%s\r\n\r\n", redis.FieldHeld, why)
	}
	return c.write(fmt.Appendf(nil, "$%d\r\n%s", len(text)-len("\r\n"), text))
}

// follow passes a replica's session on until one of the two ends it.
func (c *client) follow(words []string) error {
	r := c.relay
	if c.from.Buffered() > 0 {
		return errors.New("the server has said what nobody asked for")
	}
	if !r.known.Load() {
		words = []string{"PSYNC", "?", "-1"}
	}
	r.Report(c.conn.RemoteAddr().String() + " follows the server: " + strings.Join(words, " "))
	if err := errors.Join(c.conn.SetWriteDeadline(time.Time{}), send(c.server, words), c.server.SetWriteDeadline(time.Time{})); err != nil {
		return err
	}
	said := make(chan error, 1)
	go func() {
		said <- c.passSaid()
		_ = c.server.Close() // ends Watch
	}()
	err := replication.Watch(c.server, c.conn, func() { r.known.Store(true) })
	if errors.Is(err, replication.ErrRefused) {
		r.refused.Store(time.Now().UnixNano())
		r.hold(err)
	}
	if errors.Is(err, replication.ErrRefused) || errors.Is(err, replication.ErrProtocol) || errors.Is(err, replication.ErrReplica) {
		r.known.Store(false)
	}
	_ = c.conn.Close() // ends what the replica says
	if heard := <-said; heard != nil && !errors.Is(heard, io.EOF) && !errors.Is(heard, net.ErrClosed) {
		err = heard
	}
	return err
}

// passSaid passes on what a replica says while it follows, which is how far it is.
func (c *client) passSaid() error {
	for {
		words, err := c.read(time.Hour) // a master of its own ends it much earlier
		switch {
		case err != nil:
			return err
		case len(words) == 0:
			if _, err := c.server.Write([]byte{'\n'}); err != nil {
				return err
			}
			continue
		case !strings.EqualFold(words[0], "REPLCONF"):
			return fmt.Errorf("a replica says %.40q", words[0])
		}
		if err := send(c.server, words); err != nil {
			return err
		}
	}
}

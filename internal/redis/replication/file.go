// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// CopyFile copies the commands of an append-only file, to its end, and leaves out what is none of the data of a server: timestamps, and
// what Copy leaves out. An error says that it has a command that Copy refuses, or that it ends within a command or a transaction.
func CopyFile(in io.Reader, to io.Writer) error {
	s := &Session{in: bufio.NewReaderSize(in, bufferSize), dataOnly: true}
	for {
		next, err := s.in.Peek(1)
		switch {
		case errors.Is(err, io.EOF) && s.inside:
			return fmt.Errorf("after %d bytes of commands: it ends within a transaction", s.position.Offset)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case next[0] == '#': // aof-timestamp-enabled
			if _, err := s.in.ReadSlice('\n'); err != nil {
				return fmt.Errorf("after %d bytes of commands: a timestamp: %w", s.position.Offset, err)
			}
			continue
		}
		if err := s.Copy(to); err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("it ends within a command (redis-check-aof --fix cuts that off): %w", io.ErrUnexpectedEOF)
			}
			return fmt.Errorf("after %d bytes of commands: %w", s.position.Offset, err)
		}
	}
}

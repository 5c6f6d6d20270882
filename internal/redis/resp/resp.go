// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resp reads what clients send to a Redis server, for servers in tests.
package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// most bounds the strings of a command, and the bytes of each.
const most = 1 << 20

// ReadCommand reads an array of bulk strings, which is not empty.
func ReadCommand(in *bufio.Reader) ([]string, error) {
	count, err := readHeader(in, '*')
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, errors.New("a command is empty")
	}
	args := make([]string, 0, min(count, 16)) // as many as come, not as many as are announced
	for range count {
		length, err := readHeader(in, '$')
		if err != nil {
			return nil, err
		}
		text := make([]byte, length+len("\r\n"))
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, err
		}
		args = append(args, string(text[:length]))
	}
	return args, nil
}

func readHeader(in *bufio.Reader, prefix byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimRight(line[1:], "\r\n"))
	if err != nil || line[0] != prefix || n < 0 || n > most {
		return 0, fmt.Errorf("%.40q is no header of a command", line)
	}
	return n, nil
}

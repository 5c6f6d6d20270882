// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"errors"
	"fmt"
	"strings"
)

var errUnbalancedQuotes = errors.New(`quotes are not balanced: close each quote, put a space behind it, and write a quote that is part of the value as \" inside double quotes`)

// SplitArguments splits text as Redis splits a line of redis.conf (sdssplitargs in
// sds.c): at white space; double quotes keep white space and know \xHH, \n, \r, \t,
// \b, \a and \c for any other c; single quotes keep white space and know \'.
// The only error is quotes that are not balanced.
func SplitArguments(text string) ([]string, error) {
	var args []string
	for i := skipSpace(text, 0); i < len(text); i = skipSpace(text, i) {
		arg, next, err := readArgument(text, i)
		if err != nil {
			return nil, err
		}
		args = append(args, arg)
		i = next
	}
	return args, nil
}

// readArgument reads the argument that begins at text[i] and returns where it ends.
func readArgument(text string, i int) (arg string, next int, err error) {
	var b strings.Builder
	for i < len(text) && !isSpace(text[i]) {
		switch text[i] {
		case '"', '\'':
			if i, err = readQuoted(&b, text, i); err != nil {
				return "", 0, err
			}
			return b.String(), i, nil
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	return b.String(), i, nil
}

// readQuoted reads the quoted string whose opening quote is text[i], and returns the
// position behind the closing one, which must be the end or white space.
func readQuoted(b *strings.Builder, text string, i int) (int, error) {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == quote:
			if i++; i < len(text) && !isSpace(text[i]) {
				return 0, errUnbalancedQuotes
			}
			return i, nil
		case quote == '"' && text[i] == '\\' && i+1 < len(text):
			c, width := unescape(text[i+1:])
			b.WriteByte(c)
			i += width
		case quote == '\'' && strings.HasPrefix(text[i:], `\'`):
			b.WriteByte('\'')
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	return 0, errUnbalancedQuotes
}

// unescape reads what follows a backslash in double quotes: the byte it stands for and
// how many bytes it took.
func unescape(s string) (c byte, width int) {
	if len(s) >= 3 && s[0] == 'x' && isHex(s[1]) && isHex(s[2]) {
		return hexDigit(s[1])<<4 | hexDigit(s[2]), 3
	}
	switch s[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	}
	return s[0], 1
}

// Quote writes an argument in Redis' double quotes. Whatever the argument holds, the
// result is one argument on one line.
func Quote(arg string) string { return `"` + Escape(arg) + `"` }

// Escape is what stands between the quotes of Quote: every byte that is not printable
// ASCII, and the quote and the backslash, become \xHH.
func Escape(arg string) string {
	var b strings.Builder
	for _, c := range []byte(arg) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\x%02x`, c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func skipSpace(text string, i int) int {
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool { return c == ' ' || (c >= '\t' && c <= '\r') }

func isHex(c byte) bool {
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')
}

func hexDigit(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

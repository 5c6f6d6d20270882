// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Credentials are what a node asks of the operator. The zero value is for nodes without a password. They print as
// "[redacted]" with every verb of fmt, in JSON and in structured logs.
type Credentials struct {
	// User is who logs in; empty: the default user. Password is that of the user.
	User, Password string
	// Other is tried where Password is refused: a node that has just started may know only the one of before. Empty:
	// there is none.
	Other string
	// TLS encrypts connections; nil: they are not.
	TLS *TLS
}

// Plainly are the credentials for a node that is reached without TLS, if it is.
func (c Credentials) Plainly(plain bool) Credentials {
	if plain {
		c.TLS = nil
	}
	return c
}

// String implements fmt.Stringer without the password.
func (Credentials) String() string { return redacted }

// Format implements fmt.Formatter, so that no verb reaches the fields.
func (Credentials) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, redacted) }

// LogValue implements slog.LogValuer without the password.
func (Credentials) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, which encoding/json uses too, without the password.
func (Credentials) MarshalText() ([]byte, error) { return []byte(redacted), nil }

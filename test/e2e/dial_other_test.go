// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

import (
	"context"
	"errors"
	"net"
)

func dialWithin(context.Context, string, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

import "errors"

func inNetwork(string, func() error) error { return errors.ErrUnsupported }

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package e2e

import "testing"

func ownProcessors(*testing.T) {}

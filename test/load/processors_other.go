// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

// Elsewhere threads cannot be kept on one processor: one sleeper, on any.
func processorNumbers() []int { return []int{0} }

func stayOn(int) {}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redis administers the nodes of a Redis or Valkey cluster (7.0 and later), one node at a time: what a node
// says (Node.Describe, a View) and what it is told (Node.Meet, Node.AddSlots, …). It never follows redirections, never
// retries and decides nothing: each call is one round trip with a deadline, unless its comment says
// otherwise, and its error says which kind of failure it was.
package redis

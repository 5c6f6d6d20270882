// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redistest simulates clusters of Redis nodes that speak RESP over real TCP connections, fail on demand and
// live on a clock of their own.
//
// A World holds nodes at addresses of the test's choosing (World.Dial takes a redis.Pool there). Each node has its
// own table of the cluster, as real ones do; tables change only in World.Gossip rounds. What the nodes do follows
// src/cluster.c of Redis 7.0.15, and each rule names the function it is taken from. Simplified on purpose:
//   - a round exchanges PING and PONG with every known node, and gossip sections name all known nodes, not a sample;
//   - replication copies the whole data set of the master in each round;
//   - nodes announce their address (cluster-announce-ip), so that none has to learn its own;
//   - replicas do not migrate between masters (cluster-allow-replica-migration no).
//
// Slots cannot be moved yet: there is no SETSLOT and no MIGRATE.
package redistest

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redistest simulates clusters of Redis nodes that speak RESP over real TCP connections, fail on demand and
// live on a clock of their own.
//
// A World holds nodes at addresses of the test's choosing (World.Dial takes a redis.Pool there, World.Connect without a
// network). Each node has its own table of the cluster, as real ones do; tables change only in World.Gossip rounds.
// What the nodes do follows src/cluster.c of Redis 7.0.15, and each rule names the function it is taken from. Simplified on purpose:
//   - a round exchanges PING and PONG with every known node, and gossip sections name all known nodes, not a sample;
//   - replication copies the whole data set of the master in each round (so that replicas lose what their master deletes
//     with a slot that was taken from it; those of Redis 7.0 keep it, since delKeysInSlot is not replicated);
//   - nodes announce their address (cluster-announce-ip), so that none has to learn its own;
//   - replicas do not migrate between masters, and a master without slots stays one (cluster-allow-replica-migration no);
//   - values are strings that do not expire, in one database;
//   - a migration of slots (Valkey 9) moves all keys in one round.
//
// Nodes of Valkey follow src/cluster_legacy.c and src/cluster_migrateslots.c of Valkey 9.1.2 where moving slots differs:
// replicas have the marks of open slots, marks follow a failover at the other end, and slots can move as a whole.
package redistest

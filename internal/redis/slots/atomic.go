// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

// AtomicMethod is how an engine moves whole slots on its own, at one stroke for its clients.
type AtomicMethod string

// The methods.
const (
	// AtomicNone is an engine that cannot.
	AtomicNone AtomicMethod = ""
	// AtomicSource is CLUSTER MIGRATESLOTS, told to the source (Valkey from 9.0 on).
	AtomicSource AtomicMethod = "CLUSTER MIGRATESLOTS"
	// AtomicDestination is CLUSTER MIGRATION IMPORT, told to the destination (Redis from 8.4 on). It is written to the
	// command's documentation and to clusterMigrationCommand() of src/cluster_asm.c; no such server is among those that the
	// tests run.
	AtomicDestination AtomicMethod = "CLUSTER MIGRATION IMPORT"
)

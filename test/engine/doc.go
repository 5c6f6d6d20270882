// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine holds the tests of internal/redis against real servers. It needs the environment variable ENGINES: a
// list of NAME=COMMAND separated by spaces, where NAME is the engine and its version or the beginning of it
// (redis-7.0 or redis-7.0.15) and COMMAND the path of an executable server, such as
//
//	ENGINES="redis-7.0.15=/usr/bin/redis-server valkey-9.1.2=/opt/valkey/bin/valkey-server" go test ./test/engine
//
// Tests of backups in an object store also need the programs MINIO (a server that speaks S3's language), BACKUP (bin/backup), AGE and
// ZSTD, each named by its path; make test-engine sets all of them.
//
// The servers run on free loopback ports, with their data in a directory of the test.
package engine

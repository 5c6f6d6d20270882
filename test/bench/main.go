// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what a RedisCluster's clients notice of changes and failures:
//
//   - scaling, against the engine's own means on the same cluster with the same data:
//     redis-cli --cluster reshard, or CLUSTER MIGRATESLOTS where the engine has it;
//   - rollouts, each of which restarts every instance;
//   - failovers: masters are killed at random (local cluster only);
//   - neighbours: the same, alone and beside clusters of others that mean harm.
//
// It needs KUBECONFIG and the operator deployed there (make bench-redis does both).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// engine is what is measured.
type engine struct{ Name, Repository, Version string }

var engines = []engine{
	{"redis-7.0", "docker.io/library/redis", "7.0.15"},
	{"redis-8.0", "docker.io/library/redis", "8.0.6"},
	{"valkey-8.1", "docker.io/valkey/valkey", "8.1.1"},
	{"valkey-9.1", "docker.io/valkey/valkey", "9.1.2"},
}

// options say what to measure.
type options struct {
	keys      int
	replicas  int // of each shard
	emptyRuns int
	writes    int // a second under load
	reads     int // a second under load
	engines   string
	measure   string // of scaling, rollouts, failovers, neighbours
	rollouts  int
	kills     int
	out       string
}

func main() {
	var o options
	flag.IntVar(&o.keys, "keys", 1_000_000, "keys of mixed sizes")
	flag.IntVar(&o.replicas, "replicas", 1, "replicas of each shard")
	flag.IntVar(&o.emptyRuns, "empty-runs", 5, "how often an empty cluster is scaled from 3 to 4 shards")
	flag.IntVar(&o.writes, "writes", 2600, "writes a second under load")
	flag.IntVar(&o.reads, "reads", 1000, "reads a second under load")
	flag.StringVar(&o.engines, "engines", "redis-8.0,valkey-9.1", "which engines, of redis-7.0, redis-8.0, valkey-8.1, valkey-9.1")
	flag.StringVar(&o.measure, "measure", "scaling",
		"what to measure, of scaling, rollouts, failovers, neighbours; several separated by commas")
	flag.IntVar(&o.rollouts, "rollouts", 20, "how many changes are rolled out to every instance")
	flag.IntVar(&o.kills, "kills", 200, "how many masters are killed")
	flag.StringVar(&o.out, "out", "build/bench-redis.json", "file for the figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, o options) error {
	chosen, err := choose(o.engines)
	if err != nil {
		return err
	}
	measures, err := chooseMeasures(o.measure)
	if err != nil {
		return err
	}
	k, err := connect()
	if err != nil {
		return err
	}
	report := report{At: time.Now().UTC(), Machine: machine(), Keys: o.keys, Replicas: o.replicas, Writes: o.writes, Reads: o.reads}
	var failure error
	for _, e := range chosen {
		figures, err := measure(ctx, k, e, o, measures)
		report.Engines = append(report.Engines, figures)
		if failure = err; failure != nil {
			failure = fmt.Errorf("%s: %w", e.Name, err)
			break
		}
	}
	// What was measured before a failure is kept.
	fmt.Println(report.markdown())
	if err := write(o.out, report); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "wrote %s\n", o.out)
	return failure
}

func choose(names string) ([]engine, error) {
	var chosen []engine
next:
	for _, name := range strings.Split(names, ",") {
		for _, e := range engines {
			if e.Name == name {
				chosen = append(chosen, e)
				continue next
			}
		}
		return nil, fmt.Errorf("--engines: %q is none of redis-7.0, redis-8.0, valkey-8.1, valkey-9.1", name)
	}
	return chosen, nil
}

// measures is what can be measured of a cluster. Each writes into the figures.
var measures = map[string]func(*subject, context.Context, *figures) error{
	"scaling": (*subject).scaling, "rollouts": (*subject).rolls, "failovers": (*subject).failovers, "neighbours": (*subject).neighbours,
}

func chooseMeasures(names string) ([]string, error) {
	chosen := strings.Split(names, ",")
	for _, name := range chosen {
		if measures[name] == nil {
			return nil, fmt.Errorf("--measure: %q is none of scaling, rollouts, failovers, neighbours", name)
		}
	}
	return chosen, nil
}

func write(path string, report report) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}

// progress prints what is being done.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

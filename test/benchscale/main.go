// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command benchscale measures what the operator costs with many RedisClusters: at rest, while it is scraped, after its start, when an
// instance is lost, and while one namespace floods it (make bench-scale). The API server is real and the operator its own binary; pods and
// Redis are simulated, in the bench's own process, so that a thousand clusters fit on a small machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options say what to measure.
type options struct {
	manager   string // the operator's binary
	arguments string // further ones of it
	replicas  int    // that share the work by shards, if there are several
	clusters  string // numbers of RedisClusters, comma separated and rising
	apps      int    // beside them
	rest      time.Duration
	scrapes   int
	losses    int
	flood     time.Duration
	profiles  string // directory for profiles of the operator at rest; empty takes none
	log       string
	out, plot string
}

func main() {
	var o options
	flag.StringVar(&o.manager, "manager", "bin/manager", "the operator's binary")
	flag.StringVar(&o.arguments, "arguments", "", "further arguments of the operator, separated by blanks")
	flag.IntVar(&o.replicas, "replicas", 1, "how many replicas of the operator share the work, with four shards each; figures are sums")
	flag.StringVar(&o.clusters, "clusters", "10,100", "numbers of RedisClusters, comma separated and rising; 1000 take half an hour and 8 GB")
	flag.IntVar(&o.apps, "apps", 0, "how many Apps, of a Deployment and a Service each, there are before the first RedisCluster")
	flag.DurationVar(&o.rest, "rest", time.Minute, "how long the operator is watched at rest: whole minutes, it asks for all once in each")
	flag.IntVar(&o.scrapes, "scrapes", 50, "how many times metrics are scraped, plain and compressed each; 0 leaves scrapes out")
	flag.IntVar(&o.losses, "losses", 20, "how many masters are lost, one after the other, with each number, and how many while one namespace floods")
	flag.DurationVar(&o.flood, "flood", 30*time.Second, "how long one namespace makes ten changes a second; 0 leaves that out")
	flag.StringVar(&o.profiles, "profiles", "", "directory for profiles of the operator at rest; empty takes none, they cost some percent")
	flag.StringVar(&o.log, "log", "build/bench-scale.log", "file for the operator's log")
	flag.StringVar(&o.out, "out", "build/bench-scale.json", "file for the figures")
	flag.StringVar(&o.plot, "plot", "", "file for a drawing of them (SVG), by the number of RedisClusters; empty draws nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "benchscale:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, o options) error {
	if o.replicas < 1 {
		return fmt.Errorf("--replicas: %d is not a number from 1 on", o.replicas)
	}
	sizes, err := parseSizes(o.clusters)
	if err != nil {
		return err
	}
	for _, file := range []string{o.log, o.out, o.plot} {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	var results []result
	err = withServer(ctx, scheme, func(s *server) error {
		running, cancel := context.WithCancel(ctx)
		defer cancel()
		f, err := startFleet(running, s, scheme)
		if err != nil {
			return err
		}
		b := &run{server: s, fleet: f, options: o}
		defer func() { b.kill() }()
		if b.operators, err = s.startOperators(ctx, o); err != nil {
			return err
		}
		if err := b.watch(running); err != nil {
			return err
		}
		if err := b.makeApps(ctx); err != nil {
			return fmt.Errorf("%d Apps: %w (the operator's log is %s)", o.apps, err, o.log)
		}
		for _, size := range sizes {
			measured, err := b.measure(ctx, size)
			results = append(results, measured) // what was measured before a failure is kept
			if err != nil {
				return fmt.Errorf("%d RedisClusters: %w (the operator's log is %s)", size, err, o.log)
			}
		}
		return nil
	})
	fmt.Println(markdown(results))
	err = errors.Join(err, write(o.out, results))
	if o.plot != "" {
		err = errors.Join(err, os.WriteFile(o.plot, []byte(plotOf(results).SVG()), 0o600))
	}
	return err
}

func parseSizes(list string) ([]int, error) {
	var sizes []int
	last := 0
	for text := range strings.SplitSeq(list, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size <= last {
			return nil, fmt.Errorf("--clusters: %q is not a number above %d", text, last)
		}
		sizes, last = append(sizes, size), size
	}
	return sizes, nil
}

// progress prints what is being done.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

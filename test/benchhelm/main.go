// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command benchhelm measures this operator's chart kinds against the real helm-operator, on one API server, in one run, taking
// turns, with the same kind and the same chart (make bench-helm). No controllers run there; the bench reports Deployments as
// available. Both operators run as processes of their own with four workers, without leader election, and with nothing else set
// that concerns speed: neither limits its own request rate (controller-runtime's default in the versions of both), and
// helm-operator has its reconcile period of one minute. Beside them a client that does nothing but write shows what the API server allows.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options say what to measure. What they leave out is not in the report.
type options struct {
	manager      string // this operator's binary
	helmOperator string // helm-operator's
	crs          string // numbers of custom resources, comma separated
	rounds       int
	contenders   string
	updates      bool
	drifts       int
	crashes      int
	crashCRs     int
	workers      int
	idle         time.Duration
	convergence  time.Duration // how long a killed operator's successor may take
	seed         int64
	logs         string // directory for the operators' logs
	profiles     string // directory for this operator's profiles; empty takes none
	out          string
}

func main() {
	if isWriter(os.Args) {
		fmt.Fprintln(os.Stderr, runWriter(os.Args))
		os.Exit(1)
	}
	var o options
	flag.StringVar(&o.manager, "manager", "bin/manager", "this operator's binary")
	flag.StringVar(&o.helmOperator, "helm-operator", "", "helm-operator's binary")
	flag.StringVar(&o.crs, "crs", "200,1000",
		"how many custom resources, comma separated; the first number is measured in full, others settle only")
	flag.IntVar(&o.rounds, "rounds", 2, "how often each operator takes its turn with the first number of custom resources")
	flag.StringVar(&o.contenders, "contenders", strings.Join(names(contenders), ","), "who is measured")
	flag.BoolVar(&o.updates, "updates", true, "change a value in all custom resources")
	flag.IntVar(&o.drifts, "drifts", 100, "how many children are deleted or edited behind the operator's back; 0 leaves that out")
	flag.IntVar(&o.crashes, "crashes", 3, "how often each operator is killed while it installs; 0 leaves that out")
	flag.IntVar(&o.crashCRs, "crash-crs", 200, "how many custom resources are being installed then")
	flag.IntVar(&o.workers, "workers", 4, "custom resources that each operator works on at once")
	flag.DurationVar(&o.idle, "idle", time.Minute, "how long the operators are watched doing nothing; 0 leaves that out")
	flag.DurationVar(&o.convergence, "convergence", 2*time.Minute, "how long an operator that was killed may take after its restart")
	flag.Int64Var(&o.seed, "seed", time.Now().Unix(), "of the moments at which operators are killed")
	flag.StringVar(&o.logs, "logs", "build/bench-helm-logs", "directory for the operators' logs")
	flag.StringVar(&o.profiles, "profiles", "",
		"directory for profiles of this operator while custom resources settle; empty takes none, they cost some percent")
	flag.StringVar(&o.out, "out", "build/bench-helm.json", "file for the figures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := bench(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "benchhelm:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, o options) error {
	chosen, err := choose(o.contenders)
	if err != nil {
		return err
	}
	sizes, err := parseSizes(o.crs)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.logs, 0o750); err != nil {
		return err
	}
	r := newReport(o)
	err = withServer(ctx, func(s *server) error { return measureAll(ctx, s, o, chosen, sizes, r) })
	// What was measured before a failure is kept.
	fmt.Println(r.markdown())
	if writeErr := r.write(o.out); writeErr != nil {
		return writeErr
	}
	fmt.Fprintf(os.Stderr, "wrote %s\n", o.out)
	return err
}

// measureAll lets the contenders take turns: all rounds of the first size, then the further sizes, then the kills.
func measureAll(ctx context.Context, s *server, o options, chosen []contender, sizes []int, r *report) error {
	for i, size := range sizes {
		rounds := o.rounds
		if i > 0 {
			rounds = 1
		}
		for round := range rounds {
			for _, c := range chosen {
				if c.driftOnly && (i > 0 || o.drifts == 0) {
					continue
				}
				measured, err := measureRun(ctx, s, o, c, size, i == 0 && !c.settleOnly)
				measured.Round = round + 1
				r.Runs = append(r.Runs, measured)
				if err != nil {
					return fmt.Errorf("%s with %d custom resources: %w", c.name, size, err)
				}
			}
		}
	}
	moments := newMoments(o.seed)
	for range o.crashes {
		share := moments()
		for _, c := range chosen {
			if c.driftOnly || c.settleOnly {
				continue
			}
			measured, err := crash(ctx, s, o, c, share)
			if err != nil {
				return fmt.Errorf("%s, killed: %w", c.name, err)
			}
			r.Crashes = append(r.Crashes, measured)
		}
	}
	return nil
}

// choose finds contenders by their names.
func choose(list string) ([]contender, error) {
	var chosen []contender
next:
	for _, name := range strings.Split(list, ",") {
		for _, c := range contenders {
			if c.name == name {
				chosen = append(chosen, c)
				continue next
			}
		}
		return nil, fmt.Errorf("--contenders: %q is none of %s", name, strings.Join(names(contenders), ", "))
	}
	return chosen, nil
}

func names(list []contender) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.name)
	}
	return all
}

func parseSizes(list string) ([]int, error) {
	var sizes []int
	for _, text := range strings.Split(list, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 1 {
			return nil, fmt.Errorf("--crs: %q is not a number above 0", text)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}

// progress prints what is being done.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// perMaster is how many of a quarter of all slots each of three masters gives or receives.
var perMaster = []int{1365, 1366, 1365}

// redisCLI moves slots as an administrator would: redis-cli --cluster reshard, with as many
// keys a MIGRATE as the operator uses by default.
func (s *subject) redisCLI(ctx context.Context, all []v1alpha1.NodeStatus, to int) (string, error) {
	const way = "redis-cli --cluster reshard"
	reshard := func(from, to string, slots int) error {
		// Not 127.0.0.1: redis-cli tells the other masters the address it was given.
		out, err := s.cli(ctx, s.cluster.Namespace, all[0].Name, "--cluster", "reshard", all[0].Instance, "--cluster-from", from, "--cluster-to",
			to,
			"--cluster-slots", strconv.Itoa(slots), "--cluster-pipeline", "100", "--cluster-yes")
		if err != nil {
			return fmt.Errorf("%s failed: …%s", way, out[max(0, len(out)-300):])
		}
		return nil
	}
	if to == 4 {
		return way, reshard(all[0].NodeID+","+all[1].NodeID+","+all[2].NodeID, all[3].NodeID, 4096)
	}
	for i, n := range perMaster {
		if err := reshard(all[3].NodeID, all[i].NodeID, n); err != nil {
			return way, err
		}
	}
	return way, nil
}

// migrateSlots moves slots by the command of the engine itself, all pairs at once.
func (s *subject) migrateSlots(ctx context.Context, all []v1alpha1.NodeStatus, to int) (string, error) {
	const way = "CLUSTER MIGRATESLOTS"
	table, err := s.cli(ctx, s.cluster.Namespace, all[0].Name, "cluster", "nodes")
	if err != nil {
		return way, err
	}
	group, migrating := errgroup.WithContext(ctx)
	rest := slotsOf(table, all[3].NodeID)
	for i, n := range perMaster {
		from, destination := all[3], all[i]
		given := rest
		if to == 4 {
			from, destination = all[i], all[3]
			given = slotsOf(table, from.NodeID)
		}
		given = given[len(given)-min(n, len(given)):]
		if to == 3 {
			rest = rest[:len(rest)-len(given)]
		}
		group.Go(func() error { return s.migrate(migrating, from, destination, given) })
		if to == 3 { // one after the other: a source works off its jobs in turn
			if err := group.Wait(); err != nil {
				return way, err
			}
			group, migrating = errgroup.WithContext(ctx)
		}
	}
	return way, group.Wait()
}

// migrate starts a job and waits until the source does not own the slots any more.
func (s *subject) migrate(ctx context.Context, from, to v1alpha1.NodeStatus, list []int) error {
	args := append([]string{"cluster", "migrateslots", "slotsrange"}, ranges(list)...)
	if out, err := s.cli(ctx, s.cluster.Namespace, from.Name, append(args, "node", to.NodeID)...); err != nil || out != "OK" {
		return fmt.Errorf("CLUSTER MIGRATESLOTS: %w %s", err, out)
	}
	for {
		table, err := s.cli(ctx, s.cluster.Namespace, to.Name, "cluster", "nodes")
		if err != nil {
			return err
		}
		owned := map[int]bool{}
		for _, slot := range slotsOf(table, to.NodeID) {
			owned[slot] = true
		}
		if owned[list[0]] && owned[list[len(list)-1]] {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// slotsOf lists the slots that a node owns by an answer to CLUSTER NODES.
func slotsOf(table, node string) []int {
	var list []int
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) < 9 || words[0] != node {
			continue
		}
		for _, word := range words[8:] {
			var from, to int
			if n, err := fmt.Sscanf(word, "%d-%d", &from, &to); n == 1 {
				to = from
			} else if err != nil {
				continue // a slot on its way
			}
			for slot := from; slot <= to; slot++ {
				list = append(list, slot)
			}
		}
	}
	return list
}

// ranges writes slots in ascending order as pairs of first and last.
func ranges(list []int) []string {
	var pairs []string
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		pairs = append(pairs, strconv.Itoa(list[i]), strconv.Itoa(list[last]))
		i = last + 1
	}
	return pairs
}

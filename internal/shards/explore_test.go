// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// settles lets all go on without further faults, and says what is wrong then.
func (w world) settles(rules rules) string {
	const rounds = 5 * duration
	members, alive := make([]bool, modelled), false
	for range rounds {
		for i := range w.replicas {
			if w.replicas[i].mode != up {
				continue
			}
			w.decide(i, rules)
			for range 2 { // what was begun ends, and is released
				for _, e := range w.works(i, rules) {
					if e.what != "begin" {
						w = w.after(e, rules)
					}
				}
			}
		}
		w.tick()
	}
	for _, r := range w.replicas {
		alive = alive || r.mode == up
		if r.mode == up && r.slot != nobody {
			members[r.slot] = true
		}
	}
	for shard, member := range Assign(members) {
		holder := w.leases[modelled+shard].holder
		if alive && (holder == nobody || int(w.replicas[holder].slot) != member || w.replicas[holder].stages[shard] != Held) {
			return fmt.Sprintf("shard %d is not held by member %d: %+v", shard, member, w)
		}
	}
	return ""
}

// explore visits every state, and returns how many there are, and what is wrong with the first that is wrong.
func explore(from world, rules rules) (states int, wrong string) {
	type step struct {
		from world
		event
	}
	came := map[world]step{from: {}}
	for queue := []world{from}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		wrong := w.unsafe()
		if wrong == "" {
			wrong = w.settles(rules)
		}
		if wrong != "" {
			var path []string
			for at := w; at != from; at = came[at].from {
				path = append(path, fmt.Sprintf("%d: %s %d", came[at].of, came[at].what, came[at].shard))
			}
			slices.Reverse(path)
			return len(came), wrong + " after " + strings.Join(path, "; ")
		}
		for _, e := range w.can(rules) {
			then := w.after(e, rules)
			if _, known := came[then]; !known {
				came[then] = step{w, e}
				queue = append(queue, then)
			}
		}
	}
	return len(came), ""
}

func TestNoShardEverHasTwoOwners(t *testing.T) {
	worlds := []world{start(2, 1), start(3, 0)}
	if os.Getenv("SIMULATION") == "all" { // minutes
		worlds = append(worlds, start(2, 2), start(3, 1))
	}
	for _, from := range worlds {
		for watched := range modelled {
			states, wrong := explore(from, rules{watched: watched})
			if wrong != "" {
				t.Fatal(wrong)
			}
			t.Logf("%d states", states)
		}
	}
}

// The model would notice.
func TestTheModelNoticesMistakes(t *testing.T) {
	for name, broken := range map[string]rules{
		"released while something goes on": {releaseEarly: true},
		"judged by the other's clock":      {trustTimes: true},
		"nothing is let go":                {keepForever: true},
	} {
		t.Run(name, func(t *testing.T) {
			if _, wrong := explore(start(2, 1), broken); wrong == "" {
				t.Error("nothing was noticed")
			}
		})
	}
}

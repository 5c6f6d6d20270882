// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// inTurn answers commands by what they begin with: one text after the other, and the last for ever after.
func inTurn(texts map[string][]string) func(string) string {
	asked := map[string]int{}
	return func(command string) string {
		for begins, all := range texts {
			if strings.HasPrefix(command, begins) {
				asked[begins]++
				return all[min(asked[begins], len(all))-1]
			}
		}
		return "+OK\r\n"
	}
}

// Clients of a source wait from before its migrations are cancelled until nobody takes slots over from it any more, and it knows what was
// taken: they would write to it what is lost. If that is not known in time, the pause ends by itself.
func TestClientsWaitWhenMigrationsAreCancelled(t *testing.T) {
	const pause, cancel, unpause = "CLIENT PAUSE 2000 WRITE", "CLUSTER CANCELSLOTMIGRATIONS", "CLIENT UNPAUSE"
	ids := []string{strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)} // the source's, and the takers'
	table := func(i int, owned string) string {
		return bulk(ids[i] + " 10.8.8.8:6379@16379 myself,master - 0 0 3 connected " + owned + "\n")
	}
	job := func(state string, from int) string {
		return "*1\r\n*10\r\n" + bulk("name") + bulk("j") + bulk("slot_ranges") + bulk("99-99") + bulk("state") + bulk(state) +
			bulk("source_node") + bulk(ids[from]) + bulk("create_time") + ":5\r\n"
	}
	const none, no = "*0\r\n", "-ERR no\r\n"
	type script = map[string][]string
	waits, over := []string{pause, cancel}, []string{pause, cancel, unpause}
	for name, tt := range map[string]struct {
		takers int
		says   [3]script // what each answers otherwise
		heard  []string
		fails  string
	}{
		"nobody takes over":   {heard: []string{cancel}},
		"nothing was taken":   {takers: 1, heard: over},
		"a slot was taken":    {takers: 1, says: [3]script{1: {"CLUSTER NODES": {table(1, "99")}}}, heard: waits},
		"by the second taker": {takers: 2, says: [3]script{2: {"CLUSTER NODES": {table(2, "99")}}}, heard: waits},
		"the source learns of it": {takers: 2, says: [3]script{{"CLUSTER NODES": {table(0, "0-99"), table(0, "0-99"), table(0, "0-98")}},
			{"CLUSTER NODES": {table(1, "99")}}}, heard: over},
		"it is being taken": {takers: 1, says: [3]script{1: {"CLUSTER GETSLOT": {job("failover-paused", 0)}}}, heard: waits},
		"it was being taken": {takers: 1, says: [3]script{1: {"CLUSTER GETSLOT": {job("failover-paused", 0), none}}},
			heard: over},
		"one has ended":                      {takers: 1, says: [3]script{1: {"CLUSTER GETSLOT": {job("cancelled", 0)}}}, heard: over},
		"one of another":                     {takers: 1, says: [3]script{1: {"CLUSTER GETSLOT": {job("snapshotting", 2)}}}, heard: over},
		"a taker does not say what it takes": {takers: 1, says: [3]script{1: {"CLUSTER GETSLOT": {no}}}, heard: waits},
		"or what it owns":                    {takers: 1, says: [3]script{1: {"CLUSTER NODES": {no}}}, heard: waits},
		"or says it later":                   {takers: 1, says: [3]script{1: {"CLUSTER NODES": {no, table(1, "")}}}, heard: over},
		"it is another node":                 {takers: 1, says: [3]script{1: {"CLUSTER MYID": {bulk(ids[2])}}}, heard: waits},
		"the source does not say":            {takers: 1, says: [3]script{{"CLUSTER NODES": {no}}}, heard: waits},
		"clients cannot be made to wait": {takers: 1, says: [3]script{{"CLIENT PAUSE": {no}}}, heard: []string{pause},
			fails: "have clients of c-0-0 wait"},
		"nothing is cancelled": {takers: 1, says: [3]script{{cancel: {no}}}, heard: waits, fails: "cancel the migrations of c-0-0"},
		"they wait longer": {takers: 1, says: [3]script{{unpause: {no}}}, heard: over,
			fails: "let clients of c-0-0 write again"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, dial, targets := &scripted{}, map[string]func(string) string{}, []plan.Target{}
			for i, id := range ids {
				is := script{"CLUSTER MYID": {bulk(id)}, "CLUSTER GETSLOT": {none}, "CLUSTER NODES": {table(i, "")}}
				if i == 0 {
					is["CLUSTER NODES"] = []string{table(i, "0-99")}
				}
				maps.Copy(is, tt.says[i])
				ip := fmt.Sprintf("10.0.0.%d", i+1)
				dial[ip+":6379"] = inTurn(is)
				targets = append(targets, plan.Target{Pod: fmt.Sprintf("c-%d-0", i), IP: ip, NodeID: id})
			}
			pool := redis.NewPool(redis.Options{Dialer: s.dial(dial), DialTimeout: time.Hour, IOTimeout: time.Hour})
			defer pool.Close()
			err := (&Actor{Redis: pool}).cancelJobs(t.Context(), Subject{},
				plan.CancelJobs{On: targets[:1], Takers: targets[1 : 1+tt.takers]})
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: error %v, want one with %q", name, err, tt.fails)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			heard := slices.DeleteFunc(slices.Clone(s.heard), func(command string) bool {
				return command != pause && command != cancel && command != unpause
			})
			if !slices.Equal(heard, tt.heard) {
				t.Errorf("%s: heard %q, want %q", name, heard, tt.heard)
			}
		})
	}
}

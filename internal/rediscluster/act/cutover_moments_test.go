// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// said is what a server answers to INFO and CLUSTER NODES, one time after the other, the last for ever after; to INFO each after so long.
// Commands that are answered otherwise are in more, by what they begin with.
type said struct {
	infos, tables []string
	after         []time.Duration
	more          map[string]string
}

// answers is the function that answers; on is called with each turn of INFO before.
func (s said) answers(on func(turn int)) func(string) string {
	turn, table := 0, 0
	otherwise := answers(s.more)
	return func(command string) string {
		switch {
		case command == "CLUSTER NODES" && len(s.tables) > 0:
			table++
			return s.tables[min(table, len(s.tables))-1]
		case !strings.HasPrefix(command, "INFO"):
			return otherwise(command)
		}
		n := turn
		turn++
		if on != nil {
			on(n)
		}
		if n < len(s.after) {
			time.Sleep(s.after[n])
		}
		return s.infos[min(n, len(s.infos)-1)]
	}
}

const (
	followerID = "00112233445566778899aabbccddeeff00112233"
	outsideID  = "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
)

// cutOverOnce carries out a cut-over of one follower on a clock of its own; it returns what was heard but for who it is.
func cutOverOnce(ctx context.Context, t *testing.T, source, follower said, step plan.CutOver, on func(turn int)) ([]string, error) {
	t.Helper()
	if follower.more == nil {
		follower.more = map[string]string{}
	}
	if follower.more["CLUSTER MYID"] == "" {
		follower.more["CLUSTER MYID"] = bulk(followerID)
	}
	s := &scripted{}
	pool := redis.NewPool(redis.Options{Dialer: s.dial(map[string]func(string) string{
		"10.0.0.1:6379": follower.answers(on), "10.9.9.9:6379": source.answers(nil)}), DialTimeout: time.Hour, IOTimeout: time.Hour})
	defer pool.Close()
	step.Followers = []plan.Follower{{On: plan.Target{Pod: "c-0-0", IP: "10.0.0.1", NodeID: followerID}, Relay: "10.9.9.9",
		MasterID: outsideID}}
	err := (&Actor{Redis: pool}).cutOver(ctx, Subject{}, step)
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.heard), func(c string) bool { return c == "CLUSTER MYID" }), err
}

// A cut-over looks at both ends twice while writes are paused: whatever has changed in between, or cannot be seen, keeps the follower from
// taking over, and ends the pause. What failed is said.
func TestCutOverLooksTwice(t *testing.T) {
	const timeout, pause, unpause, takeover = "CONFIG SET cluster-node-timeout 500", "CLIENT PAUSE 4000 WRITE", "CLIENT UNPAUSE",
		"CLUSTER FAILOVER TAKEOVER"
	other := func(text string) string {
		return strings.ReplaceAll(text, strings.Repeat("a", 40), strings.Repeat("b", 40))
	}
	inCluster := []string{info("master", 1000, 7, "cluster_enabled:1\r\n")}
	table := func(digit string) string {
		return bulk(strings.Repeat(digit, 40) + " 10.8.8.8:6379@16379 myself,master - 0 0 3 connected 0-16383\n")
	}
	master, slave := info("master", 1000, 7, ""), info("slave", 1000, 7, "")
	taken, kept := []string{timeout, pause, takeover, "CLUSTER FORGET " + outsideID}, []string{timeout, pause, unpause}
	at := func(offset int) []string { return []string{master, info("master", offset, 7, "")} }
	for name, tt := range map[string]struct {
		source, follower said
		heard            []string
		fails            string
	}{
		"a ping came": {source: said{infos: at(1014)}, follower: said{infos: []string{info("slave", 1014, 7, "")}}, heard: taken},
		"a ping came, and is on its way": {source: said{infos: at(1014)},
			follower: said{infos: []string{slave, slave, slave, info("slave", 1014, 7, "")}}, heard: taken},
		"less than a ping came": {source: said{infos: at(1013)}, follower: said{infos: []string{info("slave", 1014, 7, "")}}, heard: kept,
			fails: "the server that c-0-0 follows went on while writes were paused"},
		"more than a ping came": {source: said{infos: at(1015)}, follower: said{infos: []string{info("slave", 1015, 7, "")}}, heard: kept,
			fails: "went on"},
		"a byte came": {source: said{infos: at(1001)}, follower: said{infos: []string{info("slave", 1001, 7, "")}}, heard: kept,
			fails: "went on"},
		"it went back": {source: said{infos: at(999)}, follower: said{infos: []string{slave}}, heard: kept, fails: "went on"},
		"the history is another then": {source: said{infos: []string{master, other(master)}}, follower: said{infos: []string{slave}},
			heard: kept, fails: "went on"},
		"the server is silent then": {source: said{infos: []string{master, ""}}, follower: said{infos: []string{slave}}, heard: kept,
			fails: "ask the server outside"},
		"the server is silent": {source: said{infos: []string{""}}, follower: said{infos: []string{slave}}, heard: kept,
			fails: "ask the server outside"},
		"the server is a replica then": {source: said{infos: []string{master, slave}}, follower: said{infos: []string{slave}}, heard: kept,
			fails: "no master any more"},
		"the follower is silent": {source: said{infos: []string{master}}, follower: said{infos: []string{""}}, heard: kept, fails: "ask c-0-0"},
		"the follower is of another history": {source: said{infos: []string{master}}, follower: said{infos: []string{other(slave)}},
			heard: kept, fails: "c-0-0 does not follow the history of the server"},
		"the follower has other databases": {source: said{infos: []string{master}},
			follower: said{infos: []string{info("slave", 1000, 7, "db3:keys=0,expires=0,avg_ttl=0\r\n")}}, heard: kept, fails: "does not take over"},
		"the follower loses a key": {source: said{infos: []string{master}}, follower: said{infos: []string{slave, info("slave", 1000, 6, "")}},
			heard: kept, fails: "has 6 keys"},
		"it serves late": {source: said{infos: []string{master}},
			follower: said{infos: []string{slave}, more: map[string]string{"CONFIG SET": "-ERR no\r\n"}}, heard: []string{timeout},
			fails: "set cluster-node-timeout of c-0-0"},
		"the pause cannot be ended": {source: said{infos: []string{slave}, more: map[string]string{unpause: "-ERR no\r\n"}},
			follower: said{infos: []string{slave}}, heard: kept, fails: "the pause of writes at the server ends by itself after 4s"},
		"a master of a cluster": {source: said{infos: inCluster, tables: []string{table("1")}}, follower: said{infos: []string{slave}},
			heard: taken},
		"another node of a cluster then": {source: said{infos: inCluster, tables: []string{table("1"), table("2")}},
			follower: said{infos: []string{slave}}, heard: kept, fails: "went on"},
	} {
		synctest.Test(t, func(t *testing.T) {
			heard, err := cutOverOnce(t.Context(), t, tt.source, tt.follower, plan.CutOver{Pause: 4 * time.Second}, nil)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: error %v, want one with %q", name, err, tt.fails)
			}
			if !slices.Equal(heard, tt.heard) {
				t.Errorf("%s: heard %q, want %q", name, heard, tt.heard)
			}
		})
	}
}

// A follower has half of the pause to get everything, and takes over with half of it left; no follower has more than ten seconds.
func TestCutOverTakesHalfOfThePause(t *testing.T) {
	master, slave, lacks := info("master", 1000, 7, ""), info("slave", 1000, 7, ""), info("slave", 999, 7, "")
	behind := func(looks int, then ...string) said {
		return said{infos: append(slices.Repeat([]string{lacks}, looks), then...)}
	}
	late := func(d ...time.Duration) said { return said{infos: []string{master}, after: d} }
	const ms = time.Millisecond
	for name, tt := range map[string]struct {
		source, follower said
		pause            time.Duration
		fails            string
	}{
		"at half of it":               {source: late(0, 50*ms), follower: behind(0, slave), pause: 100 * ms},
		"beyond half of it":           {source: late(0, 51*ms), follower: behind(0, slave), pause: 100 * ms, fails: "it took 51ms until"},
		"it has all at half of it":    {source: late(), follower: behind(10, slave), pause: 100 * ms},
		"it lacks some at half of it": {source: late(), follower: behind(11, slave), pause: 100 * ms, fails: "it took 55ms until"},
		"it lacks some beyond":        {source: late(), follower: behind(12, slave), pause: 100 * ms, fails: "lacks 1 bytes of the server's"},
		"within ten seconds":          {source: late(), follower: behind(2000, slave), pause: time.Hour},
		"after ten seconds":           {source: late(), follower: behind(2002, slave), pause: time.Hour, fails: "after 10.005s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			heard, err := cutOverOnce(t.Context(), t, tt.source, tt.follower, plan.CutOver{Pause: tt.pause}, nil)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: error %v, want one with %q", name, err, tt.fails)
			}
			if over := slices.Contains(heard, "CLUSTER FAILOVER TAKEOVER"); over != (tt.fails == "") {
				t.Errorf("%s: it takes over: %t", name, over)
			}
		})
	}
}

// An operator that is told to end while a follower catches up ends the pause, and lets nobody take over.
func TestCutOverIsGivenUp(t *testing.T) {
	for name, server := range map[string][]string{
		"it lacks writes": {info("master", 1001, 7, "")},
		"it lacks a ping": {info("master", 1000, 7, ""), info("master", 1014, 7, "")},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, giveUp := context.WithCancel(t.Context())
			heard, err := cutOverOnce(ctx, t, said{infos: server}, said{infos: []string{info("slave", 1000, 7, "")}},
				plan.CutOver{Pause: time.Minute}, func(turn int) {
					if turn == 3 {
						time.AfterFunc(time.Millisecond, giveUp)
					}
				})
			if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "take over") ||
				slices.Contains(heard, "CLUSTER FAILOVER TAKEOVER") || !slices.Contains(heard, "CLIENT UNPAUSE") {
				t.Errorf("%s: %v, heard %q", name, err, heard)
			}
		})
	}
}

// A server that goes on is not paused any longer than it takes, and that it stays paused is told: a clone's clients wait for it.
func TestCloneEndsItsPause(t *testing.T) {
	for unpause, fails := range map[string]string{"+OK\r\n": "", "-ERR no\r\n": "ends by itself after 4s"} {
		synctest.Test(t, func(t *testing.T) {
			source := said{infos: []string{info("master", 1000, 7, "")}, more: map[string]string{"CLIENT UNPAUSE": unpause}}
			heard, err := cutOverOnce(t.Context(), t, source, said{infos: []string{info("slave", 1000, 7, "")}},
				plan.CutOver{Pause: 4 * time.Second, Resume: true}, nil)
			if (err == nil) != (fails == "") || err != nil && !strings.Contains(err.Error(), fails) {
				t.Errorf("error %v, want one with %q", err, fails)
			}
			want := map[string]bool{"CLUSTER FAILOVER TAKEOVER": true, "CLIENT UNPAUSE": true}
			got := map[string]bool{}
			for _, command := range heard {
				if want[command] {
					got[command] = true
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("heard %q", heard)
			}
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/resp"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// scripted answers commands as a function says, and keeps those that matter in the order in which both servers heard them.
type scripted struct {
	mu    sync.Mutex
	heard []string
}

func (s *scripted) dial(answer map[string]func(command string) string) func(context.Context, string) (net.Conn, error) {
	return func(_ context.Context, addr string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer func() { _ = server.Close() }()
			in := bufio.NewReader(server)
			for {
				args, err := resp.ReadCommand(in)
				if err != nil {
					return
				}
				command := strings.Join(args, " ")
				s.mu.Lock()
				text := "-ERR unknown command\r\n"
				if args[0] != "hello" {
					text = answer[addr](command)
				}
				if args[0] != "INFO" && args[0] != "hello" && command != "CLUSTER NODES" {
					s.heard = append(s.heard, command)
				}
				s.mu.Unlock()
				if _, err := io.WriteString(server, text); err != nil || text == "" {
					return
				}
			}
		}()
		return client, nil
	}
}

func info(role string, offset, keys int, more string) string {
	text := fmt.Sprintf("redis_version:7.0.15\r\nrole:%s\r\nmaster_replid:%s\r\nmaster_repl_offset:%d\r\nslave_repl_offset:%d\r\nmaster_link_status:up\r\n"+
		"db0:keys=%d,expires=0,avg_ttl=0\r\n%s", role, strings.Repeat("a", 40), offset, offset, keys, more)
	return bulk(text)
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

// answers answers a command by what it begins with: as the first map that knows it says.
func answers(from ...map[string]string) func(string) string {
	return func(command string) string {
		for _, known := range from {
			for begins, text := range known {
				if strings.HasPrefix(command, begins) {
					return text
				}
			}
		}
		return "+OK\r\n"
	}
}

// A follower takes over when it has all that the server has, while writes are paused there, and not otherwise. The pause is ended when
// it is
// certain that nobody took over, and only then.
func TestCutOver(t *testing.T) {
	const id = "00112233445566778899aabbccddeeff00112233"
	outside := strings.Repeat("0f", 20)
	const pause, unpause, takeover = "CLIENT PAUSE 400 WRITE", "CLIENT UNPAUSE", "CLUSTER FAILOVER TAKEOVER"
	for name, tt := range map[string]struct {
		source, follower map[string]string // instead of what is answered otherwise
		heard            []string
		fails            string
	}{
		"all is there": {heard: []string{pause, takeover, "CLUSTER FORGET " + outside}},
		"a ping came since": {follower: map[string]string{"INFO": info("slave", 1014, 7, "")}, heard: []string{pause, takeover,
			"CLUSTER FORGET " + outside}},
		"it is forgotten": {follower: map[string]string{"CLUSTER FORGET": "-ERR Unknown node " + outside + "\r\n"}, heard: []string{pause,
			takeover, "CLUSTER FORGET " + outside}},
		"it lags": {follower: map[string]string{"INFO": info("slave", 999, 7, "")}, heard: []string{pause, unpause},
			fails: "lacks 1 bytes"},
		"it has them in no file": {
			follower: map[string]string{"INFO": info("slave", 1000, 7, "aof_enabled:1\r\naof_rewrite_in_progress:1\r\n")},
			heard:    []string{pause, unpause}, fails: "in no file"},
		"it has fewer keys": {follower: map[string]string{"INFO": info("slave", 1000, 6, "")}, heard: []string{pause, unpause},
			fails: "has 6 keys"},
		"commands were refused": {follower: map[string]string{"INFO": info("slave", 1000, 7, "unexpected_error_replies:1\r\n")},
			heard: []string{pause, unpause},
			fails: "could not carry out 1"},
		"it is a master": {follower: map[string]string{"INFO": info("master", 1000, 7, "")}, heard: []string{pause, unpause},
			fails: "does not follow"},
		"the server is demoted": {source: map[string]string{"INFO": info("slave", 1000, 7, "")}, heard: []string{pause, unpause},
			fails: "no master any more"},
		"other databases": {source: map[string]string{"INFO": info("master", 1000, 7, "db3:keys=1,expires=0,avg_ttl=0\r\n")},
			heard: []string{pause, unpause},
			fails: "other databases"},
		"no right to pause": {source: map[string]string{"CLIENT PAUSE": "-NOPERM no\r\n"}, heard: []string{pause, unpause},
			fails: "pause writes"},
		"the server is silent": {source: map[string]string{"CLIENT PAUSE": ""}, heard: []string{pause, unpause}, fails: "pause writes"},
		"it is refused": {follower: map[string]string{"CLUSTER FAILOVER": "-ERR no\r\n"}, heard: []string{pause, takeover, unpause},
			fails: "take over"},
		"who knows": {follower: map[string]string{"CLUSTER FAILOVER": ""}, heard: []string{pause, takeover}, fails: "take over"},
		"it is not forgotten": {follower: map[string]string{"CLUSTER FORGET": ""}, heard: []string{pause, takeover,
			"CLUSTER FORGET " + outside}, fails: "forget"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			pool := redis.NewPool(redis.Options{Dialer: s.dial(map[string]func(string) string{
				"10.0.0.1:6379": answers(tt.follower, map[string]string{"INFO": info("slave", 1000, 7, ""), "CLUSTER MYID": "$40\r\n" + id + "\r\n"}),
				"10.9.9.9:6379": answers(tt.source, map[string]string{"INFO": info("master", 1000, 7, "")}),
			})})
			defer pool.Close()
			err := (&Actor{Redis: pool}).cutOver(t.Context(), Subject{}, plan.CutOver{
				Followers: []plan.Follower{{On: plan.Target{Pod: "c-0-0", IP: "10.0.0.1", NodeID: id}, Relay: "10.9.9.9", MasterID: outside}},
				Pause:     400 * time.Millisecond})
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error %v, want one with %q", err, tt.fails)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			heard := slices.DeleteFunc(slices.Clone(s.heard), func(c string) bool {
				return c == "CLUSTER MYID" || c == "CONFIG SET cluster-node-timeout 500"
			})
			if !slices.Equal(heard, tt.heard) {
				t.Errorf("they heard %q, want %q", heard, tt.heard)
			}
		})
	}
}

// Who was not told to take over did not, and who was told and says nothing may have.
func TestWhoMayHaveTakenOver(t *testing.T) {
	for name, tt := range map[string]struct {
		dial func(context.Context, string) (net.Conn, error)
		over bool
	}{
		"no connection": {func(context.Context, string) (net.Conn, error) { return nil, errors.New("connection refused") }, false},
		"no answer": {(&scripted{}).dial(map[string]func(string) string{
			"10.0.0.1:6379": answers(map[string]string{"CLUSTER FAILOVER": ""})}), true},
	} {
		pool := redis.NewPool(redis.Options{Dialer: tt.dial})
		taking := &taking{step: plan.CutOver{Followers: []plan.Follower{{}}},
			followers: []*redis.Node{pool.Node("10.0.0.1:6379", redis.Credentials{})}}
		if err := taking.promote(t.Context(), 0); err == nil || taking.over.Load() != tt.over {
			t.Errorf("%s: it may have taken over: %t, %v", name, taking.over.Load(), err)
		}
		pool.Close()
	}
}

// Followers whose server is gone are made masters as they are, once they and their relays were asked again. None is, if one of them shows
// that the server is there.
func TestTakeOverAlone(t *testing.T) {
	const id = "00112233445566778899aabbccddeeff00112233"
	outside := strings.Repeat("0f", 20)
	lost := func(more string) string {
		return strings.Replace(info("slave", 1000, 7,
			"master_link_down_since_seconds:120\r\nmaster_sync_in_progress:0\r\nloading:0\r\n"+more), "status:up", "status:no", 1)
	}
	gone := lost("")
	over := []string{"CLUSTER MYID", "CONFIG SET cluster-node-timeout 500", "CLUSTER FAILOVER TAKEOVER", "CLUSTER FORGET " + outside}
	for name, tt := range map[string]struct {
		follower, relay string // what they say of themselves
		relayed         string
		heard           []string
	}{
		"there is no relay":         {gone, "", "", over},
		"the relay says it is gone": {gone, "-ERR the server does not answer\r\n", "10.9.9.9", over},
		"the server answers":        {gone, info("master", 1000, 7, ""), "10.9.9.9", over[:2]},
		"it has a link":             {strings.Replace(gone, "status:no", "status:up", 1), "", "", over[:2]},
		"it copies":                 {strings.Replace(gone, "progress:0", "progress:1", 1), "", "", over[:2]},
		"it loads":                  {strings.Replace(gone, "loading:0", "loading:1", 1), "", "", over[:2]},
		"it is a master":            {info("master", 1000, 7, ""), "", "", over[:2]},
		"it does not say":           {"-ERR no\r\n", "", "", over[:2]},
		"it has data in no file":    {lost("aof_enabled:1\r\naof_rewrite_in_progress:1\r\n"), "", "", over[:2]},
	} {
		s := &scripted{}
		pool := redis.NewPool(redis.Options{Dialer: s.dial(map[string]func(string) string{
			"10.0.0.1:6379": answers(map[string]string{"CLUSTER MYID": bulk(id), "INFO": tt.follower}),
			"10.9.9.9:6379": answers(map[string]string{"INFO": tt.relay})})})
		err := (&Actor{Redis: pool}).cutOver(t.Context(), Subject{}, plan.CutOver{Pause: time.Second, Alone: true,
			Followers: []plan.Follower{{On: plan.Target{Pod: "c-0-0", IP: "10.0.0.1", NodeID: id}, MasterID: outside, Relay: tt.relayed}}})
		if (err == nil) != (len(tt.heard) == len(over)) || !slices.Equal(s.heard, tt.heard) ||
			name == "it does not say" && !strings.HasPrefix(err.Error(), "ask c-0-0: ") {
			t.Errorf("%s: it heard %q, %v", name, s.heard, err)
		}
		pool.Close()
	}
}

// A follower that had everything, and copies it anew before all others have it, does not take over.
func TestFollowerThatCopiesAnew(t *testing.T) {
	const id = "00112233445566778899aabbccddeeff00112233"
	s, asked := &scripted{}, 0
	pool := redis.NewPool(redis.Options{Dialer: s.dial(map[string]func(string) string{
		"10.0.0.1:6379": func(command string) string {
			switch {
			case command == "CLUSTER MYID":
				return bulk(id)
			case !strings.HasPrefix(command, "INFO"):
				return "+OK\r\n"
			}
			if asked++; asked == 1 {
				return info("slave", 1000, 7, "")
			}
			return info("slave", 1000, 7, "aof_enabled:1\r\naof_rewrite_in_progress:1\r\n")
		},
		"10.9.9.9:6379": answers(map[string]string{"INFO": info("master", 1000, 7, "")}),
	})})
	defer pool.Close()
	err := (&Actor{Redis: pool}).cutOver(t.Context(), Subject{}, plan.CutOver{Pause: 400 * time.Millisecond,
		Followers: []plan.Follower{{On: plan.Target{Pod: "c-0-0", IP: "10.0.0.1", NodeID: id}, Relay: "10.9.9.9"}}})
	if err == nil || !strings.Contains(err.Error(), "in no file") {
		t.Errorf("error %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.heard, func(command string) bool { return strings.HasPrefix(command, "CLUSTER FAILOVER") }) {
		t.Errorf("heard %q", s.heard)
	}
}

// Shards take over together: as long as none has, each failure ends the pause everywhere; from the first on, none does.
func TestShardsTakeOverTogether(t *testing.T) {
	const pause, unpause, takeover = "CLIENT PAUSE 3000 WRITE", "CLIENT UNPAUSE", "CLUSTER FAILOVER TAKEOVER"
	ids := []string{strings.Repeat("1", 40), strings.Repeat("2", 40)}
	nodes := func(id, more string) string {
		return bulk(id + " 10.8.8.8:6379@16379 myself,master - 0 0 3 connected " + more + "\n")
	}
	inCluster := "cluster_enabled:1\r\n"
	for name, tt := range map[string]struct {
		source, follower map[string]string // what the second ones answer otherwise
		resume           bool
		heard            map[string]int
		fails            string
	}{
		"both":    {heard: map[string]int{pause: 3, takeover: 2, "CLUSTER FORGET": 2}},
		"a clone": {resume: true, heard: map[string]int{pause: 3, takeover: 2, "CLUSTER FORGET": 2, unpause: 3}},
		"one lags": {follower: map[string]string{"INFO": info("slave", 999, 7, inCluster)}, heard: map[string]int{pause: 3, unpause: 3},
			fails: "c-1-0 lacks"},
		"one has fewer keys": {follower: map[string]string{"INFO": info("slave", 1000, 6, inCluster)},
			heard: map[string]int{pause: 3, unpause: 3}, fails: "c-1-0 has 6 keys"},
		"a slot moves": {source: map[string]string{"CLUSTER NODES": nodes(ids[1], "100-16383 [100->-"+ids[0]+"]")},
			heard: map[string]int{pause: 3, unpause: 3}, fails: "slots move at the server that c-1-0 follows"},
		"a slot has moved": {source: map[string]string{"CLUSTER NODES": nodes(ids[1], "101-16383")},
			heard: map[string]int{pause: 3, unpause: 3}, fails: "slots move"},
		"one master is gone": {source: map[string]string{"CLIENT PAUSE": "-ERR the relay does not reach the server\r\n"},
			heard: map[string]int{pause: 2, unpause: 3}, fails: "pause writes"},
		"one refuses": {follower: map[string]string{"CLUSTER FAILOVER": "-ERR no\r\n"},
			heard: map[string]int{pause: 3, takeover: 2, "CLUSTER FORGET": 1}, fails: "let c-1-0 take over"},
		"one of a clone refuses": {resume: true, follower: map[string]string{"CLUSTER FAILOVER": "-ERR no\r\n"},
			heard: map[string]int{pause: 3, takeover: 2, "CLUSTER FORGET": 1}, fails: "let c-1-0 take over"},
	} {
		t.Run(name, func(t *testing.T) {
			s, dial := &scripted{}, map[string]func(string) string{"10.9.9.3:6379": answers(nil)}
			step := plan.CutOver{Relays: []string{"10.9.9.3"}, Pause: 3 * time.Second, Resume: tt.resume}
			for i, id := range ids {
				var source, follower map[string]string
				owned := slots.Range(0, 99)
				if i == 1 {
					source, follower, owned = tt.source, tt.follower, owned.Complement()
				}
				relay, ip := fmt.Sprintf("10.9.9.%d", i+1), fmt.Sprintf("10.0.0.%d", i+1)
				dial[relay+":6379"] = answers(source, map[string]string{"INFO": info("master", 1000, 7, inCluster),
					"CLUSTER NODES": nodes(id, owned.String())})
				dial[ip+":6379"] = answers(follower, map[string]string{"INFO": info("slave", 1000, 7, inCluster),
					"CLUSTER MYID": bulk(id), "CLUSTER NODES": nodes(id, "")})
				step.Followers = append(step.Followers, plan.Follower{On: plan.Target{Pod: fmt.Sprintf("c-%d-0", i), IP: ip, NodeID: id},
					Relay: relay, MasterID: strings.Repeat("0f", 20), Slots: owned})
			}
			pool := redis.NewPool(redis.Options{Dialer: s.dial(dial)})
			defer pool.Close()
			err := (&Actor{Redis: pool}).cutOver(t.Context(), Subject{}, step)
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("error %v, want one with %q", err, tt.fails)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			heard := map[string]int{}
			for _, command := range s.heard {
				if words := strings.Fields(command); words[0] == "CLUSTER" && words[1] == "FORGET" {
					command = "CLUSTER FORGET"
				}
				if command != "CLUSTER MYID" && !strings.HasPrefix(command, "CONFIG SET") {
					heard[command]++
				}
			}
			if !maps.Equal(heard, tt.heard) {
				t.Errorf("they heard %v, want %v", heard, tt.heard)
			}
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/resp"
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
				if args[0] != "INFO" && args[0] != "hello" {
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
	return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
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
			answers := func(special map[string]string, ordinary map[string]string) func(string) string {
				return func(command string) string {
					for _, from := range []map[string]string{special, ordinary} {
						for begins, text := range from {
							if strings.HasPrefix(command, begins) {
								return text
							}
						}
					}
					return "+OK\r\n"
				}
			}
			pool := redis.NewPool(redis.Options{Dialer: s.dial(map[string]func(string) string{
				"10.0.0.1:6379": answers(tt.follower, map[string]string{"INFO": info("slave", 1000, 7, ""), "CLUSTER MYID": "$40\r\n" + id + "\r\n"}),
				"10.9.9.9:6379": answers(tt.source, map[string]string{"INFO": info("master", 1000, 7, "")}),
			})})
			defer pool.Close()
			err := (&Actor{Redis: pool}).cutOver(t.Context(), Subject{}, plan.CutOver{
				Follower: plan.Target{Pod: "c-0-0", IP: "10.0.0.1", NodeID: id}, Relay: "10.9.9.9", MasterID: outside, Pause: 400 * time.Millisecond})
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

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

const nextPassword = "next \"password\" \\ of\tthe test"

// writeConfig writes what the server reads about who may log in when it starts.
func writeConfig(t testing.TB, s *server, state access.State) {
	t.Helper()
	must(t, os.WriteFile(s.access, []byte(state.Config()), 0o600))
}

// startFromFile runs a server in cluster mode whose users stand in a file.
func startFromFile(t testing.TB, e engine, pool *redis.Pool, state access.State) *server {
	t.Helper()
	busPort := freePort(t)
	dir := t.TempDir()
	s := &server{t: t, engine: e, busPort: busPort, settings: clusterMode(busPort), dir: dir, access: filepath.Join(dir, "redis.conf"),
		password: state.Password}
	writeConfig(t, s, state)
	return startWith(t, pool, s)
}

// What the operator writes for instances that start is what a running one is told, on every engine: passwords and users.
func TestAccessFromTheFileIsAccessSetLive(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		pool, ctx := newPool(t), t.Context()
		users, err := access.ParseUsers(map[string][]byte{
			"alice": []byte("on >wonder ~cache:* &news +@read +@write -flushall"),
			"root":  []byte("on >hidden allkeys allchannels +@all +config|get +slowlog|get"),
			"split": []byte("on >s ~a* +get (~b* +set +@admin) (%R~c* +get)"),
		})
		must(t, err)
		state := access.State{Password: password, Next: nextPassword, Exporter: "figures", Backup: "b", Users: users}
		fromFile, told := startFromFile(t, e, pool, state), start(t, e, pool)
		node := told.node(pool)
		must(t, node.SetUser(ctx, "stranger", []string{"on", "nopass"}))
		must(t, node.DeleteUsers(ctx, "stranger"))
		must(t, node.SetPasswords(ctx, state.Accepts()))
		for _, user := range state.AllUsers() {
			must(t, node.SetUser(ctx, user.Name, user.Rules))
		}
		must(t, node.SetLink(ctx, password))

		want, err := fromFile.node(pool).Access(ctx)
		must(t, err)
		got, err := node.Access(ctx)
		must(t, err)
		for name, shown := range want.Users { // Redis 7.0 shows rules in any order
			want, got := slices.Sorted(strings.FieldsSeq(shown)), slices.Sorted(strings.FieldsSeq(got.Users[name]))
			if !slices.Equal(want, got) {
				t.Errorf("user %s from the file is %q, set live %q", name, want, got)
			}
		}
		if !slices.Equal(want.Passwords, state.Accepts()) || !slices.Equal(got.Passwords, want.Passwords) ||
			want.Link != access.Digest(password) ||
			got.Link != want.Link || got.LinkUser != "default" || want.LinkUser != "default" || want.Open || got.Open {
			t.Errorf("from the file %+v, set live %+v", want, got)
		}
		if state.ShownUsers(got.Users, nil) != state.UsersDigest() || state.ShownUsers(want.Users, nil) != state.UsersDigest() {
			t.Error("the users are not recognized")
		}
		if state.Users = nil; state.ShownUsers(got.Users, nil) != "" {
			t.Error("users too many are not noticed")
		}
	})
}

// No user gets what only the operator may do, whatever its rules say.
func TestUsersAreNoOperators(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool, ctx := newPool(t), t.Context()
		users, err := access.ParseUsers(map[string][]byte{
			"root":     []byte("on >hidden allkeys allchannels +@all +@admin +acl +config|get +config +cluster +debug +client|list +slowlog|get"),
			"selector": []byte("on >hidden (allkeys allcommands +acl|setuser +config|get)"),
		})
		must(t, err)
		s := start(t, e, pool)
		for _, user := range users {
			must(t, s.node(pool).SetUser(ctx, user.Name, user.Rules))
		}
		for _, user := range users {
			client := goredis.NewClient(&goredis.Options{Addr: s.addr(), Username: user.Name, Password: "hidden", Protocol: 2, MaxRetries: -1})
			defer func() { _ = client.Close() }()
			for _, forbidden := range []string{
				"ACL SETUSER me on", "ACL LIST", "ACL GETUSER default", "ACL DELUSER root", "ACL LOAD", "ACL SAVE", "CONFIG GET masterauth",
				"CONFIG SET masterauth x",
				"CONFIG REWRITE", "CLUSTER FORGET " + nobody, "CLUSTER MEET 127.0.0.1 1", "CLUSTER RESET", "CLUSTER FAILOVER", "CLUSTER ADDSLOTS 1",
				"CLUSTER SETSLOT 1 STABLE", "CLUSTER FLUSHSLOTS", "DEBUG SLEEP 0", "MODULE LIST", "MODULE LOAD /x", "SHUTDOWN NOSAVE",
				"REPLICAOF NO ONE",
				"FAILOVER", "SAVE", "BGREWRITEAOF", "MONITOR", "PSYNC ? -1", "CLIENT KILL TYPE normal", "CLIENT PAUSE 1",
			} {
				var args []any
				for word := range strings.FieldsSeq(forbidden) {
					args = append(args, word)
				}
				if err := client.Do(ctx, args...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") &&
					!strings.Contains(err.Error(), "command not allowed") {
					t.Errorf("%s may %s: %v", user.Name, forbidden, err) // DEBUG and MODULE are off for everybody
				}
			}
			if err := client.Do(ctx, "CLUSTER", "INFO").Err(); err != nil {
				t.Errorf("%s may not ask CLUSTER INFO: %v", user.Name, err)
			}
		}
		root := goredis.NewClient(&goredis.Options{Addr: s.addr(), Username: "root", Password: "hidden", Protocol: 2, MaxRetries: -1})
		defer func() { _ = root.Close() }()
		must(t, root.Do(ctx, "CLIENT", "LIST").Err())
		must(t, root.Do(ctx, "SLOWLOG", "GET").Err())
	})
}

// The exporter's user reads figures, and neither data nor passwords: no keys and values of others' slow commands either. It does
// so on an instance that has been given other users by an earlier operator, too, and on connections that are open.
func TestExporterUser(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		pool := newPool(t)
		s := startFromFile(t, e, pool, access.State{Password: password, Exporter: "figures", Backup: "b"})
		client := goredis.NewClient(&goredis.Options{Addr: s.addr(), Username: access.ExporterUser, Password: "figures", Protocol: 2,
			MaxRetries: -1, DisableIdentity: true})
		defer func() { _ = client.Close() }()
		wantFigures := func() {
			t.Helper()
			for _, words := range [][]any{{"PING"}, {"INFO", "ALL"}, {"CLUSTER", "INFO"}, {"CLUSTER", "NODES"}, {"SLOWLOG", "LEN"},
				{"LATENCY", "LATEST"},
				{"LATENCY", "HISTOGRAM"}, {"CLIENT", "SETNAME", "redis_exporter"}} {
				if err := client.Do(t.Context(), words...).Err(); err != nil {
					t.Errorf("%v: %v", words, err)
				}
			}
			for _, words := range [][]any{{"GET", "x"}, {"SCAN", "0"}, {"CONFIG", "GET", "*"}, {"ACL", "LIST"}, {"KEYS", "*"}, {"CLUSTER", "RESET"},
				{"SLOWLOG", "GET", "1"}, {"SLOWLOG", "RESET"}, {"CLIENT", "LIST"}, {"MONITOR"}, {"SUBSCRIBE", "x"}} {
				if err := client.Do(t.Context(), words...).Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
					t.Errorf("%v is allowed: %v", words, err)
				}
			}
		}
		wantFigures()

		state, node := access.State{Password: password, Exporter: "figures", Backup: "b"}, s.node(pool)
		must(t, node.SetUser(t.Context(), access.ExporterUser,
			[]string{"on", "+@all", "#" + access.Digest("figures"), "~users:" + access.Digest("before")}))
		must(t, client.Do(t.Context(), "SLOWLOG", "GET", "1").Err())
		shown, err := node.Access(t.Context())
		must(t, err)
		if state.ShownUsers(shown.Users, nil) == state.UsersDigest() {
			t.Error("the users of before are not noticed")
		}
		for _, user := range state.AllUsers() {
			must(t, node.SetUser(t.Context(), user.Name, user.Rules))
		}
		wantFigures()
		shown, err = node.Access(t.Context())
		must(t, err)
		if state.ShownUsers(shown.Users, nil) != state.UsersDigest() {
			t.Error("the users of now are not recognized")
		}
	})
}

// A password changes under load in the order in which the operator changes it: no command fails, neither of clients that go
// on with the password they know nor of those that log in anew with the one they are told; replicas come back from files of
// before and after.
func TestPasswordChangesUnderLoad(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		ctx := t.Context()
		state := access.State{Password: password, Exporter: "figures", Backup: "b"}
		c := startClusterOf(t, newPool(t), 3, 3, 3, func(pool *redis.Pool) *server { return startFromFile(t, e, pool, state) })
		load := startLoad(c)
		logIn := startLogins(c, password)
		files := func(change func(access.State) access.State, which ...int) {
			state = change(state)
			for _, i := range which {
				writeConfig(t, c.servers[i], state)
			}
		}
		tell := func() {
			for i := range c.servers {
				must(t, c.node(i).SetPasswords(ctx, state.Accepts()))
			}
			for i := range c.servers {
				must(t, c.node(i).SetLink(ctx, state.Password))
			}
		}
		restart := func(i int) {
			must(t, c.node(i).SaveConfig(ctx))
			c.servers[i].kill()
			c.servers[i].run()
			eventually(t, func() error { return inSync(t, c.node(i), c.ids[i-c.masters]) })
		}
		files(func(s access.State) access.State { s.Next = nextPassword; return s }, 3, 4) // the file of 5 is old
		tell()
		restart(3) // it accepts both, and logs in to its master with the old one
		restart(5) // it accepts the old one only
		tell()
		files(func(s access.State) access.State { s.Password, s.Previous, s.Next = s.Next, s.Password, ""; return s }, 0, 1, 2, 3, 4, 5)
		tell()
		for _, s := range c.servers {
			s.password = nextPassword
		}
		logIn.now(nextPassword)
		restart(4) // it logs in to its master with the new one
		logIn.end()
		files(func(s access.State) access.State { s.Previous = ""; return s }, 0, 1, 2, 3, 4, 5)
		tell()
		restart(5)
		load.end()
		pool := newPool(t) // with connections that log in now
		for i := range c.servers {
			if err := pool.Node(c.servers[i].addr(), redis.Credentials{Password: password}).Ping(ctx); !errors.Is(err, redis.ErrAuth) {
				t.Errorf("the old password is still accepted: %v", err)
			}
			if err := pool.Node(c.servers[i].addr(), redis.Credentials{Password: password, Other: nextPassword}).Ping(ctx); err != nil {
				t.Errorf("the other password is not tried: %v", err)
			}
		}
	})
}

// logins is an application that connects anew for every command.
type logins struct {
	c        *cluster
	password chan string
	stop     context.CancelFunc
	done     chan struct{}
	failures []string
	count    int
}

func startLogins(c *cluster, password string) *logins {
	ctx, stop := context.WithCancel(c.t.Context())
	l := &logins{c: c, password: make(chan string), stop: stop, done: make(chan struct{})}
	go l.run(ctx, password)
	return l
}

func (l *logins) run(ctx context.Context, password string) {
	defer close(l.done)
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case password = <-l.password:
		default:
		}
		client := goredis.NewClient(&goredis.Options{Addr: l.c.servers[i%l.c.masters].addr(), Password: password, Protocol: 2, MaxRetries: -1,
			DisableIdentity: true})
		if err := client.Ping(context.Background()).Err(); err != nil {
			l.failures = append(l.failures, err.Error())
		}
		l.count++
		_ = client.Close() // it is of no more use
	}
}

// now tells it another password.
func (l *logins) now(password string) { l.password <- password }

func (l *logins) end() {
	l.c.t.Helper()
	l.stop()
	<-l.done
	l.c.t.Logf("%d logins, %d failed", l.count, len(l.failures))
	if len(l.failures) > 0 {
		l.c.t.Errorf("failed logins:\n%.1000s", strings.Join(l.failures, "\n"))
	}
}

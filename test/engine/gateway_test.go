// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/gateway"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// An ordinary client that cannot reach instances does all it does inside through the gateway.
func TestClientOutside(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		o := startClientsOutside(startCluster(t, e, 3, 3, 3), nil)
		for _, protocol := range []int{2, 3} {
			client := o.client(func(options *goredis.ClusterOptions) { options.Protocol = protocol })
			useOutside(t, client, fmt.Sprintf("p%d", protocol))
			readOnly := o.client(func(options *goredis.ClusterOptions) { options.Protocol, options.ReadOnly = protocol, true })
			for i := range 100 {
				eventually(t, func() error { return readOnly.Get(t.Context(), fmt.Sprintf("p%d:%d", protocol, i)).Err() })
			}
		}
		eventually(t, func() error { // engines leave a replica out of their answers that is not in sync yet
			readOnly := o.client(func(options *goredis.ClusterOptions) { options.ReadOnly = true })
			defer readOnly.Close()
			for i := range 20 {
				if err := readOnly.Get(t.Context(), fmt.Sprintf("p2:%d", i)).Err(); err != nil {
					return err
				}
			}
			return want(o.used() == 6, "clients have used %d instances, want 6", o.used())
		})
		o.checkDialed(6)
	})
}

func useOutside(t *testing.T, client *goredis.ClusterClient, prefix string) {
	t.Helper()
	ctx := t.Context()
	pipe := client.Pipeline()
	for i := range 1000 {
		pipe.Set(ctx, fmt.Sprintf("%s:%d", prefix, i), i, 0)
	}
	_, err := pipe.Exec(ctx)
	must(t, err)
	for i := range 100 {
		value, err := client.Get(ctx, fmt.Sprintf("%s:%d", prefix, i)).Int()
		must(t, errors.Join(err, want(value == i, "%d is %d", i, value)))
	}
	key := func(name string) string { return "{" + prefix + "}" + name }
	_, err = client.TxPipelined(ctx, func(tx goredis.Pipeliner) error {
		tx.Incr(ctx, key("n"))
		tx.RPush(ctx, key("list"), "a", "b")
		return nil
	})
	must(t, err)
	must(t, client.Watch(ctx, func(tx *goredis.Tx) error {
		_, err := tx.TxPipelined(ctx, func(tx goredis.Pipeliner) error { tx.Incr(ctx, key("n")); return nil })
		return err
	}, key("n")))
	n, err := goredis.NewScript(`return redis.call("INCRBY", KEYS[1], ARGV[1])`).Run(ctx, client, []string{key("n")}, 5).Int()
	must(t, errors.Join(err, want(n == 7, "the counter is %d", n)))

	large := strings.Repeat("-MOVED 1 127.0.0.1:6379\r\n", 3<<20/25)
	must(t, client.Set(ctx, key("large"), large, 0).Err())
	back, err := client.Get(ctx, key("large")).Result()
	must(t, errors.Join(err, want(back == large, "a large value came back as another")))

	popped := make(chan error, 1)
	go func() {
		value, err := client.BLPop(ctx, timeout, key("later")).Result()
		popped <- errors.Join(err, want(len(value) == 2 && value[1] == "x", "BLPOP returns %q", value))
	}()
	time.Sleep(100 * time.Millisecond) // it waits by now, if the machine is quick
	must(t, client.RPush(ctx, key("later"), "x").Err())
	must(t, <-popped)

	for _, channel := range []string{"plain", "shard"} {
		subscription, publish := client.Subscribe(ctx, key(channel)), client.Publish
		if channel == "shard" {
			subscription, publish = client.SSubscribe(ctx, key(channel)), client.SPublish
		}
		_, err := subscription.Receive(ctx)
		must(t, err)
		must(t, publish(ctx, key(channel), "hello").Err())
		message, err := subscription.ReceiveMessage(ctx)
		must(t, errors.Join(err, want(err != nil || message.Payload == "hello", "received %v", message), subscription.Close()))
	}
}

// raw is a connection on which a test says what it wants.
type raw struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
}

func dialRaw(t testing.TB, address string) *raw {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, timeout)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	r := &raw{t: t, conn: conn, in: bufio.NewReader(conn)}
	must(t, want(r.ask("AUTH "+password) == "+OK\r\n", "the login fails"))
	return r
}

// ask sends lines at once, and returns what is answered up to the reply of an ECHO that follows.
func (r *raw) ask(lines ...string) string {
	r.t.Helper()
	const end = "$7\r\nthe-end\r\n"
	last := "ECHO the-end\r\n"
	if len(lines) == 1 && strings.HasPrefix(lines[0], "AUTH") {
		last = ""
	}
	_, err := io.WriteString(r.conn, strings.Join(lines, "\r\n")+"\r\n"+last)
	must(r.t, err)
	var said strings.Builder
	for {
		line, err := r.in.ReadString('\n')
		said.WriteString(line)
		if err != nil || last == "" {
			must(r.t, err)
			return said.String()
		}
		if text, found := strings.CutSuffix(said.String(), end); found {
			return text
		}
	}
}

// What engines answer to what few clients say is understood as they mean it, and no address of the inside is in it.
func TestGatewayUnderstandsEngines(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		o := startClientsOutside(startCluster(t, e, 3, 3, 3), nil)
		r := dialRaw(t, o.address(0))
		topology := []string{"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "CLUSTER REPLICAS " + o.ids[0], "CLUSTER SLAVES " + o.ids[0]}
		var moved []string
		for i := range 20 {
			moved = append(moved, fmt.Sprintf("GET key:%d", i))
		}
		inside := func(text string) (found []string) {
			for _, s := range o.servers {
				for _, form := range []string{":" + strconv.Itoa(s.port) + "\r", ":" + strconv.Itoa(s.port) + "@", "pod-0.example"} {
					if strings.Contains(text, form) {
						found = append(found, form)
					}
				}
			}
			return found
		}
		check := func(what string, lines ...string) string {
			t.Helper()
			text := r.ask(lines...)
			if found := inside(text); len(found) > 0 {
				t.Errorf("%s: %q is told:\n%.3000s", what, found, text)
			}
			return text
		}
		for _, version := range []string{"2", "3"} {
			_ = r.ask("HELLO " + version)
			var text string
			eventually(t, func() error { // until the instance has heard of all replicas
				text = check("RESP"+version, append(slices.Clone(topology), moved...)...)
				for _, front := range o.fronts {
					_, port, _ := strings.Cut(front, ":")
					if err := want(strings.Count(text, port) >= 3, "RESP%s: %s is not in every table:\n%.3000s", version, front, text); err != nil {
						return err
					}
				}
				return nil
			})
			must(t, want(strings.Count(text, "-MOVED ") > 3, "few redirections in %q", text))
			text = check("transaction", slices.Concat([]string{"MULTI"}, topology, []string{"EXEC"}, topology)...)
			must(t, want(strings.Count(text, "QUEUED") == len(topology), "%.300q", text))
			text = check("left out", "CLIENT REPLY OFF", "CLUSTER SLOTS", "PING", "CLIENT REPLY ON", "CLUSTER SLOTS", "CLIENT REPLY SKIP",
				"CLUSTER NODES", "PING")
			must(t, want(strings.HasPrefix(text, "+OK\r\n*3\r\n") && strings.HasSuffix(text, "\r\n+PONG\r\n"), "%q", text))
			text = r.ask("PSYNC ? -1", "CLUSTER MEET 127.0.0.1 1", "MULTI", "REPLICAOF NO ONE", "EXEC", "PING")
			must(t, want(strings.Count(text, "-ERR the gateway does not pass on") == 3 && strings.HasSuffix(text, "+PONG\r\n") &&
				strings.Contains(text, "-EXECABORT"), "%q", text))
		}
		// RESP2 again, in the middle of a pipeline; subscriptions, and what a slot is told about.
		text := check("switched", "HELLO 3", "CLUSTER SLOTS", "RESET", "AUTH "+password, "CLUSTER SLOTS", "SUBSCRIBE a b", "UNSUBSCRIBE",
			"CLUSTER SLOTS",
			"UNSUBSCRIBE", "HELLO 3", "SUBSCRIBE a b", "CLUSTER SLOTS", "PSUBSCRIBE p", "UNSUBSCRIBE", "PUNSUBSCRIBE", "CLUSTER SLOTS",
			"HELLO 2", "CLUSTER NODES")
		must(t, want(strings.Count(text, "unsubscribe\r\n") == 6, "%q", text))
		feed := dialRaw(t, o.address(0))
		_, err := io.WriteString(feed.conn, "MONITOR\r\n")
		must(t, err)
		line, err := feed.in.ReadString('\n')
		must(t, errors.Join(err, want(line == "+OK\r\n", "MONITOR is answered %q", line)))
		_ = r.ask("PING")
		line, err = feed.in.ReadString('\n')
		must(t, errors.Join(err, want(strings.Contains(line, "PING"), "the feed is %q", line)))
	})
}

// Slots move under the load of clients outside, and no command fails.
func TestSlotsMoveUnderClientsOutside(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 2, 0)
		o := startClientsOutside(c, nil)
		load := startLoadOf(c, o.client(nil))
		ways := []mover{reshard.Classic}
		if c.view(0).Atomic != slots.AtomicNone {
			ways = append(ways, reshard.Atomic)
		}
		for _, way := range ways {
			complete(t, way, reshard.Options{}, c.move(0, 2, slots.Range(0, 999)))
			complete(t, way, reshard.Options{}, c.move(2, 0, slots.Range(0, 999)))
		}
		load.end()
		o.checkDialed(3)
	})
}

// A gateway is replaced while clients use it: they find the other one, and no command fails.
func TestGatewayIsReplaced(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 0)
		o := startClientsOutside(c, nil)
		load := startLoadOf(c, o.client(nil))
		for range 3 {
			next := o.startGateway()
			last := o.serving.Swap(next)
			begin := time.Now()
			last.stop()
			<-last.ended
			t.Logf("the gateway ended after %.1f s, at %d commands", time.Since(begin).Seconds(), load.count())
			before := load.count()
			eventually(t, func() error { return want(load.count() > before+1000, "clients wait") })
		}
		load.end()
	})
}

// A master that is killed is succeeded for clients outside as for those inside. How long that took each is logged.
func TestFailoverForClientsOutside(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 3)
		o := startClientsOutside(c, nil)
		const asksEvery = 5 * time.Second
		key := keyOf(t, c, 0)
		clients := map[string]*goredis.ClusterClient{
			"inside": c.clientAsking(asksEvery), "outside": o.client(func(p *goredis.ClusterOptions) { p.ClusterStateReloadInterval = asksEvery }),
		}
		for _, client := range clients {
			must(t, client.Set(t.Context(), key, "before", 0).Err())
		}
		c.servers[0].kill()
		begin := time.Now()
		type result struct {
			name  string
			after time.Duration
		}
		results := make(chan result)
		for name, client := range clients {
			go func() {
				for client.Set(context.Background(), key, name, 0).Err() != nil && time.Since(begin) < time.Minute {
					time.Sleep(20 * time.Millisecond)
				}
				results <- result{name, time.Since(begin)}
			}()
		}
		for range clients {
			r := <-results
			t.Logf("%s writes again after %.1f s", r.name, r.after.Seconds())
			must(t, clients[r.name].Set(t.Context(), key, r.name, 0).Err())
		}
		o.checkDialed(1)
	})
}

// keyOf is a key of the first slot that a server owns.
func keyOf(t testing.TB, c *cluster, i int) string {
	t.Helper()
	owned := c.view(i).Slots
	for n := range 10000 {
		if key := fmt.Sprintf("key:%d", n); owned.Contains(slots.KeySlot(key)) {
			return key
		}
	}
	t.Fatal("no key is found")
	return ""
}

// Clients outside speak TLS to the gateway, which shows a certificate of its own, and the gateway TLS to instances.
func TestGatewayEndsTLS(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		inner, outer, dir, front := newAuthority(t), newAuthority(t), t.TempDir(), t.TempDir()
		inner.issue(dir)
		outer.issue(front, net.ParseIP("127.0.0.1"))
		secured := inner.trusted(certifiedName)
		c := startClusterOf(t, newPool(t), 3, 3, 0, func(pool *redis.Pool) *server { return startEncrypted(t, e, pool, dir, secured) })
		o := startClientsOutside(c, func(g *gateway.Options) {
			g.CAFile, g.ServerName = dir+"/ca.crt", certifiedName
			g.CertFile, g.KeyFile = front+"/tls.crt", front+"/tls.key"
		})
		client := o.client(func(options *goredis.ClusterOptions) {
			options.TLSConfig = outer.clients()
			options.TLSConfig.ServerName = "127.0.0.1"
		})
		useOutside(t, client, "tls")
		o.checkDialed(3)
	})
}

// BenchmarkGateway compares commands through the gateway with commands to the instance, in one run:
//
//	ENGINES=… go test -run - -bench Gateway -benchtime 1x ./test/engine
func BenchmarkGateway(b *testing.B) {
	for _, e := range engines(b) {
		b.Run(e.name, func(b *testing.B) {
			c := startCluster(b, e, 3, 3, 0)
			o := startClientsOutside(c, nil)
			key := keyOf(b, c, 0)
			took := map[string]time.Duration{}
			var names []string
			for _, way := range []struct{ name, address string }{{"direct", c.servers[0].addr()}, {"gateway", o.address(0)}} {
				client := goredis.NewClient(&goredis.Options{Addr: way.address, Password: password, MaxRetries: -1})
				b.Cleanup(func() { _ = client.Close() })
				for name, pipelined := range map[string]int{"GET": 1, "200 GETs": 200} {
					took[way.name+name] = median(b, client, key, pipelined)
					if way.name == "direct" {
						names = append(names, name)
					}
				}
			}
			for _, name := range names {
				direct, through := took["direct"+name], took["gateway"+name]
				b.Logf("%s: direct %v, gateway %v, %.2f times", name, direct, through, float64(through)/float64(cmp.Or(direct, 1)))
				b.ReportMetric(float64(through)/float64(cmp.Or(direct, 1)), strings.ReplaceAll(name, " ", "-")+"-ratio")
			}
		})
	}
}

// median is how long a pipeline of GETs takes.
func median(b *testing.B, client *goredis.Client, key string, commands int) time.Duration {
	b.Helper()
	const rounds = 2000
	all := make([]time.Duration, 0, rounds)
	for range rounds {
		pipe := client.Pipeline()
		for range commands {
			pipe.Get(b.Context(), key)
		}
		begin := time.Now()
		if _, err := pipe.Exec(b.Context()); err != nil && !errors.Is(err, goredis.Nil) {
			b.Fatal(err)
		}
		all = append(all, time.Since(begin))
	}
	slices.Sort(all)
	return all[rounds/2]
}

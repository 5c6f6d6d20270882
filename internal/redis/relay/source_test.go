// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/resp"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// network is servers by their addresses, each with what it says of its cluster; none: it is in none.
type network struct {
	mu    sync.Mutex
	nodes map[string]string
	heard []string
	// behind are the nodes of which each connection to the seed, which is a Service then, reaches the next; dialed is where connections went.
	behind, dialed []string
}

func (n *network) at(addr string) (table string, is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	table, is = n.nodes[addr]
	return table, is
}

func (n *network) dial(_ context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, addr)
	if addr == "seed:6379" && len(n.behind) > 0 {
		addr = n.behind[0]
		n.behind = append(n.behind[1:], addr)
	}
	n.mu.Unlock()
	if _, is := n.at(addr); !is {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	go func() {
		defer func() { _ = server.Close() }()
		in := bufio.NewReader(server)
		for {
			args, err := resp.ReadCommand(in)
			table, is := n.at(addr)
			if err != nil || !is {
				return
			}
			n.mu.Lock()
			n.heard = append(n.heard, strings.Join(args, " "))
			n.mu.Unlock()
			role, enabled := "master", 0
			for line := range strings.Lines(table) {
				if enabled = 1; strings.Contains(line, "myself,slave") {
					role = "slave"
				}
			}
			text := fmt.Sprintf("redis_version:7.0.15\r\nrole:%s\r\nmaster_replid:%s\r\nmaster_repl_offset:5\r\nslave_repl_offset:5\r\n"+
				"master_link_status:up\r\ncluster_enabled:%d\r\n", role, strings.Repeat("a", 40), enabled)
			if args[0] == "CLUSTER" {
				text = table
			}
			answer := fmt.Sprintf("$%d\r\n%s\r\n", len(text), text)
			switch strings.ToLower(args[0]) {
			case "hello":
				answer = "-ERR unknown command\r\n"
			case "auth":
				answer = "+OK\r\n"
			}
			if _, err := io.WriteString(server, answer); err != nil {
				return
			}
		}
	}()
	return client, nil
}

func (n *network) source(t testing.TB, of slots.Set) *Source {
	pool := redis.NewPool(redis.Options{Dialer: n.dial})
	t.Cleanup(pool.Close)
	return &Source{Pool: pool, Address: "seed:6379", Slots: of, Login: func(string) redis.Credentials { return redis.Credentials{} }}
}

// line is a line of CLUSTER NODES: of the node of a digit at an address, HOST:PORT@BUS or more.
func line(node int, at, flags string, master, epoch int, owned string) string {
	of := "-"
	if master > 0 {
		of = nodeID(master)
	}
	return fmt.Sprintf("%s %s %s %s 0 0 %d connected %s\n", nodeID(node), at, flags, of, epoch, owned)
}

func nodeID(node int) string { return strings.Repeat(fmt.Sprint(node), 40) }

// three is what a node says of three masters with a replica each, of which it is one itself; the first one is at a host name.
func three(myself int) string {
	text := ""
	for i, owned := range []string{"5461-10922", "0-5460", "10923-16383"} {
		for n, flags := range map[int]string{i + 1: "master", i + 4: "slave"} {
			if n == myself {
				flags = "myself," + flags
			}
			at, master, has := fmt.Sprintf("10.0.0.%d:6379@16379", n), 0, owned
			if n > 3 {
				master, has = i+1, ""
			}
			if n == 1 {
				at += ",first.example.com"
			}
			text += line(n, at, flags, master, i+1, has)
		}
	}
	return text
}

func clusterOfThree() *network {
	return &network{nodes: map[string]string{"seed:6379": three(6), "first.example.com:6379": three(1), "10.0.0.2:6379": three(2),
		"10.0.0.3:6379": three(3), "10.0.0.4:6379": three(4), "10.0.0.5:6379": three(5), "10.0.0.6:6379": three(6)}}
}

// The master of the slots is found where it announces itself, and again after failovers, wherever the address of the beginning leads by
// then; who has another's address by now is not believed.
func TestMasterIsFound(t *testing.T) {
	n := clusterOfThree()
	s := n.source(t, slots.Range(5461, 10922))
	look := func(want int) {
		t.Helper()
		is, err := s.Look(t.Context())
		if err != nil || is.ID != nodeID(want) {
			t.Errorf("found %.4s, %v, want %d", is.ID, err, want)
		}
	}
	look(1)
	dial := func() error {
		conn, err := s.Dial(t.Context())
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := dial(); err != nil {
		t.Error(err)
	}
	if is, _ := s.Look(t.Context()); s.Owns(is) != nil || is.Role != redis.RoleMaster {
		t.Errorf("%+v", is)
	}
	n.mu.Lock()
	delete(n.nodes, "seed:6379")
	n.mu.Unlock()
	look(1)

	// The replica takes over, with a higher epoch. The former master has not heard of it, and somebody else has the address of the seed.
	taken := strings.NewReplacer(line(4, "10.0.0.4:6379@16379", "myself,slave", 1, 1, ""),
		line(4, "10.0.0.4:6379@16379", "myself,master", 0, 9, "5461-10922"), " 5461-10922\n", "\n").Replace(three(4))
	n.mu.Lock()
	n.nodes["10.0.0.4:6379"] = taken
	n.mu.Unlock()
	look(4)
	if err := dial(); err == nil || !strings.Contains(err.Error(), "is another one now") {
		t.Errorf("beside connections to the former master: %v", err)
	}

	// Another cluster's node has the address of the former replica: it is not the one that was known there.
	n.mu.Lock()
	n.nodes["10.0.0.4:6379"] = line(8, "10.0.0.4:6379@16379", "myself,master", 0, 99, "0-16383")
	n.nodes["seed:6379"] = three(6)
	n.mu.Unlock()
	look(1)
}

// A password that changes at the source is used from the next connection on.
func TestPasswordOfTheSourceChanges(t *testing.T) {
	n, now := clusterOfThree(), "former"
	s := n.source(t, slots.Range(5461, 10922))
	s.Login = func(string) redis.Credentials { return redis.Credentials{User: "import", Password: now} }
	for _, now = range []string{"former", "next"} {
		n.heard = nil
		conn, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n.mu.Lock()
		logins := slices.DeleteFunc(slices.Clone(n.heard), func(said string) bool { return !strings.Contains(said, "import") })
		n.mu.Unlock()
		if len(logins) < 2 || slices.ContainsFunc(logins, func(said string) bool { return !strings.HasSuffix(said, " "+now) }) {
			t.Errorf("it logs in with %q", logins)
		}
		_ = conn.Close()
	}
}

// The address may be that of a Service: a master that answered there once is followed where it announces itself.
func TestMasterBehindAService(t *testing.T) {
	n := clusterOfThree()
	n.behind = []string{"first.example.com:6379", "10.0.0.2:6379", "10.0.0.3:6379"}
	s := n.source(t, slots.Range(5461, 10922))
	for range 4 {
		if is, err := s.Look(t.Context()); err != nil || is.ID != nodeID(1) {
			t.Fatalf("found %.4s, %v", is.ID, err)
		}
		conn, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		n.mu.Lock()
		last := n.dialed[len(n.dialed)-1]
		n.mu.Unlock()
		if last != "first.example.com:6379" {
			t.Fatalf("connected to %s", last)
		}
	}
}

func TestMasterIsNotFound(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(nodes map[string]string)
		want   string
	}{
		"nobody answers":     {func(nodes map[string]string) { clear(nodes) }, "connection refused"},
		"it is not reached":  {func(nodes map[string]string) { delete(nodes, "first.example.com:6379") }, "reached at first.example.com:6379"},
		"another is there":   {func(nodes map[string]string) { nodes["first.example.com:6379"] = three(2) }, "another server answers"},
		"nobody has slots":   {func(nodes map[string]string) { nodes["seed:6379"] = line(1, ":1@2", "myself,master", 0, 1, "") }, "knows a"},
		"it has no address":  {func(nodes map[string]string) { nodes["seed:6379"] = noAddress }, "announces no address"},
		"it is no table":     {func(nodes map[string]string) { nodes["seed:6379"] = "GET / HTTP/1.1\r\n" }, "fields instead of"},
		"slots of two":       {func(nodes map[string]string) { nodes["seed:6379"] += line(9, "a:1@2", "master", 0, 1, "5") }, "two owners"},
		"a strange host":     {func(nodes map[string]string) { nodes["seed:6379"] += line(9, "a:1@2,a/b", "master", 0, 1, "") }, "is none"},
		"a port of nobody's": {func(nodes map[string]string) { nodes["seed:6379"] += line(9, "a:99999@2", "master", 0, 1, "") }, "port"},
	} {
		n := clusterOfThree()
		tt.change(n.nodes)
		s := n.source(t, slots.Range(5461, 10922))
		if is, err := s.Look(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: found %.4s, %v", name, is.ID, err)
		}
		if conn, err := s.Dial(t.Context()); err == nil {
			t.Errorf("%s: connected to %v", name, conn.RemoteAddr())
		}
	}
}

var noAddress = line(1, ":0@0", "master,noaddr", 0, 1, "5461-10922") + line(6, "10.0.0.6:6379@16379", "myself,slave", 3, 3, "")

// Shards come by their lowest slots, all of them, and only while slots rest and every master is reached.
func TestShards(t *testing.T) {
	n := clusterOfThree()
	shards, err := n.source(t, slots.Set{}).Shards(t.Context())
	if err != nil || len(shards) != 3 || shards[0].ID != nodeID(2) || shards[1].ID != nodeID(1) ||
		!shards[2].Slots.Equal(slots.Range(10923, 16383)) {
		t.Errorf("%+v, %v", shards, err)
	}
	alone := &network{nodes: map[string]string{"seed:6379": ""}}
	if shards, err := alone.source(t, slots.Set{}).Shards(t.Context()); err != nil || len(shards) != 1 || !shards[0].Slots.Equal(slots.All()) {
		t.Errorf("of a server of its own: %+v, %v", shards, err)
	}
	for want, change := range map[string]func(nodes map[string]string){
		"1 slots move": func(nodes map[string]string) {
			nodes["10.0.0.3:6379"] = strings.Replace(three(3), "10923-16383", "10923-16383 [10923->-"+nodeID(1)+"]", 1)
		},
		"nodes disagree": func(nodes map[string]string) {
			nodes["10.0.0.3:6379"] = strings.Replace(three(3), "10923-16383", "10923-16382", 1)
		},
		"is not reached at 10.0.0.3:6379": func(nodes map[string]string) { delete(nodes, "10.0.0.3:6379") },
		"slots 16383 have no master": func(nodes map[string]string) {
			for addr, table := range nodes {
				nodes[addr] = strings.Replace(table, "10923-16383", "10923-16382", 1)
			}
		},
	} {
		n := clusterOfThree()
		change(n.nodes)
		if shards, err := n.source(t, slots.Set{}).Shards(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d shards, %v", want, len(shards), err)
		}
	}
}

// Whatever a server says of its cluster, its shards are whole, or an error.
func FuzzShards(f *testing.F) {
	f.Add(three(6))
	f.Add(noAddress)
	f.Add(line(1, "10.0.0.1:6379@16379", "myself,master", 0, 1, "0-16383"))
	f.Add(line(1, "10.0.0.1:6379@16379", "myself,master", 0, 1, "0-16383 [1->-"+nodeID(2)+"]"))
	f.Add(line(1, "10.0.0.1:6379@16379", "myself,master", 0, 1, "0-16382"))
	f.Fuzz(func(t *testing.T, table string) {
		n := clusterOfThree()
		n.nodes["seed:6379"] = table
		s := n.source(t, slots.Range(5461, 10922))
		if shards, err := s.Shards(t.Context()); err == nil {
			sum := 0
			for _, shard := range shards {
				sum += shard.Slots.Len()
			}
			if sum != slots.Count {
				t.Errorf("%q has %d slots in %d shards", table, sum, len(shards))
			}
		}
		if is, err := s.Look(t.Context()); err == nil && is.Cluster && is.ID == "" {
			t.Errorf("%q: %+v", table, is)
		}
	})
}

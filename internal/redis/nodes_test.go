// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// engines are the directories of testdata: output of the real servers, a cluster of two masters on 127.0.0.1 with ports
// ending in 1 (slots 0-8191, replica on the port ending in 3) and 2 (slots 8192-16383).
var engines = []string{"redis-7.0.15", "redis-8.0.2", "valkey-8.1.1", "valkey-9.1.2"}

func readCapture(t testing.TB, engine, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", engine, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// summary is a peer without what differs from run to run.
func summary(p Peer) string {
	state := "disconnected"
	if p.LinkConnected {
		state = "connected"
	}
	words := []string{p.Flags.String(), p.Hostname, state, p.Slots.String()}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

func TestParseNodesOfEveryEngine(t *testing.T) {
	for _, tc := range []struct {
		file                 string
		want                 map[int]string // by the last digit of the port
		migrating, importing []uint16
	}{
		{file: "fresh.nodes", want: map[int]string{1: "myself,master pod-1.example.svc connected"}},
		{file: "replica.nodes", want: map[int]string{
			1: "master pod-1.example.svc connected 0-8191",
			2: "master pod-2.example.svc connected 8192-16383",
			3: "myself,slave pod-3.example.svc connected",
		}},
		{file: "migrating.nodes", migrating: []uint16{5, 7}, want: map[int]string{
			1: "myself,master pod-1.example.svc connected 0-8191",
			2: "master pod-2.example.svc connected 8192-16383",
			3: "slave pod-3.example.svc connected",
		}},
		{file: "importing.nodes", importing: []uint16{5}, want: map[int]string{
			1: "master pod-1.example.svc connected 0-8191",
			2: "myself,master pod-2.example.svc connected 8192-16383",
			3: "slave pod-3.example.svc connected",
		}},
		{file: "failed.nodes", migrating: []uint16{7}, want: map[int]string{
			1: "myself,master pod-1.example.svc connected 0-8191",
			2: "master,fail? pod-2.example.svc disconnected 8192-16383",
			3: "slave pod-3.example.svc connected",
		}},
	} {
		for _, engine := range engines {
			t.Run(engine+"/"+tc.file, func(t *testing.T) {
				parsed, err := parseNodes(readCapture(t, engine, tc.file))
				if err != nil {
					t.Fatal(err)
				}
				got, byPort := map[int]string{}, map[int]Peer{}
				for _, p := range parsed.peers {
					got[p.Port%10], byPort[p.Port%10] = summary(p), p
					if p.BusPort != p.Port+10000 {
						t.Errorf("bus port %d of port %d", p.BusPort, p.Port)
					}
					if p.Flags.Has(FlagReplica) && p.MasterID != byPort[1].ID && byPort[1].ID != "" {
						t.Errorf("the replica follows %q, want %q", p.MasterID, byPort[1].ID)
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("nodes (-want +got):\n%s", diff)
				}
				for _, slot := range tc.migrating {
					if parsed.migrating[slot] != byPort[2].ID {
						t.Errorf("slot %d migrates to %q, want %q", slot, parsed.migrating[slot], byPort[2].ID)
					}
				}
				for _, slot := range tc.importing {
					if parsed.importing[slot] != byPort[1].ID {
						t.Errorf("slot %d comes from %q, want %q", slot, parsed.importing[slot], byPort[1].ID)
					}
				}
				if len(parsed.migrating) != len(tc.migrating) || len(parsed.importing) != len(tc.importing) {
					t.Errorf("open slots: %v, %v", parsed.migrating, parsed.importing)
				}
			})
		}
	}
}

func TestParseNodesLine(t *testing.T) {
	const id = "07c37dfeb235213a872192d90877d0cd55635b91"
	const other = "67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1"
	pong := time.UnixMilli(1426238317239)
	for _, tc := range []struct {
		name, line string
		want       Peer
	}{
		{
			"without host name", id + " 10.0.0.7:6379@16379 slave " + other + " 0 1426238317239 4 connected",
			Peer{ID: id, IP: "10.0.0.7", Port: 6379, BusPort: 16379, Flags: FlagReplica, MasterID: other,
				PongReceived: pong, ConfigEpoch: 4, LinkConnected: true},
		},
		{
			"IPv6, host name, further fields",
			id + " fd00::7:6379@16379,pod-0.svc,shard-id=" + other + ",tls-port=0 myself,master - 0 0 1 connected 0-1 5",
			Peer{ID: id, IP: "fd00::7", Port: 6379, BusPort: 16379, Hostname: "pod-0.svc", Flags: FlagMyself | FlagMaster,
				ConfigEpoch: 1, LinkConnected: true, Slots: slots.Of(0, 1, 5)},
		},
		{
			"empty host name, further fields", id + " 10.0.0.7:6379@16379,,shard-id=" + other + " master - 0 0 1 connected",
			Peer{ID: id, IP: "10.0.0.7", Port: 6379, BusPort: 16379, Flags: FlagMaster, ConfigEpoch: 1, LinkConnected: true},
		},
		{
			"no address, unknown flag", id + " :0@0 master,noaddr,fail,nofailover,levitating - 1426238317239 0 0 disconnected",
			Peer{ID: id, Flags: FlagMaster | FlagNoAddress | FlagFailed | FlagNoFailover, PingSent: pong},
		},
		{
			"handshake", id + " 192.0.2.77:6379@16379 handshake - 0 0 0 connected",
			Peer{ID: id, IP: "192.0.2.77", Port: 6379, BusPort: 16379, Flags: FlagHandshake, LinkConnected: true},
		},
		{
			"no flags", id + " 192.0.2.77:6379@16379 noflags - 0 0 0 connected",
			Peer{ID: id, IP: "192.0.2.77", Port: 6379, BusPort: 16379, LinkConnected: true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parsed, err := parseNodes(tc.line + "\n")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Peer{tc.want}, parsed.peers); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseNodesRefuses(t *testing.T) {
	const id = "07c37dfeb235213a872192d90877d0cd55635b91"
	for name, tc := range map[string]struct{ line, want string }{
		"short line":    {id + " 10.0.0.7:6379@16379 master - 0 0 1", "7 fields"},
		"node ID":       {"XYZ 10.0.0.7:6379@16379 master - 0 0 1 connected", `"XYZ" is not 40 hex digits`},
		"no port":       {id + " 10.0.0.7 master - 0 0 1 connected", "has no port"},
		"no bus port":   {id + " 10.0.0.7:6379 master - 0 0 1 connected", "has no bus port"},
		"port":          {id + " 10.0.0.7:66666@1 master - 0 0 1 connected", `"66666"`},
		"master ID":     {id + " 10.0.0.7:6379@16379 slave nobody 0 0 1 connected", `"nobody"`},
		"time":          {id + " 10.0.0.7:6379@16379 master - x 0 1 connected", `time "x"`},
		"epoch":         {id + " 10.0.0.7:6379@16379 master - 0 0 -1 connected", "config epoch"},
		"slot":          {id + " 10.0.0.7:6379@16379 master - 0 0 1 connected 5-16384", `"5-16384"`},
		"open slot":     {id + " 10.0.0.7:6379@16379 master - 0 0 1 connected [5]", "neither migrating nor importing"},
		"open slot ID":  {id + " 10.0.0.7:6379@16379 master - 0 0 1 connected [5->-x]", `"x"`},
		"open slot no.": {id + " 10.0.0.7:6379@16379 master - 0 0 1 connected [99999-<-" + id + "]", `"99999"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseNodes(tc.line)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.line[:3]) {
				t.Errorf("error %v, want one that quotes the line and says %q", err, tc.want)
			}
		})
	}
}

// What no honest table has, one by one in order, is refused, whatever its lines.
func TestParseNodesRefusesContradictions(t *testing.T) {
	const me, other = "07c37dfeb235213a872192d90877d0cd55635b91", "17c37dfeb235213a872192d90877d0cd55635b91"
	line := func(id, address, flags, rest string) string {
		return id + " " + address + " " + flags + " - 0 0 1 connected" + rest + "\n"
	}
	myself := line(me, "10.0.0.7:6379@16379", "myself,master", " 0-10 [20->-"+other+"]")
	var many strings.Builder
	for i := range mostPeers + 1 {
		fmt.Fprint(&many, line(fmt.Sprintf("%040x", i), "10.0.0.7:6379@16379", "master", ""))
	}
	for name, tc := range map[string]struct{ text, want string }{
		"two that are myself":       {myself + line(other, "10.0.0.8:6379@16379", "myself,master", ""), "two lines are marked myself"},
		"one twice":                 {myself + line(me, "10.0.0.8:6379@16379", "master", ""), "node " + me + " has two lines"},
		"two owners of a slot":      {myself + line(other, "10.0.0.8:6379@16379", "master", " 10-20"), "slot 10 has two owners"},
		"slot that is there twice":  {line(me, "10.0.0.7:6379@16379", "myself,master", " 5 3-7"), "slot 5 has two owners"},
		"open slot twice":           {line(me, "10.0.0.7:6379@16379", "myself,master", " [5->-"+other+"] [5->-"+me+"]"), "it is there twice"},
		"address of another sort":   {line(me, "$(reboot):6379@16379", "master", ""), "is none"},
		"name of another sort":      {line(me, "10.0.0.7:6379@16379,a\x1b[31m", "master", ""), "is none"},
		"name that is too long":     {line(me, "10.0.0.7:6379@16379,"+strings.Repeat("a", 256), "master", ""), "is none"},
		"more nodes than there are": {many.String(), "more than 1500 lines"},
	} {
		_, err := parseNodes(tc.text)
		if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 1000 {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}

// What is kept of a table does not keep its text in memory.
func TestParsedNodesDoNotHoldTheText(t *testing.T) {
	text := readCapture(t, engines[0], "migrating.nodes")
	parsed, err := parseNodes(text)
	if err != nil {
		t.Fatal(err)
	}
	begin := uintptr(unsafe.Pointer(unsafe.StringData(text)))
	for _, p := range parsed.peers {
		for _, kept := range []string{p.ID, p.IP, p.Hostname, p.MasterID} {
			if at := uintptr(unsafe.Pointer(unsafe.StringData(kept))); kept != "" && at >= begin && at < begin+uintptr(len(text)) {
				t.Errorf("%q is part of the text", kept)
			}
		}
	}
}

func FuzzParseNodes(f *testing.F) {
	for _, engine := range engines {
		for _, file := range []string{"fresh.nodes", "failed.nodes", "importing.nodes", "handshake.nodes"} {
			f.Add(readCapture(f, engine, file))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseNodes(text)
		if err != nil {
			return
		}
		for _, p := range parsed.peers {
			if checkNodeID(p.ID) != nil || p.Port < 0 || p.Port > 65535 || p.Slots.Len() > slots.Count {
				t.Errorf("%q became %+v", text, p)
			}
		}
		for slot, id := range parsed.migrating {
			if slot >= slots.Count || checkNodeID(id) != nil {
				t.Errorf("%q has slot %d migrating to %q", text, slot, id)
			}
		}
	})
}

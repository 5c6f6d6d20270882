// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// busMessage is a message of the cluster bus as it is on the wire (clusterMsg in cluster.h).
type busMessage []byte

// Where fields are in a busMessage, and what is in them.
const (
	busLength, busVersion, busType, busEpoch, busConfigEpoch = 4, 8, 12, 16, 24
	busSlots, busAddress, busFlags, busHeader                = 80, 2168, 2250, 2256

	busPing, busPong, busIsMaster = 0, 1, 1
)

// says is what the server at a bus address says of itself at the moment, as a ping: any node gets an answer, a stranger too.
func says(t testing.TB, addr string) busMessage {
	t.Helper()
	ping := make(busMessage, busHeader)
	copy(ping, "RCmb")
	binary.BigEndian.PutUint32(ping[busLength:], busHeader)
	binary.BigEndian.PutUint16(ping[busVersion:], 1)
	return hear(t, addr, ping)
}

// hear delivers a ping to the server at a bus address and returns the answer, as a ping: by then the server has processed it.
func hear(t testing.TB, addr string, message busMessage) busMessage {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test is over
	_, err = conn.Write(message)
	must(t, err)
	for {
		answer := make(busMessage, 16)
		_, err = io.ReadFull(conn, answer)
		must(t, err)
		answer = append(answer, make(busMessage, binary.BigEndian.Uint32(answer[busLength:])-16)...)
		_, err = io.ReadFull(conn, answer[16:])
		must(t, err)
		if binary.BigEndian.Uint16(answer[busType:]) == busPong {
			binary.BigEndian.PutUint16(answer[busType:], busPing)
			return answer
		}
	}
}

func (s *server) busAddr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.busPort)) }

// allAgree is nil when all servers, replicas too, name the same owners (slots by index of the master).
func (c *cluster) allAgree(owners map[int]slots.Set) error {
	errs := []error{c.settled(owners)}
	for i := c.masters; i < len(c.servers); i++ {
		view, err := c.node(i).Describe(c.t.Context())
		errs = append(errs, err)
		for owner, set := range owners {
			peer, _ := view.Peer(c.ids[owner])
			errs = append(errs, want(peer.Slots.Equal(set), "replica %s says that %s owns %s, want %s", c.node(i), c.node(owner), peer.Slots, set))
		}
	}
	return errors.Join(errs...)
}

// thereAndBack is two masters, a replica of the first, and keys in slots of the first.
func thereAndBack(t *testing.T, e engine, set slots.Set) *cluster {
	t.Helper()
	c := startCluster(t, e, 2, 1, 1)
	c.bearSilence()
	client := c.client()
	for _, tag := range tags(set, 100) {
		must(t, client.Set(t.Context(), "{"+tag+"}", "x", 0).Err())
	}
	return c
}

// What a master said before it owned a slot must not reach anybody who takes that slot from it: Valkey takes the slot at once, and its
// owner drops the keys. The operator lets a master that has received slots rest until that is over (ownership_settled).
func TestAnOldMessageOfTheGiverEndsAnImport(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		set := slots.Range(0, 99)
		c := thereAndBack(t, e, set)
		before := says(t, c.servers[1].busAddr())
		complete(t, reshard.Classic, reshard.Options{}, c.move(0, 1, set))
		eventually(t, func() error {
			return c.allAgree(map[int]slots.Set{0: slots.All().Subtract(set), 1: set})
		})
		must(t, c.node(0).SetSlots(t.Context(), slots.Of(99), redis.SlotImporting, c.ids[1]))
		hear(t, c.servers[0].busAddr(), before)
		if takes := c.view(0).Slots.Contains(99); takes != strings.HasPrefix(e.name, "valkey") {
			t.Errorf("the importing master owns the slot: %t", takes)
		}
	})
}

// What a master said while it owned a slot may reach its next owner at any time, and changes nothing: the epoch is older. Redis 7.0
// believes it if it was once told by a command who owned the slot, before it heard so.
func TestAnOldMessageOfAFormerOwner(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		set := slots.Range(0, 99)
		c := thereAndBack(t, e, set)
		for range 3 {
			complete(t, reshard.Classic, reshard.Options{}, c.move(0, 1, set))
			eventually(t, func() error {
				return c.allAgree(map[int]slots.Set{0: slots.All().Subtract(set), 1: set})
			})
			claim := says(t, c.servers[1].busAddr())
			complete(t, reshard.Classic, reshard.Options{}, c.move(1, 0, set))
			hear(t, c.servers[0].busAddr(), claim)
			eventually(t, func() error { return c.allAgree(map[int]slots.Set{0: slots.All(), 1: {}}) })
			if keys := c.view(0).Keys; keys != 100 {
				t.Fatalf("%d keys of 100", keys)
			}
		}
	})
}

func TestSlotsGoThereAndBack(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		set := slots.Range(0, 99)
		c := thereAndBack(t, e, set)
		owned := map[int]slots.Set{0: slots.All(), 1: {}}
		for round := range 20 {
			from, to := round%2, 1-round%2
			complete(t, reshard.Classic, reshard.Options{}, c.move(from, to, set))
			owned[from], owned[to] = owned[from].Subtract(set), owned[to].Union(set)
			eventually(t, func() error { return c.allAgree(owned) })
			if keys := c.view(0).Keys + c.view(1).Keys; keys != 100 {
				t.Fatalf("round %d: %d keys of 100", round, keys)
			}
		}
	})
}

// An instance may remember a replica as a master of a higher epoch than the replica's master has, from when both were new or had changed
// places. Valkey 9 then ignores whatever the replica says.
func TestAReplicaThatIsKnownByAHigherEpoch(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2, 2, 2)
		replica, other := o.pods[1], o.pods[2]
		if o.view(replica).Role == redis.RoleMaster {
			replica = o.pods[0]
		}
		id := o.view(replica).NodeID
		message := says(t, net.JoinHostPort(replica.pod.Status.PodIP, "16379"))
		epoch := binary.BigEndian.Uint64(message[busEpoch:]) + 3
		binary.BigEndian.PutUint64(message[busEpoch:], epoch)
		binary.BigEndian.PutUint64(message[busConfigEpoch:], epoch)
		copy(message[busSlots:busAddress], bytes.Repeat([]byte{0}, busAddress-busSlots)) // it owns nothing, and follows nobody
		binary.BigEndian.PutUint16(message[busFlags:], busIsMaster)
		hear(t, net.JoinHostPort(other.pod.Status.PodIP, "16379"), message)
		o.converge()
		for _, p := range o.pods {
			peer, known := o.view(p).Peer(id)
			if !known || !peer.Flags.Has(redis.FlagReplica) {
				t.Errorf("%s takes the replica for a master of epoch %d", p.pod.Name, peer.ConfigEpoch)
			}
		}
		t.Log(strings.Join(o.steps, "\n"))
	})
}

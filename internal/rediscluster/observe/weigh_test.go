// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// looked is what two masters say: a key in each slot, of which those up to a number were looked at.
func looked(upTo uint16, each float64) []look {
	var looks []look
	for i, part := range slots.All().Split(2) {
		l := look{node: string(rune('a' + i)), slots: part, counts: map[uint16]int64{}, each: map[uint16]float64{}}
		for slot := range part.Slots() {
			l.counts[slot] = 1
			if slot < upTo {
				l.each[slot], l.tried = each, append(l.tried, slot)
			}
		}
		looks = append(looks, l)
	}
	return looks
}

// What slots bear is known when most keys are in slots that were looked at; of the others it is what those say on average.
func TestWeighs(t *testing.T) {
	w := weighing{slots: make([]weighed, slots.Count)}
	if got := w.note(looked(8000, 100), time.Minute); got != nil {
		t.Fatal("it is known too early")
	}
	got := w.note(looked(15000, 300), time.Minute)
	if got == nil || got.Bytes[5] != 200 || got.Bytes[8000] != 300 || got.Bytes[16383] < 200 || got.Bytes[16383] > 300 ||
		got.Processor != nil {
		t.Fatalf("%+v", got)
	}
	looks := looked(5, 500)
	looks[0].whole = map[uint16]bool{3: true}
	if got = w.note(looks, time.Minute); got.Bytes[3] != 500 || got.Bytes[4] != 350 {
		t.Errorf("all keys of a slot say what it bears, some of them a part of it: %v", got.Bytes[:5])
	}
	looks = looked(0, 0)
	looks[0].stats = map[uint16]redis.SlotStat{5: {Keys: 1, Bytes: 7777, Processor: -1}}
	delete(looks[0].counts, 6)
	if got = w.note(looks, time.Minute); got.Bytes[5] != 7777 || got.Bytes[6] != 0 || got.Bytes[8000] != 300 {
		t.Errorf("%v", got.Bytes[:7])
	}
	w = weighing{slots: make([]weighed, slots.Count)}
	if got = w.note([]look{{node: "a", slots: slots.All()}}, 0); got == nil || got.Bytes[0] != 0 {
		t.Errorf("without keys: %+v", got)
	}
}

// No more keys are looked at than a master shall be asked for. Slots that have more keys than before are due sooner, and none is left out.
func TestDueSlots(t *testing.T) {
	w := weighing{slots: make([]weighed, slots.Count)}
	counts := map[uint16]int64{}
	for slot := range uint16(1000) {
		counts[slot] = 20
	}
	turn := func(most int) []uint16 {
		t.Helper()
		l := look{node: "a", slots: slots.All(), counts: counts}
		l.tried = l.due(w.slots)
		if len(l.tried) != most {
			t.Fatalf("turn %d: in %d slots, want %d", w.turn, len(l.tried), most)
		}
		w.turn++
		w.note([]look{l}, time.Minute)
		return l.tried
	}
	const first, later = slotsALook, keysALook / keysASlot
	if got := turn(first); got[0] != 0 || got[first-1] != first-1 {
		t.Errorf("at first: %v", got)
	}
	for slot := range uint16(first) {
		counts[slot]++ // whatever changes, slots that were never looked at come first
	}
	if got := turn(first); got[0] != first || !slices.Contains(got, 999) {
		t.Errorf("then: %v", got)
	}
	for slot := uint16(24); slot < first; slot++ {
		counts[slot]-- // as it was when they were looked at
	}
	counts[900], counts[7] = 21, 0
	if got := turn(later + 1); !slices.Equal(got[:2], []uint16{7, 900}) { // 7 costs nothing
		t.Errorf("with slots that have changed: %v", got)
	}
	counts[7] = 20
	seen := map[uint16]bool{}
	for range ahead + 2*1000/later {
		for slot := range uint16(500) {
			counts[slot]++
		}
		for _, slot := range turn(later) {
			seen[slot] = true
		}
	}
	for slot := range counts {
		counts[slot] = 0 // or what a server says is not so
	}
	turn(slotsALook)
	if len(seen) != len(counts) {
		t.Errorf("while half of the slots change, %d of %d are looked at", len(seen), len(counts))
	}
}

// A large key is seen among a dozen others of its slot, whatever its name.
func TestLargeKeyAmongOthersIsSeen(t *testing.T) {
	const others, large = 12, 1 << 20
	for name := range others + 1 {
		o, _, world := newObserver(t, interceptor.Funcs{})
		node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.1"})
		n := o.Redis.Node("10.0.0.1:6379", redis.Credentials{})
		if err := n.AddSlots(t.Context(), slots.All()); err != nil {
			t.Fatal(err)
		}
		world.Run(10 * time.Second)
		for i := range others + 1 {
			value := "x"
			if i == name {
				value = strings.Repeat("x", large)
			}
			if key := fmt.Sprintf("{tag}%02d", i); !node.Put(key, value) {
				t.Fatalf("%s is not taken", key)
			}
		}
		slot := slots.KeySlot("{tag}")
		l, err := lookAt(t.Context(), n, &snapshot.Redis{NodeID: "a", Slots: slots.Of(slot)}, make([]weighed, slots.Count))
		if err != nil || l.each[slot]*float64(l.counts[slot]) < large {
			t.Errorf("key %d: %v, %v, %v", name, l.each, l.counts, err)
		}
	}
}

// Processor time is known from the second look of all masters on, and what a slot counts anew is not taken for less.
func TestWeighsProcessor(t *testing.T) {
	w := weighing{slots: make([]weighed, slots.Count)}
	counted := func(a, b int64) []look {
		looks := looked(slots.Count-1, 1)
		for i, n := range []int64{a, b} {
			looks[i].stats = map[uint16]redis.SlotStat{}
			for slot := range looks[i].slots.Slots() {
				looks[i].stats[slot] = redis.SlotStat{Keys: 1, Bytes: -1, Processor: n}
			}
		}
		return looks
	}
	if got := w.note(counted(100, 100), time.Minute); got.Processor != nil {
		t.Fatal("it is known after one look")
	}
	if got := w.note(counted(100+60e6, 100+30e6), time.Minute); got.Processor[0] != 1 || got.Processor[16000] != 0.5 {
		t.Fatalf("%f, %f", got.Processor[0], got.Processor[16000])
	}
	if got := w.note(counted(5, 100+30e6), time.Minute); got.Processor[0] != 1 || got.Processor[16000] != 0.375 {
		t.Errorf("a counter that began anew: %f, %f", got.Processor[0], got.Processor[16000])
	}
	if got := w.note(counted(60e6, 160e6), time.Hour); got.Processor[0] != 1 {
		t.Errorf("too long ago: %f", got.Processor[0])
	}
	if got := w.note(looked(slots.Count-1, 1), time.Minute); got.Processor != nil {
		t.Error("it is not told any more")
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Keys that both ends have are settled for the one that serves; none is deleted that is not at the other end as well, and what an
// end does not tell is not taken for a key that is not there.
func TestResolve(t *testing.T) {
	here := holding(map[string]string{"same": "1", "differs": "1", "here": "1"})
	there := holding(map[string]string{"same": "1", "differs": "2", "there": "2"})
	batch := redis.MigrateBatch{Slot: 5, Keys: []string{"same", "differs", "here", "there"}}
	const migrate = "MIGRATE 10.0.0.1 6379  0 1000 REPLACE KEYS "
	for name, tt := range map[string]struct {
		from, to  func(string) string
		wins      winner
		late      bool
		conflicts int64
		want      []string
		fails     error
		anyError  bool
	}{
		"the owner's stay":                        {here, there, targetWins, false, 1, []string{"UNLINK same", "UNLINK differs"}, nil, false},
		"the source's stay":                       {here, there, sourceWins, false, 1, []string{migrate + "same differs here there"}, nil, false},
		"the owner's stay, and there is no time":  {here, there, targetWins, true, 0, []string{"UNLINK same"}, errSliceOver, false},
		"the source's stay, and there is no time": {here, there, sourceWins, true, 0, []string{migrate + "same"}, errSliceOver, false},
		"the source does not tell":                {refusing("TYPE", here), there, targetWins, false, 0, nil, redis.ErrRefused, false},
		"the destination does not tell":           {here, refusing("TYPE", there), targetWins, false, 0, nil, redis.ErrRefused, false},
		"the destination does not tell the value": {here, refusing("DUMP", there), sourceWins, false, 0, nil, redis.ErrRefused, false},
		"the source deletes nothing": {refusing("UNLINK", here), there, targetWins, false, 1,
			[]string{"UNLINK same", "UNLINK differs"}, redis.ErrRefused, false},
		"the source sends nothing": {refusing("MIGRATE", here), there, sourceWins, false, 1,
			[]string{migrate + "same differs here there"}, redis.ErrRefused, false},
		"the source answers nothing": {func(command string) string {
			if strings.HasPrefix(command, "MIGRATE") {
				return "no answer"
			}
			return here(command)
		}, there, sourceWins, false, 1, []string{migrate + "same differs here there"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := &script{answer: tt.from}, &script{answer: tt.to}
			d := newDrain(t, from, to, Options{Now: stepping(0)})
			d.wins = tt.wins
			if tt.late {
				d.giveUp = time.Unix(-1, 0)
			}
			err := d.resolve(t.Context(), batch)
			if !errors.Is(err, tt.fails) && !tt.anyError || tt.anyError && err == nil {
				t.Errorf("error %v, want %v", err, tt.fails)
			}
			if diff := cmp.Diff(tt.want, append(from.commands("UNLINK"), from.commands("MIGRATE")...)); diff != "" {
				t.Errorf("the source was told (-want +got):\n%s", diff)
			}
			if d.done.Conflicts != tt.conflicts {
				t.Errorf("%d conflicts, want %d", d.done.Conflicts, tt.conflicts)
			}
		})
	}
}

// A source that counts keys which it does not list is not asked for ever.
func TestKeysThatAreNotListed(t *testing.T) {
	from := &script{answer: func(command string) string {
		if strings.HasPrefix(command, "CLUSTER COUNT") {
			return ":1\r\n"
		}
		return "*0\r\n"
	}}
	err := newDrain(t, from, &script{}, Options{}).slots(t.Context(), slots.Of(5))
	if err == nil || !strings.Contains(err.Error(), "keys of slots 5 that it does not list") {
		t.Errorf("error %v", err)
	}
	if lists := from.commands("CLUSTER GETKEYS"); len(lists) != 2 {
		t.Errorf("listed %d times: what has expired between the two commands is no trouble", len(lists))
	}
}

// One MIGRATE carries no more keys than it may, and no more bytes unless one key alone has more.
func TestBatches(t *testing.T) {
	from := &script{answer: func(command string) string {
		size, _, _ := strings.Cut(strings.TrimPrefix(command, "MEMORY USAGE "), "-")
		return ":" + size + "\r\n"
	}}
	d := newDrain(t, from, &script{}, Options{Pipeline: 3})
	keys := map[uint16][]string{1: nil, 2: {"5-a"}}
	for i, size := range []int{batchBytes + 1, 1, batchBytes - 1, 1, 1, 1, 1} {
		keys[1] = append(keys[1], fmt.Sprintf("%d-%d", size, i))
	}
	batches, err := d.batches(t.Context(), keys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range batches {
		got = append(got, fmt.Sprintf("slot %d: %d keys, %d bytes", b.Slot, len(b.Keys), b.Bytes))
	}
	if diff := cmp.Diff([]string{"slot 1: 1 keys, 1048577 bytes", "slot 1: 2 keys, 1048576 bytes", "slot 1: 3 keys, 3 bytes",
		"slot 1: 1 keys, 1 bytes", "slot 2: 1 keys, 5 bytes"}, got); diff != "" {
		t.Errorf("batches (-want +got):\n%s", diff)
	}
	from.answer = refusing("MEMORY", holding(nil))
	if _, err := d.batches(t.Context(), keys); !errors.Is(err, redis.ErrRefused) {
		t.Errorf("sizes that are not told: %v", err)
	}
}

// What goes at once, by what a round trip may cost: 1000 keys of no size in the beginning.
func TestWhatGoesAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		keys []int
		want int
	}{
		"none fits": {[]int{2000, 1}, 1}, "one fits": {[]int{600, 500}, 1}, "two fit": {[]int{500, 500, 1}, 2}, "all fit": {[]int{1, 1, 1}, 3},
	} {
		d := newDrain(t, &script{}, &script{}, Options{})
		batches, counts := make([]redis.MigrateBatch, len(tt.keys)), map[uint16]int64{}
		for i, n := range tt.keys {
			batches[i].Keys, counts[uint16(i)] = make([]string, n), int64(n)
		}
		if got := d.fitting(batches); got != tt.want {
			t.Errorf("%s: %d batches, want %d", name, got, tt.want)
		}
		if got := d.nextGroup(slots.Range(0, uint16(len(tt.keys)-1)), counts).Len(); got != tt.want {
			t.Errorf("%s: %d slots, want %d", name, got, tt.want)
		}
	}
	d := newDrain(t, &script{}, &script{}, Options{})
	if got := d.nextGroup(slots.All(), nil).Len(); got != 32 {
		t.Errorf("%d empty slots", got)
	}
	d.pace.marking = 20 * time.Millisecond
	d.options.Pipeline = 5
	if d.budget() != 1000 || d.groupBudget() != 4000 {
		t.Errorf("budget %v, of a group %v", d.budget(), d.groupBudget())
	}
	d.limit.perSecond = 1
	if d.budget() != 5 || d.groupBudget() != 5 {
		t.Errorf("with a limit: budget %v, of a group %v", d.budget(), d.groupBudget())
	}
}

// What is sent is paid for, measured and learned from.
func TestSendCountsWhatItCost(t *testing.T) {
	from := &script{}
	d := newDrain(t, from, &script{}, Options{KeysPerSecond: 1000, Now: stepping(50 * time.Millisecond)})
	fixed := d.options.Now()
	d.limit.now = func() time.Time { return fixed }
	batches := []redis.MigrateBatch{{Slot: 1, Keys: []string{"a", "b"}, Bytes: 2 << 20}, {Slot: 2, Keys: []string{"c"}, Bytes: 1}}
	if err := d.send(t.Context(), batches); err != nil {
		t.Fatal(err)
	}
	if want := (Progress{Keys: 3, Bytes: 2<<20 + 1, LongestBlock: 50 * time.Millisecond}); !cmp.Equal(want, d.done) {
		t.Errorf("%+v, want %+v", d.done, want)
	}
	if owed := d.limit.free.Sub(fixed); owed != 3*time.Millisecond {
		t.Errorf("3 keys are paid off after %v", owed)
	}
	if d.pace.perCost <= float64(firstGuess) {
		t.Error("nothing was learned from a round trip that took five times what it may")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.send(cancelled, batches); !errors.Is(err, context.Canceled) || d.done.Keys != 3 {
		t.Errorf("the caller gave up: %v, %+v", err, d.done)
	}
	from.answer = refusing("MIGRATE", holding(nil))
	d.limit.free = fixed
	if err := d.send(t.Context(), batches); !errors.Is(err, redis.ErrRefused) || d.done.Keys != 3 {
		t.Errorf("refused: %v, %+v", err, d.done)
	}
}

// The destination is told first; the source is told nothing that the destination did not take, and who owns the drained slots only
// after it was asked whether it knows.
func TestMark(t *testing.T) {
	lost := strings.Repeat("a", 40) + " 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-4\n"
	knows := func(command string) string {
		if command == "CLUSTER NODES" {
			return fmt.Sprintf("$%d\r\n%s\r\n", len(lost), lost)
		}
		return ""
	}
	const importing, migrating = "CLUSTER SETSLOT 6 IMPORTING from", "CLUSTER SETSLOT 6 MIGRATING to"
	const owned = "CLUSTER SETSLOT 5 NODE to"
	for name, tt := range map[string]struct {
		from, to            func(string) string
		drained, next       slots.Set
		source, destination []string
		fails               bool
	}{
		"drained and next": {knows, holding(nil), slots.Of(5), slots.Of(6),
			[]string{"CLUSTER NODES", owned, migrating}, []string{owned, importing}, false},
		"next alone": {knows, holding(nil), slots.Set{}, slots.Of(6), []string{migrating}, []string{importing}, false},
		"the destination refuses": {knows, refusing("CLUSTER SETSLOT", knows), slots.Of(5), slots.Of(6), nil,
			[]string{owned, importing}, true},
		"the source does not tell": {refusing("CLUSTER NODES", knows), knows, slots.Of(5), slots.Of(6),
			[]string{"CLUSTER NODES"}, []string{owned, importing}, true},
		"the source refuses": {refusing("CLUSTER SETSLOT", knows), knows, slots.Of(5), slots.Of(6),
			[]string{"CLUSTER NODES", owned, migrating}, []string{owned, importing}, true},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := &script{answer: tt.from}, &script{answer: tt.to}
			d := newDrain(t, from, to, Options{Now: stepping(time.Millisecond)})
			if err := d.mark(t.Context(), tt.drained, tt.next); (err != nil) != tt.fails {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff([][]string{tt.source, tt.destination}, [][]string{from.commands("CLUSTER"), to.commands("CLUSTER")}); diff != "" {
				t.Errorf("source and destination were told (-want +got):\n%s", diff)
			}
			if learned := d.pace.marking == time.Millisecond && d.pace.slots > 32; learned == tt.fails {
				t.Errorf("learned: %v, %d slots", d.pace.marking, d.pace.slots)
			}
		})
	}
}

// A source that does not hear that it lost slots is told in the end, but not before it had the time to.
func TestMarkWaitsForTheSourceToHear(t *testing.T) {
	still := strings.Repeat("a", 40) + " 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 5\n"
	from := &script{answer: func(command string) string {
		if command == "CLUSTER NODES" {
			return fmt.Sprintf("$%d\r\n%s\r\n", len(still), still)
		}
		return ""
	}}
	synctest.Test(t, func(t *testing.T) {
		d := newDrain(t, from, &script{}, Options{})
		begin := time.Now()
		if err := d.mark(t.Context(), slots.Of(5), slots.Set{}); err != nil || time.Since(begin) < heardWithin {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
	if told := from.commands("CLUSTER SETSLOT"); len(told) != 1 {
		t.Errorf("the source was told %v", told)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// A panic of one move, here of one without ends, is its error.
func TestPanicIsOneMoves(t *testing.T) {
	if _, err := Classic(t.Context(), []Move{{}}, Options{}); err == nil || !strings.Contains(err.Error(), "panic: ") {
		t.Errorf("error %v", err)
	}
}

// However many keys there are, and however many a server says there are, so many are listed at once that the answer is an
// ordinary one; and at least one slot, so that it goes on.
func TestListable(t *testing.T) {
	set := slots.Range(0, 9)
	for name, tt := range map[string]struct {
		keys int64 // in each slot
		want int
	}{"none": {0, 10}, "few": {100, 10}, "as many as fit": {600, 10}, "many": {1500, 4}, "as many as are listed of one": {1 << 32, 3}} {
		counts := map[uint16]int64{}
		for slot := range set.Slots() {
			counts[slot] = tt.keys
		}
		if got := listable(set, counts).Len(); got != tt.want {
			t.Errorf("%s: %d slots, want %d", name, got, tt.want)
		}
	}
	counts := map[uint16]int64{0: 2000, 1: 2000, 2: 2000, 3: 1}
	if got := listable(slots.Range(0, 3), counts).Len(); got != 3 {
		t.Errorf("one key more than fits: %d slots", got)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slots is arithmetic on the 16384 hash slots of a Redis cluster. Its values are immutable and know nothing of
// nodes, clients or Kubernetes.
package slots

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Count is the number of hash slots of a cluster, numbered 0 to Count-1. It is fixed by the cluster specification.
const Count = 16384

// Interval is a run of slots, both ends included.
type Interval struct {
	First, Last uint16
}

// Len is the number of slots in the interval.
func (i Interval) Len() int { return int(i.Last) - int(i.First) + 1 }

// String is "5" or "5-9", as Redis prints it.
func (i Interval) String() string {
	if i.First == i.Last {
		return strconv.Itoa(int(i.First))
	}
	return fmt.Sprintf("%d-%d", i.First, i.Last)
}

// Set is an immutable set of slots. The zero value is the empty set.
//
// It is held as sorted intervals that neither overlap nor touch, so that equal sets have one representation (and
// reflect.DeepEqual agrees with Equal). A snapshot holds one set for each pair of nodes and nearly all of them are empty
// or one interval: 28 bytes here, 2 KiB as a bitmap, which is 20 MiB for a cluster of 100 nodes.
type Set struct {
	intervals []Interval
}

// All is the set of all slots.
func All() Set { return Range(0, Count-1) }

// Range is the set of the slots first to last, both included. It is empty when last is less than first, and panics
// when a slot does not exist; text from outside goes through Parse, which returns errors.
func Range(first, last uint16) Set {
	mustExist(first)
	mustExist(last)
	if last < first {
		return Set{}
	}
	return Set{[]Interval{{first, last}}}
}

// Of is the set of the given slots. It panics when a slot does not exist.
func Of(numbers ...uint16) Set {
	intervals := make([]Interval, len(numbers))
	for i, n := range numbers {
		mustExist(n)
		intervals[i] = Interval{n, n}
	}
	return normalized(intervals)
}

// OfIntervals is the set of the slots in the intervals, which may overlap. It panics when a slot does not exist.
func OfIntervals(intervals ...Interval) Set {
	for _, interval := range intervals {
		mustExist(interval.Last)
	}
	return normalized(slices.Clone(intervals))
}

// Parse reads slots as Redis and redis-cli print them: numbers and first-last ranges, separated by commas, spaces or
// both, in any order, overlapping or not. Empty text is the empty set. The error names the part that is wrong.
func Parse(text string) (Set, error) {
	var intervals []Interval
	for token := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		interval, err := ParseInterval(token)
		if err != nil {
			return Set{}, err
		}
		if len(intervals) == Count {
			return Set{}, fmt.Errorf("more than %d slots and ranges of slots", Count)
		}
		intervals = append(intervals, interval)
	}
	return normalized(intervals), nil
}

// ParseNumber reads one slot number in decimal digits.
func ParseNumber(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n >= Count {
		return 0, fmt.Errorf("slot %.80q is not a number from 0 to %d", text, Count-1)
	}
	return uint16(n), nil
}

// ParseInterval reads one slot number or one range of them.
func ParseInterval(token string) (Interval, error) {
	first, last, isRange := strings.Cut(token, "-")
	if !isRange {
		last = first
	}
	low, err := ParseNumber(first)
	if err != nil {
		return Interval{}, fmt.Errorf("slots %.80q: %w", token, err)
	}
	high, err := ParseNumber(last)
	if err != nil {
		return Interval{}, fmt.Errorf("slots %.80q: %w", token, err)
	}
	if high < low {
		return Interval{}, fmt.Errorf("slots %.80q: the range ends before it begins", token)
	}
	return Interval{low, high}, nil
}

// String is the set as Parse reads it, such as "0-5460,6000"; empty text for the empty set.
func (s Set) String() string {
	var b strings.Builder
	for i, interval := range s.intervals {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(interval.String())
	}
	return b.String()
}

// MarshalText makes a set readable in JSON and in structured logs.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Len is the number of slots in the set.
func (s Set) Len() int {
	n := 0
	for _, interval := range s.intervals {
		n += interval.Len()
	}
	return n
}

// IsEmpty reports whether the set has no slot.
func (s Set) IsEmpty() bool { return len(s.intervals) == 0 }

// Equal reports whether both sets have the same slots.
func (s Set) Equal(other Set) bool { return slices.Equal(s.intervals, other.intervals) }

// Contains reports whether the slot is in the set.
func (s Set) Contains(slot uint16) bool {
	_, found := slices.BinarySearchFunc(s.intervals, slot, func(interval Interval, slot uint16) int {
		switch {
		case interval.Last < slot:
			return -1
		case interval.First > slot:
			return 1
		default:
			return 0
		}
	})
	return found
}

// Ranges are the intervals of the set in ascending order, the fewest that describe it. The slice is the caller's.
func (s Set) Ranges() []Interval { return slices.Clone(s.intervals) }

// Slots yields every slot of the set in ascending order.
func (s Set) Slots() iter.Seq[uint16] {
	return func(yield func(uint16) bool) {
		for _, interval := range s.intervals {
			for slot := interval.First; slot <= interval.Last; slot++ {
				if !yield(slot) {
					return
				}
			}
		}
	}
}

// normalized takes over the slice and brings it into the canonical form that Set documents.
func normalized(intervals []Interval) Set {
	slices.SortFunc(intervals, func(a, b Interval) int { return int(a.First) - int(b.First) })
	merged := intervals[:0]
	for _, next := range intervals {
		if n := len(merged); n > 0 && int(next.First) <= int(merged[n-1].Last)+1 {
			merged[n-1].Last = max(merged[n-1].Last, next.Last)
			continue
		}
		merged = append(merged, next)
	}
	if len(merged) == 0 {
		return Set{}
	}
	return Set{slices.Clip(merged)}
}

func mustExist(slot uint16) {
	if slot >= Count {
		panic(fmt.Sprintf("slots: slot %d does not exist, the last one is %d", slot, Count-1))
	}
}

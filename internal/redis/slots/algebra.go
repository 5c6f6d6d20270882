// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"slices"
)

// Union is every slot that is in s or in any of the others.
func (s Set) Union(others ...Set) Set {
	all := slices.Clone(s.intervals)
	for _, other := range others {
		all = append(all, other.intervals...)
	}
	return normalized(all)
}

// Intersect is every slot that is in both sets.
func (s Set) Intersect(other Set) Set {
	var common []Interval
	a, b := s.intervals, other.intervals
	for len(a) > 0 && len(b) > 0 {
		first, last := max(a[0].First, b[0].First), min(a[0].Last, b[0].Last)
		if first <= last {
			common = append(common, Interval{first, last})
		}
		if a[0].Last < b[0].Last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return Set{common}
}

// Subtract is every slot of s that is not in other.
func (s Set) Subtract(other Set) Set { return s.Intersect(other.Complement()) }

// Complement is every slot that is not in s.
func (s Set) Complement() Set {
	var gaps []Interval
	next := 0
	for _, interval := range s.intervals {
		if next < int(interval.First) {
			gaps = append(gaps, Interval{uint16(next), interval.First - 1})
		}
		next = int(interval.Last) + 1
	}
	if next < Count {
		gaps = append(gaps, Interval{uint16(next), Count - 1})
	}
	return Set{gaps}
}

// Take is the lowest n slots of the set, the whole set when it has no more than n, and the empty set when n is not
// positive.
func (s Set) Take(n int) Set {
	var taken []Interval
	for _, interval := range s.intervals {
		if n <= 0 {
			break
		}
		if n < interval.Len() {
			interval.Last = interval.First + uint16(n-1) //nolint:gosec // n is less than the interval's length
		}
		taken = append(taken, interval)
		n -= interval.Len()
	}
	return Set{taken}
}

// Split cuts the set into n parts in ascending order whose sizes differ by one at most. The bounds are those of
// redis-cli --cluster create: all slots in three parts are 0-5460, 5461-10922 and 10923-16383. Parts are empty where
// the set has fewer than n slots. It panics when n is not positive.
func (s Set) Split(n int) []Set {
	if n <= 0 {
		panic(fmt.Sprintf("slots: cannot split into %d parts", n))
	}
	parts := make([]Set, n)
	length, given, rest := s.Len(), 0, s
	for i := range parts {
		end := (2*(i+1)*length + n) / (2 * n) // (i+1)·length/n, rounded half up
		parts[i] = rest.Take(end - given)
		rest = rest.Subtract(parts[i])
		given = end
	}
	return parts
}

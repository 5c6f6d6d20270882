// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "golang.org/x/sys/unix"

// processorNumbers lists the processors that this program may run on.
func processorNumbers() (numbers []int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return []int{anyProcessor}
	}
	for number := 0; len(numbers) < set.Count(); number++ {
		if set.IsSet(number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

const anyProcessor = -1

// stayOn keeps the calling thread on one processor. Where that is not allowed it runs on any.
func stayOn(number int) {
	if number == anyProcessor {
		return
	}
	var set unix.CPUSet
	set.Set(number)
	_ = unix.SchedSetaffinity(0, &set)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// values names the keys of a run and makes their values.
type values struct {
	prefix string // of this run alone
	sizes  string
}

// lifetime is what every eighth key of a run gets to live with each write.
const lifetime = time.Hour

func (values) expires(key int) bool { return key%8 == 7 }

func (v values) key(key int) (name string, slot int) {
	name = v.prefix + strconv.Itoa(key)
	return name, int(slots.KeySlot(name))
}

// pair names two keys that are in the same slot.
func (v values) pair(pair int) (a, b string, slot int) {
	tag := v.prefix + "{pair" + strconv.Itoa(pair) + "}"
	return tag + "a", tag + "b", int(slots.KeySlot(tag))
}

// value is what the write of a number puts in a key.
func (v values) value(key int, number uint64) string {
	seed := key + int(number%1_000_000)*7919
	return strconv.FormatUint(number, 10) + ":" + text(seed, sizeOf(v.sizes, key))
}

// number tells which write a value came from; not ok if from none.
func (v values) number(key int, value string) (number uint64, ok bool) {
	digits, _, _ := strings.Cut(value, ":")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && number > 0 && value == v.value(key, number)
}

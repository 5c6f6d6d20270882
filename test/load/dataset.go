// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/spf13/cobra"
)

// dataset is data whose every part follows from its number, so that it can be checked
// without having been kept.
type dataset struct {
	keys     int
	types    string // string or all
	sizes    string // mixed, or bytes
	big      int
	bigBytes int
	slack    time.Duration // see item
}

func (d *dataset) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&d.keys, "keys", 20000, "number of keys")
	cmd.Flags().StringVar(&d.types, "types", "string",
		"string, or all: strings, hashes, lists, sets, sorted sets, streams with a consumer group; a fifth of all keys expires in the year 2100")
	cmd.Flags().StringVar(&d.sizes, "sizes", "mixed",
		"size of a value in bytes, or mixed: 80 % of 64 bytes, 15 % of 512, 4.5 % of 4 KiB, 0.5 % of 32 KiB")
	cmd.Flags().IntVar(&d.big, "big", 0, "number of big keys besides, of every type in turn")
	cmd.Flags().IntVar(&d.bigBytes, "big-bytes", 1<<20, "size of a big key in bytes")
}

func (d *dataset) check() error {
	if d.keys < 0 || d.big < 0 || d.bigBytes < elementBytes {
		return fmt.Errorf("--keys and --big must not be negative, --big-bytes must be at least %d", elementBytes)
	}
	if d.types != "string" && d.types != "all" {
		return fmt.Errorf("--types %q: it must be string or all", d.types)
	}
	if n, err := strconv.Atoi(d.sizes); d.sizes != "mixed" && (err != nil || n < 1 || n > 512<<20) {
		return fmt.Errorf("--sizes %q: it must be mixed, or a number of bytes from 1 to 536870912", d.sizes)
	}
	return nil
}

// total is the number of keys, big ones included.
func (d *dataset) total() int { return d.keys + d.big }

// valueKind is a Redis data type.
type valueKind int

const (
	stringKind valueKind = iota
	hashKind
	listKind
	setKind
	sortedSetKind
	streamKind
	kinds
)

var kindNames = [kinds]string{"string", "hash", "list", "set", "zset", "stream"}

// expiryBase is the beginning of the year 2100 in milliseconds since 1970. Keys that
// expire do so then, each a millisecond after the one before.
const expiryBase = int64(4102444800000)

// item is one key.
type item struct {
	key      string
	kind     valueKind
	bytes    int // of a string
	elements int // of anything else, elementBytes each
	seed     int
	expires  int64 // milliseconds since 1970; 0 never
	slack    int64 // how many milliseconds it may expire before or after that
}

const elementBytes = 64

// item gives the key of a number from 0 to below total.
func (d *dataset) item(number int) item {
	it := item{key: "data:" + strconv.Itoa(number), seed: number, slack: d.slack.Milliseconds()}
	if number%5 == 0 {
		it.expires = expiryBase + int64(number)
	}
	if number >= d.keys {
		it.kind = valueKind(number-d.keys) % kinds
		it.bytes, it.elements = d.bigBytes, d.bigBytes/elementBytes
		return it
	}
	if turn := number % 8; d.types == "all" && turn < int(kinds) {
		it.kind = valueKind(turn)
	}
	it.bytes, it.elements = sizeOf(d.sizes, number), 1+number%13
	return it
}

// sizeOf is the size of a value by its number.
func sizeOf(sizes string, number int) int {
	if n, err := strconv.Atoi(sizes); err == nil {
		return n
	}
	switch turn := scatter(number) % 1000; {
	case turn < 800:
		return 64
	case turn < 950:
		return 512
	case turn < 995:
		return 4 << 10
	}
	return 32 << 10
}

// scatter maps neighbours far from each other (splitmix64's finalizer).
func scatter(number int) uint64 {
	x := uint64(number) + 0x9e3779b97f4a7c15 //nolint:gosec // numbers are not negative
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// noise is what values are cut from: bytes that do not compress.
var noise = func() string {
	source := rand.NewChaCha8([32]byte{1})
	block := make([]byte, 2<<20)
	_, _ = source.Read(block) // never fails
	return string(block)
}()

// text gives n bytes by number. Different numbers give different bytes if n is at least 8.
func text(number, n int) string {
	offset := int(scatter(number) % (1 << 20))
	if offset+n <= len(noise) {
		return noise[offset : offset+n]
	}
	long := make([]byte, 0, n)
	for len(long) < n {
		piece := noise[offset:min(len(noise), offset+n-len(long))]
		long, offset = append(long, piece...), 0
	}
	return string(long)
}

// element gives the i-th element of an item.
func (it item) element(i int) string {
	return strconv.Itoa(i) + ":" + text(it.seed+i*7919, elementBytes)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Equal reports whether two values of a setting mean the same, however they are written. It may
// say no of equal values that it does not understand, never yes of different ones.
func Equal(name, a, b string) bool {
	return a == b || slices.Equal(normalize(name, a), normalize(name, b))
}

// texts are the settings whose case and spaces count, and whose digits are no numbers.
var texts = map[string]bool{
	"availability-zone": true, "hash-seed": true, "ignore-warnings": true, "locale-collate": true, "proc-title-template": true,
	"aof-rewrite-cpulist": true, "bgsave-cpulist": true, "bio-cpulist": true, "server-cpulist": true,
}

// normalize writes a value in words such that equal values have equal words.
func normalize(name, value string) []string {
	switch {
	case texts[name]:
		return []string{value}
	case name == "notify-keyspace-events":
		return []string{events(value)}
	}
	words := strings.Fields(strings.ToLower(value))
	switch name {
	case "client-output-buffer-limit":
		return bufferLimits(words)
	case "oom-score-adj":
		return renamed(words, "yes", "relative")
	}
	for i, word := range words {
		words[i] = number(word)
	}
	return words
}

// number writes a number without its unit; what is none stays as it is. The units are those
// of memtoull in util.c: k is 1000, kb is 1024.
func number(word string) string {
	if n, ok := bytes(word); ok {
		return strconv.FormatInt(n, 10)
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil && isDecimal(word) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return word
}

// Memory reads a memory size as redis.conf has it: digits and one of the units, in any case. Of
// what is larger than an int64 Redis keeps the lower bits; here it is no size, and neither is a
// negative number.
func Memory(text string) (size int64, ok bool) {
	const longest = 32
	if len(text) > longest || text == "" || text[0] < '0' || text[0] > '9' {
		return 0, false
	}
	return bytes(strings.ToLower(text))
}

// bytes reads a number with or without a unit, in lower case.
func bytes(word string) (n int64, ok bool) {
	digits := strings.TrimRight(word, "bkmg")
	factor, ok := units[word[len(digits):]]
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64/factor || n < math.MinInt64/factor {
		return 0, false
	}
	return n * factor, true
}

var units = map[string]int64{
	"": 1, "b": 1, "k": 1000, "kb": 1 << 10, "m": 1000 * 1000, "mb": 1 << 20, "g": 1000 * 1000 * 1000, "gb": 1 << 30,
}

// isDecimal reports whether a number is written as people do: ParseFloat knows 0x1p4, inf and 1_0 too.
func isDecimal(word string) bool {
	return strings.Trim(word, "+-0123456789.") == ""
}

// allEvents is what A stands for (NOTIFY_ALL in server.h).
const allEvents = "g$lshzxetd"

// events are the flags of notify-keyspace-events, each once and in one order.
func events(value string) string {
	flags := []byte(strings.ReplaceAll(strings.TrimSpace(value), "A", allEvents))
	slices.Sort(flags)
	return string(slices.Compact(flags))
}

// bufferLimits are the groups of client-output-buffer-limit, class, hard and soft limit and
// seconds, by class; the last of a class counts. What are no such groups stays as it is.
func bufferLimits(words []string) []string {
	const size = 4
	if len(words)%size != 0 {
		return words
	}
	groups := map[string][]string{}
	for group := range slices.Chunk(words, size) {
		class := renamed(group[:1], "slave", "replica")[0]
		groups[class] = []string{class, number(group[1]), number(group[2]), number(group[3])}
	}
	var sorted []string
	for _, class := range []string{"normal", "replica", "pubsub"} {
		sorted = append(sorted, groups[class]...)
		delete(groups, class)
	}
	if len(groups) > 0 {
		return words // a class that nobody knows
	}
	return sorted
}

func renamed(words []string, from, to string) []string {
	words = slices.Clone(words)
	for i, word := range words {
		if word == from {
			words[i] = to
		}
	}
	return words
}

// Whole is a value that says everything about a setting. CONFIG SET of
// client-output-buffer-limit changes the classes that it names and leaves the others, where
// redis.conf leaves them at their default.
func Whole(name, value, byDefault string) string {
	if name != "client-output-buffer-limit" || byDefault == "" {
		return value
	}
	whole := bufferLimits(strings.Fields(strings.ToLower(byDefault + " " + value)))
	return strings.Join(whole, " ")
}

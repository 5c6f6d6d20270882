// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"encoding/binary"
	"hash/crc64"
	"slices"
	"strconv"
	"strings"
)

const (
	notAnInteger = errorText("ERR value is not an integer or out of range")
	invalidSlot  = errorText("ERR Invalid or out of range slot")
	syntaxError  = errorText("ERR syntax error")
)

// Where commands have their keys; they get the arguments after the name.

func firstKey(args []string) []string { return args[:1] }

func secondKey(args []string) []string { return args[1:2] }

func allKeys(args []string) []string { return args }

func everySecondKey(args []string) []string {
	var keys []string
	for pair := range slices.Chunk(args, 2) {
		keys = append(keys, pair[0])
	}
	return keys
}

// put writes a key. Replicas see it with the next round.
func (n *Node) put(key, value string) {
	n.keys[key] = value
	n.offset += int64(len(key) + len(value))
}

// delete removes a key and reports whether there was one.
func (n *Node) delete(key string) bool {
	if _, found := n.keys[key]; !found {
		return false
	}
	delete(n.keys, key)
	n.offset += int64(len(key))
	return true
}

func (s *session) get(args []string) any {
	if value, found := s.node.keys[args[0]]; found {
		return value
	}
	return null{}
}

func (s *session) mget(args []string) any {
	answer := make([]any, 0, len(args))
	for i := range args {
		answer = append(answer, s.get(args[i:]))
	}
	return answer
}

func (s *session) mset(args []string) any {
	if len(args)%2 == 1 {
		return wrongArity("mset")
	}
	for pair := range slices.Chunk(args, 2) {
		s.node.put(pair[0], pair[1])
	}
	return okReply
}

func (s *session) del(args []string) any {
	deleted := 0
	for _, key := range args {
		if s.node.delete(key) {
			deleted++
		}
	}
	return deleted
}

func (s *session) exists(args []string) any {
	found := 0
	for _, key := range args {
		if _, exists := s.node.keys[key]; exists {
			found++
		}
	}
	return found
}

func (s *session) flushAll([]string) any {
	if s.node.self().replica {
		return errorText("READONLY You can't write against a read only replica.")
	}
	s.node.keys = map[string]string{}
	s.node.offset++
	s.node.endJobs(anyJob, "Data was flushed")
	return okReply
}

// memory answers MEMORY USAGE with the lengths of key and value, 64 bytes and World.SetKeyBytes; real ones count what was allocated.
func (s *session) memory(args []string) any {
	if !strings.EqualFold(args[0], "USAGE") {
		return unknownSubcommand("MEMORY", args[0])
	}
	value, found := s.node.keys[args[1]]
	if !found {
		return null{}
	}
	return len(args[1]) + len(value) + 64 + s.node.world.keyBytes
}

func (s *session) dump(args []string) any {
	if value, found := s.node.keys[args[0]]; found {
		return dumped(value)
	}
	return null{}
}

// typeOf is TYPE: all values are strings.
func (s *session) typeOf(args []string) any {
	if _, found := s.node.keys[args[0]]; found {
		return simple("string")
	}
	return simple("none")
}

// restore is RESTORE and RESTORE-ASKING. There are no expiry times here: the one asked for is not kept.
func (s *session) restore(args []string) any {
	replace := false
	for _, option := range args[3:] {
		if !strings.EqualFold(option, "REPLACE") {
			return syntaxError
		}
		replace = true
	}
	if _, exists := s.node.keys[args[0]]; exists && !replace {
		return errorText("BUSYKEY Target key name already exists.")
	}
	if ttl, err := strconv.ParseInt(args[1], 10, 64); err != nil {
		return notAnInteger
	} else if ttl < 0 {
		return errorText("ERR Invalid TTL value, must be >= 0")
	}
	value, valid := undumped(args[2])
	if !valid {
		return errorText("ERR DUMP payload version or checksum are wrong")
	}
	s.node.put(args[0], value)
	return okReply
}

var dumpTable = crc64.MakeTable(crc64.ECMA)

// dumped is the payload of a value: as in real ones, its last bytes are a version and a checksum of all before it
// (createDumpPayload).
func dumped(value string) string {
	body := append([]byte{0}, value...)
	body = append(body, 10, 0)
	return string(binary.LittleEndian.AppendUint64(body, crc64.Checksum(body, dumpTable)))
}

// undumped is the value of a payload (verifyDumpPayload).
func undumped(payload string) (value string, valid bool) {
	if len(payload) < len(dumped("")) {
		return "", false
	}
	value = payload[1 : len(payload)-10]
	return value, dumped(value) == payload
}

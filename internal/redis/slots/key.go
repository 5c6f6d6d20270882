// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import "strings"

// KeySlot is the slot of a key: CRC16 (XMODEM) of the key modulo Count. When the key has a hash tag, which is what stands
// between its first '{' and the first '}' after it, and the tag is not empty, only the tag counts. The rule is
// HASH_SLOT of the Redis cluster specification.
func KeySlot(key string) uint16 {
	if _, afterOpen, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(afterOpen, "}"); closed && tag != "" {
			key = tag
		}
	}
	return crc16(key) % Count
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, initial value 0, neither reflected nor inverted.
func crc16(data string) uint16 {
	var crc uint16
	for i := range len(data) {
		crc ^= uint16(data[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
)

func scanned(text string, owned slots.Set) (*rdbScanner, string, error) {
	var out bytes.Buffer
	r := &rdbScanner{in: bufio.NewReader(strings.NewReader(text)), to: &out, owned: owned}
	err := r.scan()
	return r, out.String(), err
}

// noSum ends an RDB of a server that computes no checksums.
const noSum = "\xff\x00\x00\x00\x00\x00\x00\x00\x00"

// An RDB is copied as it is, and what follows it is left; each way in which a key is written has its slot.
func TestScanOfAnRDB(t *testing.T) {
	key := strings.Repeat("a", 30)
	compressed := "\xc3\x05\x1e\x00a\xe0\x14\x00"
	whole := "REDIS0009\xfa\x09redis-ver\x056.2.1\xfe\x00\xfb\x03\x00" +
		"\x00\x03foo\x01x" + // slot 12182
		"\xfc\x00\x00\x00\x00\x00\x00\x00\x00\x00\xc1\xd2\x04\x01y" + // 1234
		"\x00" + compressed + "\x01z" + noSum
	owned := slots.Of(slots.KeySlot("foo"), slots.KeySlot("1234"), slots.KeySlot(key))
	r, out, err := scanned(whole+"*1\r\n", owned)
	if err != nil || out != whole || r.keys != 3 || r.version != "6.2.1" {
		t.Errorf("%d keys of %q, %v: %q", r.keys, r.version, err, out)
	}
	if rest, _ := io.ReadAll(r.in); string(rest) != "*1\r\n" {
		t.Errorf("what follows is %q", rest)
	}
	for _, other := range []string{"foo", "1234", key} {
		if _, _, err := scanned(whole, owned.Subtract(slots.Of(slots.KeySlot(other)))); err == nil ||
			!strings.Contains(err.Error(), "which is not among the file's slots") {
			t.Errorf("%s in a slot of another: %v", other, err)
		}
	}
	for text, why := range map[string]string{
		"REDIS0009\xfe\x01" + noSum:                              "keys in database 1",
		"REDIS0009\x63\x01k" + noSum:                             "data of type 99",
		"REDIS0009\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff":      "a string has",
		"REDIS0009\xff\x01\x00\x00\x00\x00\x00\x00\x00":          "its checksum is",
		whole[:len(whole)-20]:                                    "unexpected EOF",
		"REDIS0009\x01\x01k\x81\xff\xff\xff\xff\xff\xff\xff\xff": "unexpected EOF",
	} {
		if _, _, err := scanned(text, slots.All()); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %s", text, err, why)
		}
	}
}

// Whatever is in a file, it is read to an end, and no more is written than was there.
func FuzzRDB(f *testing.F) {
	f.Add("REDIS0011\x0f\x01s\x01\x03abc\x03abc\x01\x01\x00\x00" + noSum)
	f.Add("REDIS0009\x00\xc3\x05\x1e\x00a\xe0\x14\x00\x01z" + noSum)
	f.Fuzz(func(t *testing.T, text string) {
		if _, out, _ := scanned(text, slots.Range(0, 8191)); !strings.HasPrefix(text, out) {
			t.Errorf("%q is written as %q", text, out)
		}
	})
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"strconv"
)

// Encodings of a string (rdb.h): integers, and compressed by LZF.
const (
	encodedInt8, encodedInt16, encodedInt32, encodedLZF = 0, 1, 2, 3
)

var errEncoded = errors.New("there is an encoded string where a length was expected")

// Write is what was read of the file: it is summed, and written on.
func (r *rdbScanner) Write(p []byte) (int, error) {
	r.sum = ^crc64.Update(^r.sum, rdbTable, p)
	r.read += int64(len(p))
	return r.to.Write(p)
}

func (r *rdbScanner) full(p []byte) error {
	if _, err := io.ReadFull(r.in, p); err != nil {
		return err
	}
	_, err := r.Write(p)
	return err
}

func (r *rdbScanner) byte() (byte, error) {
	err := r.full(r.small[:1])
	return r.small[0], err
}

// skip copies so many bytes.
func (r *rdbScanner) skip(n int64) error {
	_, err := io.CopyN(writerOnly{r}, readerOnly{r.in}, n)
	return err
}

// writerOnly and readerOnly have CopyN copy through its own buffer.
type (
	writerOnly struct{ io.Writer }
	readerOnly struct{ io.Reader }
)

// number reads a length; of an encoded string it is how that is encoded.
func (r *rdbScanner) number() (n uint64, encoded bool, err error) {
	const is32, is64, rest = 0x80, 0x81, 0x3f
	first, err := r.byte()
	if err != nil {
		return 0, false, err
	}
	switch first >> 6 {
	case 0:
		return uint64(first & rest), false, nil
	case 1:
		second, err := r.byte()
		return uint64(first&rest)<<8 | uint64(second), false, err
	case 3:
		return uint64(first & rest), true, nil
	}
	switch first {
	case is32:
		err = r.full(r.small[:4])
		return uint64(binary.BigEndian.Uint32(r.small[:4])), false, err
	case is64:
		err = r.full(r.small[:8])
		return binary.BigEndian.Uint64(r.small[:8]), false, err
	}
	return 0, false, fmt.Errorf("a length begins with %#x", first)
}

func (r *rdbScanner) length() (uint64, error) {
	n, encoded, err := r.number()
	if err == nil && encoded {
		err = errEncoded
	}
	return n, err
}

func (r *rdbScanner) lengths(n int) error {
	for range n {
		if _, err := r.length(); err != nil {
			return err
		}
	}
	return nil
}

// strings copies so many strings.
func (r *rdbScanner) strings(n int) error {
	for range n {
		length, encoded, err := r.number()
		if err != nil {
			return err
		}
		if encoded {
			switch length {
			case encodedInt8, encodedInt16, encodedInt32:
				length = 1 << length
			case encodedLZF:
				if length, err = r.length(); err == nil {
					_, err = r.length()
				}
			default:
				err = fmt.Errorf("a string is encoded as %d", length)
			}
		}
		if err == nil && length > mostBytes {
			err = fmt.Errorf("a string has %d bytes", length)
		}
		if err == nil {
			err = r.skip(int64(length)) //nolint:gosec // bounded above
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// string reads a string of so many bytes at most.
func (r *rdbScanner) string(most uint64) ([]byte, error) {
	length, encoded, err := r.number()
	if err != nil {
		return nil, err
	}
	plain := length
	if encoded {
		switch length {
		case encodedInt8, encodedInt16, encodedInt32:
			return r.integer(1 << length)
		case encodedLZF:
			if length, err = r.length(); err == nil {
				plain, err = r.length()
			}
		default:
			err = fmt.Errorf("a string is encoded as %d", length)
		}
	}
	if err != nil {
		return nil, err
	}
	if length > most || plain > most {
		return nil, fmt.Errorf("a key has %d bytes, and %d at most are read", max(length, plain), most)
	}
	text := make([]byte, length)
	if err := r.full(text); err != nil || !encoded {
		return text, err
	}
	return unLZF(text, int(plain)) //nolint:gosec // bounded above
}

// integer reads a number of so many bytes, as the text that it stands for.
func (r *rdbScanner) integer(size int) ([]byte, error) {
	const two, four = 2, 4
	if err := r.full(r.small[:size]); err != nil {
		return nil, err
	}
	n := int64(int8(r.small[0])) //nolint:gosec // two's complement
	switch size {
	case two:
		n = int64(int16(binary.LittleEndian.Uint16(r.small[:]))) //nolint:gosec // two's complement
	case four:
		n = int64(int32(binary.LittleEndian.Uint32(r.small[:]))) //nolint:gosec // two's complement
	}
	return strconv.AppendInt(nil, n, 10), nil
}

// unLZF decompresses (lzf_d.c): a byte below 32 is followed by one more literal byte than it says; else its upper three bits, with 7 a
// further byte, are the length of what is repeated, less two, and the rest, with the byte that follows, how far back that is, less one.
func unLZF(in []byte, size int) ([]byte, error) {
	bad := errors.New("a compressed string is damaged")
	out := make([]byte, 0, size)
	for len(in) > 0 {
		c := int(in[0])
		in = in[1:]
		if c < 32 {
			if c++; c > len(in) || len(out)+c > size {
				return nil, bad
			}
			out, in = append(out, in[:c]...), in[c:]
			continue
		}
		length := c >> 5
		if length == 7 && len(in) > 0 {
			length += int(in[0])
			in = in[1:]
		}
		length += 2
		if len(in) == 0 {
			return nil, bad
		}
		from := len(out) - (c&0x1f)<<8 - int(in[0]) - 1
		in = in[1:]
		if from < 0 || len(out)+length > size {
			return nil, bad
		}
		for range length {
			out = append(out, out[from])
			from++
		}
	}
	if len(out) != size {
		return nil, bad
	}
	return out, nil
}

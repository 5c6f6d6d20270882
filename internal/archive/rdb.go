// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"strconv"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// rdbScanner copies an RDB and looks at each key, and at no value: the file may be anybody's. It holds no more than a key in memory.
type rdbScanner struct {
	in    *bufio.Reader
	to    io.Writer
	sum   uint64
	read  int64
	owned slots.Set
	// keys are how many there are, writer and version who wrote it, as it says itself; empty: it does not.
	keys            int64
	writer, version string
	small           [16]byte
}

// What stands before an entry (rdb.h).
const (
	opSlotInfo  = 0xF4
	opFunction  = 0xF5
	opModuleAux = 0xF7
	opIdle      = 0xF8
	opFreq      = 0xF9
	opAux       = 0xFA
	opResize    = 0xFB
	opExpireMS  = 0xFC
	opExpire    = 0xFD
	opSelect    = 0xFE
	opEnd       = 0xFF
)

const (
	rdbHeader = 9
	// checksummed is the first version of an RDB with a checksum.
	checksummed = 5
	// longestKey is of keys whose slots are computed, longestAux of what a file says of itself.
	longestKey, longestAux = 16 << 20, 1 << 10
)

// rdbTable is CRC-64 as Redis computes it (crc64.c), which does not invert the sum at either end.
var rdbTable = crc64.MakeTable(0x95ac9329ac4bc9b5)

// scan copies the RDB to its end, and nothing that follows it.
func (r *rdbScanner) scan() error {
	err := r.entries()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("the RDB, after %d bytes and %d keys: %w", r.read, r.keys, err)
	}
	return nil
}

func (r *rdbScanner) entries() error {
	header := make([]byte, rdbHeader)
	if err := r.full(header); err != nil {
		return err
	}
	for {
		op, err := r.byte()
		if err != nil {
			return err
		}
		if op == opEnd {
			return r.end(string(header))
		}
		if err := r.entry(op); err != nil {
			return err
		}
	}
}

// end compares the checksum; 0: the server was told to compute none.
func (r *rdbScanner) end(header string) error {
	if n, err := strconv.Atoi(header[len("REDIS"):]); err == nil && n < checksummed {
		return nil
	}
	is := r.sum
	said := r.small[:8]
	if err := r.full(said); err != nil {
		return err
	}
	if want := binary.LittleEndian.Uint64(said); want != 0 && want != is {
		return fmt.Errorf("%w: its checksum is %016x, and it says %016x", ErrDamaged, is, want)
	}
	return nil
}

// entry reads what begins with a byte.
func (r *rdbScanner) entry(op byte) error {
	switch op {
	case opSelect:
		db, err := r.length()
		if err == nil && db != 0 {
			err = fmt.Errorf("it has keys in database %d, and a cluster has database 0 alone", db)
		}
		return err
	case opExpire:
		return r.skip(4)
	case opExpireMS:
		return r.skip(8)
	case opFreq:
		return r.skip(1)
	case opIdle:
		return r.lengths(1)
	case opResize:
		return r.lengths(2)
	case opSlotInfo:
		return r.lengths(3)
	case opFunction:
		return r.strings(1)
	case opAux:
		return r.aux()
	case opModuleAux:
		return r.module(3) // it says at which moment it was written, as a part of its own
	}
	layout, known := rdbTypes[op]
	if !known {
		return fmt.Errorf("it has data of type %d, which this version does not know", op)
	}
	if err := r.key(); err != nil {
		return err
	}
	r.keys++
	return layout(r)
}

// key looks whose slot a key is of.
func (r *rdbScanner) key() error {
	if r.owned.Len() == slots.Count {
		return r.strings(1)
	}
	key, err := r.string(longestKey)
	if err != nil {
		return err
	}
	if slot := slots.KeySlot(string(key)); !r.owned.Contains(slot) {
		return fmt.Errorf("it has a key of slot %d, which is not among the file's slots, %.200s", slot, r.owned)
	}
	return nil
}

// aux is what the file says of itself.
func (r *rdbScanner) aux() error {
	name, err := r.string(longestAux)
	if err != nil {
		return err
	}
	if text := string(name); text != "redis-ver" && text != "valkey-ver" {
		return r.strings(1)
	}
	version, err := r.string(longestAux)
	if err == nil && len(version) <= longestVersion && versionForm.Match(version) && len(version) > 0 {
		r.writer, r.version = string(name), string(version)
	}
	return err
}

// rdbTypes are how values are laid out (rdbSaveObject), by their types.
var rdbTypes = map[byte]func(*rdbScanner) error{
	0: one, 9: one, 10: one, 11: one, 12: one, 13: one, 16: one, 17: one, 20: one, // a string, or a packed list, set, hash or sorted set
	1:  func(r *rdbScanner) error { return r.each(func() error { return r.strings(1) }) },
	2:  func(r *rdbScanner) error { return r.each(func() error { return r.strings(1) }) },
	3:  func(r *rdbScanner) error { return r.each(func() error { return errors.Join(r.strings(1), r.score()) }) },
	4:  func(r *rdbScanner) error { return r.each(func() error { return r.strings(2) }) },
	5:  func(r *rdbScanner) error { return r.each(func() error { return errors.Join(r.strings(1), r.skip(8)) }) },
	7:  func(r *rdbScanner) error { return r.module(1) },
	14: func(r *rdbScanner) error { return r.each(func() error { return r.strings(1) }) },
	18: func(r *rdbScanner) error {
		return r.each(func() error { return errors.Join(r.lengths(1), r.strings(1)) })
	},
	15: func(r *rdbScanner) error { return r.stream(1) },
	19: func(r *rdbScanner) error { return r.stream(2) },
	21: func(r *rdbScanner) error { return r.stream(3) },
	// Valkey's hash with fields that expire: a time behind each.
	22: func(r *rdbScanner) error { return r.each(func() error { return errors.Join(r.strings(2), r.skip(8)) }) },
	// Redis's: the earliest time first, and one before each field, relative to it.
	24: func(r *rdbScanner) error {
		return errors.Join(r.skip(8), r.each(func() error { return errors.Join(r.lengths(1), r.strings(2)) }))
	},
	25: func(r *rdbScanner) error { return errors.Join(r.skip(8), r.strings(1)) },
}

func one(r *rdbScanner) error { return r.strings(1) }

// each reads how many there are, and these.
func (r *rdbScanner) each(read func() error) error {
	n, err := r.length()
	for ; err == nil && n > 0; n-- {
		err = read()
	}
	return err
}

// score is that of a member of a sorted set, as text; three lengths stand for what is no number.
func (r *rdbScanner) score() error {
	const noText = 253
	n, err := r.byte()
	if err != nil || n >= noText {
		return err
	}
	return r.skip(int64(n))
}

// stream is one of the three layouts of streams.
func (r *rdbScanner) stream(layout int) error {
	const id, moment = 16, 8
	after, times := 3, int64(moment) // last ID and length
	if layout > 1 {
		after = 8 // and the first ID, the greatest one that was deleted, and how many were added
	}
	if layout > 2 { //nolint:mnd // the third
		times *= 2 // when a consumer was seen, and active
	}
	if err := r.each(func() error { return r.strings(2) }); err != nil {
		return err
	}
	if err := r.lengths(after); err != nil {
		return err
	}
	return r.each(func() error { // groups
		ids := 2
		if layout > 1 {
			ids = 3 // and how many were read
		}
		if err := errors.Join(r.strings(1), r.lengths(ids)); err != nil {
			return err
		}
		if err := r.each(func() error { return errors.Join(r.skip(id+moment), r.lengths(1)) }); err != nil {
			return err
		}
		return r.each(func() error { // consumers
			if err := errors.Join(r.strings(1), r.skip(times)); err != nil {
				return err
			}
			return r.each(func() error { return r.skip(id) })
		})
	})
}

// module is a module's value: some numbers, its ID the first; then parts that say of which kind they are.
func (r *rdbScanner) module(numbers int) error {
	if err := r.lengths(numbers); err != nil {
		return err
	}
	for {
		kind, err := r.length()
		if err != nil {
			return err
		}
		switch kind {
		case 0:
			return nil
		case 1, 2:
			err = r.lengths(1)
		case 3:
			err = r.skip(4)
		case 4:
			err = r.skip(8)
		case 5:
			err = r.strings(1)
		default:
			err = fmt.Errorf("a module's value has a part of kind %d", kind)
		}
		if err != nil {
			return err
		}
	}
}

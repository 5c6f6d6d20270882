// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/replication"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// FileShard is the data of a shard, in files that a server wrote and this program did not: an RDB, or an append-only file.
type FileShard struct {
	Slots slots.Set
	// Objects lie in the store, and are read one after the other: an append-only file in several parts is its base and what followed.
	Objects []string
}

// mostObjects is how many objects a shard has at most.
const mostObjects = 8

// fileForm is what names of files are made of. They become arguments, of which a comma separates them.
var fileForm = regexp.MustCompile(`^[A-Za-z0-9._=@+-]+(/[A-Za-z0-9._=@+-]+)*$`)

// unknownVersion is that of who wrote a file that does not say it.
const unknownVersion = "unknown"

// Files is a manifest of files that are no backup, which together have all slots. It is written nowhere; its checksum is of what the store
// says of the objects, so that whoever reads one that was replaced meanwhile notices. Its moment is when the last of them was written.
func (s *Store) Files(ctx context.Context, shards []FileShard) (*Manifest, error) {
	if len(s.keys.Identities) > 0 {
		return nil, errors.New("files are read as they are, and a key to decrypt them was given")
	}
	if err := checkFiles(shards); err != nil {
		return nil, err
	}
	m := &Manifest{Name: "files", Engine: redis.EngineRedis, Version: unknownVersion, files: [][]string{}}
	m.Consistent = len(shards) == 1
	var seen strings.Builder
	for _, shard := range shards {
		is := Shard{Slots: shard.Slots}
		fmt.Fprintf(&seen, "slots %s\n", shard.Slots)
		for i, key := range shard.Objects {
			about, err := s.bucket.Attributes(ctx, key)
			if err = s.explain(ctx, key, err); errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("the store has no object %s", key)
			}
			if err != nil {
				return nil, fmt.Errorf("looking for %s: %w", key, err)
			}
			if about.Size == 0 {
				return nil, fmt.Errorf("object %s is empty", key)
			}
			fmt.Fprintf(&seen, "%q %d %s %q %x\n", key, about.Size, about.ModTime.UTC().Format(time.RFC3339Nano), about.ETag, about.MD5)
			is.Base.Size, is.Base.PlainSize = is.Base.Size+about.Size, is.Base.PlainSize+about.Size
			if about.ModTime.After(m.Marked) {
				m.Marked = about.ModTime
			}
			header, err := s.kindOf(ctx, key)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				is.RDB = header
			} else if header != "" {
				return nil, fmt.Errorf("object %s is an RDB, and follows another object: an append-only file has one as its base at most", key)
			}
		}
		m.Shards, m.files = append(m.Shards, is), append(m.files, shard.Objects)
	}
	m.Checksum = sumOf([]byte(seen.String()))
	m.Attempt = m.Checksum[:16]
	return m, nil
}

// checkFiles says why files cannot be what a cluster begins with.
func checkFiles(shards []FileShard) error {
	var all slots.Set
	for _, shard := range shards {
		if len(shard.Objects) == 0 || len(shard.Objects) > mostObjects {
			return fmt.Errorf("a shard has %d objects, and 1 to %d are read", len(shard.Objects), mostObjects)
		}
		for _, key := range shard.Objects {
			if !fileForm.MatchString(key) || !fs.ValidPath(key) || len(key) > 512 {
				return fmt.Errorf("%.80q is no name of an object that is read", key)
			}
		}
		if shard.Slots.IsEmpty() || !all.Intersect(shard.Slots).IsEmpty() {
			return fmt.Errorf("slots %q are none, or those of another file", shard.Slots)
		}
		all = all.Union(shard.Slots)
	}
	if all.Len() != slots.Count {
		return fmt.Errorf("slots %s are of no file", all.Complement())
	}
	return nil
}

// kindOf is the header of an RDB; empty: it begins with a command.
func (s *Store) kindOf(ctx context.Context, key string) (string, error) {
	in, err := s.bucket.NewRangeReader(ctx, key, 0, rdbHeader, nil)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", key, err)
	}
	defer func() { _ = in.Close() }() // it was read, or there is an error
	begin, err := io.ReadAll(io.LimitReader(in, rdbHeader))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", key, err)
	case headerForm.Match(begin):
		return string(begin), nil
	case bytes.HasPrefix(begin, []byte("*")), bytes.HasPrefix(begin, []byte("#")):
		return "", nil
	}
	return "", fmt.Errorf("object %s begins with %q, and is neither an RDB nor an append-only file (it may be compressed or encrypted)", key, begin)
}

// ofOldOrNone reports whether every engine reads an RDB of a header, for it is older than all of them, or there is none.
func ofOldOrNone(header string) bool {
	const newest = 10 // that the oldest engine reads
	version, err := strconv.Atoi(strings.TrimPrefix(header, "REDIS"))
	return header == "" || err == nil && version > 0 && version <= newest
}

// writeFiles writes the append-only file of a shard whose data lies in files. Everything is looked at on the way: all keys are of the
// shard's slots, and of database 0, nothing is damaged or missing at the end, and no command is none of the data. Of keys that commands
// name the engine knows.
func (s *Store) writeFiles(ctx context.Context, r Restoring, data string) error {
	m := r.Manifest
	objects := &inOrder{ctx: ctx, store: s, keys: m.files[r.Shard]}
	defer objects.close()
	in := bufio.NewReaderSize(io.TeeReader(objects, r.Meter.of(r.Shard)), 1<<20)
	table := tableOfStream
	if m.Shards[r.Shard].RDB != "" {
		table = tableOfBase + tableOfStream
		scan := &rdbScanner{in: in, owned: m.Shards[r.Shard].Slots}
		err := writeFile(filepath.Join(data, baseFile), func(to io.Writer) error {
			scan.to = to
			return scan.scan()
		})
		if err != nil {
			return objects.of(err)
		}
		if scan.version != "" {
			m.Version = scan.version
		}
		if strings.HasPrefix(scan.writer, string(redis.EngineValkey)) {
			m.Engine = redis.EngineValkey
		}
	}
	err := writeFile(filepath.Join(data, streamFile), func(to io.Writer) error { return replication.CopyFile(in, to) })
	if err != nil {
		return objects.of(err)
	}
	return writeText(filepath.Join(data, tableFile), table)
}

// inOrder are objects that are read one after the other.
type inOrder struct {
	ctx   context.Context //nolint:containedctx // of one call
	store *Store
	keys  []string
	open  *blob.Reader
	// name is the one that was opened last.
	name string
}

// Read implements io.Reader.
func (o *inOrder) Read(p []byte) (int, error) {
	for {
		if o.open == nil {
			if len(o.keys) == 0 {
				return 0, io.EOF
			}
			var err error
			o.name, o.keys = o.keys[0], o.keys[1:]
			if o.open, err = o.store.bucket.NewReader(o.ctx, o.name, nil); err != nil {
				return 0, err
			}
		}
		n, err := o.store.slowlyFrom(o.ctx, o.open).Read(p)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		o.close()
		if n > 0 {
			return n, nil
		}
	}
}

func (o *inOrder) close() {
	if o.open != nil {
		_ = o.open.Close() // it was read, or there is an error
		o.open = nil
	}
}

// of says in which object it is, or near which.
func (o *inOrder) of(err error) error { return fmt.Errorf("reading %s: %w", o.name, err) }

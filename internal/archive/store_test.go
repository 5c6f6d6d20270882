// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"gocloud.dev/blob"

	"middleware.hc.cn/operator/internal/archive/directory"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// newBucket is a bucket in a directory.
func newBucket(t *testing.T) *blob.Bucket {
	t.Helper()
	bucket, err := directory.Open(t.TempDir(), "backups")
	check(t, err)
	t.Cleanup(func() { check(t, bucket.Close()) })
	return bucket
}

func newKeys(t *testing.T) Keys {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	check(t, err)
	return Keys{[]age.Recipient{identity.Recipient()}, []age.Identity{identity}}
}

// backup writes a backup of two shards.
func backup(t *testing.T, s *Store) *Manifest {
	t.Helper()
	m := &Manifest{Format: Format, Name: "b", Attempt: attempt, Engine: redis.EngineRedis, Version: "8.0.6", Compression: compressionName,
		Shards: make([]Shard, 2)}
	if len(s.keys.Recipients) > 0 {
		m.Encryption = encryptionName
	}
	for i, part := range slots.All().Split(2) {
		base, err := s.put(t.Context(), m.baseKey(i), text(strings.Repeat("REDIS0012 base", 10000)))
		check(t, err)
		stream, err := s.put(t.Context(), m.streamKey(i), text("stream"))
		check(t, err)
		m.Shards[i] = Shard{Slots: part, NodeID: strings.Repeat("a", 40), RDB: "REDIS0012", History: strings.Repeat("b", 40), From: 1, To: 2,
			Base: base, Stream: stream}
	}
	check(t, s.complete(t.Context(), m))
	if err := s.complete(t.Context(), m); err == nil {
		t.Error("it was completed twice")
	}
	return m
}

const attempt = "0123456789abcdef"

func text(s string) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.WriteString(to, s)
		return err
	}
}

func TestWhatWasPutIsRead(t *testing.T) {
	for name, keys := range map[string]Keys{"plain": {}, "encrypted": newKeys(t)} {
		t.Run(name, func(t *testing.T) {
			s := NewStore(newBucket(t), keys)
			m := backup(t, s)
			read, err := s.Manifest(t.Context(), "b")
			check(t, err)
			check(t, s.Verify(t.Context(), read))
			if stored, plain := m.Bytes(); stored <= 0 || stored >= plain || plain != 2*(140000+6) {
				t.Errorf("%d bytes for %d", stored, plain)
			}
			var names []string
			for found, err := range s.List(t.Context()) {
				check(t, err)
				names = append(names, found.Name)
			}
			if len(names) != 1 || names[0] != "b" {
				t.Errorf("the list is %q", names)
			}
			check(t, s.Delete(t.Context(), "b"))
			if _, err := s.Manifest(t.Context(), "b"); !errors.Is(err, ErrNotFound) {
				t.Errorf("after it was deleted: %v", err)
			}
			if left, _, err := s.bucket.ListPage(t.Context(), blob.FirstPageToken, 10, nil); len(left) > 0 || err != nil {
				t.Errorf("%d objects are left, %v", len(left), err)
			}
		})
	}
}

// Whoever can write to the store cannot have another object taken for one of the backup.
func TestDamageIsSeen(t *testing.T) {
	keys := newKeys(t)
	for name, damage := range map[string]func(ctx context.Context, s *Store, m *Manifest) error{
		"cut off": func(ctx context.Context, s *Store, m *Manifest) error {
			return rewrite(ctx, s, m, func(b []byte) []byte { return b[:len(b)-1] })
		},
		"longer": func(ctx context.Context, s *Store, m *Manifest) error {
			return rewrite(ctx, s, m, func(b []byte) []byte { return append(b, 0) })
		},
		"a bit": func(ctx context.Context, s *Store, m *Manifest) error {
			return rewrite(ctx, s, m, func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		},
		"gone": func(ctx context.Context, s *Store, m *Manifest) error { return s.bucket.Delete(ctx, m.baseKey(1)) },
		"another": func(ctx context.Context, s *Store, m *Manifest) error {
			return s.bucket.Copy(ctx, m.baseKey(1), m.streamKey(1), nil)
		},
		"a larger plain": func(_ context.Context, _ *Store, m *Manifest) error { m.Shards[1].Base.PlainSize = 7; return nil },
		"another sum": func(_ context.Context, _ *Store, m *Manifest) error {
			m.Shards[1].Base.PlainSHA256 = strings.Repeat("0", 64)
			return nil
		},
	} {
		for kind, k := range map[string]Keys{"plain": {}, "encrypted": keys} {
			s := NewStore(newBucket(t), k)
			m := backup(t, s)
			check(t, damage(t.Context(), s, m))
			if err := s.Verify(t.Context(), m); err == nil || !strings.Contains(err.Error(), "b/"+attempt+"/shard-1/base.rdb") {
				t.Errorf("%s, %s: %v", name, kind, err)
			} else if errors.Is(err, ErrDamaged) != (name != "gone") {
				t.Errorf("%s, %s: it is not told what is wrong: %v", name, kind, err)
			}
		}
	}
	s := NewStore(newBucket(t), keys)
	m := backup(t, s)
	s.keys = newKeys(t)
	if err := s.Verify(t.Context(), m); errors.Is(err, ErrDamaged) || !strings.Contains(fmt.Sprint(err), "incorrect identity") {
		t.Errorf("with another key: %v", err)
	}
	s.keys = keys
	m.Encryption = ""
	if err := s.Verify(t.Context(), m); err == nil || !strings.Contains(err.Error(), "it is not encrypted, and a key was given") {
		t.Errorf("said not to be encrypted: %v", err)
	}
	m.Encryption = encryptionName
	s.keys = Keys{}
	if err := s.Verify(t.Context(), m); err == nil || !strings.Contains(err.Error(), "no key was given") {
		t.Errorf("without a key: %v", err)
	}
}

func rewrite(ctx context.Context, s *Store, m *Manifest, change func([]byte) []byte) error {
	data, err := s.bucket.ReadAll(ctx, m.baseKey(1))
	if err != nil {
		return err
	}
	return s.bucket.WriteAll(ctx, m.baseKey(1), change(data), nil)
}

// A manifest is untrusted: what is written over that of a backup makes it none, not another.
func TestManifestsThatLie(t *testing.T) {
	for name, lie := range map[string]func(m *Manifest){
		"format":               func(m *Manifest) { m.Format = 2 },
		"name: another's":      func(m *Manifest) { m.Name = "c" },
		"name: a path":         func(m *Manifest) { m.Name = "../b" },
		"attempt: a path":      func(m *Manifest) { m.Attempt = "../../../../etc/" },
		"engine":               func(m *Manifest) { m.Engine = "x" },
		"version":              func(m *Manifest) { m.Version = "1 2" },
		"compression":          func(m *Manifest) { m.Compression = "lz4" },
		"encryption":           func(m *Manifest) { m.Encryption = "rot13" },
		"no shards":            func(m *Manifest) { m.Shards = nil },
		"too many shards":      func(m *Manifest) { m.Shards = make([]Shard, mostShards+1) },
		"slots twice":          func(m *Manifest) { m.Shards[1].Slots = m.Shards[0].Slots },
		"slots that lack":      func(m *Manifest) { m.Shards[1].Slots = slots.Range(9000, 9001) },
		"no slots":             func(m *Manifest) { m.Shards[1].Slots = slots.Set{} },
		"header":               func(m *Manifest) { m.Shards[1].RDB = "x\nREDIS001" },
		"node ID":              func(m *Manifest) { m.Shards[1].NodeID = "x" },
		"history":              func(m *Manifest) { m.Shards[1].History = "x" },
		"backwards":            func(m *Manifest) { m.Shards[1].To = 0 },
		"negative size":        func(m *Manifest) { m.Shards[1].Base.Size = -1 },
		"size that overflows":  func(m *Manifest) { m.Shards[1].Base.PlainSize = 1<<63 - 1 },
		"fewer keys than none": func(m *Manifest) { m.Shards[1].Counts = &report.Counts{Keys: -1} },
		"more than all expire": func(m *Manifest) { m.Shards[1].Counts = &report.Counts{Keys: 1, WithTTL: 2} },
		"keys that overflow":   func(m *Manifest) { m.Shards[1].Counts = &report.Counts{Keys: 1<<63 - 1} },
		"sum":                  func(m *Manifest) { m.Shards[1].Base.SHA256 = "x" },
	} {
		s := NewStore(newBucket(t), Keys{})
		m := backup(t, s)
		lie(m)
		if err := s.complete(t.Context(), m); name != "name: another's" && err == nil {
			t.Errorf("%s: it was written", name)
		}
		check(t, s.bucket.Delete(t.Context(), manifestKey("b")))
		check(t, s.writeManifest(t.Context(), "b", m))
		if _, err := s.Manifest(t.Context(), "b"); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
	s := NewStore(newBucket(t), Keys{})
	for name, text := range map[string]string{
		"empty": "", "no JSON": "{", "many": "{\"shards\":[" + strings.Repeat("null,", mostCommas+1) + "null]}",
		"long": "{\"name\":\"" + strings.Repeat("x", mostManifest) + "\"}",
	} {
		check(t, s.bucket.WriteAll(t.Context(), manifestKey("b"), []byte(text), nil))
		if _, err := s.Manifest(t.Context(), "b"); err == nil {
			t.Errorf("%s: it was read", name)
		}
	}
}

// The keys of a backup are those of all shards; one of a version that did not count them is read, and says nothing of them.
func TestCounts(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	m := backup(t, s)
	if r, err := m.Report(); err != nil || r.Counts != nil {
		t.Errorf("what was not counted is %+v, %v", r.Counts, err)
	}
	m.Shards[0].Counts = &report.Counts{Keys: 5, WithTTL: 1}
	if r, err := m.Report(); err != nil || r.Counts != nil {
		t.Errorf("what was counted in part is %+v, %v", r.Counts, err)
	}
	m.Shards[1].Counts = &report.Counts{Keys: mostKeys, WithTTL: 3, WithFieldTTL: 2}
	check(t, s.bucket.Delete(t.Context(), manifestKey("b")))
	check(t, s.writeManifest(t.Context(), "b", m))
	m, err := s.Manifest(t.Context(), "b")
	check(t, err)
	r, err := m.Report()
	check(t, err)
	if r.Counts == nil || *r.Counts != (report.Counts{Keys: mostKeys + 5, WithTTL: 4, WithFieldTTL: 2}) {
		t.Errorf("the keys of all shards are %+v", r.Counts)
	}
}

// What breaks off leaves nothing in the store.
func TestWhatIsInterruptedIsNotThere(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	boom := errors.New("boom")
	_, err := s.put(t.Context(), "key", func(to io.Writer) error {
		if _, err := to.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			return err
		}
		return boom
	})
	if exists, _ := s.bucket.Exists(t.Context(), "key"); !errors.Is(err, boom) || exists {
		t.Errorf("%v, and it is there: %t", err, exists)
	}
}

func TestRestoreFinishesWhatWasBegun(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	m := backup(t, s)
	dir := t.TempDir()
	good, err := s.bucket.ReadAll(t.Context(), m.streamKey(1))
	check(t, err)
	check(t, s.bucket.Delete(t.Context(), m.streamKey(1)))
	if err := s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}); err == nil {
		t.Error("it was restored without its stream")
	}
	check(t, s.bucket.WriteAll(t.Context(), m.streamKey(1), good, nil))
	check(t, s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}))
	base, err := os.ReadFile(filepath.Join(dir, "appendonlydir", "appendonly.aof.1.base.rdb"))
	if !bytes.HasPrefix(base, []byte("REDIS0012 base")) || err != nil {
		t.Errorf("the base is %.20q, %v", base, err)
	}
	nodes, err := os.ReadFile(filepath.Join(dir, "nodes.conf"))
	const want = " :0@0 myself,master - 0 0 1026 connected 8192-16383\nvars currentEpoch 1026 lastVoteEpoch 0\n"
	if !strings.HasSuffix(string(nodes), want) || err != nil {
		t.Errorf("nodes.conf is %s, %v", nodes, err)
	}
	err = s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir})
	if err == nil || !strings.Contains(err.Error(), "nothing is restored over that") {
		t.Errorf("over an instance's data: %v", err)
	}
	for _, shard := range []int{-1, 2} {
		if err := s.Restore(t.Context(), Restoring{Manifest: m, Shard: shard, Directory: t.TempDir()}); err == nil {
			t.Errorf("shard %d was restored", shard)
		}
	}
}

// Who has another key, or damaged objects, gets nothing that an instance would start with; and with the right ones all of it.
func TestRestoreOfWhatCannotBeRead(t *testing.T) {
	keys := newKeys(t)
	s := NewStore(newBucket(t), keys)
	m := backup(t, s)
	dir := t.TempDir()
	for what, wrong := range map[string]Keys{"another key": newKeys(t), "no key": {}} {
		s.keys = wrong
		if err := s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}); err == nil {
			t.Errorf("%s: it was restored", what)
		}
	}
	s.keys = keys
	good, err := s.bucket.ReadAll(t.Context(), m.streamKey(1))
	check(t, err)
	check(t, s.bucket.WriteAll(t.Context(), m.streamKey(1), append(slices.Clone(good[:len(good)-1]), good[len(good)-1]^1), nil))
	if err := s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged object: %v", err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || left[0].Name() != staging || err != nil {
		t.Errorf("there is %v, %v", left, err)
	}
	check(t, s.bucket.WriteAll(t.Context(), m.streamKey(1), good, nil))
	check(t, s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}))
}

// A manifest that is taken names no object but those of its backup, no more bytes than can be added, and each slot once.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":1,"name":"b","attempt":"0123456789abcdef","shards":[{"slots":"0-16383","rdb":"REDIS0012"}]}`))
	f.Add([]byte(`{"format":1,"name":"../b","shards":[{"slots":"0-16383","base":{"plainSize":9223372036854775807}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ReadManifest(bytes.NewReader(text))
		if err != nil {
			return
		}
		owned := 0
		for i, shard := range m.Shards {
			owned += shard.Slots.Len()
			base, stream := m.parts(i)
			for _, p := range append(stream, base) {
				if !objectForm.MatchString(strings.TrimPrefix(p.key, m.Name)) || strings.Contains(p.key, "..") {
					t.Errorf("it names %q", p.key)
				}
			}
		}
		if stored, plain := m.Bytes(); stored < 0 || plain < 0 || owned != slots.Count {
			t.Errorf("%d bytes, %d of data, %d slots", stored, plain, owned)
		}
	})
}

// Whatever moment a restore ends at, the next one brings about the same; and none touches what an instance has written.
func TestRestoreIsFinishedFromEveryMoment(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	m := backup(t, s)
	for name, at := range map[string]func(dir string) error{
		"begun": func(dir string) error { return os.MkdirAll(filepath.Join(dir, staging, appendDir), 0o700) },
		"before the data is moved": func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, staging, appendDir), 0o700), os.WriteFile(filepath.Join(dir, nodesFile), nil, 0o600))
		},
		"all is moved": func(dir string) error {
			return errors.Join(s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}),
				os.Mkdir(filepath.Join(dir, staging), 0o700))
		},
	} {
		dir := t.TempDir()
		check(t, at(dir))
		check(t, s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}))
		table, err := os.ReadFile(filepath.Join(dir, appendDir, tableFile))
		if left, _ := os.ReadDir(dir); string(table) != tableOfBase+tableOfStream || err != nil || len(left) != 3 {
			t.Errorf("%s: %q, %v, %v", name, table, err, left)
		}
	}
	dir := t.TempDir()
	written := filepath.Join(dir, appendDir, "appendonly.aof.1.incr.aof")
	check(t, errors.Join(os.MkdirAll(filepath.Join(dir, staging, appendDir), 0o700), os.Mkdir(filepath.Dir(written), 0o700),
		os.WriteFile(written, []byte("data"), 0o600)))
	if err := s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: dir}); err == nil {
		t.Error("an instance was started on what an interrupted restore left, and its data was restored over")
	}
	if data, err := os.ReadFile(written); string(data) != "data" || err != nil {
		t.Errorf("the instance's data is %q, %v", data, err)
	}
}

// A restore that is asked for once more, because nobody heard that it was done, leaves alone what an instance has made of the data. One of
// another backup, of another request, or of a directory whose data is gone, is none that was done.
func TestRestoreOnceMore(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	m := backup(t, s)
	r := Restoring{Manifest: m, Shard: 1, Directory: t.TempDir(), Request: "a"}
	check(t, s.Restore(t.Context(), r))
	written := filepath.Join(r.Directory, appendDir, streamFile)
	check(t, os.WriteFile(written, []byte("more"), 0o600))
	check(t, s.Restore(t.Context(), r))
	if data, err := os.ReadFile(written); string(data) != "more" || err != nil {
		t.Errorf("the instance's data is %q, %v", data, err)
	}
	other, another := r, *m
	another.Attempt = "0"
	for name, change := range map[string]func(){
		"another request": func() { other.Request = "b" },
		"no request":      func() { other.Request = "" },
		"another shard":   func() { other.Shard = 0 },
		"another attempt": func() { other.Manifest = &another },
	} {
		other = r
		if change(); s.Restore(t.Context(), other) == nil {
			t.Errorf("%s: it was taken for done", name)
		}
	}
	check(t, errors.Join(os.RemoveAll(filepath.Join(r.Directory, appendDir)), os.Remove(filepath.Join(r.Directory, nodesFile))))
	check(t, s.Restore(t.Context(), r))
	if data, err := os.ReadFile(written); err != nil || string(data) == "more" {
		t.Errorf("data that was gone was not restored: %q, %v", data, err)
	}
}

// A backup whose manifest was written is complete, also if the answer to that was lost.
func TestFailedBackups(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		manifest bool
		attempt  string
		kept     bool
	}{
		"without a manifest": {false, attempt, false}, "with its manifest": {true, attempt, true},
		"with that of another attempt": {true, "fedcba9876543210", true},
	} {
		s := NewStore(newBucket(t), Keys{})
		m := backup(t, s)
		if !tt.manifest {
			check(t, s.bucket.Delete(t.Context(), manifestKey("b")))
		}
		ours := *m
		ours.Attempt = tt.attempt
		done, err := Taking{Name: "b", Store: s}.settle(t.Context(), &ours, boom)
		if succeeded := tt.manifest && tt.attempt == attempt; succeeded != (err == nil && done != nil) || !succeeded && !errors.Is(err, boom) {
			t.Errorf("%s: %v, %v", name, done, err)
		}
		if kept, _ := s.bucket.Exists(t.Context(), m.baseKey(0)); kept != tt.kept {
			t.Errorf("%s: the data is there: %t", name, kept)
		}
	}
}

func TestCheckReadable(t *testing.T) {
	for rdb, readers := range map[string]string{
		"REDIS0010": "7.0.15 7.2.1 8.0.6 v7.2.5 v8.1.1 v9.1.2", "REDIS0011": "7.2.1 8.0.6 v7.2.5 v8.1.1 v9.1.2", "REDIS0012": "8.0.6",
		"VALKEY080": "v9.1.2",
	} {
		m := &Manifest{Engine: redis.EngineRedis, Version: "x", Shards: []Shard{{RDB: rdb}}}
		for _, reader := range strings.Fields("6.2.0 7.0.15 7.2.1 8.0.6 v7.2.5 v8.1.1 v9.1.2") {
			engine, version := redis.EngineRedis, reader
			if v, valkey := strings.CutPrefix(reader, "v"); valkey {
				engine, version = redis.EngineValkey, v
			}
			err := m.CheckReadable(engine, version)
			if reads := strings.Contains(" "+readers+" ", " "+reader+" "); reads != (err == nil) {
				t.Errorf("%s by %s %s: %v", rdb, engine, version, err)
			}
		}
	}
}

func TestCanPause(t *testing.T) {
	for version, want := range map[string]bool{"7.0.15": true, "7.2.4": false, "8.0.3": false, "8.0.6": true, "8.4.0": true, "x": false} {
		if canPause(redis.EngineRedis, version) != want {
			t.Errorf("redis %s: %t", version, !want)
		}
	}
	for version, want := range map[string]bool{"7.2.5": false, "8.0.1": false, "8.1.1": false, "8.1.3": true, "9.1.2": true} {
		if canPause(redis.EngineValkey, version) != want {
			t.Errorf("valkey %s: %t", version, !want)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

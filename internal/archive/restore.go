// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
)

// What an instance finds in its directory when it starts. The names are the engines' defaults (appenddirname, appendfilename).
const (
	appendDir  = "appendonlydir"
	baseFile   = "appendonly.aof.1.base.rdb"
	streamFile = "appendonly.aof.1.incr.aof"
	tableFile  = "appendonly.aof.manifest"
	nodesFile  = "nodes.conf"
	staging    = ".restore-unfinished"
	restored   = ".restored" // which backup was restored, and for whom; no instance reads it
	// What an append-only file consists of; the former may be left out.
	tableOfBase   = "file " + baseFile + " seq 1 type b\n"
	tableOfStream = "file " + streamFile + " seq 1 type i\n"
)

// readable is which RDB versions the engines read, from the first version of the engine in which they do; the newest first. The
// engines' own message is that the file has a bad format.
var readable = map[redis.Engine][]struct {
	from string
	rdbs []string
}{
	redis.EngineRedis: {
		{"7.4.0", []string{"REDIS0010", "REDIS0011", "REDIS0012"}},
		{"7.2.0", []string{"REDIS0010", "REDIS0011"}},
		{"7.0.0", []string{"REDIS0010"}},
	},
	redis.EngineValkey: {
		{"9.0.0", []string{"REDIS0010", "REDIS0011", "VALKEY080"}},
		{"7.2.0", []string{"REDIS0010", "REDIS0011"}},
	},
}

// CheckReadable says why a version of an engine does not read a backup. Ask before anything is started.
func (m *Manifest) CheckReadable(engine redis.Engine, version string) error {
	v, err := semver.NewVersion(version)
	if err != nil {
		return fmt.Errorf("%.40q is no version: %w", version, err)
	}
	for _, entry := range readable[engine] {
		if v.LessThan(semver.MustParse(entry.from)) {
			continue
		}
		for i, s := range m.Shards {
			if !slices.Contains(entry.rdbs, s.RDB) && (m.files == nil || !ofOldOrNone(s.RDB)) {
				return fmt.Errorf("%s %s does not read shard %d, which %s %s wrote as %s: restore to %s %s or later", engine, version, i,
					m.Engine, m.Version, s.RDB, m.Engine, m.Version)
			}
		}
		return nil
	}
	return fmt.Errorf("%s %s reads no backup", engine, version)
}

// Restoring is what is restored into an instance's directory.
type Restoring struct {
	Manifest  *Manifest
	Shard     int
	Directory string
	// Request is what it is asked for with, such as the UID of an object. A directory that the same backup was restored into for the
	// same request stays as it is, whatever an instance has made of it since; empty: none does.
	Request string
	// Meter counts how far it is; nil: nobody does.
	Meter *Meter
}

// Restore writes what an instance needs in its empty directory to start as the master of a shard: its data, as an append-only file, and
// its slots, under a node ID of its own. It starts with appendonly yes, and aof-load-truncated no, so that it starts with all of its data
// or not at all. What an interrupted restore left is replaced; a directory with anything of an instance is refused. All is written
// elsewhere in the directory first, and moved when it is whole, the data last.
//
// Meet the instances only once each of them has its data: one that owns its slots with the same epoch and no data may win them.
func (s *Store) Restore(ctx context.Context, r Restoring) error {
	m, dir := r.Manifest, r.Directory
	if r.Shard < 0 || r.Shard >= len(m.Shards) {
		return fmt.Errorf("the backup has shards 0 to %d, and none %d", len(m.Shards)-1, r.Shard)
	}
	whole, err := r.prepare()
	if whole || err != nil {
		return err
	}
	stage := filepath.Join(dir, staging)
	data := filepath.Join(stage, appendDir)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	r.Meter.begin(report.StageRestoring, r.Shard, m.Shards[r.Shard].Base.PlainSize+m.Shards[r.Shard].Stream.PlainSize)
	write := s.writeBackup
	if m.files != nil {
		write = s.writeFiles
	}
	if err := write(ctx, r, data); err != nil {
		return err
	}
	if err := writeText(filepath.Join(stage, nodesFile), nodesOf(m, r.Shard)); err != nil {
		return err
	}
	if err := writeText(filepath.Join(stage, restored), r.mark()); err != nil {
		return err
	}
	if err := errors.Join(syncDir(data), syncDir(stage)); err != nil {
		return err
	}
	for _, name := range moved {
		if err := os.Rename(filepath.Join(stage, name), filepath.Join(dir, name)); err != nil {
			return err
		}
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return os.Remove(stage)
}

// writeBackup writes the append-only file of a shard of a backup.
func (s *Store) writeBackup(ctx context.Context, r Restoring, data string) error {
	for _, part := range []struct {
		file string
		get  func(context.Context, *Manifest, int, io.Writer) error
	}{{baseFile, s.getBase}, {streamFile, s.getStream}} {
		err := writeFile(filepath.Join(data, part.file), func(to io.Writer) error {
			return part.get(ctx, r.Manifest, r.Shard, io.MultiWriter(to, r.Meter.of(r.Shard)))
		})
		if err != nil {
			return err
		}
	}
	return writeText(filepath.Join(data, tableFile), tableOfBase+tableOfStream)
}

// moved is what a restore moves into the directory, in this order.
var moved = []string{restored, nodesFile, appendDir}

// mark says what is restored, and for whom.
func (r Restoring) mark() string {
	m := r.Manifest
	return fmt.Sprintf("request %q backup %q attempt %q shard %d\n", r.Request, m.Name, m.Attempt, r.Shard)
}

// epochBase is what the epochs of restored masters are above: those that the operator gives to empty instances of a new cluster, of which
// there are at most 1000, are below.
const epochBase = 1024

// nodesOf is the nodes.conf of a master that is alone, with an epoch that no other shard has.
func nodesOf(m *Manifest, shard int) string {
	const idBytes = 20
	id := make([]byte, idBytes)
	rand.Read(id)
	return fmt.Sprintf("%s :0@0 myself,master - 0 0 %d connected %s\nvars currentEpoch %d lastVoteEpoch 0\n", hex.EncodeToString(id),
		epochBase+shard+1, strings.ReplaceAll(m.Shards[shard].Slots.String(), ",", " "), epochBase+len(m.Shards))
}

// prepare makes the directory ready for a restore, or says that this one is whole: everything was moved. Files that no instance reads
// may be there, such as lost+found.
func (r Restoring) prepare() (whole bool, err error) {
	stage := filepath.Join(r.Directory, staging)
	left, err := os.ReadDir(stage)
	begun := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	mark, err := os.ReadFile(filepath.Join(r.Directory, restored))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	for _, name := range []string{appendDir, "dump.rdb", nodesFile} {
		_, err := os.Stat(filepath.Join(r.Directory, name))
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && begun && name == nodesFile:
		case err != nil:
			return false, err
		case name == appendDir && string(mark) == r.mark() && begun && len(left) == 0:
			return true, os.Remove(stage)
		case name == appendDir && string(mark) == r.mark() && !begun && r.Request != "":
			return true, nil
		default:
			return false, fmt.Errorf("%s has %s: an instance has its data there, and nothing is restored over that", r.Directory, name)
		}
	}
	for _, name := range []string{restored, nodesFile} {
		if err := os.Remove(filepath.Join(r.Directory, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, os.RemoveAll(stage)
}

func writeText(path, text string) error {
	return writeFile(path, func(to io.Writer) error {
		_, err := io.WriteString(to, text)
		return err
	})
}

// writeFile writes a file that is on the disk when it returns.
func writeFile(path string, fill func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // in the directory that the caller names
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	if err := fill(out); err != nil {
		return errors.Join(err, file.Close())
	}
	return errors.Join(out.Flush(), file.Sync(), file.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // the caller names it
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive takes backups of Redis clusters into an object store, and brings them back. It knows Redis and not Kubernetes.
//
// A backup is, for each shard, a base (an RDB that a replica sends) and the stream of commands that followed it up to the mark, which
// is one moment for all shards. It is restored by the engine's own loading of append-only files.
package archive

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Format is the version of the layout that is written. Others are not read.
const Format = 1

// What a store is trusted with.
const (
	mostShards      = 500
	mostManifest    = 4 << 20 // bytes
	mostCommas      = 50_000
	mostBytes       = 1 << 50 // of an object
	mostKeys        = 1 << 48 // of a shard
	longestVersion  = 64
	longestRequest  = 64
	manifestName    = "manifest.json"
	compressionName = "zstd"
	encryptionName  = "age"
)

// Manifest describes a backup. It is written last: a backup without one is not complete. What is read from a store is untrusted until
// Validate has passed.
type Manifest struct {
	Format int    `json:"format"`
	Name   string `json:"name"`
	// Attempt is where the objects lie, 16 hex digits: no two attempts at a backup share any. With a Request, the first eight are those of
	// its SHA-256.
	Attempt string `json:"attempt"`
	// Request is what the backup was asked for with, such as the UID of an object, 64 bytes at most. It is to know one's own backup by.
	Request string `json:"request,omitempty"`
	// Cluster is whose data it is, such as namespace/name. It is for people.
	Cluster string `json:"cluster,omitempty"`
	// Engine and Version are those of the first shard's master.
	Engine  redis.Engine `json:"engine"`
	Version string       `json:"version"`
	// Started is when the first base was asked for.
	Started time.Time `json:"started"`
	Moment
	// Compression is zstd; Encryption is age or empty.
	Compression string  `json:"compression"`
	Encryption  string  `json:"encryption,omitempty"`
	Shards      []Shard `json:"shards"`

	// Checksum is the SHA-256 of what was read, in hex digits; empty: it was not read.
	Checksum string `json:"-"`

	// archived are the parts of each shard, its base first, if this is a moment of an archive.
	archived [][]part

	// files are the objects of each shard, if this is no backup: see Files.
	files [][]string
}

// part is an object and where it lies.
type part struct {
	Object
	key       string
	encrypted bool
}

// parts are what there is to read of a shard.
func (m *Manifest) parts(shard int) (base part, stream []part) {
	if m.archived != nil {
		return m.archived[shard][0], m.archived[shard][1:]
	}
	s, encrypted := m.Shards[shard], m.Encryption != ""
	return part{s.Base, m.baseKey(shard), encrypted}, []part{{s.Stream, m.streamKey(shard), encrypted}}
}

// Moment is the moment that data is of.
type Moment struct {
	Marked time.Time `json:"marked"`
	// Consistent reports whether writes were delayed everywhere while the mark was set, so that it is one moment for all shards, and
	// Paused for how long they were, in seconds. Without, shards may differ by what was written within Skew, in seconds.
	Consistent bool    `json:"consistent"`
	Paused     float64 `json:"pausedSeconds"`
	Skew       float64 `json:"skewSeconds"`
}

// Shard is one master's part of a backup.
type Shard struct {
	// Slots are what it owned at the mark.
	Slots slots.Set `json:"slots"`
	// NodeID is the node ID of its master at the mark. It is for people.
	NodeID string `json:"nodeID"`
	// RDB is the header of the base, such as REDIS0012.
	RDB string `json:"rdb"`
	// History is the replication ID, and the base ends and the stream begins at From; the stream ends at To.
	History string `json:"history"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Base    Object `json:"base"`
	Stream  Object `json:"stream"`
	// Counts are its keys at To; nil: they were not counted.
	Counts *report.Counts `json:"counts,omitempty"`
}

// Object is one object of a store: what lies there, and what that is once it is decrypted and decompressed.
type Object struct {
	// Size is in bytes, SHA256 in hex digits; the former two are of what lies in the store.
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	PlainSize   int64  `json:"plainSize"`
	PlainSHA256 string `json:"plainSHA256"`
}

// An object's place follows from the backup's name, the attempt and the shard's number: no manifest can name another.
func (m *Manifest) baseKey(shard int) string { return m.key(shard, "base.rdb") }

func (m *Manifest) streamKey(shard int) string { return m.key(shard, "stream.aof") }

func (m *Manifest) key(shard int, object string) string {
	return fmt.Sprintf("%s/%s/shard-%d/%s", m.Name, m.Attempt, shard, object)
}

func manifestKey(backup string) string { return backup + "/" + manifestName }

// newAttempt is where an attempt writes. Its first half says what it was asked for with, if anything: what never was complete is
// recognised by that.
func newAttempt(request string) string {
	const size = 8
	id := make([]byte, size)
	rand.Read(id)
	if request != "" {
		copy(id, ofRequest(request))
	}
	return hex.EncodeToString(id)
}

// ofRequest is what attempts begin with that were asked for with a request.
func ofRequest(request string) []byte {
	const size = 4
	sum := sha256.Sum256([]byte(request))
	return sum[:size]
}

var (
	nameForm    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	attemptForm = regexp.MustCompile(`^[0-9a-f]{16}$`)
	sumForm     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	idForm      = regexp.MustCompile(`^[0-9a-f]{40}$`)
	headerForm  = regexp.MustCompile(`^(REDIS[0-9]{4}|VALKEY[0-9]{3})$`)
	versionForm = regexp.MustCompile(`^[0-9A-Za-z.+-]*$`)
)

// ValidateName says what is wrong with the name of a backup: it is a DNS subdomain, as names of Kubernetes objects are.
func ValidateName(name string) error {
	if !nameForm.MatchString(name) || strings.Contains(name, "..") {
		return fmt.Errorf("%.80q is no name of a backup: lower-case letters, digits, - and ., 253 at most", name)
	}
	return nil
}

func (m *Manifest) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// Report is what is told of the backup.
func (m *Manifest) Report() (report.Report, error) {
	checksum := m.Checksum
	if checksum == "" {
		text, err := m.encode()
		if err != nil {
			return report.Report{}, err
		}
		checksum = sumOf(text)
	}
	r := report.Report{Engine: string(m.Engine), Version: m.Version, Marked: m.Marked, Consistent: m.Consistent, Paused: m.Paused,
		Skew: m.Skew, Manifest: checksum, Count: len(m.Shards), Counts: m.counts()}
	r.Stored, r.Bytes = m.Bytes()
	for _, s := range m.Shards {
		r.Shards = append(r.Shards, report.Shard{Slots: s.Slots.String(), Bytes: s.Base.PlainSize + s.Stream.PlainSize,
			Stored: s.Base.Size + s.Stream.Size})
	}
	return r, nil
}

// counts are the keys of all shards; nil: not all were counted.
func (m *Manifest) counts() *report.Counts {
	var all report.Counts
	for _, s := range m.Shards {
		if s.Counts == nil {
			return nil
		}
		all.Keys += s.Counts.Keys
		all.WithTTL += s.Counts.WithTTL
		all.WithFieldTTL += s.Counts.WithFieldTTL
	}
	return &all
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ReadManifest reads a manifest that is nothing but valid.
func ReadManifest(in io.Reader) (*Manifest, error) {
	var m Manifest
	var err error
	if m.Checksum, err = read(in, &m); err != nil {
		return nil, fmt.Errorf("the manifest %w", err)
	}
	return &m, m.Validate()
}

// read reads JSON into a value, and returns the SHA-256 of the text.
func read(in io.Reader, into any) (checksum string, err error) {
	text, err := io.ReadAll(io.LimitReader(in, mostManifest+1))
	if err != nil {
		return "", fmt.Errorf("cannot be read: %w", err)
	}
	if len(text) > mostManifest {
		return "", fmt.Errorf("has more than %d bytes", mostManifest)
	}
	if bytes.Count(text, []byte(",")) > mostCommas { // each stands for a value, which takes more memory than text
		return "", fmt.Errorf("has more than %d values", mostCommas)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return "", fmt.Errorf("is damaged: %w", err)
	}
	return sumOf(text), nil
}

// Validate says why a manifest describes no backup that can be restored.
func (m *Manifest) Validate() error {
	if m.Format != Format {
		return fmt.Errorf("the manifest has format %d, and this version reads %d", m.Format, Format)
	}
	var errs []error
	bad := func(format string, arguments ...any) { errs = append(errs, fmt.Errorf(format, arguments...)) }
	if err := ValidateName(m.Name); err != nil {
		errs = append(errs, err)
	}
	if !attemptForm.MatchString(m.Attempt) {
		bad("attempt: %.40q is none", m.Attempt)
	}
	if m.Engine != redis.EngineRedis && m.Engine != redis.EngineValkey {
		bad("engine: %.40q is neither redis nor valkey", m.Engine)
	}
	if len(m.Request) > longestRequest {
		bad("request: it has more than %d bytes", longestRequest)
	}
	if len(m.Version) > longestVersion || !versionForm.MatchString(m.Version) {
		bad("version: %.40q is none", m.Version)
	}
	if m.Compression != compressionName {
		bad("compression: %.40q, and %s is what this version reads", m.Compression, compressionName)
	}
	if m.Encryption != "" && m.Encryption != encryptionName {
		bad("encryption: %.40q, and %s is what this version reads", m.Encryption, encryptionName)
	}
	if len(m.Shards) == 0 || len(m.Shards) > mostShards {
		bad("shards: %d, and there are 1 to %d", len(m.Shards), mostShards)
		return errors.Join(errs...)
	}
	var all slots.Set
	for i, shard := range m.Shards {
		for _, problem := range shard.problems() {
			bad("shards[%d].%s", i, problem)
		}
		if !all.Intersect(shard.Slots).IsEmpty() {
			bad("shards[%d].slots: another shard has some of %.80s", i, shard.Slots)
		}
		all = all.Union(shard.Slots)
	}
	if len(errs) == 0 && all.Len() != slots.Count {
		bad("shards: they have %d of %d slots", all.Len(), slots.Count)
	}
	return errors.Join(errs...)
}

func (s Shard) problems() []string {
	var list []string
	add := func(format string, arguments ...any) { list = append(list, fmt.Sprintf(format, arguments...)) }
	if s.Slots.IsEmpty() {
		add("slots: none")
	}
	if !headerForm.MatchString(s.RDB) {
		add("rdb: %.40q is no header of an RDB", s.RDB)
	}
	if !idForm.MatchString(s.NodeID) {
		add("nodeID: %.40q is none", s.NodeID)
	}
	if !idForm.MatchString(s.History) || s.From < 0 || s.To < s.From {
		add("history: %.40q from %d to %d is none", s.History, s.From, s.To)
	}
	if s.Counts != nil && !s.Counts.Within(mostKeys) {
		add("counts: %d keys, %d and %d of them with a time to live", s.Counts.Keys, s.Counts.WithTTL, s.Counts.WithFieldTTL)
	}
	for name, o := range map[string]Object{"base": s.Base, "stream": s.Stream} {
		if !o.valid() {
			add("%s: %d and %d bytes with sums %.70q and %.70q", name, o.Size, o.PlainSize, o.SHA256, o.PlainSHA256)
		}
	}
	slices.Sort(list)
	return list
}

func (o Object) valid() bool {
	return o.Size >= 0 && o.Size <= mostBytes && o.PlainSize >= 0 && o.PlainSize <= mostBytes && sumForm.MatchString(o.SHA256) &&
		sumForm.MatchString(o.PlainSHA256)
}

// Bytes are how many lie in the store for the backup, and how many they are of data.
func (m *Manifest) Bytes() (stored, plain int64) {
	for _, s := range m.Shards {
		stored += s.Base.Size + s.Stream.Size
		plain += s.Base.PlainSize + s.Stream.PlainSize
	}
	return stored, plain
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// run is what a command line prints, and why it fails.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := New()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is wrong on the command line is told with the flag it is about.
func TestBadCommandLines(t *testing.T) {
	store := "file://" + t.TempDir()
	for line, want := range map[string]string{
		"list":                                                        "--store is required",
		"list --store ftp:x":                                          "--store: \"ftp\" is no kind of store",
		"list --store azblob://container":                             "--store: AZURE_STORAGE_ACCOUNT is not set",
		"list --store gs://bucket?grpc=true":                          "--store: \"grpc\" means nothing",
		"list --store file://directory":                               "--store: a directory has no host",
		"list --store file:///tmp?prefix=../etc":                      "--store: \"../etc\" is no path of a folder",
		"list --max-bytes-per-second -1 --store " + store:             "--max-bytes-per-second: -1",
		"list --store s3://user:secret@bucket":                        "--store: an address has no credentials",
		"list --store s3://user:secret@bucket%?region=x":              "--store: invalid URL escape",
		"list --store " + store + " --identity-file /none":            "--identity-file: ",
		"list --store " + store + " --identity-file " + write(t, "x"): "--identity-file: ",
		"gateway":                                                  "--map-file is required",
		"gateway --map-file /none":                                 "/none",
		"gateway --map-file x --cert-file y":                       "--cert-file and --key-file belong together",
		"gateway --map-file x --ca-file y":                         "--ca-file and --server-name belong together",
		"gateway --map-file x --max-connections 0":                 "must be 1 or more",
		"gateway --map-file x --drain-delay -1s":                   "must not be negative",
		"take":                                                     "accepts 1 arg(s)",
		"take a --store " + store + " --recipient x":               "--recipient: ",
		"take a --store " + store + " --password-file /none":       "--password-file: ",
		"take a --store " + store + " --ca-file " + write(t, "x"):  "has no certificate in PEM",
		"take ../a --store " + store:                               "is no name of a backup",
		"take a --store " + store:                                  "no address of an instance is given (--from)",
		"archive a --store " + store:                               "no address of an instance is given (--from)",
		"archive ../a --store " + store:                            "is no name of a backup",
		"archive a --recipient x --store " + store:                 "--recipient: ",
		"restore a --to yesterday --store " + store:                "--to: ",
		"restore a --to latest --store " + store:                   "there is no such backup",
		"show a --to 2026-11-24T03:00:00Z --store " + store:        "there is no such backup",
		"take a --timeout 1ns --from 127.0.0.1:1 --store " + store: "no instance answers",
		"show a --store " + store:                                  "there is no such backup",
		"verify ../a --store " + store:                             "is no name of a backup",
		"restore a --engine mysql:8 --store " + store:              "--engine: ",
		"restore a --engine redis --store " + store:                "--engine: ",
		"delete ../a --store " + store:                             "is no name of a backup",
		"delete ../a --request u --store " + store:                 "is no name of a backup",
		"delete a --request= --store " + store:                     "the request is empty",
	} {
		if said, err := run(t, strings.Fields(line)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q\n%s", line, err, want, said)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error has the secret: %v", line, err)
		}
	}
}

func TestListOfWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"broken/manifest.json", "unfinished/0123456789abcdef/shard-0/base.rdb", "Not-Ours/manifest.json"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := run(t, "list", "--store", "file://"+dir)
	const want = "broken  broken/manifest.json: the manifest has format 0"
	if lines := strings.Split(strings.TrimSpace(said), "\n"); err != nil || len(lines) != 2 || !strings.Contains(lines[1], want) {
		t.Errorf("%v:\n%s", err, said)
	}
	if _, err := run(t, "delete", "unfinished", "--store", "file://"+dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "unfinished", "0123456789abcdef", "shard-0", "base.rdb")); err == nil {
		t.Error("what was never complete is still there")
	}
}

// Whoever reads the report of a deletion learns what became of it, and whether another's backup was in the way.
func TestReportOfADeletion(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report")
	store := "file://" + dir
	sum := strings.Repeat("a", 64)
	o := archive.Object{SHA256: sum, PlainSHA256: sum}
	text, err := json.Marshal(archive.Manifest{Format: archive.Format, Name: "taken", Attempt: "0123456789abcdef", Request: "another",
		Engine: "redis", Version: "8.0.6", Compression: "zstd", Shards: []archive.Shard{{Slots: slots.All(), NodeID: sum[:40],
			RDB: "REDIS0012", History: sum[:40], Base: o, Stream: o}}})
	if err == nil {
		err = os.MkdirAll(filepath.Join(dir, "taken"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "taken", "manifest.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for what, tt := range map[string]struct {
		line string
		want report.Deletion
	}{
		"nothing is there":       {"delete a --request u --store " + store, report.Deletion{Deleted: true}},
		"another's has the name": {"delete taken --request u --store " + store, report.Deletion{Another: true}},
		"no store":               {"delete a --request u --store file:///none", report.Deletion{}},
	} {
		_, failed := run(t, append(strings.Fields(tt.line), "--report-file", file)...)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		said, err := report.ParseDeletion(string(text))
		if err != nil || said.Deleted != tt.want.Deleted || said.Another != tt.want.Another || (failed == nil) != said.Deleted {
			t.Errorf("%s: %s (%v; the command: %v)", what, text, err, failed)
		}
	}
}

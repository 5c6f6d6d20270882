// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gocloud.dev/blob"

	"middleware.hc.cn/operator/internal/archive/directory"
)

// objects are what lies in a store.
func objects(t *testing.T, s *Store) []string {
	t.Helper()
	var keys []string
	for list := s.bucket.List(&blob.ListOptions{}); ; {
		entry, err := list.Next(t.Context())
		if err != nil {
			return keys
		}
		keys = append(keys, entry.Key)
	}
}

// What was asked for with a request is deleted by it, and nothing else: what another one writes at the same time has no manifest yet.
func TestDeleteWhatWasRequested(t *testing.T) {
	const mine, another = "uid-1", "uid-2"
	unfinished := func(s *Store, backup, request string) string {
		m := Manifest{Name: backup, Attempt: newAttempt(request)}
		_, err := s.put(t.Context(), m.baseKey(0), text("base"))
		check(t, err)
		return m.baseKey(0)
	}
	for what, tt := range map[string]struct {
		complete string // whose backup is complete; empty: nobody's
		damaged  bool
		want     error // nil: any, if it is damaged
	}{
		"its own":               {complete: mine},
		"another's":             {complete: another, want: ErrAnother},
		"one made without":      {complete: "nobody", want: ErrAnother},
		"none":                  {},
		"a damaged one":         {complete: mine, damaged: true},
		"another's damaged one": {complete: another, damaged: true},
	} {
		t.Run(what, func(t *testing.T) {
			s := NewStore(newBucket(t), Keys{})
			kept := []string{unfinished(s, "b", another), unfinished(s, "b", ""), unfinished(s, "bb", mine)}
			check(t, s.bucket.WriteAll(t.Context(), "b/readme", []byte("a person's"), nil))
			kept = append(kept, "b/readme")
			if tt.complete != "" {
				request := strings.TrimPrefix(tt.complete, "nobody")
				kept = append(kept, completed(t, s, request, request == mine)...)
			}
			left := unfinished(s, "b", mine)
			if tt.damaged {
				check(t, s.bucket.WriteAll(t.Context(), manifestKey("b"), []byte(`{"request":"uid-1"}`), nil))
				kept = objects(t, s)
			}
			err := s.DeleteRequested(t.Context(), "b", mine)
			if (err != nil) != (tt.damaged || tt.want != nil) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %v", err)
			}
			now := objects(t, s)
			slices.Sort(kept)
			if !slices.Equal(now, kept) {
				t.Errorf("left are %v, and %v was to stay (%s was not)", now, kept, left)
			}
			if again := s.DeleteRequested(t.Context(), "b", mine); (again != nil) != (err != nil) || !slices.Equal(objects(t, s), kept) {
				t.Errorf("once more: %v", again)
			}
		})
	}
	if err := NewStore(newBucket(t), Keys{}).DeleteRequested(t.Context(), "b", ""); err == nil {
		t.Error("an empty request is anybody's")
	}
}

// completed writes a backup that was asked for with a request. It returns the objects, unless they are to be deleted.
func completed(t *testing.T, s *Store, request string, goes bool) (kept []string) {
	t.Helper()
	m := backup(t, s)
	for i := range m.Shards { // where an attempt for the request writes
		for _, object := range []string{"base.rdb", "stream.aof"} {
			from := m.key(i, object)
			to := strings.Replace(from, attempt, newAttempt(request)[:8]+attempt[8:], 1)
			check(t, s.bucket.Copy(t.Context(), to, from, nil))
			check(t, s.bucket.Delete(t.Context(), from))
			if !goes || request == "" {
				kept = append(kept, to)
			}
		}
	}
	m.Request = request
	check(t, s.remove(t.Context(), manifestKey("b")))
	check(t, s.writeManifest(t.Context(), "b", m))
	if !goes {
		kept = append(kept, manifestKey("b"))
	}
	return kept
}

// A deletion that breaks off after the manifest is gone is brought to its end by the next one.
func TestDeletionThatWasInterrupted(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	completed(t, s, "uid-1", true)
	check(t, s.remove(t.Context(), manifestKey("b")))
	check(t, s.DeleteRequested(t.Context(), "b", "uid-1"))
	if left := objects(t, s); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// Attempts for one request are told from those for others, and from each other.
func TestAttempts(t *testing.T) {
	seen := map[string]bool{}
	for _, request := range []string{"", "", "uid-1", "uid-1", "uid-2"} {
		a := newAttempt(request)
		if !attemptForm.MatchString(a) || seen[a] {
			t.Errorf("attempt %s for %q", a, request)
		}
		seen[a] = true
	}
	whose := map[string]bool{}
	for a := range seen {
		whose[a[:8]] = true
	}
	if len(whose) != 4 {
		t.Errorf("%d begin differently: %v", len(whose), seen)
	}
}

// What a store refuses to delete, or to list, is not taken for deleted.
func TestDeletionThatIsRefused(t *testing.T) {
	m := backup(t, NewStore(newBucket(t), Keys{}))
	left := strings.Replace(m.baseKey(0), attempt, newAttempt("uid-1"), 1)
	for what, tt := range map[string]struct {
		complete       string // who asked for the one that is complete; empty: none is
		refused, wants string
	}{
		"the manifest":               {"uid-1", manifestKey("b"), "deleting " + manifestKey("b")},
		"an object":                  {"", left, "deleting " + left},
		"one of a whole":             {"uid-1", left, "deleting " + left},
		"one beside another's whole": {"uid-2", left, "deleting " + left},
		"the list":                   {"", "", "listing b"},
		"the list of a whole":        {"uid-1", "", "listing b"},
	} {
		m.Request = tt.complete
		manifest, err := m.encode()
		check(t, err)
		s := newS3(t, func(w http.ResponseWriter, r *http.Request) {
			key, prefix := strings.TrimPrefix(r.URL.Path, "/bucket/"), r.URL.Query().Get("prefix")
			switch {
			case r.URL.Query().Has("list-type") && prefix == "b/" && tt.refused == "":
				refuse(w, http.StatusForbidden, "AccessDenied")
			case r.URL.Query().Has("list-type"):
				fmt.Fprint(w, "<ListBucketResult>")
				for _, listed := range []string{left, manifestKey("b")} {
					if strings.HasPrefix(listed, prefix) && (tt.complete != "" || listed == left) {
						fmt.Fprintf(w, "<Contents><Key>%s</Key><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>", listed)
					}
				}
				fmt.Fprint(w, "</ListBucketResult>")
			case r.Method == http.MethodDelete && key == tt.refused:
				refuse(w, http.StatusForbidden, "AccessDenied")
			case r.Method == http.MethodDelete:
				w.WriteHeader(http.StatusNoContent)
			case key == manifestKey("b") && tt.complete != "":
				_, _ = w.Write(manifest)
			case key == left:
			default:
				refuse(w, http.StatusNotFound, "NoSuchKey")
			}
		})
		err = s.DeleteRequested(t.Context(), "b", "uid-1")
		if err == nil || errors.Is(err, ErrAnother) || !strings.Contains(err.Error(), tt.wants) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What a process that was killed was writing into a directory goes with the attempt that it was of, and with no other.
func TestUnfinishedFilesGo(t *testing.T) {
	dir := t.TempDir()
	bucket, err := directory.Open(dir, "")
	check(t, err)
	t.Cleanup(func() { check(t, bucket.Close()) })
	s := NewStore(bucket, Keys{})
	own := hex.EncodeToString(ofRequest("own")) + "01234567"
	files := []string{own + "/shard-0/.0123456789abcdef.tmp", own + "/.0123456789abcdef.tmp", attempt + "/shard-0/.0123456789abcdef.tmp",
		".0123456789abcdef.tmp", "records/.0123456789abcdef.tmp"}
	for _, file := range files {
		check(t, os.MkdirAll(filepath.Join(dir, "b", filepath.Dir(file)), 0o700))
		check(t, os.WriteFile(filepath.Join(dir, "b", file), nil, 0o600))
	}
	left := func() (left []string) {
		for _, file := range files {
			if _, err := os.Stat(filepath.Join(dir, "b", file)); err == nil {
				left = append(left, file)
			}
		}
		return left
	}
	check(t, s.DeleteRequested(t.Context(), "b", "own"))
	if is := left(); !slices.Equal(is, files[2:]) {
		t.Errorf("%q are left", is)
	}
	check(t, s.Delete(t.Context(), "b"))
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("there is %v, %v", entries, err)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBucket(t *testing.T, dir, folder string) *blob.Bucket {
	t.Helper()
	b, err := Open(dir, folder)
	check(t, err)
	t.Cleanup(func() { check(t, b.Close()) })
	return b
}

func write(t *testing.T, b *blob.Bucket, key string) {
	t.Helper()
	check(t, b.WriteAll(t.Context(), key, []byte(key), nil))
}

// list is what a list has, in its order, asked for in pages.
func list(t *testing.T, b *blob.Bucket, o blob.ListOptions, page int) (keys []string) {
	t.Helper()
	for token := blob.FirstPageToken; token != nil; {
		objects, next, err := b.ListPage(t.Context(), token, page, &o)
		check(t, err)
		for _, object := range objects {
			keys = append(keys, object.Key)
			if object.IsDir != strings.HasSuffix(object.Key, "/") {
				t.Errorf("%s is a folder: %t", object.Key, object.IsDir)
			}
		}
		token = next
	}
	return keys
}

// Lists are in the order of keys, by which the newest record of an archive is found, however they are asked for.
func TestLists(t *testing.T) {
	b := newBucket(t, t.TempDir(), "shop/cache/")
	if keys := list(t, b, blob.ListOptions{}, 10); len(keys) > 0 {
		t.Errorf("before anything is written there is %q", keys)
	}
	keys := []string{"a-b/x", "a.b", "a/b", "a/c/d", "a/c/e", "a0", "b/" + strings.Repeat("long", 50)}
	for _, key := range slices.Backward(keys) {
		write(t, b, key)
	}
	for _, tt := range []struct {
		o    blob.ListOptions
		want []string
	}{
		{blob.ListOptions{}, keys},
		{blob.ListOptions{Delimiter: "/"}, []string{"a-b/", "a.b", "a/", "a0", "b/"}},
		{blob.ListOptions{Prefix: "a/"}, keys[2:5]},
		{blob.ListOptions{Prefix: "a/c"}, keys[3:5]},
		{blob.ListOptions{Prefix: "a/", Delimiter: "/"}, []string{"a/b", "a/c/"}},
		{blob.ListOptions{Prefix: "a"}, keys[:6]},
		{blob.ListOptions{Prefix: "a/b"}, keys[2:3]},
		{blob.ListOptions{Prefix: "../cache/a"}, nil},
		{blob.ListOptions{Prefix: "none/a"}, nil},
	} {
		for page := 1; page <= 8; page += 2 {
			if got := list(t, b, tt.o, page); !slices.Equal(got, tt.want) {
				t.Errorf("%+v in pages of %d: %q, want %q", tt.o, page, got, tt.want)
			}
		}
	}
	for _, key := range keys {
		check(t, b.Delete(t.Context(), key))
	}
	if left := list(t, b, blob.ListOptions{Delimiter: "/"}, 10); len(left) > 0 {
		t.Errorf("folders without an object are left: %q", left)
	}
}

// One of those who write an object that is to be there once writes it, whichever way the file system offers.
func TestWrittenOnce(t *testing.T) {
	for name, link := range map[string]func(*os.Root, string, string) error{
		"with links": (*os.Root).Link, "without": func(*os.Root, string, string) error { return syscall.EPERM },
	} {
		t.Run(name, func(t *testing.T) {
			d, err := open(t.TempDir(), "a")
			check(t, err)
			d.link = link
			b := blob.NewBucket(d)
			t.Cleanup(func() { check(t, b.Close()) })
			const writers = 8
			var done sync.WaitGroup
			errs := make([]error, writers)
			for i := range errs {
				done.Go(func() {
					errs[i] = b.WriteAll(t.Context(), "manifest", []byte(fmt.Sprint(i)), &blob.WriterOptions{IfNotExist: true})
				})
			}
			done.Wait()
			is, err := b.ReadAll(t.Context(), "manifest")
			check(t, err)
			for i, err := range errs {
				if won := string(is) == fmt.Sprint(i); won != (err == nil) || err != nil && gcerrors.Code(err) != gcerrors.FailedPrecondition {
					t.Errorf("writer %d of %s: %v", i, is, err)
				}
			}
			if all := list(t, b, blob.ListOptions{BeforeList: unfinished}, 10); len(all) != 1 {
				t.Errorf("there are %q", all)
			}
		})
	}
}

// unfinished has everything listed.
func unfinished(as func(any) bool) error {
	var listing *Listing
	if !as(&listing) {
		return errors.New("it cannot be asked for")
	}
	listing.Unfinished = true
	return nil
}

// What is being written is listed to who asks for it alone, and is on the file system of the directory; what is given up is not there.
func TestUnfinished(t *testing.T) {
	b := newBucket(t, t.TempDir(), "")
	t.Setenv("TMPDIR", "/none")
	ctx, giveUp := context.WithCancel(t.Context())
	w, err := b.NewWriter(ctx, "backup/base", &blob.WriterOptions{ContentType: "x"})
	check(t, err)
	_, err = w.Write([]byte("half"))
	check(t, err)
	if keys := list(t, b, blob.ListOptions{}, 10); len(keys) > 0 {
		t.Errorf("there is %q", keys)
	}
	keys := list(t, b, blob.ListOptions{Prefix: "backup/", BeforeList: unfinished}, 10)
	if len(keys) != 1 || !unfinishedForm.MatchString(filepath.Base(keys[0])) {
		t.Errorf("unfinished are %q", keys)
	}
	giveUp()
	if err := w.Close(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if keys := list(t, b, blob.ListOptions{BeforeList: unfinished}, 10); len(keys) > 0 {
		t.Errorf("%q is left", keys)
	}
}

// Whoever writes to the directory as well leads nobody out of it, and nobody astray in it, and keeps nobody waiting.
func TestHostileDirectories(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	check(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	in := filepath.Join(dir, "shop", "cache")
	check(t, os.MkdirAll(filepath.Join(in, "real"), 0o700))
	check(t, os.WriteFile(filepath.Join(in, "real", "object"), []byte("x"), 0o600))
	check(t, os.WriteFile(filepath.Join(dir, "shop", "other"), []byte("other"), 0o600))
	for name, to := range map[string]string{"out": outside, "up": "..", "file": filepath.Join(outside, "secret"), "beside": "../other",
		"round": "real", "loop": "loop", "real/link": "object"} {
		check(t, os.Symlink(to, filepath.Join(in, name)))
	}
	check(t, syscall.Mkfifo(filepath.Join(in, "pipe"), 0o600))
	check(t, syscall.Mkfifo(filepath.Join(in, "real", "pipe"), 0o600))
	check(t, os.WriteFile(filepath.Join(in, strings.Repeat("n", 255)), nil, 0o600))
	_ = os.WriteFile(filepath.Join(in, "\xff"), nil, 0o600) // which not every file system takes
	deep := filepath.Join(in, "deep", strings.Repeat("d/", 3*deepest))
	check(t, os.MkdirAll(deep, 0o700))
	check(t, os.WriteFile(filepath.Join(deep, "object"), nil, 0o600))

	b := newBucket(t, dir, "shop/cache")
	if keys := list(t, b, blob.ListOptions{}, 10); !slices.Equal(keys, []string{strings.Repeat("n", 255), "real/object"}) {
		t.Errorf("there is %q", keys)
	}
	replaced := []string{"file", "beside", "loop", "real/link", "pipe", "real/pipe"} // as any file is: what they lead to stays
	for _, key := range []string{"out/secret", "up/other", "file", "beside", "round/object", "loop",
		"loop/x", "real/link", "pipe", "real/pipe",

		"../other", "/etc/passwd", "real/../real/object", "real//object", ".", "real", strings.Repeat("m", 300)} {
		if data, err := b.ReadAll(t.Context(), key); err == nil {
			t.Errorf("%s was read: %q", key, data)
		}
		if err := b.Delete(t.Context(), key); err == nil {
			t.Errorf("%s was deleted", key)
		}
		for _, once := range []bool{false, true} {
			err := b.WriteAll(t.Context(), key, []byte("mine"), &blob.WriterOptions{IfNotExist: once})
			if takes := slices.Contains(replaced, key) && !once; (err == nil) != takes {
				t.Errorf("%s was written, once %t: %v", key, once, err)
			}
			if err == nil { // the link itself made room
				check(t, b.Delete(t.Context(), key))
				check(t, os.Symlink("..", filepath.Join(in, key)))
			}
		}
	}
	for path, want := range map[string]string{filepath.Join(outside, "secret"): "secret", filepath.Join(dir, "shop", "other"): "other",
		filepath.Join(in, "real", "object"): "x"} {
		if is, err := os.ReadFile(path); string(is) != want || err != nil {
			t.Errorf("%s is %q, %v", path, is, err)
		}
	}
}

// A folder that is reached by a link is another one than was meant, and is not written to.
func TestFoldersThatAreLinks(t *testing.T) {
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, "theirs"), 0o700))
	check(t, os.Symlink("theirs", filepath.Join(dir, "shop")))
	b := newBucket(t, dir, "shop/cache")
	if err := b.WriteAll(t.Context(), "object", nil, nil); err == nil {
		t.Error("it was written")
	}
	if made, err := os.ReadDir(filepath.Join(dir, "theirs")); len(made) > 0 || err != nil {
		t.Errorf("there is %v, %v", made, err)
	}
	for _, folder := range []string{"..", "/etc", "a/../../b", "a//b", "."} {
		if b, err := Open(dir, folder); err == nil {
			t.Errorf("%s was opened", folder)
			check(t, b.Close())
		}
	}
	if _, err := Open(filepath.Join(dir, "none"), ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
}

// A directory that may only be read is read.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, newBucket(t, dir, "a"), "object")
	b := newBucket(t, dir, "a")
	in, err := b.NewRangeReader(t.Context(), "object", 2, 3, nil)
	check(t, err)
	part, err := io.ReadAll(in)
	if string(part) != "jec" || errors.Join(err, in.Close()) != nil {
		t.Errorf("a part is %q, %v", part, err)
	}
	if _, err := b.ReadAll(t.Context(), "none"); gcerrors.Code(err) != gcerrors.NotFound {
		t.Errorf("what is not there: %v", err)
	}
	if _, err := newBucket(t, dir, "none").ReadAll(t.Context(), "none"); gcerrors.Code(err) != gcerrors.NotFound {
		t.Errorf("what is in a folder that is not there: %v", err)
	}
	if entries, err := os.ReadDir(dir); len(entries) != 1 || err != nil {
		t.Errorf("folders were made: %v, %v", entries, err)
	}
}

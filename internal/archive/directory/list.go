// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"gocloud.dev/blob/driver"
)

// Listing is what blob.ListOptions.BeforeList can set: with Unfinished, files that are being written, or were when a process was killed,
// are listed, too.
type Listing struct{ Unfinished bool }

// deepest is how many folders lie in each other, at most, that are looked into. No object of a backup lies as deep.
const deepest = 16

// pageSize is how much is listed at once, unless somebody asks for less.
const pageSize = 10000

// walk lists a page of what lies in a folder, in the order of keys.
type walk struct {
	root          *os.Root
	prefix, after string
	flat          bool // folders are looked into, in place of listed
	unfinished    bool
	most          int
	page          driver.ListPage
}

// ListPaged implements driver.Bucket.
func (b *bucket) ListPaged(ctx context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	listing := &Listing{}
	if o.BeforeList != nil {
		err := o.BeforeList(func(as any) bool {
			p, is := as.(**Listing)
			if is {
				*p = listing
			}
			return is
		})
		if err != nil {
			return nil, err
		}
	}
	if o.Delimiter != "" && o.Delimiter != "/" {
		return nil, errors.ErrUnsupported
	}
	root, err := b.enter(false)
	if errors.Is(err, fs.ErrNotExist) {
		return &driver.ListPage{}, nil
	}
	if err != nil {
		return nil, err
	}
	w := walk{root: root, prefix: o.Prefix, after: string(o.PageToken), flat: o.Delimiter == "", unfinished: listing.Unfinished,
		most: cmp.Or(o.PageSize, pageSize)}
	dir := strings.TrimSuffix(o.Prefix[:strings.LastIndex(o.Prefix, "/")+1], "/")
	if dir == "" {
		err = w.folder(ctx, "")
	} else if local(dir) {
		if err = plain(root, dir, false); err == nil {
			err = w.folder(ctx, dir+"/")
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &w.page, nil
}

// folder lists what a folder has, whose path ends with a slash, until the page is full.
func (w *walk) folder(ctx context.Context, dir string) error {
	names, err := w.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		key, folder := dir+name, strings.HasSuffix(name, "/")
		within := folder && w.flat && strings.HasPrefix(w.after, key) // the last page ended in it
		over := key <= w.after && !within
		switch {
		case w.page.NextPageToken != nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case over, !strings.HasPrefix(key, w.prefix):
		case folder && !w.flat:
			w.add(&driver.ListObject{Key: key, IsDir: true})
		case folder && strings.Count(key, "/") <= deepest:
			if err := w.folder(ctx, key); err != nil && !errors.Is(err, fs.ErrNotExist) { // somebody may have removed it
				return err
			}
		case !folder:
			info, err := w.root.Lstat(key)
			if err == nil && info.Mode().IsRegular() {
				w.add(&driver.ListObject{Key: key, ModTime: info.ModTime(), Size: info.Size()})
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (w *walk) add(object *driver.ListObject) {
	w.page.Objects = append(w.page.Objects, object)
	if len(w.page.Objects) == w.most {
		w.page.NextPageToken = []byte(object.Key)
	}
}

// names are those of the files and folders in a folder, the latter with a slash, which counts in the order of keys.
func (w *walk) names(dir string) ([]string, error) {
	file, err := w.root.OpenFile(cmp.Or(strings.TrimSuffix(dir, "/"), "."), os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	entries, err := file.ReadDir(-1)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		switch name := entry.Name(); {
		case !utf8.ValidString(name), unfinishedForm.MatchString(name) && !w.unfinished:
		case entry.IsDir():
			names = append(names, name+"/")
		case entry.Type().IsRegular():
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

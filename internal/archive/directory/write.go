// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"syscall"

	"gocloud.dev/blob/driver"
)

// unfinishedForm is the name of a file that is being written. It lies beside the object that it is to become: another file system could be
// anywhere else.
var unfinishedForm = regexp.MustCompile(`^\.[0-9a-f]{16}\.tmp$`)

func newUnfinished(key string) string {
	const length = 8
	name := make([]byte, length)
	rand.Read(name)
	return path.Join(path.Dir(key), "."+hex.EncodeToString(name)+".tmp")
}

// writer is an object that is being written.
type writer struct {
	*os.File
	ctx        context.Context // the driver's contract: what is cancelled leaves nothing
	root       *os.Root
	name, key  string
	ifNotExist bool
	link       func(root *os.Root, from, to string) error
}

// NewTypedWriter implements driver.Bucket.
func (b *bucket) NewTypedWriter(ctx context.Context, key, _ string, o *driver.WriterOptions) (driver.Writer, error) {
	if !local(key) {
		return nil, fmt.Errorf("%.100q is no path of a file", key)
	}
	root, err := b.enter(true)
	if err != nil {
		return nil, err
	}
	name := newUnfinished(key)
	file, err := create(root, name)
	if err != nil {
		return nil, err
	}
	if o.BeforeWrite != nil {
		if err := o.BeforeWrite(func(any) bool { return false }); err != nil {
			return nil, errors.Join(err, file.Close(), root.Remove(name))
		}
	}
	return &writer{File: file, ctx: ctx, root: root, name: name, key: key, ifNotExist: o.IfNotExist, link: b.link}, nil
}

// create makes a file and the folders that it is in. Somebody may remove them at once, since nothing is in them yet.
func create(root *os.Root, name string) (file *os.File, err error) {
	const attempts = 5
	dir := path.Dir(name)
	for range attempts {
		if err = nil; dir != "." {
			err = plain(root, dir, true)
		}
		if err == nil {
			file, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return file, err
}

// Close gives the object its name, once all of it is on the disk.
func (w *writer) Close() error {
	err := w.ctx.Err()
	if err == nil {
		err = w.Sync()
	}
	if closed := w.File.Close(); err == nil {
		err = closed
	}
	if err == nil && w.ifNotExist {
		err = w.claim()
	} else if err == nil {
		err = w.root.Rename(w.name, w.key)
	}
	if left := w.root.Remove(w.name); err == nil && !errors.Is(left, fs.ErrNotExist) {
		err = left
	}
	if err == nil {
		err = persist(w.root, path.Dir(w.key))
	}
	return err
}

// claim gives the object its name if nothing has it: by a link, which one of two who want it gets; or where there are none, by a file that
// is made under that name, and of which a crash could leave a part, which is no object that anybody takes for one.
func (w *writer) claim() error {
	err := w.link(w.root, w.name, w.key)
	if err == nil || !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EMLINK) {
		return err
	}
	from, err := w.root.Open(w.name)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was read
	to, err := w.root.OpenFile(w.key, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Sync()
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return errors.Join(err, w.root.Remove(w.key))
	}
	return nil
}

// persist has the names in a folder be on the disk. File systems that cannot say so do it at once, or never.
func persist(root *os.Root, dir string) error {
	folder, err := root.Open(dir)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

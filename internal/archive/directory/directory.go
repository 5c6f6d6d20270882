// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directory is a store in a directory, such as that of a volume that others write to as well. Nothing outside of it is read or
// written, whatever lies there; links, pipes and devices are no objects.
package directory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// What is written may be read by the group: who restores is another user than who takes backups.
const fileMode, folderMode = 0o640, 0o750

// bucket is a folder of a directory.
type bucket struct {
	folder string
	// link gives a file a second name, unless something has it.
	link func(root *os.Root, from, to string) error

	mu     sync.Mutex
	root   *os.Root // of the directory, or of the folder once that was entered
	inside bool
}

// Open opens a folder of a directory, which exists. The folder is made when something is written.
func Open(dir, folder string) (*blob.Bucket, error) {
	b, err := open(dir, folder)
	if err != nil {
		return nil, err
	}
	return blob.NewBucket(b), nil
}

func open(dir, folder string) (*bucket, error) {
	folder = strings.TrimSuffix(folder, "/")
	if folder != "" && !local(folder) {
		return nil, fmt.Errorf("%.100q is no path of a folder below a directory", folder)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &bucket{folder: folder, link: (*os.Root).Link, root: root, inside: folder == ""}, nil
}

// local reports whether a key is the path of something below a directory, written in one way only.
func local(key string) bool { return key != "." && filepath.IsLocal(key) && path.Clean(key) == key }

// enter is the folder. Unless it is to be written to, one that is not there is fs.ErrNotExist.
func (b *bucket) enter(write bool) (*os.Root, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inside {
		return b.root, nil
	}
	if err := plain(b.root, b.folder, write); err != nil {
		return nil, err
	}
	inside, err := b.root.OpenRoot(b.folder)
	if err != nil {
		return nil, err
	}
	err = b.root.Close()
	b.root, b.inside = inside, true
	return inside, err
}

// plain says why a path is not one of directories alone: what a link leads to is not what was meant. With write, those that are not there
// are made.
func plain(root *os.Root, dir string, write bool) error {
	for i := range len(dir) + 1 {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		if write {
			if err := root.Mkdir(dir[:i], folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		info, err := root.Lstat(dir[:i])
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory", dir[:i])
		}
	}
	return nil
}

// find is what is known of an object.
func find(root *os.Root, key string) (fs.FileInfo, error) {
	if !local(key) {
		return nil, fmt.Errorf("%.100q is no path of a file", key)
	}
	if dir := path.Dir(key); dir != "." {
		if err := plain(root, dir, false); err != nil {
			return nil, err
		}
	}
	info, err := root.Lstat(key)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", key)
	}
	return info, err
}

func (b *bucket) find(key string) (*os.Root, fs.FileInfo, error) {
	root, err := b.enter(false)
	if err != nil {
		return nil, nil, err
	}
	info, err := find(root, key)
	return root, info, err
}

// ErrorCode implements driver.Bucket.
func (b *bucket) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gcerrors.NotFound
	case errors.Is(err, fs.ErrExist):
		return gcerrors.FailedPrecondition
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return gcerrors.PermissionDenied
	case errors.Is(err, errors.ErrUnsupported):
		return gcerrors.Unimplemented
	}
	return gcerrors.Unknown
}

// As implements driver.Bucket.
func (b *bucket) As(any) bool { return false }

// ErrorAs implements driver.Bucket.
func (b *bucket) ErrorAs(error, any) bool { return false }

// Attributes implements driver.Bucket.
func (b *bucket) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	_, info, err := b.find(key)
	if err != nil {
		return nil, err
	}
	return &driver.Attributes{ContentType: contentType, ModTime: info.ModTime(), Size: info.Size()}, nil
}

// contentType is said of every object: a directory has no place for what it is.
const contentType = "application/octet-stream"

// reader reads a part of a file.
type reader struct {
	io.Reader
	io.Closer
	attributes driver.ReaderAttributes
}

func (r *reader) Attributes() *driver.ReaderAttributes { return &r.attributes }
func (r *reader) As(any) bool                          { return false }

// NewRangeReader implements driver.Bucket. Whatever takes the place of a file meanwhile is not waited for, as a pipe would be.
func (b *bucket) NewRangeReader(_ context.Context, key string, offset, length int64, o *driver.ReaderOptions) (driver.Reader, error) {
	root, _, err := b.find(key)
	if err != nil {
		return nil, err
	}
	file, err := root.OpenFile(key, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", key)
	}
	if err == nil && o.BeforeRead != nil {
		err = o.BeforeRead(func(any) bool { return false })
	}
	if err == nil {
		_, err = file.Seek(offset, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	in := io.Reader(file)
	if length >= 0 {
		in = io.LimitReader(file, length)
	}
	return &reader{in, file, driver.ReaderAttributes{ContentType: contentType, ModTime: info.ModTime(), Size: info.Size()}}, nil
}

// Delete implements driver.Bucket. Folders that have nothing any more go, too.
func (b *bucket) Delete(_ context.Context, key string, o *driver.DeleteOptions) error {
	if o.BeforeDelete != nil {
		if err := o.BeforeDelete(func(any) bool { return false }); err != nil {
			return err
		}
	}
	root, _, err := b.find(key)
	if err != nil {
		return err
	}
	if err := root.Remove(key); err != nil {
		return err
	}
	for dir := path.Dir(key); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) { // one that has something is not removed
	}
	return nil
}

// Copy implements driver.Bucket.
func (b *bucket) Copy(ctx context.Context, to, from string, o *driver.CopyOptions) error {
	in, err := b.NewRangeReader(ctx, from, 0, -1, &driver.ReaderOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was read
	ctx, abandon := context.WithCancel(ctx)
	defer abandon()
	out, err := b.NewTypedWriter(ctx, to, contentType, &driver.WriterOptions{BeforeWrite: o.BeforeCopy})
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		abandon() // what was written so far is not kept
		return errors.Join(err, out.Close())
	}
	return out.Close()
}

// SignedURL implements driver.Bucket.
func (b *bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errors.ErrUnsupported
}

// Close implements driver.Bucket.
func (b *bucket) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.root.Close()
}

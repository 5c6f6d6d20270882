// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package support

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"time"
)

// File is one of a bundle.
type File struct {
	Name string
	Text []byte
}

// Write writes the files as a tar archive that is compressed with gzip, all of one time and one folder.
func Write(to io.Writer, folder string, files []File, at time.Time) error {
	compressed := gzip.NewWriter(to)
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: folder + "/" + file.Name, Size: int64(len(file.Text)), Mode: 0o600, ModTime: at}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", file.Name, err)
		}
		if _, err := archive.Write(file.Text); err != nil {
			return fmt.Errorf("write %s: %w", file.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return compressed.Close()
}

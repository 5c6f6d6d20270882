// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Store finds images in the archives (*.tar) of folders; later folders win where
// names are equal. Archives may come and go. The zero value holds no image.
type Store struct {
	Folders []string

	mu       sync.Mutex
	archives map[string]known // by path
}

// known is an archive as it was when its images were listed.
type known struct {
	modified time.Time
	size     int64
	entries  []entry
}

// repository are the images of one repository (a complete name without tag).
type repository struct {
	tags map[string]*archived
	all  []*archived
}

// find is the image of a tag or digest, or nil.
func (r repository) find(reference string) *archived {
	if image := r.tags[reference]; image != nil {
		return image
	}
	for _, image := range r.all {
		if image.digest.String() == reference {
			return image
		}
	}
	return nil
}

// blob is a layer or configuration of any of the images.
func (r repository) blob(digest v1.Hash) (blob, bool) {
	for _, image := range r.all {
		if b, ok := image.blobs[digest]; ok {
			return b, true
		}
	}
	return blob{}, false
}

// Digest is the digest of the image of that name, as pulling gives it.
func (s *Store) Digest(image string) (string, error) {
	full, err := completeName(image)
	if err != nil {
		return "", err
	}
	i := strings.LastIndexByte(full, ':')
	r, err := s.repository(full[:i])
	if err != nil {
		return "", err
	}
	found := r.find(full[i+1:])
	if found == nil {
		return "", fmt.Errorf("no image is named %s; hack/cluster.sh load-image ARCHIVE loads one", full)
	}
	return found.digest.String(), nil
}

// ArchiveDigest is the digest that the first image of an archive will have.
func ArchiveDigest(archive string) (string, error) {
	all, err := entries(archive)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", fmt.Errorf("%s holds no image", archive)
	}
	image, err := all[0].read()
	if err != nil {
		return "", err
	}
	return image.digest.String(), nil
}

// repository reads the images of one repository.
func (s *Store) repository(name string) (repository, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files, err := s.refresh()
	if err != nil {
		return repository{}, err
	}
	r := repository{tags: map[string]*archived{}}
	for _, file := range files {
		for _, e := range s.archives[file].entries {
			tags := tagsIn(name, e.names)
			if len(tags) == 0 {
				continue
			}
			image, err := e.read()
			if err != nil {
				return repository{}, err
			}
			r.all = append(r.all, image)
			for _, tag := range tags {
				r.tags[tag] = image
			}
		}
	}
	return r, nil
}

// tagsIn are the tags of those names that are of the repository.
func tagsIn(repository string, names []string) []string {
	var tags []string
	for _, n := range names {
		if tag, ok := strings.CutPrefix(n, repository+":"); ok {
			tags = append(tags, tag)
		}
	}
	return tags
}

// refresh lists the images of archives that were added or changed, forgets those
// that were removed, and returns the paths of all in the order of the folders.
func (s *Store) refresh() ([]string, error) {
	current := map[string]known{}
	var files []string
	for _, folder := range s.Folders {
		found, err := filepath.Glob(filepath.Join(folder, "*.tar"))
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			info, err := os.Stat(f)
			if errors.Is(err, fs.ErrNotExist) {
				continue // just replaced or removed
			}
			if err != nil {
				return nil, err
			}
			k := s.archives[f]
			if !k.modified.Equal(info.ModTime()) || k.size != info.Size() || k.entries == nil {
				k = known{modified: info.ModTime(), size: info.Size()}
				if k.entries, err = entries(f); err != nil {
					return nil, err
				}
			}
			current[f] = k
			files = append(files, f)
		}
	}
	s.archives = current
	return files, nil
}

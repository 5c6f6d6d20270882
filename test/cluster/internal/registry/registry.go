// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry serves the images in archives to the nodes' containerds, so
// that a pod that always pulls (any image with the tag latest) finds its image
// without a network. It is read-only and knows the part of the distribution
// protocol that pulling takes.
package registry

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Handler serves the images of all archives (*.tar) in folders; later folders win
// where names are equal. Archives may come and go while it serves.
type Handler struct {
	Folders []string

	mu     sync.Mutex
	stamp  string
	images map[string]v1.Image // by "repository:tag" and "repository@digest"
	blobs  map[v1.Hash]blob
}

// blob opens a layer or an image's configuration.
type blob func() (io.ReadCloser, error)

// ServeHTTP answers GET and HEAD of /v2/, manifests and blobs.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "this registry is read-only", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/v2/" {
		return
	}
	h.mu.Lock()
	err := h.refresh()
	images, blobs := h.images, h.blobs
	h.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	if repository, reference, ok := strings.Cut(path, "/manifests/"); ok {
		serveManifest(w, r, images[key(repository, reference)])
		return
	}
	if _, digest, ok := strings.Cut(path, "/blobs/"); ok {
		hash, err := v1.NewHash(digest)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		serveBlob(w, r, hash, blobs)
		return
	}
	http.NotFound(w, r)
}

// key is how images are looked up; reference is a tag or a digest.
func key(repository, reference string) string {
	if strings.Contains(reference, ":") {
		return repository + "@" + reference
	}
	return repository + ":" + reference
}

func serveManifest(w http.ResponseWriter, r *http.Request, image v1.Image) {
	if image == nil {
		http.NotFound(w, r)
		return
	}
	manifest, err1 := image.RawManifest()
	digest, err2 := image.Digest()
	mediaType, err3 := image.MediaType()
	if err := errors.Join(err1, err2, err3); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", string(mediaType))
	w.Header().Set("Docker-Content-Digest", digest.String())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(manifest))
}

func serveBlob(w http.ResponseWriter, r *http.Request, hash v1.Hash, blobs map[v1.Hash]blob) {
	open := blobs[hash]
	if open == nil {
		http.NotFound(w, r)
		return
	}
	content, err := open()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer content.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", hash.String())
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, content) // an error is the client's going away
	}
}

// refresh reads the archives again if any was added, changed or removed.
func (h *Handler) refresh() error {
	var files []string
	var stamp strings.Builder
	for _, folder := range h.Folders {
		found, err := filepath.Glob(filepath.Join(folder, "*.tar"))
		if err != nil {
			return err
		}
		for _, f := range found {
			info, err := os.Stat(f)
			if err != nil {
				return err
			}
			files = append(files, f)
			stamp.WriteString(f + info.ModTime().String())
		}
	}
	if stamp.String() == h.stamp {
		return nil
	}
	h.images, h.blobs = map[string]v1.Image{}, map[v1.Hash]blob{}
	for _, f := range files {
		if err := h.add(f); err != nil {
			return err
		}
	}
	h.stamp = stamp.String()
	return nil
}

// add indexes the images of one archive.
func (h *Handler) add(archive string) error {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return err
	}
	for _, descriptor := range manifest {
		for _, full := range descriptor.RepoTags {
			tag, err := name.NewTag(full)
			if err != nil {
				return err
			}
			image, err := tarball.ImageFromPath(archive, &tag)
			if err != nil {
				return err
			}
			digest, err := image.Digest()
			if err != nil {
				return err
			}
			h.images[tag.RepositoryStr()+":"+tag.TagStr()] = image
			h.images[tag.RepositoryStr()+"@"+digest.String()] = image
			if err := h.addBlobs(image); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *Handler) addBlobs(image v1.Image) error {
	config, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	hash, err := image.ConfigName()
	if err != nil {
		return err
	}
	h.blobs[hash] = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(config)), nil }
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		digest, err := layer.Digest()
		if err != nil {
			return err
		}
		h.blobs[digest] = layer.Compressed
	}
	return nil
}

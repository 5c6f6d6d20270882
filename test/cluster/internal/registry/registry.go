// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry serves the images in archives. To the nodes' containerds it
// stands in for every registry, so that a pod that always pulls (any image with the
// tag latest), or names an image by its digest, finds it without a network. To the
// machine's programs and to pods it is a registry of its own, whose repositories are
// the images' complete names: ADDRESS/docker.io/library/redis. It is read-only and
// knows the part of the distribution protocol that pulling takes.
package registry

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Handler serves the images of a store.
type Handler struct {
	Store *Store
}

// ServeHTTP answers GET and HEAD of /v2/, manifests and blobs. A mirror's client
// tells in the parameter ns which registry it means.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "this registry is read-only; hack/cluster.sh load-image adds an image", http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/v2/" {
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v2/")
	name, reference, manifest := strings.Cut(path, "/manifests/")
	if !manifest {
		var ok bool
		if name, reference, ok = strings.Cut(path, "/blobs/"); !ok {
			http.NotFound(w, r)
			return
		}
	}
	for _, candidate := range candidates(r.URL.Query().Get("ns"), name) {
		repository, err := h.Store.repository(candidate)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		served := false
		if manifest {
			served = serveManifest(w, r, repository.find(reference))
		} else {
			served = serveBlob(w, r, repository, reference)
		}
		if served {
			return
		}
	}
	http.NotFound(w, r)
}

// candidates are the repositories that a client can mean: of the registry that it
// takes this one for, or, if that is this one itself, by complete name.
func candidates(registry, name string) []string {
	if registry == "" {
		return []string{name}
	}
	return []string{registry + "/" + name, name}
}

func serveManifest(w http.ResponseWriter, r *http.Request, image *archived) bool {
	if image == nil {
		return false
	}
	w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
	w.Header().Set("Docker-Content-Digest", image.digest.String())
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(image.manifest))
	return true
}

func serveBlob(w http.ResponseWriter, r *http.Request, repository repository, digest string) bool {
	hash, err := v1.NewHash(digest)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return true
	}
	found, ok := repository.blob(hash)
	if !ok {
		return false
	}
	content, closer, err := found.open()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return true
	}
	defer closer.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Docker-Content-Digest", hash.String())
	http.ServeContent(w, r, "", time.Time{}, content)
	return true
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// archived is one image of an archive. Its manifest names configuration and layers
// exactly as they are in the archive, compressed or not: the digest depends on the
// archive alone, and a node that imported the archive already has every layer of an
// image that it pulls by that digest.
type archived struct {
	digest   v1.Hash
	manifest []byte
	blobs    map[v1.Hash]blob
}

// blob is a part of an archive.
type blob struct {
	archive      string
	offset, size int64
}

// open returns the blob's content and what closes it.
func (b blob) open() (*io.SectionReader, io.Closer, error) {
	f, err := os.Open(b.archive)
	if err != nil {
		return nil, nil, err
	}
	return io.NewSectionReader(f, b.offset, b.size), f, nil
}

// entry is an image of an archive that may not have been read yet: reading takes
// the digests of all its layers.
type entry struct {
	names []string // complete ones, see completeName
	read  func() (*archived, error)
}

// entries lists the images of an archive.
func entries(archive string) ([]entry, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w; an image archive is what docker save or buildah push docker-archive: write", archive, err)
	}
	var all []entry
	for _, d := range manifest {
		e := entry{read: sync.OnceValues(func() (*archived, error) { return readImage(archive, d) })}
		for _, tag := range d.RepoTags {
			full, err := completeName(tag)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", archive, err)
			}
			e.names = append(e.names, full)
		}
		all = append(all, e)
	}
	return all, nil
}

// completeName is the name of an image with its registry and tag, as containerd
// writes it: redis is docker.io/library/redis:latest.
func completeName(image string) (string, error) {
	tag, err := name.NewTag(image)
	if err != nil {
		return "", err
	}
	host := tag.RegistryStr()
	if host == name.DefaultRegistry {
		host = "docker.io"
	}
	return host + "/" + tag.RepositoryStr() + ":" + tag.TagStr(), nil
}

func readImage(archive string, d tarball.Descriptor) (*archived, error) {
	files, err := index(archive)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	image := &archived{blobs: map[v1.Hash]blob{}}
	describe := func(file string, mediaType func([]byte) types.MediaType) (v1.Descriptor, error) {
		b, ok := files[path.Clean(file)]
		if !ok {
			return v1.Descriptor{}, fmt.Errorf("%s holds no %s, which its manifest names", archive, file)
		}
		content, closer, err := b.open()
		if err != nil {
			return v1.Descriptor{}, err
		}
		defer closer.Close()
		start := make([]byte, 2)
		if _, err := content.ReadAt(start, 0); err != nil && !errors.Is(err, io.EOF) {
			return v1.Descriptor{}, err
		}
		hash, size, err := v1.SHA256(content)
		if err != nil {
			return v1.Descriptor{}, err
		}
		image.blobs[hash] = b
		return v1.Descriptor{MediaType: mediaType(start), Size: size, Digest: hash}, nil
	}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Layers: []v1.Descriptor{}}
	if manifest.Config, err = describe(d.Config, func([]byte) types.MediaType { return types.OCIConfigJSON }); err != nil {
		return nil, err
	}
	for _, file := range d.Layers {
		layer, err := describe(file, layerType)
		if err != nil {
			return nil, err
		}
		manifest.Layers = append(manifest.Layers, layer)
	}
	if image.manifest, err = json.Marshal(manifest); err != nil {
		return nil, err
	}
	image.digest = v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sha256.Sum256(image.manifest))}
	return image, nil
}

// layerType tells by the first two bytes whether a layer is compressed.
func layerType(start []byte) types.MediaType {
	if bytes.Equal(start, []byte{0x1f, 0x8b}) {
		return types.OCILayer
	}
	return types.OCIUncompressedLayer
}

// index finds the files of a tar archive. Older archives name a layer that several
// images share by symbolic links.
func index(archive string) (map[string]blob, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	files, links := map[string]blob{}, map[string]string{}
	for r := tar.NewReader(f); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		at := path.Clean(header.Name)
		switch header.Typeflag {
		case tar.TypeReg:
			// The reader does not read ahead: the content starts where the file is now.
			offset, err := f.Seek(0, io.SeekCurrent)
			if err != nil {
				return nil, err
			}
			files[at] = blob{archive: archive, offset: offset, size: header.Size}
		case tar.TypeSymlink:
			links[at] = path.Join(path.Dir(at), header.Linkname)
		case tar.TypeLink:
			links[at] = path.Clean(header.Linkname)
		}
	}
	for at, target := range links {
		if b, ok := files[target]; ok {
			files[at] = b
		}
	}
	return files, nil
}

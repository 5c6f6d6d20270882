// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func write(t *testing.T, folder, full string) v1.Image {
	t.Helper()
	image, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(full)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(filepath.Join(folder, tag.TagStr()+".tar"), tag, image); err != nil {
		t.Fatal(err)
	}
	return image
}

// serve starts a registry and returns what pulls an image from it.
func serve(t *testing.T, folders ...string) (host string, pull func(reference string) (v1.Image, error)) {
	t.Helper()
	server := httptest.NewServer(Handler{Store: &Store{Folders: folders}})
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	return host, func(reference string) (v1.Image, error) {
		ref, err := name.ParseReference(host + "/" + reference)
		if err != nil {
			t.Fatal(err)
		}
		return remote.Image(ref)
	}
}

func TestImagesOfArchivesCanBePulled(t *testing.T) {
	built, loaded := t.TempDir(), t.TempDir()
	write(t, built, "docker.io/library/redis:7.0.15")
	_, pull := serve(t, built, loaded)

	image, err := pull("docker.io/library/redis:7.0.15")
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil { // reads all and compares digests
		t.Error(err)
	}
	for _, absent := range []string{"docker.io/library/redis:8", "quay.io/library/redis:7.0.15"} {
		if _, err := pull(absent); err == nil {
			t.Errorf("%s is not there and was served", absent)
		}
	}

	// An archive that comes later, with the name of one that is there already.
	newer := write(t, loaded, "docker.io/library/redis:7.0.15")
	image, err = pull("docker.io/library/redis:7.0.15")
	if err != nil {
		t.Fatal(err)
	}
	want, err := newer.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := image.ConfigName(); err != nil || got != want {
		t.Errorf("got %s, %v; want the loaded image %s", got, err, want)
	}

	if err := os.Remove(filepath.Join(loaded, "7.0.15.tar")); err != nil {
		t.Fatal(err)
	}
	if image, err = pull("docker.io/library/redis:7.0.15"); err != nil {
		t.Fatal(err)
	}
	if got, err := image.ConfigName(); err != nil || got == want {
		t.Errorf("got %s, %v; that image was removed", got, err)
	}
}

func TestAnImageIsPulledByTheDigestThatItsNameAndItsArchiveGive(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "middleware.hc.cn/operator:0.1.0")
	_, pull := serve(t, folder)
	store := Store{Folders: []string{folder}}
	digest, err := store.Digest("middleware.hc.cn/operator:0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ArchiveDigest(filepath.Join(folder, "0.1.0.tar")); err != nil || got != digest {
		t.Errorf("the archive's digest is %s, %v; the name's is %s", got, err, digest)
	}
	image, err := pull("middleware.hc.cn/operator@" + digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Error(err)
	}
	if _, err := store.Digest("middleware.hc.cn/operator:0.2.0"); err == nil || !strings.Contains(err.Error(), "load-image") {
		t.Errorf("of an image that is not there: %v", err)
	}
}

// A node asks the mirror for library/redis of docker.io; for an image that was named
// by the registry's own address it asks by complete name.
func TestANodeTakesItForAnyRegistry(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "redis:7")
	write(t, folder, "middleware.hc.cn/bundle:v1")
	host, _ := serve(t, folder)
	for path, want := range map[string]int{
		"library/redis/manifests/7?ns=docker.io":                         http.StatusOK,
		"bundle/manifests/v1?ns=middleware.hc.cn":                        http.StatusOK,
		"middleware.hc.cn/bundle/manifests/v1?ns=198.51.100.2:5443":      http.StatusOK,
		"bundle/manifests/v1?ns=docker.io":                               http.StatusNotFound,
		"library/redis/manifests/7?ns=quay.io":                           http.StatusNotFound,
		"library/redis/blobs/sha256:" + strings.Repeat("0", 64):          http.StatusNotFound,
		"docker.io/library/redis/blobs/sha256:" + strings.Repeat("0", 9): http.StatusBadRequest,
		"library/redis/tags/list":                                        http.StatusNotFound,
	} {
		response, err := http.Get("http://" + host + "/v2/" + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: got %s, want %d", path, response.Status, want)
		}
	}
}

// Layers are served as the archive holds them. buildah writes them uncompressed, and
// docker, once, with links for those that images share.
func TestUncompressedAndLinkedLayers(t *testing.T) {
	folder := t.TempDir()
	layer := []byte("the layer, not compressed")
	manifest, err := json.Marshal(tarball.Manifest{{
		Config: "config.json", Layers: []string{"a/layer.tar"}, RepoTags: []string{"middleware.hc.cn/operator:dev"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range []struct {
		header  tar.Header
		content []byte
	}{
		{tar.Header{Name: "b/layer.tar", Typeflag: tar.TypeReg}, layer},
		{tar.Header{Name: "a/layer.tar", Typeflag: tar.TypeSymlink, Linkname: "../b/layer.tar"}, nil},
		{tar.Header{Name: "config.json", Typeflag: tar.TypeReg}, []byte(`{"architecture":"amd64","os":"linux"}`)},
		{tar.Header{Name: "manifest.json", Typeflag: tar.TypeReg}, manifest},
	} {
		f.header.Size, f.header.Mode = int64(len(f.content)), 0o644
		if err := w.WriteHeader(&f.header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "operator.tar"), archive.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, pull := serve(t, folder)
	image, err := pull("middleware.hc.cn/operator:dev")
	if err != nil {
		t.Fatal(err)
	}
	got, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	hash, size, err := v1.SHA256(bytes.NewReader(layer))
	if err != nil {
		t.Fatal(err)
	}
	want := []v1.Descriptor{{MediaType: types.OCIUncompressedLayer, Size: size, Digest: hash}}
	if diff := cmp.Diff(want, got.Layers); diff != "" {
		t.Error(diff)
	}
}

func TestNothingCanBePushed(t *testing.T) {
	host, _ := serve(t, t.TempDir())
	response, err := http.Post("http://"+host+"/v2/library/redis/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("got %s", response.Status)
	}
}

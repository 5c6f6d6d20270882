// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
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

func TestImagesOfArchivesCanBePulled(t *testing.T) {
	built, loaded := t.TempDir(), t.TempDir()
	write(t, built, "docker.io/library/redis:7.0.15")
	server := httptest.NewServer(&Handler{Folders: []string{built, loaded}})
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	pull := func(reference string) (v1.Image, error) {
		ref, err := name.ParseReference(host + "/" + reference)
		if err != nil {
			t.Fatal(err)
		}
		return remote.Image(ref)
	}

	image, err := pull("library/redis:7.0.15")
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil { // reads all and compares digests
		t.Error(err)
	}
	if _, err := pull("library/redis:8"); err == nil {
		t.Error("a tag that is not there was served")
	}

	// An archive that comes later, with the name of one that is there already.
	newer := write(t, loaded, "docker.io/library/redis:7.0.15")
	image, err = pull("library/redis:7.0.15")
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
}

func TestNothingCanBePushed(t *testing.T) {
	server := httptest.NewServer(&Handler{Folders: []string{t.TempDir()}})
	defer server.Close()
	response, err := http.Post(server.URL+"/v2/library/redis/blobs/uploads/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("got %s", response.Status)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// manifest is what krew reads.
type manifest struct {
	APIVersion, Kind string
	Metadata         struct{ Name string }
	Spec             struct {
		Version, Homepage, ShortDescription, Description, Caveats string
		Platforms                                                 []struct {
			Selector         struct{ MatchLabels map[string]string }
			URI, SHA256, Bin string
			Files            []struct{ From, To string }
		}
	}
}

func TestManifestOfThePlugin(t *testing.T) {
	var sums strings.Builder
	for i, at := range platforms {
		fmt.Fprintf(&sums, "%064d  kubectl-middleware_0.2.0_%s_%s.tar.gz\n", i, at[0], at[1])
	}
	p := plugin{Version: "0.2.0", Homepage: "https://home.example", Downloads: "https://files.example/v0.2.0"}
	var text strings.Builder
	if err := p.write(&text, sums.String()); err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict([]byte(text.String()), &m); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "middleware" ||
		m.Spec.Version != "v0.2.0" || len(m.Spec.ShortDescription) > 50 || len(m.Spec.Platforms) != 5 {
		t.Errorf("got %+v", m)
	}
	for i, at := range m.Spec.Platforms {
		name := "kubectl-middleware"
		if at.Selector.MatchLabels["os"] == "windows" {
			name += ".exe"
		}
		uri := fmt.Sprintf("https://files.example/v0.2.0/kubectl-middleware_0.2.0_%s_%s.tar.gz", platforms[i][0], platforms[i][1])
		if at.URI != uri || at.SHA256 != fmt.Sprintf("%064d", i) || at.Bin != name || at.Files[0].From != name ||
			at.Files[1].From != "LICENSE" {
			t.Errorf("got %+v", at)
		}
	}
	_, others, _ := strings.Cut(sums.String(), "\n")
	if err := p.write(&text, others); err == nil || !strings.Contains(err.Error(), "linux_amd64") {
		t.Errorf("an archive is missing, and nothing says so: %v", err)
	}
	if err := (plugin{Version: "0.2.0", Downloads: "http://files.example"}).write(&text, sums.String()); err == nil {
		t.Error("archives over HTTP are taken")
	}
}

// The platforms of the manifest are those that goreleaser builds, under the names that it gives archives.
func TestPlatformsOfThePlugin(t *testing.T) {
	text, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Builds []struct {
			ID, Main, Binary string
			GOOS, GOARCH     []string
			Ignore           []struct{ GOOS, GOARCH string }
		}
		Archives []struct {
			IDs          []string
			NameTemplate string `json:"name_template"`
			Formats      []string
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var built [][2]string
	for _, build := range config.Builds {
		if build.ID != "plugin" {
			continue
		}
		if build.Main != "./cmd/kubectl-middleware" || build.Binary != "kubectl-middleware" {
			t.Errorf("got %+v", build)
		}
		for _, system := range build.GOOS {
			for _, architecture := range build.GOARCH {
				if !slices.Contains(build.Ignore, struct{ GOOS, GOARCH string }{system, architecture}) {
					built = append(built, [2]string{system, architecture})
				}
			}
		}
	}
	if diff := cmp.Diff(platforms, built); diff != "" {
		t.Errorf("manifest (-), built (+):\n%s", diff)
	}
	named := regexp.MustCompile(`^kubectl-middleware_\{\{ \.Version \}\}_\{\{ \.Os \}\}_\{\{ \.Arch \}\}$`)
	found := 0
	for _, archive := range config.Archives {
		if slices.Contains(archive.IDs, "plugin") {
			found++
			if !named.MatchString(archive.NameTemplate) || len(archive.IDs) != 1 || len(archive.Formats) > 0 {
				t.Errorf("got %+v", archive)
			}
		}
	}
	if found != 1 {
		t.Errorf("%d archives of the plugin", found)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// registry renders images of the form registry/bundle:vVERSION, as opm would.
func registry(image string) (bundle, error) {
	_, version, ok := strings.Cut(image, ":v")
	if !ok {
		return bundle{}, fmt.Errorf("%s: not found", image)
	}
	return parseBundle(strings.NewReader(fmt.Sprintf(`
		{"schema": "olm.bundle", "name": "op.v%[1]s", "package": "op", "image": %[2]q, "properties": [
			{"type": "olm.package", "value": {"packageName": "op", "version": %[1]q}},
			{"type": "olm.csv.metadata", "value": {"annotations": {"description": "text of %[1]s"}}}]}`, version, image)), image)
}

func streams(candidate, fast, stable string) template {
	text := "schema: olm.semver\n"
	for _, s := range [][2]string{{"candidate", candidate}, {"fast", fast}, {"stable", stable}} {
		text += s[0] + ":\n  bundles:\n"
		for _, version := range strings.Fields(s[1]) {
			text += "    - image: r/op:v" + version + "\n"
		}
	}
	t, err := parseTemplate([]byte(text))
	if err != nil {
		panic(err)
	}
	return t
}

func TestChannels(t *testing.T) {
	for name, c := range map[string]struct {
		candidate, fast, stable string
		// want is NAME: VERSION<REPLACED... of each channel, oldest first.
		want, wantDefault string
	}{
		"one version in all channels": {
			"0.1.0", "0.1.0", "0.1.0",
			"candidate: 0.1.0 | fast: 0.1.0 | stable: 0.1.0", "stable"},
		"every version replaces the one before it in its channel": {
			"0.1.0 0.1.1 0.2.0", "0.1.0 0.1.1", "0.1.0",
			"candidate: 0.1.0 0.1.1>0.1.0 0.2.0>0.1.1 | fast: 0.1.0 0.1.1>0.1.0 | stable: 0.1.0", "stable"},
		"a channel may leave versions out": {
			"0.1.0 0.1.1 0.2.0", "", "0.1.0 0.2.0",
			"candidate: 0.1.0 0.1.1>0.1.0 0.2.0>0.1.1 | stable: 0.1.0 0.2.0>0.1.0", "stable"},
		"the order is that of versions, not of the file or of letters": {
			"", "", "0.10.0 0.9.0 1.0.0-rc.1 1.0.0",
			"stable: 0.9.0 0.10.0>0.9.0 1.0.0-rc.1>0.10.0 1.0.0>1.0.0-rc.1", "stable"},
		"before a stable release the next best channel is the default": {
			"0.1.0-rc.1", "", "",
			"candidate: 0.1.0-rc.1", "candidate"},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := generate(streams(c.candidate, c.fast, c.stable), "icon", registry)
			if err != nil {
				t.Fatal(err)
			}
			if got := documents[0]["defaultChannel"]; got != c.wantDefault {
				t.Errorf("default channel is %v, want %s", got, c.wantDefault)
			}
			if diff := cmp.Diff(c.want, describe(t, documents)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// describe tells the channels in the words of TestChannels, and checks that each entry skips all that is older.
func describe(t *testing.T, documents []map[string]any) string {
	t.Helper()
	var all []string
	for _, channel := range documents {
		if channel["schema"] != schemaChannel {
			continue
		}
		text := channel["name"].(string) + ":"
		entries, err := maps(channel, "entries")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			version := strings.TrimPrefix(entry["name"].(string), "op.v")
			text += " " + version
			if replaces, ok := entry["replaces"].(string); ok {
				text += ">" + strings.TrimPrefix(replaces, "op.v")
			}
			if entry["skipRange"] != "<"+version {
				t.Errorf("%s: %s is reached from %v", channel["name"], version, entry["skipRange"])
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, " | ")
}

func TestACatalogHoldsEachBundleOnce(t *testing.T) {
	documents, err := generate(streams("0.1.0 0.2.0", "0.1.0", "0.1.0"), "icon", registry)
	if err != nil {
		t.Fatal(err)
	}
	var images []any
	for _, document := range documents {
		if document["schema"] == schemaBundle {
			images = append(images, document["image"])
		}
	}
	if diff := cmp.Diff([]any{"r/op:v0.1.0", "r/op:v0.2.0"}, images); diff != "" {
		t.Error(diff)
	}
	want := map[string]any{"schema": schemaPackage, "name": "op", "defaultChannel": "stable", "description": "text of 0.2.0",
		"icon": map[string]any{"base64data": "icon", "mediatype": "image/svg+xml"}}
	if diff := cmp.Diff(want, documents[0]); diff != "" {
		t.Error(diff)
	}
}

func TestCatalogsThatAreRefused(t *testing.T) {
	missing := func(image string) (bundle, error) { return bundle{}, fmt.Errorf("%s: not found", image) }
	twice := func(string) (bundle, error) { return registry("r/op:v0.1.0") }
	foreign := func(image string) (bundle, error) {
		b, err := registry(image)
		if strings.HasSuffix(image, "0.2.0") {
			b.packageName = "other"
		}
		return b, err
	}
	for name, c := range map[string]struct {
		template template
		render   renderer
		want     string
	}{
		"no bundle": {streams("", "", ""), registry, "no channel has a bundle"},
		"two bundles of a version": {streams("", "", "0.1.0 0.2.0"), twice,
			"channel stable: op.v0.1.0 and op.v0.1.0 have the same version 0.1.0"},
		"across channels":           {streams("0.2.0", "", "0.1.0"), twice, "op.v0.1.0 and op.v0.1.0 have the same version 0.1.0"},
		"bundle of another package": {streams("", "", "0.1.0 0.2.0"), foreign, "op.v0.1.0 is of package op, op.v0.2.0 of other"},
		"no semantic version":       {streams("", "", "1"), registry, `version "1"`},
		"image that cannot be read": {streams("", "", "0.1.0"), missing, "r/op:v0.1.0: not found"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := generate(c.template, "icon", c.render)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestTemplatesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another schema":        {"schema: olm.template.basic", `schema is "olm.template.basic", not olm.semver`},
		"channels by version":   {"schema: olm.semver\ngenerateMajorChannels: true", `unknown field "generateMajorChannels"`},
		"a misspelled channel":  {"schema: olm.semver\nstabel: {}", `unknown field "stabel"`},
		"a bundle without name": {"schema: olm.semver\nstable: {bundles: [{img: x}]}", `unknown field`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTemplate([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestASubmissionSaysWhereTheVersionGoes(t *testing.T) {
	for name, c := range map[string]struct {
		template template
		want     []map[string]any
	}{
		"first version": {streams("0.1.0", "0.1.0", "0.1.0"), []map[string]any{
			{"template_name": "basic.yaml", "channels": []any{"candidate", "fast", "stable"}, "skipRange": "<0.1.0"},
		}},
		"a version with a different predecessor in each channel": {streams("0.0.1 0.0.2 0.1.0", "0.0.1 0.1.0", "0.0.1 0.1.0"), []map[string]any{
			{"template_name": "basic.yaml", "channels": []any{"candidate"}, "skipRange": "<0.1.0", "replaces": "op.v0.0.2"},
			{"template_name": "basic.yaml", "channels": []any{"fast", "stable"}, "skipRange": "<0.1.0", "replaces": "op.v0.0.1"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			documents, err := generate(c.template, "icon", registry)
			if err != nil {
				t.Fatal(err)
			}
			got, err := releaseConfig(documents, "op.v0.1.0")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]any{"catalog_templates": c.want}, got); diff != "" {
				t.Error(diff)
			}
			if _, err := releaseConfig(documents, "op.v9.9.9"); err == nil {
				t.Error("a version that no channel has was accepted")
			}
		})
	}
}

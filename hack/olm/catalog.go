// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

// Schemas of file-based catalogs and of opm's templates.
const (
	schemaPackage = "olm.package"
	schemaChannel = "olm.channel"
	schemaBundle  = "olm.bundle"
	schemaSemver  = "olm.semver"
)

// template is opm's semver template, without the options that divide a channel by major or minor version: our channels are
// called stable, fast and candidate for ever, so nobody has to change a Subscription in order to be updated.
type template struct {
	Schema    string `json:"schema"`
	Candidate stream `json:"candidate"`
	Fast      stream `json:"fast"`
	Stable    stream `json:"stable"`
}

type stream struct {
	Bundles []struct {
		Image string `json:"image"`
	} `json:"bundles"`
}

// streams are the channels, least stable first.
func (t template) streams() []struct {
	name string
	stream
} {
	return []struct {
		name string
		stream
	}{{"candidate", t.Candidate}, {"fast", t.Fast}, {"stable", t.Stable}}
}

func parseTemplate(text []byte) (template, error) {
	var t template
	if err := yaml.UnmarshalStrict(text, &t); err != nil {
		return template{}, err
	}
	if t.Schema != schemaSemver {
		return template{}, fmt.Errorf("schema is %q, not %s", t.Schema, schemaSemver)
	}
	return t, nil
}

// bundle is an olm.bundle of a catalog.
type bundle struct {
	name, packageName, description string
	version                        semver.Version
	// blob is all of it.
	blob map[string]any
}

// renderer reads the bundle that an image holds.
type renderer func(image string) (bundle, error)

// opmRenderer reads bundles with opm, those of local from a folder instead of from their registry.
func opmRenderer(opm string, local map[string]string) renderer {
	return func(image string) (bundle, error) {
		// Metadata of the CSV instead of the CSV: a tenth of the size, and all that consoles and resolvers look at.
		arguments := []string{"render", "--output=json", "--migrate-level=bundle-object-to-csv-metadata"}
		if dir, ok := local[image]; ok {
			arguments = append(arguments, "--alpha-image-ref-template="+image, dir)
		} else {
			arguments = append(arguments, image)
		}
		var output bytes.Buffer
		run := exec.Command(opm, arguments...)
		run.Stdout, run.Stderr = &output, os.Stderr
		if err := run.Run(); err != nil {
			return bundle{}, fmt.Errorf("opm render %s: %w", image, err)
		}
		return parseBundle(&output, image)
	}
}

// parseBundle reads what opm printed about one image.
func parseBundle(text io.Reader, image string) (bundle, error) {
	var found []map[string]any
	decoder := json.NewDecoder(text)
	for {
		var blob map[string]any
		err := decoder.Decode(&blob)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return bundle{}, fmt.Errorf("%s: %w", image, err)
		}
		if blob["schema"] == schemaBundle {
			found = append(found, blob)
		}
	}
	if len(found) != 1 {
		return bundle{}, fmt.Errorf("%s holds %d bundles; it must be the image of one", image, len(found))
	}
	return newBundle(found[0], image)
}

func newBundle(blob map[string]any, image string) (bundle, error) {
	b := bundle{blob: blob}
	b.name, _ = blob["name"].(string)
	b.packageName, _ = blob["package"].(string)
	properties, err := maps(blob, "properties")
	if err != nil {
		return bundle{}, err
	}
	version := ""
	for _, property := range properties {
		value, _ := property["value"].(map[string]any)
		switch property["type"] {
		case schemaPackage:
			version, _ = value["version"].(string)
		case "olm.csv.metadata":
			annotations, _ := value["annotations"].(map[string]any)
			b.description, _ = annotations["description"].(string)
		}
	}
	if b.version, err = semver.Parse(version); err != nil {
		return bundle{}, fmt.Errorf("%s: version %q: %w", image, version, err)
	}
	if b.name == "" || b.packageName == "" {
		return bundle{}, fmt.Errorf("%s: a bundle without name or package", image)
	}
	return b, nil
}

// generate makes the catalog's documents: the package, its channels, and every bundle once, oldest first.
func generate(t template, icon string, render renderer) ([]map[string]any, error) {
	rendered := map[string]bundle{}
	var all []bundle
	var channels []map[string]any
	defaultChannel := ""
	for _, s := range t.streams() {
		var members []bundle
		for _, entry := range s.Bundles {
			b, known := rendered[entry.Image]
			if !known {
				var err error
				if b, err = render(entry.Image); err != nil {
					return nil, err
				}
				rendered[entry.Image] = b
				all = append(all, b)
			}
			members = append(members, b)
		}
		if len(members) == 0 {
			continue
		}
		channel, err := channelOf(s.name, members)
		if err != nil {
			return nil, err
		}
		channels = append(channels, channel)
		defaultChannel = s.name // the last one is the most stable
	}
	if len(all) == 0 {
		return nil, errors.New("no channel has a bundle")
	}
	if err := sortByVersion(all); err != nil {
		return nil, err
	}
	newest := all[len(all)-1]
	documents := []map[string]any{{
		"schema": schemaPackage, "name": newest.packageName, "defaultChannel": defaultChannel, "description": newest.description,
		"icon": map[string]any{"base64data": icon, "mediatype": iconType},
	}}
	documents = append(documents, channels...)
	for _, b := range all {
		if b.packageName != newest.packageName {
			return nil, fmt.Errorf("%s is of package %s, %s of %s; a catalog of ours has one package", b.name, b.packageName, newest.name,
				newest.packageName)
		}
		documents = append(documents, b.blob)
	}
	return documents, nil
}

// channelOf orders a channel. Every version replaces the one before it, and may be reached from any older one at once: also from
// versions that only another channel has, so that changing the channel of a Subscription never gets stuck.
func channelOf(name string, members []bundle) (map[string]any, error) {
	if err := sortByVersion(members); err != nil {
		return nil, fmt.Errorf("channel %s: %w", name, err)
	}
	var entries []any
	for i, b := range members {
		entry := map[string]any{"name": b.name, "skipRange": "<" + b.version.String()}
		if i > 0 {
			entry["replaces"] = members[i-1].name
		}
		entries = append(entries, entry)
	}
	return map[string]any{"schema": schemaChannel, "package": members[0].packageName, "name": name, "entries": entries}, nil
}

// sortByVersion refuses two bundles of one version, which no order could tell apart.
func sortByVersion(bundles []bundle) error {
	slices.SortStableFunc(bundles, func(a, b bundle) int { return a.version.Compare(b.version) })
	for i := 1; i < len(bundles); i++ {
		if bundles[i].version.EQ(bundles[i-1].version) {
			return fmt.Errorf("%s and %s have the same version %s", bundles[i-1].name, bundles[i].name, bundles[i].version)
		}
	}
	return nil
}

// readCatalog makes the documents of a catalog from the file of a template.
func readCatalog(templateFile, iconFile string, render renderer) ([]map[string]any, error) {
	text, err := os.ReadFile(templateFile) //nolint:gosec // the file that the caller names
	if err != nil {
		return nil, err
	}
	t, err := parseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", templateFile, err)
	}
	icon, err := iconData(iconFile)
	if err != nil {
		return nil, err
	}
	documents, err := generate(t, icon, render)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", templateFile, err)
	}
	return documents, nil
}

// writeDocuments writes a YAML file of several documents.
func writeDocuments(file string, documents ...map[string]any) error {
	var content bytes.Buffer
	for _, document := range documents {
		text, err := yaml.Marshal(document)
		if err != nil {
			return err
		}
		fmt.Fprintf(&content, "---\n%s", text)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // everybody may read a catalog
		return err
	}
	return os.WriteFile(file, content.Bytes(), 0o644) //nolint:gosec // everybody may read a catalog
}

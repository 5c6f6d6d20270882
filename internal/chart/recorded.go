// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// What a recorded release may hold. Whoever may write Secrets in one namespace may write any, and the operator reads them with the
// memory of all namespaces; decoded, a byte may take a hundred. Kubernetes takes Secrets of up to 1 MiB, in which Helm's own
// releases have ten times as much text.
const (
	maxRecordedText    = 8 << 20
	maxRecordedEntries = 400_000
)

// DecodeRelease reads the stored data of a release: what identifies it, and its objects. Its values stay as they were written.
func DecodeRelease(data []byte) (*StoredRelease, error) {
	stored, err := unpackRelease(data)
	if err != nil {
		return nil, err
	}
	if stored.Version < 1 || stored.Version > math.MaxInt32 {
		return nil, fmt.Errorf("read the stored release: it has the revision %d", stored.Version)
	}
	var chart struct {
		Metadata struct{ Name, Version string } `json:"metadata"`
	}
	if err := json.Unmarshal(stored.Chart, &chart); err != nil {
		return nil, fmt.Errorf("read the chart of the stored release: %w", err)
	}
	rendered := &Rendered{Manifest: stored.Manifest, Notes: stored.Info.Notes, values: stored.Config}
	if err := rendered.readManifest(); err != nil {
		return nil, fmt.Errorf("read the manifest of the stored release: %w", err)
	}
	if err := rendered.readHooks(stored.Hooks); err != nil {
		return nil, fmt.Errorf("read the hooks of the stored release: %w", err)
	}
	return &StoredRelease{
		Name: stored.Name, Namespace: stored.Namespace, ChartName: chart.Metadata.Name, ChartVersion: chart.Metadata.Version,
		Revision: stored.Version, Status: Status(stored.Info.Status), Description: stored.Info.Description,
		FirstDeployed: stored.Info.FirstDeployed.Time, LastDeployed: stored.Info.LastDeployed.Time, Rendered: rendered,
	}, nil
}

// readManifest reads the objects of a recorded manifest.
func (r *Rendered) readManifest() error {
	if err := decodable(r.Manifest); err != nil {
		return err
	}
	texts := documents(r.Manifest)
	if len(texts) > mostDocuments {
		return fmt.Errorf("it has %d documents, more than %d", len(texts), mostDocuments)
	}
	for _, text := range texts {
		_, objects, err := decode("manifest", text)
		if err != nil {
			return err
		}
		r.Objects = append(r.Objects, objects...)
	}
	return nil
}

// readHooks reads recorded hooks one by one, so that it ends at the first that is none.
func (r *Rendered) readHooks(recorded json.RawMessage) error {
	if err := decodable(string(recorded)); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(recorded))
	if begin, err := decoder.Token(); len(recorded) == 0 || err == nil && begin == nil {
		return nil
	} else if err != nil || begin != json.Delim('[') {
		return errors.New("they are no list")
	}
	for n := 1; decoder.More(); n++ {
		var hook *helmrelease.Hook
		if err := decoder.Decode(&hook); err != nil {
			return err
		}
		if hook == nil || n > mostDocuments {
			return fmt.Errorf("hook %d is null, or one more than %d", n, mostDocuments)
		}
		d, err := readDocument(hook.Path, hook.Manifest)
		if err != nil {
			return err
		}
		if d.isHook() {
			r.addHooks(d)
		}
	}
	r.sortHooks()
	return nil
}

// decodable refuses a text that would take too much memory to decode.
func decodable(text string) error {
	if len(text) > maxRecordedText {
		return fmt.Errorf("it has %d bytes, more than %d", len(text), maxRecordedText)
	}
	entries := 0
	for _, mark := range []string{"\n", ",", "[", "{"} {
		entries += strings.Count(text, mark)
	}
	if entries > maxRecordedEntries {
		return fmt.Errorf("it has about %d entries, more than %d", entries, maxRecordedEntries)
	}
	return nil
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// Helm stores a release as JSON, gzip, base64 (helm.sh/helm/v3/pkg/storage/driver, which does not export it). The chart is
// nearly all of it and the same in every release, so it is packed once: a gzip file may consist of several parts (RFC 1952,
// 2.2), here {"chart":… and the rest of the release.

// maxRelease bounds what unpacking a stored release may give, in bytes; Kubernetes takes Secrets of up to 1 MiB.
const maxRelease = 16 << 20

// chartFirst begins every release.
const chartFirst = `{"chart":`

var packers = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// pack compresses its parts as one part of a gzip file.
func pack(begin string, rest []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer := packers.Get().(*gzip.Writer)
	defer packers.Put(writer)
	writer.Reset(&packed)
	for _, text := range [][]byte{[]byte(begin), rest} {
		if _, err := writer.Write(text); err != nil {
			return nil, fmt.Errorf("compress a release: %w", err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress a release: %w", err)
	}
	return packed.Bytes(), nil
}

// packChart is the first part of every release of a chart.
func packChart(c *helmchart.Chart) ([]byte, error) {
	encoded, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode chart %s: %w", c.Name(), err)
	}
	return pack(chartFirst, encoded)
}

// packRelease puts a release behind its packed chart.
func packRelease(packedChart []byte, r *release) ([]byte, error) {
	without := *r
	without.Chart = nil
	encoded, err := json.Marshal(&without)
	if err != nil {
		return nil, fmt.Errorf("encode release %s: %w", r.Name, err)
	}
	packed, err := pack(",", encoded[1:]) // info is never left out, so that there is something behind the comma
	if err != nil {
		return nil, err
	}
	whole := append(append(make([]byte, 0, len(packedChart)+len(packed)), packedChart...), packed...)
	return base64.StdEncoding.AppendEncode(nil, whole), nil
}

func unpackRelease(data []byte) (*release, error) {
	refuse := func(err error) (*release, error) { return nil, fmt.Errorf("read the stored release: %w", err) }
	plain := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(plain, data)
	if err != nil {
		return refuse(err)
	}
	plain = plain[:n]
	if bytes.HasPrefix(plain, []byte{0x1f, 0x8b, 0x08}) { // Helm once stored releases without compression
		reader, err := gzip.NewReader(bytes.NewReader(plain))
		if err != nil {
			return refuse(err)
		}
		if plain, err = io.ReadAll(io.LimitReader(reader, maxRelease+1)); err != nil {
			return refuse(err)
		}
		if len(plain) > maxRelease {
			return refuse(fmt.Errorf("it unpacks to more than %d bytes", maxRelease))
		}
	}
	stored := &release{}
	if err := json.Unmarshal(plain, stored); err != nil {
		return refuse(err)
	}
	if stored.Info == nil {
		return refuse(errors.New("it holds no info"))
	}
	if len(stored.Chart) == 0 {
		stored.Chart = json.RawMessage("null")
	}
	return stored, nil
}

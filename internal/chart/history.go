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
	"strconv"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
)

// StoredType is the type of the Secrets that hold Helm's releases.
const StoredType = "helm.sh/release.v1"

// Status is the state of a stored release, in Helm's words.
type Status string

const (
	// StatusDeployed is the release that is installed.
	StatusDeployed = Status(helmrelease.StatusDeployed)
	// StatusSuperseded is one that was replaced by a later revision.
	StatusSuperseded = Status(helmrelease.StatusSuperseded)
)

// Record is what a release's history says about one revision.
type Record struct {
	Release       Release
	Status        Status
	Description   string
	FirstDeployed time.Time
	LastDeployed  time.Time
}

// Stored is a Secret's content in the format of Helm's own storage driver.
type Stored struct {
	Name, Type string
	Labels     map[string]string
	Data       map[string][]byte
}

// StoredName is the name of the Secret that holds a revision.
func StoredName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}

// EncodeRelease writes one revision as Helm stores it, so that helm list, status, history and get read it. The size is bounded
// by the chart and its values; Kubernetes takes Secrets of up to 1 MiB.
func (c *Chart) EncodeRelease(rendered *Rendered, record Record) (Stored, error) {
	stored := &helmrelease.Release{
		Name: record.Release.Name, Namespace: record.Release.Namespace, Version: record.Release.Revision,
		Chart: c.helm, Config: rendered.values, Manifest: rendered.Manifest,
		Info: &helmrelease.Info{
			FirstDeployed: helmtime.Time{Time: record.FirstDeployed}, LastDeployed: helmtime.Time{Time: record.LastDeployed},
			Status: helmrelease.Status(record.Status), Description: record.Description, Notes: rendered.Notes,
		},
	}
	data, err := encode(stored)
	if err != nil {
		return Stored{}, err
	}
	return Stored{
		Name: StoredName(stored.Name, stored.Version), Type: StoredType,
		Labels: map[string]string{
			"name": stored.Name, "owner": "helm", "status": string(record.Status), "version": strconv.Itoa(stored.Version),
			"createdAt": strconv.FormatInt(record.LastDeployed.Unix(), 10),
		},
		Data: map[string][]byte{"release": data},
	}, nil
}

// Restate returns the stored data of a release with another status, and when the release was first deployed.
func Restate(data []byte, status Status) (restated []byte, firstDeployed time.Time, err error) {
	stored, err := decodeRelease(data)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read the stored release: %w", err)
	}
	if stored.Info == nil {
		return nil, time.Time{}, errors.New("read the stored release: it holds no info")
	}
	stored.Info.Status = helmrelease.Status(status)
	restated, err = encode(stored)
	return restated, stored.Info.FirstDeployed.Time, err
}

// encode is JSON, gzip, base64: what Helm's driver does (helm.sh/helm/v3/pkg/storage/driver, which does not export it).
func encode(stored *helmrelease.Release) ([]byte, error) {
	plain, err := json.Marshal(stored)
	if err != nil {
		return nil, fmt.Errorf("encode release %s: %w", stored.Name, err)
	}
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(plain); err != nil {
		return nil, fmt.Errorf("compress release %s: %w", stored.Name, err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("compress release %s: %w", stored.Name, err)
	}
	return []byte(base64.StdEncoding.EncodeToString(packed.Bytes())), nil
}

func decodeRelease(data []byte) (*helmrelease.Release, error) {
	packed, err := base64.StdEncoding.DecodeString(string(data))
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	stored := &helmrelease.Release{}
	return stored, json.Unmarshal(plain, stored)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
)

// StoredType is the type of the Secrets that hold Helm's releases.
const StoredType = "helm.sh/release.v1"

// Status is the state of a stored release, in Helm's words.
type Status string

// The states Helm knows.
const (
	// StatusDeployed is the release that is installed.
	StatusDeployed = Status(helmrelease.StatusDeployed)
	// StatusSuperseded is one that was replaced by a later revision.
	StatusSuperseded = Status(helmrelease.StatusSuperseded)
	// StatusFailed is one that could not be made.
	StatusFailed = Status(helmrelease.StatusFailed)
	// StatusUninstalling is one that is being removed.
	StatusUninstalling = Status(helmrelease.StatusUninstalling)
	// StatusUninstalled is one that was removed and whose history was kept.
	StatusUninstalled = Status(helmrelease.StatusUninstalled)
	// StatusPendingInstall, StatusPendingUpgrade and StatusPendingRollback are what an interrupted Helm leaves behind.
	StatusPendingInstall  = Status(helmrelease.StatusPendingInstall)
	StatusPendingUpgrade  = Status(helmrelease.StatusPendingUpgrade)
	StatusPendingRollback = Status(helmrelease.StatusPendingRollback)
	// StatusUnknown is one of which Helm cannot tell.
	StatusUnknown = Status(helmrelease.StatusUnknown)
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

// StoredRelease is a revision as it was stored, by this operator, by Helm or by an operator that uses Helm.
type StoredRelease struct {
	Name, Namespace         string
	ChartName, ChartVersion string
	Revision                int
	Status                  Status
	Description             string
	FirstDeployed           time.Time
	LastDeployed            time.Time
	// Rendered has Objects, Hooks, Manifest and Notes.
	Rendered *Rendered
}

// release is a revision as Helm stores it (helm.sh/helm/v3/pkg/release). Chart, values and hooks are left as they are: decoded
// they may take fifty times as much memory.
type release struct {
	Chart     json.RawMessage   `json:"chart,omitempty"`
	Name      string            `json:"name,omitempty"`
	Info      *helmrelease.Info `json:"info,omitempty"`
	Config    json.RawMessage   `json:"config,omitempty"`
	Manifest  string            `json:"manifest,omitempty"`
	Hooks     json.RawMessage   `json:"hooks,omitempty"`
	Version   int               `json:"version,omitempty"`
	Namespace string            `json:"namespace,omitempty"`
}

// StoredName is the name of the Secret that holds a revision.
func StoredName(release string, revision int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, revision)
}

// EncodeRelease writes one revision as Helm stores it, so that helm list, status, history and get read it. The size is bounded
// by the chart and its values; Kubernetes takes Secrets of up to 1 MiB.
func (c *Chart) EncodeRelease(rendered *Rendered, record Record) (Stored, error) {
	packedChart, err := c.packed()
	if err != nil {
		return Stored{}, err
	}
	config, err := encoded(rendered.values)
	if err != nil {
		return Stored{}, err
	}
	hooks, err := encoded(storedHooks(rendered.Hooks))
	if err != nil {
		return Stored{}, err
	}
	data, err := packRelease(packedChart, &release{
		Name: record.Release.Name, Namespace: record.Release.Namespace, Version: record.Release.Revision,
		Config: config, Manifest: rendered.Manifest, Hooks: hooks,
		Info: &helmrelease.Info{
			FirstDeployed: helmtime.Time{Time: record.FirstDeployed}, LastDeployed: helmtime.Time{Time: record.LastDeployed},
			Status: helmrelease.Status(record.Status), Description: record.Description, Notes: rendered.Notes,
		},
	})
	if err != nil {
		return Stored{}, err
	}
	return Stored{
		Name: StoredName(record.Release.Name, record.Release.Revision), Type: StoredType,
		Labels: map[string]string{
			"name": record.Release.Name, "owner": "helm", "status": string(record.Status), "version": strconv.Itoa(record.Release.Revision),
			"createdAt": strconv.FormatInt(record.LastDeployed.Unix(), 10),
		},
		Data: map[string][]byte{"release": data},
	}, nil
}

// encoded is a part of a release, left out when there is nothing in it.
func encoded(part any) (json.RawMessage, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return nil, fmt.Errorf("encode the release: %w", err)
	}
	if empty := string(text); empty == "null" || empty == "{}" || empty == "[]" {
		return nil, nil
	}
	return text, nil
}

// storedHooks are hooks as a release holds them. The items of a list are one of Helm's hooks.
func storedHooks(hooks []Hook) []*helmrelease.Hook {
	var stored []*helmrelease.Hook
	written := map[string]bool{}
	for _, hook := range hooks {
		if key := hook.path + "\n" + hook.manifest; written[key] {
			continue
		} else {
			written[key] = true
		}
		h := &helmrelease.Hook{Name: hook.Object.GetName(), Kind: hook.Object.GetKind(), Path: hook.path, Manifest: hook.manifest,
			Weight: hook.Weight}
		for _, event := range hook.Events {
			h.Events = append(h.Events, helmrelease.HookEvent(event))
		}
		for _, policy := range hook.DeletePolicies {
			h.DeletePolicies = append(h.DeletePolicies, helmrelease.HookDeletePolicy(policy))
		}
		stored = append(stored, h)
	}
	return stored
}

// SetStatus returns the stored data of a release with another status, and when the release was first deployed.
func SetStatus(data []byte, status Status) (restated []byte, firstDeployed time.Time, err error) {
	stored, err := unpackRelease(data)
	if err != nil {
		return nil, time.Time{}, err
	}
	stored.Info.Status = helmrelease.Status(status)
	packedChart, err := pack(chartFirst, stored.Chart)
	if err != nil {
		return nil, time.Time{}, err
	}
	restated, err = packRelease(packedChart, stored)
	return restated, stored.Info.FirstDeployed.Time, err
}

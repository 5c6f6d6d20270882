// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// rendererVersion changes when the same chart and values would be rendered to something else than before.
const rendererVersion = "2"

// DigestFor identifies what Render would say: equal digests mean equal objects, without rendering. It covers the chart, the
// values as given (the chart's defaults are part of the chart), the release's name and namespace, the renderer, and the
// cluster's version and APIs if a template looks at them: all of them, or the ones that it asks for by name. The
// revision, and whether it is an installation or an upgrade, are left out on purpose: a chart that
// prints them is rendered once a change, not for ever. What a chart looks up (UsesLookup) or leaves to chance (Deterministic)
// no digest can tell.
func (c *Chart) DigestFor(values map[string]any, release Release, capabilities Capabilities) (string, error) {
	if !c.facts.capabilities {
		capabilities = Capabilities{APIVersions: slices.DeleteFunc(slices.Clone(c.facts.asked), func(api string) bool {
			return !slices.Contains(capabilities.APIVersions, api)
		})}
	}
	encoded, err := json.Marshal(values) // keys in order
	if err != nil {
		return "", fmt.Errorf("digest of the values: %w", err)
	}
	text := make([]byte, 0, len(encoded)+48*len(capabilities.APIVersions)+256) // mostly enough
	part := func(next string) { text = append(append(strconv.AppendInt(text, int64(len(next)), 10), ':'), next...) }
	for _, next := range []string{rendererVersion, c.digest, release.Name, release.Namespace} {
		part(next)
	}
	part(capabilities.KubeVersion)
	for _, version := range capabilities.APIVersions {
		part(version)
	}
	sum := sha256.Sum256(append(text, encoded...))
	return hex.EncodeToString(sum[:]), nil
}

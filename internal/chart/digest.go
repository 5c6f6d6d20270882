// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// rendererVersion changes when the same chart and values would be rendered to something else than before.
const rendererVersion = "1"

// DigestFor identifies what Render would say: equal digests mean equal objects, without rendering. It covers the chart, the
// values as given (the chart's defaults are part of the chart), the release's name and namespace, the renderer, and the
// capabilities if a template looks at them. The revision is left out on purpose: a chart that prints it is rendered once a
// change, not for ever.
func (c *Chart) DigestFor(values map[string]any, release Release, capabilities Capabilities) (string, error) {
	if !c.usesCapabilities {
		capabilities = Capabilities{}
	}
	encoded, err := json.Marshal([]any{rendererVersion, c.digest, values, release.Name, release.Namespace, capabilities})
	if err != nil {
		return "", fmt.Errorf("digest of the values: %w", err)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}

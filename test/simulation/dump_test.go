// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
)

// state is what every instance says of itself and of the others, for messages.
func (s *simulation) state() string {
	var b strings.Builder
	for _, in := range s.instances {
		fmt.Fprintf(&b, "%s:\n%s", in.pod.Name, in.node.Describe())
	}
	return b.String()
}

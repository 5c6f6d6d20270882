// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"slices"
	"strings"
)

// function is FUNCTION: libraries are names without code, and a dump is those names. LOAD
// takes a name.
func (s *session) function(args []string) any {
	n := s.node
	switch sub := strings.ToUpper(args[0]); {
	case sub == "LOAD" && len(args) == 2:
		n.addLibrary(args[1])
		return args[1]
	case sub == "DUMP" && len(args) == 1:
		return strings.Join(n.libraries, "\n")
	case sub == "RESTORE" && len(args) >= 2:
		if n.self().replica {
			return errorText("READONLY You can't write against a read only replica.")
		}
		for name := range strings.FieldsSeq(args[1]) {
			n.addLibrary(name)
		}
		return okReply
	}
	return unknownSubcommand("FUNCTION", args[0])
}

func (n *Node) addLibrary(name string) {
	if !slices.Contains(n.libraries, name) {
		n.libraries = append(n.libraries, name)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import "strings"

// PeerFlags is a set of PeerFlag. The zero value is the engine's "noflags".
type PeerFlags uint16

// The flags of CLUSTER NODES.
const (
	// FlagMyself marks the line of the node that was asked.
	FlagMyself PeerFlags = 1 << iota
	FlagMaster
	FlagReplica
	// FlagPossiblyFailed (fail? in the protocol) means that this node cannot reach the peer.
	FlagPossiblyFailed
	// FlagFailed means that a majority of the masters could not reach the peer.
	FlagFailed
	// FlagHandshake means that the peer has not answered yet: neither its ID nor its membership is certain.
	FlagHandshake
	// FlagNoAddress means that the peer's address is not known.
	FlagNoAddress
	// FlagNoFailover means that the peer, a replica, does not stand for election.
	FlagNoFailover
)

// flagWords are the words of the protocol, in the order the engines print them.
var flagWords = []struct {
	flag PeerFlags
	word string
}{
	{FlagMyself, "myself"},
	{FlagMaster, "master"},
	{FlagReplica, "slave"},
	{FlagPossiblyFailed, "fail?"},
	{FlagFailed, "fail"},
	{FlagHandshake, "handshake"},
	{FlagNoAddress, "noaddr"},
	{FlagNoFailover, "nofailover"},
}

// Has reports whether all of the given flags are set.
func (f PeerFlags) Has(flags PeerFlags) bool { return f&flags == flags }

// HasAny reports whether one of the given flags is set.
func (f PeerFlags) HasAny(flags PeerFlags) bool { return f&flags != 0 }

// String is the set in the words of the protocol, such as "myself,master".
func (f PeerFlags) String() string {
	var words []string
	for _, known := range flagWords {
		if f.Has(known.flag) {
			words = append(words, known.word)
		}
	}
	if len(words) == 0 {
		return "noflags"
	}
	return strings.Join(words, ",")
}

// parseFlags reads the third field of a CLUSTER NODES line. Words of engines to come are passed over: no decision can
// rest on a flag that this operator does not know.
func parseFlags(field string) PeerFlags {
	var flags PeerFlags
	for word := range strings.SplitSeq(field, ",") {
		if word == "replica" { // engines may stop saying slave
			word = "slave"
		}
		for _, known := range flagWords {
			if word == known.word {
				flags |= known.flag
			}
		}
	}
	return flags
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"slices"
	"strings"
)

// kind is what is to be known of a command to understand its reply.
type kind uint8

const (
	ordinary kind = iota // one reply, which is passed on
	// Replies with addresses of instances.
	clusterSlots
	clusterShards
	clusterNodes
	clusterReplicas
	// Commands that change how later replies are read.
	hello
	reset
	multi
	exec
	discard
	watch
	unwatch
	monitor
	replyOn
	replyOff
	replySkip
	// Subscriptions: a confirmation for each channel in place of a reply.
	subscribe
	psubscribe
	ssubscribe
	unsubscribe
	punsubscribe
	sunsubscribe
	// refused is a command that the instance gets another one in place of: refusedCommand.
	refused
)

// refusedCommand is a command that no server has. An instance gets it in place of one that is not passed on: its error takes the place of
// the reply, in the order of the replies, and makes a transaction fail.
const refusedCommand = "gateway-refused"

// Refusal is what a client is told when a command is not passed on.
const Refusal = "-ERR the gateway does not pass on this command: it is for the cluster's administration"

const (
	// mostHead is how many words of a command are looked at, longestWord how long one is of those that mean anything.
	mostHead, longestWord = 3, 64
)

// head is the first words of a command.
type head struct {
	words [mostHead][longestWord]byte
	sizes [mostHead]int
	known int // how many words were read
	args  int // how many words the command has
}

func (h *head) word(i int) []byte { return h.words[i][:h.sizes[i]] }

// is reports whether a word is the given one, in any case.
func (h *head) is(i int, word string) bool {
	return i < h.known && len(word) == h.sizes[i] && strings.EqualFold(word, string(h.word(i)))
}

// parents are the commands whose meaning depends on the words that follow.
var parents = map[string]bool{"CLUSTER": true, "CLIENT": true, "CONFIG": true, "ACL": true, "MODULE": true, "SCRIPT": true}

// simple are the commands of one word that are not ordinary.
var simple = map[string]kind{
	"HELLO": hello, "RESET": reset, "MULTI": multi, "EXEC": exec, "DISCARD": discard, "WATCH": watch, "UNWATCH": unwatch,
	"MONITOR": monitor, "SUBSCRIBE": subscribe, "PSUBSCRIBE": psubscribe, "SSUBSCRIBE": ssubscribe, "UNSUBSCRIBE": unsubscribe,
	"PUNSUBSCRIBE": punsubscribe, "SUNSUBSCRIBE": sunsubscribe,
	// Replication, and what changes who replicates whom.
	"SYNC": refused, "PSYNC": refused, "REPLCONF": refused, "REPLICAOF": refused, "SLAVEOF": refused, "FAILOVER": refused,
	// They make an instance connect to whatever the client names, or accept what only instances send.
	"MIGRATE": refused, "RESTORE-ASKING": refused,
	// They end, block or fork an instance, or change the protocol.
	"DEBUG": refused, "SHUTDOWN": refused, "SAVE": refused, "BGSAVE": refused, "BGREWRITEAOF": refused, "PFDEBUG": refused,
}

// permitted are the subcommands that are passed on of commands of which others administer the cluster; what an engine has besides, or
// will have, is refused.
var permitted = map[string][]string{
	"CLUSTER": {"SLOTS", "SHARDS", "NODES", "REPLICAS", "SLAVES", "INFO", "KEYSLOT", "COUNTKEYSINSLOT", "GETKEYSINSLOT", "MYID", "MYSHARDID",
		"COUNT-FAILURE-REPORTS", "LINKS", "SLOT-STATS", "HELP"},
	"CONFIG": {"GET", "HELP"},
	"ACL":    {"WHOAMI", "CAT", "DRYRUN", "GENPASS", "HELP"},
	"MODULE": {"LIST", "HELP"},
}

// forbidden are the subcommands that are refused of commands of which all others are passed on.
var forbidden = map[string][]string{
	"CLIENT": {"KILL", "PAUSE", "UNPAUSE"},
	"SCRIPT": {"DEBUG"},
}

// longest is how long the longest name is that means anything.
const longest = 16

// upper is a word in upper case; false: it is too long to mean anything.
func upper(word []byte, into *[longest]byte) ([]byte, bool) {
	if len(word) > longest {
		return nil, false
	}
	for i, c := range word {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		into[i] = c
	}
	return into[:len(word)], true
}

// plain reports whether a word was read whole and has printable characters only. Engines compare names up to a zero byte, so that another
// word may mean to them what it does not mean here.
func (h *head) plain(i int) bool {
	return i < h.known && !slices.ContainsFunc(h.word(i), func(c byte) bool { return c <= ' ' || c > '~' })
}

// isParent reports whether more words than the first have to be read.
func (h *head) isParent() bool {
	var buffer [longest]byte
	name, ok := upper(h.word(0), &buffer)
	return ok && parents[string(name)]
}

// classify says what a command is.
func (h *head) classify() kind {
	if !h.plain(0) {
		return refused
	}
	var buffer [longest]byte
	name, ok := upper(h.word(0), &buffer)
	if !ok {
		return ordinary
	}
	if k, found := simple[string(name)]; found {
		return k
	}
	if !parents[string(name)] || h.args < 2 {
		return ordinary // without a subcommand it is an error
	}
	if !h.plain(1) {
		return refused
	}
	if allowed, found := permitted[string(name)]; found && !h.among(allowed) || h.among(forbidden[string(name)]) {
		return refused
	}
	switch {
	case bytes.Equal(name, []byte("CLUSTER")):
		return h.topology()
	case bytes.Equal(name, []byte("CLIENT")):
		return h.reply()
	}
	return ordinary
}

// among reports whether the subcommand is one of those.
func (h *head) among(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return h.is(1, name) })
}

func (h *head) topology() kind {
	switch {
	case h.is(1, "SLOTS"):
		return clusterSlots
	case h.is(1, "SHARDS"):
		return clusterShards
	case h.is(1, "NODES"):
		return clusterNodes
	case h.is(1, "REPLICAS"), h.is(1, "SLAVES"):
		return clusterReplicas
	}
	return ordinary
}

// reply is what CLIENT REPLY is. The instance gets CLIENT REPLY ON for each, so that it never leaves out a reply; the gateway does.
func (h *head) reply() kind {
	if !h.is(1, "REPLY") || h.args != 3 {
		return ordinary
	}
	switch {
	case h.is(2, "ON"):
		return replyOn
	case h.is(2, "OFF"):
		return replyOff
	case h.is(2, "SKIP"):
		return replySkip
	}
	return refused // an error, or what an engine understands otherwise
}

// isSubscription reports whether confirmations come in place of a reply.
func (k kind) isSubscription() bool { return subscribe <= k && k <= sunsubscribe }

// confirmations are the kinds by the first word of what confirms them.
var confirmations = map[string]kind{
	"subscribe": subscribe, "psubscribe": psubscribe, "ssubscribe": ssubscribe,
	"unsubscribe": unsubscribe, "punsubscribe": punsubscribe, "sunsubscribe": sunsubscribe,
}

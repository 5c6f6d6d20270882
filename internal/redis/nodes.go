// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// table is what CLUSTER NODES says.
type table struct {
	peers                []Peer
	migrating, importing map[uint16]string

	ids       map[string]string // by themselves
	lines     map[string]bool   // by ID
	hasMyself bool
	owned     [slots.Count]bool
}

// readNodes reads CLUSTER NODES into the view.
func readNodes(view *View, text string) error {
	parsed, err := parseNodes(text)
	if err != nil {
		return err
	}
	view.Peers, view.Migrating, view.Importing = parsed.peers, parsed.migrating, parsed.importing
	self, found := view.Self()
	if !found {
		return errors.New("no line is marked myself")
	}
	view.NodeID, view.MasterID, view.Slots = self.ID, self.MasterID, self.Slots
	// INFO and the table were written at two moments of one round trip; the table is the cluster's own word.
	view.Role = RoleMaster
	if self.Flags.Has(FlagReplica) {
		view.Role = RoleReplica
	}
	return nil
}

// parseNodes reads the text of CLUSTER NODES, one line a node:
//
//	<id> <ip:port@cport[,hostname[,name=value]…]> <flags> <master> <ping-sent> <pong-recv> <config-epoch> <link-state> [<slot> …]
//
// as documented for the command and written by clusterGenNodeDescription() of Redis 7.0 to 8.0 and Valkey 8.1 to 9.1. What
// newer engines add (flags, fields after the host name) is passed over; what contradicts the format is an error that
// names it.
func parseNodes(text string) (table, error) {
	parsed := table{ids: map[string]string{}, lines: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if len(parsed.peers) == mostPeers {
			return table{}, fmt.Errorf("more than %d lines: a cluster has no more than 1000 nodes, and those that are gone are to be forgotten",
				mostPeers)
		}
		if err := parsed.addLine(line); err != nil {
			return table{}, fmt.Errorf("line %.80q: %w", line, err)
		}
	}
	return parsed, nil
}

// mostPeers is how many nodes are read: as many as admission allows instances, and half as many again that are gone.
const mostPeers = 1500

func (t *table) addLine(line string) error {
	const fixedFields = 8
	words, rest := make([]string, fixedFields), line
	for i := range words {
		if words[i], rest = nextWord(rest); words[i] == "" {
			return fmt.Errorf("%d fields instead of %d or more", i, fixedFields)
		}
	}
	id, err := t.intern(words[0])
	if err != nil {
		return err
	}
	if t.lines[id] {
		return fmt.Errorf("node %s has two lines", id)
	}
	t.lines[id] = true
	peer := Peer{ID: id, Flags: parseFlags(words[2]), LinkConnected: words[7] == "connected"}
	if peer.Flags.Has(FlagMyself) && t.hasMyself {
		return errors.New("two lines are marked myself")
	}
	t.hasMyself = t.hasMyself || peer.Flags.Has(FlagMyself)
	if err := peer.setAddress(words[1]); err != nil {
		return err
	}
	if words[3] != "-" {
		if peer.MasterID, err = t.intern(words[3]); err != nil {
			return err
		}
	}
	if peer.PingSent, err = parseMillis(words[4]); err != nil {
		return err
	}
	if peer.PongReceived, err = parseMillis(words[5]); err != nil {
		return err
	}
	if peer.ConfigEpoch, err = strconv.ParseUint(words[6], 10, 64); err != nil {
		return fmt.Errorf("config epoch %.80q is not a number", words[6])
	}
	if peer.Slots, err = t.addSlots(rest); err != nil {
		return err
	}
	t.peers = append(t.peers, peer)
	return nil
}

// nextWord cuts the first word off.
func nextWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, " ")
	if end := strings.IndexByte(text, ' '); end >= 0 {
		return text[:end], text[end:]
	}
	return text, ""
}

// addSlots reads the rest of a line: the slots that the node owns, none of which another one does, and those that are open.
func (t *table) addSlots(text string) (slots.Set, error) {
	var owned []slots.Interval
	for text != "" {
		var word string
		if word, text = nextWord(text); word == "" {
			break
		}
		if strings.HasPrefix(word, "[") {
			if err := t.addOpenSlot(word); err != nil {
				return slots.Set{}, err
			}
			continue
		}
		interval, err := slots.ParseInterval(word)
		if err != nil {
			return slots.Set{}, err
		}
		for slot := int(interval.First); slot <= int(interval.Last); slot++ {
			if t.owned[slot] {
				return slots.Set{}, fmt.Errorf("slot %d has two owners", slot)
			}
			t.owned[slot] = true
		}
		owned = append(owned, interval)
	}
	return slots.OfIntervals(owned...), nil
}

// intern checks a node ID and returns the one text that the whole table has for it: no peer keeps all of the answer in memory.
func (t *table) intern(id string) (string, error) {
	if err := checkNodeID(id); err != nil {
		return "", err
	}
	if known, found := t.ids[id]; found {
		return known, nil
	}
	id = strings.Clone(id)
	t.ids[id] = id
	return id, nil
}

// setAddress reads ip:port@cport[,hostname[,name=value]…]. The ip may be empty or an IPv6 address without brackets.
func (p *Peer) setAddress(field string) error {
	address, more, _ := strings.Cut(field, ",")
	hostname, _, _ := strings.Cut(more, ",")
	colon := strings.LastIndexByte(address, ':')
	if colon < 0 {
		return fmt.Errorf("address %.80q has no port", field)
	}
	port, busPort, found := strings.Cut(address[colon+1:], "@")
	if !found {
		return fmt.Errorf("address %.80q has no bus port", field)
	}
	var err error
	if p.Port, err = parsePort(port); err != nil {
		return fmt.Errorf("address %.80q: %w", field, err)
	}
	if p.BusPort, err = parsePort(busPort); err != nil {
		return fmt.Errorf("address %.80q: %w", field, err)
	}
	if strings.Contains(hostname, "=") {
		hostname = ""
	}
	if !isHost(address[:colon], ":%") || !isHost(hostname, "_") {
		return fmt.Errorf("address %.80q is none", field)
	}
	p.IP, p.Hostname = strings.Clone(address[:colon]), strings.Clone(hostname)
	return nil
}

// isHost reports whether text can be a name or an address, which may be announced in place of one; empty text can.
func isHost(text, others string) bool {
	const most = 255 // of a DNS name
	return len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '.' && r != '-' && !strings.ContainsRune(others, r)
	})
}

// addOpenSlot reads [slot->-nodeID] (migrating to) or [slot-<-nodeID] (importing from). Only the node's own line has
// them.
func (t *table) addOpenSlot(word string) error {
	inner := strings.TrimSuffix(strings.TrimPrefix(word, "["), "]")
	number, id, isMigrating := strings.Cut(inner, "->-")
	open := &t.migrating
	if !isMigrating {
		var isImporting bool
		if number, id, isImporting = strings.Cut(inner, "-<-"); !isImporting {
			return fmt.Errorf("open slot %.80q is neither migrating nor importing", word)
		}
		open = &t.importing
	}
	slot, err := slots.ParseNumber(number)
	if err != nil {
		return fmt.Errorf("open slot %.80q: %w", word, err)
	}
	if id, err = t.intern(id); err != nil {
		return fmt.Errorf("open slot %.80q: %w", word, err)
	}
	if *open == nil {
		*open = map[uint16]string{}
	}
	if _, found := (*open)[slot]; found {
		return fmt.Errorf("open slot %.80q: it is there twice", word)
	}
	(*open)[slot] = id
	return nil
}

func checkNodeID(id string) error {
	const length = 40
	if len(id) != length || strings.Trim(id, "0123456789abcdef") != "" {
		return fmt.Errorf("node ID %.80q is not %d hex digits", id, length)
	}
	return nil
}

func parsePort(text string) (int, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port %.80q is not a number from 0 to 65535", text)
	}
	return int(port), nil
}

// parseMillis reads a Unix time in milliseconds; 0 is the zero time.
func parseMillis(text string) (time.Time, error) {
	millis, err := strconv.ParseInt(text, 10, 64)
	const most = 1 << 48 // the year 10889
	if err != nil || millis < 0 || millis > most {
		return time.Time{}, fmt.Errorf("time %.80q is not a number of milliseconds", text)
	}
	if millis == 0 {
		return time.Time{}, nil
	}
	return time.UnixMilli(millis), nil
}

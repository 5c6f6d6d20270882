// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/slots"
)

// table is what CLUSTER NODES says.
type table struct {
	peers                []Peer
	migrating, importing map[uint16]string
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
	var parsed table
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			continue
		}
		if err := parsed.addLine(line); err != nil {
			return table{}, fmt.Errorf("line %q: %w", line, err)
		}
	}
	return parsed, nil
}

func (t *table) addLine(line string) error {
	const fixedFields = 8
	words := strings.Fields(line)
	if len(words) < fixedFields {
		return fmt.Errorf("%d fields instead of %d or more", len(words), fixedFields)
	}
	peer := Peer{ID: words[0], Flags: parseFlags(words[2]), LinkConnected: words[7] == "connected"}
	if err := checkNodeID(peer.ID); err != nil {
		return err
	}
	if err := peer.setAddress(words[1]); err != nil {
		return err
	}
	if words[3] != "-" {
		if err := checkNodeID(words[3]); err != nil {
			return err
		}
		peer.MasterID = words[3]
	}
	var err error
	if peer.PingSent, err = parseMillis(words[4]); err != nil {
		return err
	}
	if peer.PongReceived, err = parseMillis(words[5]); err != nil {
		return err
	}
	if peer.ConfigEpoch, err = strconv.ParseUint(words[6], 10, 64); err != nil {
		return fmt.Errorf("config epoch: %w", err)
	}
	var owned []string
	for _, word := range words[fixedFields:] {
		if !strings.HasPrefix(word, "[") {
			owned = append(owned, word)
		} else if err := t.addOpenSlot(word); err != nil {
			return err
		}
	}
	if peer.Slots, err = slots.Parse(strings.Join(owned, " ")); err != nil {
		return err
	}
	t.peers = append(t.peers, peer)
	return nil
}

// setAddress reads ip:port@cport[,hostname[,name=value]…]. The ip may be empty or an IPv6 address without brackets.
func (p *Peer) setAddress(field string) error {
	parts := strings.Split(field, ",")
	colon := strings.LastIndexByte(parts[0], ':')
	if colon < 0 {
		return fmt.Errorf("address %q has no port", field)
	}
	p.IP = parts[0][:colon]
	port, busPort, found := strings.Cut(parts[0][colon+1:], "@")
	if !found {
		return fmt.Errorf("address %q has no bus port", field)
	}
	var err error
	if p.Port, err = parsePort(port); err != nil {
		return fmt.Errorf("address %q: %w", field, err)
	}
	if p.BusPort, err = parsePort(busPort); err != nil {
		return fmt.Errorf("address %q: %w", field, err)
	}
	if len(parts) > 1 && !strings.Contains(parts[1], "=") {
		p.Hostname = parts[1]
	}
	return nil
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
			return fmt.Errorf("open slot %q is neither migrating nor importing", word)
		}
		open = &t.importing
	}
	slot, err := slots.ParseNumber(number)
	if err != nil {
		return fmt.Errorf("open slot %q: %w", word, err)
	}
	if err := checkNodeID(id); err != nil {
		return fmt.Errorf("open slot %q: %w", word, err)
	}
	if *open == nil {
		*open = map[uint16]string{}
	}
	(*open)[slot] = id
	return nil
}

func checkNodeID(id string) error {
	const length = 40
	if len(id) != length || strings.Trim(id, "0123456789abcdef") != "" {
		return fmt.Errorf("node ID %q is not %d hex digits", id, length)
	}
	return nil
}

func parsePort(text string) (int, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port %q is not a number from 0 to 65535", text)
	}
	return int(port), nil
}

// parseMillis reads a Unix time in milliseconds; 0 is the zero time.
func parseMillis(text string) (time.Time, error) {
	millis, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("time %q is not a number of milliseconds", text)
	}
	if millis == 0 {
		return time.Time{}, nil
	}
	return time.UnixMilli(millis), nil
}

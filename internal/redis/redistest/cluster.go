// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// clusterCommand is a subcommand of CLUSTER (clusterCommand); the handler gets the arguments after the subcommand.
type clusterCommand struct {
	handler  func(n *Node, args []string) any
	min, max int // arguments; max -1: any number
	valkey   int // the major version that has it first; 0: every engine does
}

var clusterCommands map[string]clusterCommand

func init() { // breaks the initialization cycle through COMMAND INFO
	clusterCommands = map[string]clusterCommand{
		"MYID":             {handler: func(n *Node, _ []string) any { return n.id }},
		"INFO":             {handler: func(n *Node, _ []string) any { return n.clusterInfo() }},
		"NODES":            {handler: func(n *Node, _ []string) any { return n.nodes() }},
		"SHARDS":           {handler: func(n *Node, _ []string) any { return n.shards() }},
		"MEET":             {handler: (*Node).meetCommand, min: 2, max: 3},
		"ADDSLOTS":         {handler: (*Node).addSlotsCommand, min: 1, max: -1},
		"ADDSLOTSRANGE":    {handler: (*Node).addSlotsRangeCommand, min: 2, max: -1},
		"DELSLOTS":         {handler: (*Node).delSlotsCommand, min: 1, max: -1},
		"DELSLOTSRANGE":    {handler: (*Node).delSlotsRangeCommand, min: 2, max: -1},
		"SETSLOT":          {handler: (*Node).setSlotCommand, min: 2, max: -1},
		"COUNTKEYSINSLOT":  {handler: (*Node).countKeysCommand, min: 1, max: 1},
		"GETKEYSINSLOT":    {handler: (*Node).getKeysCommand, min: 2, max: 2},
		"SLOT-STATS":       {handler: (*Node).slotStatsCommand, min: 3, max: 3, valkey: 8},
		"BUMPEPOCH":        {handler: (*Node).bumpEpochCommand},
		"SET-CONFIG-EPOCH": {handler: (*Node).setEpochCommand, min: 1, max: 1},
		"REPLICATE":        {handler: (*Node).replicateCommand, min: 1, max: 1},
		"FORGET":           {handler: (*Node).forgetCommand, min: 1, max: 1},
		"FAILOVER":         {handler: (*Node).failoverCommand, max: 1},
		"RESET":            {handler: (*Node).resetCommand, max: 1},
		"SAVECONFIG":       {handler: func(*Node, []string) any { return okReply }},

		"MIGRATESLOTS":         {handler: (*Node).migrateSlotsCommand, min: 2, max: -1, valkey: 9},
		"GETSLOTMIGRATIONS":    {handler: (*Node).getMigrationsCommand, valkey: 9},
		"CANCELSLOTMIGRATIONS": {handler: (*Node).cancelMigrationsCommand, valkey: 9},
	}
}

// existsAt reports whether the node's engine has the command.
func (c clusterCommand) existsAt(n *Node) bool {
	return c.valkey == 0 || n.options.Valkey && n.majorVersion() >= c.valkey
}

func (s *session) cluster(args []string) any {
	sub, args := args[0], args[1:]
	command, known := clusterCommands[strings.ToUpper(sub)]
	if !known || !command.existsAt(s.node) {
		return unknownSubcommand("CLUSTER", sub)
	}
	if len(args) < command.min || (command.max >= 0 && len(args) > command.max) {
		return wrongArity("cluster|" + sub)
	}
	return command.handler(s.node, args)
}

func (n *Node) meetCommand(args []string) any {
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return errorText("ERR Invalid TCP base port specified: " + args[1])
	}
	busPort := port + 10000
	if len(args) == 3 {
		if busPort, err = strconv.Atoi(args[2]); err != nil {
			return errorText("ERR Invalid TCP bus port specified: " + args[2])
		}
	}
	if _, err := netip.ParseAddr(args[0]); err != nil || port <= 0 || port > 65535 || busPort <= 0 || busPort > 65535 {
		return errorText(fmt.Sprintf("ERR Invalid node address specified: %s:%s", args[0], args[1]))
	}
	n.addHandshake(args[0], port, busPort, true)
	return okReply
}

func (n *Node) addSlotsCommand(args []string) any      { return n.updateSlots(pairsOfOne(args), true) }
func (n *Node) delSlotsCommand(args []string) any      { return n.updateSlots(pairsOfOne(args), false) }
func (n *Node) addSlotsRangeCommand(args []string) any { return n.updateSlots(args, true) }

func (n *Node) delSlotsRangeCommand(args []string) any { return n.updateSlots(args, false) }

// pairsOfOne makes bounds of single slots.
func pairsOfOne(numbers []string) []string {
	var bounds []string
	for _, number := range numbers {
		bounds = append(bounds, number, number)
	}
	return bounds
}

// updateSlots claims slots of nobody, or unassigns slots, given as pairs of bounds (checkSlotAssignmentsOrReply,
// clusterUpdateSlots).
func (n *Node) updateSlots(bounds []string, claim bool) any {
	if len(bounds)%2 == 1 {
		if claim {
			return wrongArity("cluster|addslotsrange")
		}
		return wrongArity("cluster|delslotsrange")
	}
	var all slots.Set
	for pair := range slices.Chunk(bounds, 2) {
		first, err := slots.ParseNumber(pair[0])
		last, err2 := slots.ParseNumber(pair[1])
		if err != nil || err2 != nil {
			return invalidSlot
		}
		if first > last {
			return errorText(fmt.Sprintf("ERR start slot number %d is greater than end slot number %d", first, last))
		}
		wanted, owned := slots.Range(first, last), n.owned()
		if busy := wanted.Intersect(owned); claim && !busy.IsEmpty() {
			return errorText(fmt.Sprintf("ERR Slot %s is already busy", busy.Take(1)))
		}
		if free := wanted.Subtract(owned); !claim && !free.IsEmpty() {
			return errorText(fmt.Sprintf("ERR Slot %s is already unassigned", free.Take(1)))
		}
		if twice := wanted.Intersect(all); !twice.IsEmpty() {
			return errorText(fmt.Sprintf("ERR Slot %s specified multiple times", twice.Take(1)))
		}
		all = all.Union(wanted)
	}
	var owner *peer
	if claim {
		owner = n.self()
	}
	for slot := range n.importing.set().Intersect(all).Slots() {
		delete(n.importing, slot)
	}
	n.assign(all, owner)
	return okReply
}

func (n *Node) setEpochCommand(args []string) any {
	epoch, err := strconv.ParseInt(args[0], 10, 64)
	switch {
	case err != nil:
		return errorText("ERR value is not an integer or out of range")
	case epoch < 0:
		return errorText("ERR Invalid config epoch specified: " + args[0])
	case len(n.table) > 1:
		return errorText("ERR The user can assign a config epoch only when the node does not know any other node.")
	case n.self().configEpoch != 0:
		return errorText("ERR Node config epoch is already non-zero")
	}
	n.self().configEpoch = uint64(epoch)
	n.currentEpoch = max(n.currentEpoch, uint64(epoch))
	return okReply
}

func (n *Node) replicateCommand(args []string) any {
	master, self := n.find(args[0]), n.self()
	switch {
	case master == nil:
		return errorText("ERR Unknown node " + args[0])
	case master == self:
		return errorText("ERR Can't replicate myself")
	case master.replica:
		return errorText("ERR I can only replicate a master, not a replica.")
	case !self.replica && (!self.slots.IsEmpty() || len(n.keys) > 0):
		return errorText("ERR To set a master the node must be empty and without assigned slots.")
	}
	n.follow(master.id)
	return okReply
}

func (n *Node) forgetCommand(args []string) any {
	p := n.find(args[0])
	switch {
	case p == nil:
		return errorText("ERR Unknown node " + args[0])
	case p == n.self():
		return errorText("ERR I tried hard but I can't forget myself...")
	case n.self().replica && n.self().masterID == p.id:
		return errorText("ERR Can't forget my master!")
	}
	n.forget(p)
	return okReply
}

func (n *Node) failoverCommand(args []string) any {
	mode := strings.ToUpper(strings.Join(args, ""))
	if mode != "" && mode != "FORCE" && mode != "TAKEOVER" {
		return errorText("ERR syntax error")
	}
	if !n.self().replica {
		return errorText("ERR You should send CLUSTER FAILOVER to a replica")
	}
	master := n.master()
	if master == nil {
		return errorText("ERR I'm a replica but my master is unknown to me")
	}
	if mode == "" && (master.fail || !master.linkUp) {
		return errorText("ERR Master is down or failed, please use CLUSTER FAILOVER FORCE")
	}
	if mode == "TAKEOVER" {
		n.takeOver()
		return okReply
	}
	n.manual = manualFailover{end: n.world.now.Add(manualFailoverTimeout), force: mode == "FORCE"}
	n.election = election{}
	return okReply
}

func (n *Node) resetCommand(args []string) any {
	mode := strings.ToUpper(strings.Join(args, ""))
	if mode != "" && mode != "SOFT" && mode != "HARD" {
		return errorText("ERR syntax error")
	}
	self := n.self()
	if !self.replica && len(n.keys) > 0 {
		return errorText("ERR CLUSTER RESET can't be called with master nodes containing keys")
	}
	if self.replica {
		n.becomeMaster()
		n.keys = map[string]string{}
		self.shard = n.world.hexID()
	}
	n.closeSlots()
	n.endJobs(anyJob, "Slots are no longer owned by myself")
	n.table = n.table[:1]
	n.notClaimed, self.slots = slots.Set{}, slots.Set{}
	n.manual, n.election = manualFailover{}, election{}
	if mode == "HARD" {
		n.currentEpoch, n.lastVoteEpoch, self.configEpoch = 0, 0, 0
		n.id = n.world.hexID()
		self.id, self.shard = n.id, n.id
	}
	return okReply
}

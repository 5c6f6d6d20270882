// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"slices"
	"strconv"
	"strings"
)

// migration is a MIGRATE command (migrateCommand).
type migration struct {
	host          string
	port          int
	keys          []string
	copy, replace bool
	auth          []string // arguments for AUTH at the target; none when empty
	database      int
}

// migrateKeys are the keys of a MIGRATE command (migrateGetKeys).
func migrateKeys(args []string) []string {
	if args[2] == "" {
		for i := 5; i < len(args); i++ {
			if strings.EqualFold(args[i], "KEYS") {
				return args[i+1:]
			}
		}
	}
	return args[2:3]
}

func parseMigration(args []string) (migration, errorText) {
	m := migration{host: args[0], keys: args[2:3]}
	for options := args[5:]; len(options) > 0; options = options[1:] {
		values := 0 // that the option takes
		switch strings.ToUpper(options[0]) {
		case "COPY":
			m.copy = true
		case "REPLACE":
			m.replace = true
		case "AUTH":
			values = 1
		case "AUTH2":
			values = 2
		case "KEYS":
			if args[2] != "" {
				return m, "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"
			}
			m.keys = options[1:]
			options = options[:1]
		default:
			return m, syntaxError
		}
		if len(options) <= values {
			return m, syntaxError
		}
		if values > 0 {
			m.auth = options[1 : 1+values]
			options = options[values:]
		}
	}
	_, err := strconv.Atoi(args[4])
	var err2 error
	if m.database, err2 = strconv.Atoi(args[3]); err != nil || err2 != nil {
		return m, notAnInteger
	}
	m.port, _ = strconv.Atoi(args[1]) // as atoi: what is no port cannot be connected to
	return m, ""
}

// migrate moves keys to another node. It takes no simulated time.
func (s *session) migrate(args []string) any {
	m, refusal := parseMigration(args)
	if refusal != "" {
		return refusal
	}
	n := s.node
	m.keys = slices.DeleteFunc(slices.Clone(m.keys), func(key string) bool {
		_, exists := n.keys[key]
		return !exists
	})
	if len(m.keys) == 0 {
		return simple("NOKEY")
	}
	target, reachable := n.world.serverAt(n, m.host, m.port)
	if !reachable {
		return errorText("IOERR error or timeout connecting to the client")
	}
	if target == nil {
		return errorText("IOERR error or timeout writing to target instance") // the connection was refused
	}
	moved, failure := m.send(n, target)
	if s.targetReplyLost {
		return errorText("IOERR error or timeout reading to target instance")
	}
	if !m.copy {
		for _, key := range moved {
			n.delete(key)
		}
	}
	if failure != "" {
		return "ERR Target instance replied with error: " + failure
	}
	return okReply
}

// send restores the keys at the target. moved are those that it has acknowledged, failure its first error. After a failed
// AUTH or SELECT nothing counts as acknowledged, but a target that needed neither has executed it all.
func (m migration) send(from, target *Node) (moved []string, failure errorText) {
	client := &session{node: target}
	if len(m.auth) > 0 {
		failure, _ = client.execute(append([]string{"AUTH"}, m.auth...)).(errorText)
	}
	if m.database != 0 && failure == "" {
		failure = "ERR SELECT is not allowed in cluster mode"
		if target.options.Valkey && target.majorVersion() >= 9 {
			failure = "ERR DB index is out of range"
		}
	}
	isRefused := failure != ""
	for _, key := range m.keys {
		command := []string{"RESTORE-ASKING", key, "0", dumped(from.keys[key])}
		if m.replace {
			command = append(command, "REPLACE")
		}
		reply := client.execute(command)
		if text, isError := reply.(errorText); isError && failure == "" {
			failure = text
		}
		if reply == okReply && !isRefused {
			moved = append(moved, key)
		}
	}
	target.updateState()
	return moved, failure
}

// serverAt is the living node that announces the address, nil when there is none. It is not reachable from the other
// side of a partition.
func (w *World) serverAt(from *Node, ip string, port int) (n *Node, reachable bool) {
	for _, n := range w.nodes {
		if listens, secured := n.takes(strconv.Itoa(port)); n.alive() && n.options.IP == ip && listens &&
			secured == (from.settings["tls-cluster"] == "yes") {
			return n, w.isolated[n] == w.isolated[from]
		}
	}
	return nil, true
}

// Holders are the nodes whose data set has the key, dead ones (that would bring it back with a restart) included.
func (w *World) Holders(key string) []*Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	var holders []*Node
	for _, n := range w.nodes {
		if _, holds := n.keys[key]; holds {
			holders = append(holders, n)
		}
	}
	return holders
}

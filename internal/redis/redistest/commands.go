// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/internal/rediscluster/slots"
)

const okReply = simple("OK")

// spec is a command: its handler gets the arguments after the name.
type spec struct {
	handler func(s *session, args []string) any
	// min and max number of arguments after the name, as for redis-server's arity. max -1: any number.
	min, max int
	// loading commands are served while the data set is read, open ones before authentication.
	loading, open bool
}

// commands is the command table. CLUSTER has one of its own.
var commands map[string]spec

func init() { // breaks the initialization cycle through execute
	commands = map[string]spec{
		"AUTH":    {handler: (*session).auth, min: 1, max: 2, loading: true, open: true},
		"HELLO":   {handler: (*session).hello, max: -1, loading: true, open: true},
		"PING":    {handler: func(*session, []string) any { return simple("PONG") }, max: 1},
		"INFO":    {handler: func(s *session, _ []string) any { return s.node.info() }, max: -1, loading: true},
		"ROLE":    {handler: func(s *session, _ []string) any { return s.node.role() }, loading: true},
		"DBSIZE":  {handler: func(s *session, _ []string) any { return len(s.node.keys) }},
		"CONFIG":  {handler: (*session).config, min: 1, max: -1, loading: true},
		"GET":     {handler: (*session).get, min: 1, max: 1},
		"SET":     {handler: (*session).set, min: 2, max: 2},
		"CLUSTER": {handler: (*session).cluster, min: 1, max: -1},
	}
}

// execute runs one command (processCommand).
func (s *session) execute(args []string) any {
	command, known := commands[strings.ToUpper(args[0])]
	if !known {
		return errorText(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", args[0], quoted(args[1:])))
	}
	if !command.accepts(args[1:]) {
		return wrongArity(args[0])
	}
	if s.node.options.Password != "" && !s.authenticated && !command.open {
		return errorText("NOAUTH Authentication required.")
	}
	if s.node.loading && !command.loading {
		return errorText("LOADING Redis is loading the dataset in memory")
	}
	return command.handler(s, args[1:])
}

func (c spec) accepts(args []string) bool {
	return len(args) >= c.min && (c.max < 0 || len(args) <= c.max)
}

func wrongArity(name string) errorText {
	return errorText(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(name)))
}

func quoted(args []string) string {
	var b strings.Builder
	for _, arg := range args {
		fmt.Fprintf(&b, "'%s' ", arg)
	}
	return b.String()
}

const wrongPassword = errorText("WRONGPASS invalid username-password pair or user is disabled.")

// auth accepts the default user only.
func (s *session) auth(args []string) any {
	password := s.node.options.Password
	if len(args) == 1 && password == "" {
		return errorText("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	}
	if len(args) == 2 && args[0] != "default" || password != "" && args[len(args)-1] != password {
		return wrongPassword
	}
	s.authenticated = true
	return okReply
}

// hello knows RESP2 only.
func (s *session) hello(args []string) any {
	if len(args) > 0 && args[0] != "2" {
		return errorText("NOPROTO unsupported protocol version")
	}
	if len(args) == 4 && strings.EqualFold(args[1], "AUTH") {
		if reply := s.auth(args[2:]); reply != okReply {
			return reply
		}
	}
	if s.node.options.Password != "" && !s.authenticated {
		return errorText("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> " +
			"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	return []any{"server", "redis", "version", s.node.options.Version, "proto", 2, "mode", "cluster"}
}

// config keeps settings as they are set; it knows no defaults and checks no values.
func (s *session) config(args []string) any {
	settings := s.node.settings
	switch sub := strings.ToUpper(args[0]); {
	case sub == "GET" && len(args) > 1:
		var found []any
		for _, name := range slices.Sorted(maps.Keys(settings)) {
			if slices.Contains(args[1:], name) || slices.Contains(args[1:], "*") {
				found = append(found, name, settings[name])
			}
		}
		return found
	case sub == "SET" && len(args) > 1 && len(args)%2 == 1:
		for pair := range slices.Chunk(args[1:], 2) {
			settings[strings.ToLower(pair[0])] = pair[1]
		}
		return okReply
	}
	return unknownSubcommand("CONFIG", args[0])
}

func unknownSubcommand(command, sub string) errorText {
	return errorText(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", sub, command))
}

func (s *session) get(args []string) any {
	if refusal := s.node.redirect(args[0]); refusal != "" {
		return refusal
	}
	if value, found := s.node.keys[args[0]]; found {
		return value
	}
	return null{}
}

func (s *session) set(args []string) any {
	if refusal := s.node.redirect(args[0]); refusal != "" {
		return refusal
	}
	s.node.keys[args[0]] = args[1]
	s.node.offset += int64(len(args[0]) + len(args[1]))
	return okReply
}

// redirect says why the key is not served here (getNodeByQuery); empty when it is.
func (n *Node) redirect(key string) errorText {
	if n.state != "ok" {
		return "CLUSTERDOWN The cluster is down"
	}
	slot := slots.KeySlot(key)
	for _, p := range n.table {
		if p.slots.Contains(slot) {
			if p == n.self() {
				return ""
			}
			return errorText(fmt.Sprintf("MOVED %d %s:%d", slot, p.ip, p.port))
		}
	}
	return "CLUSTERDOWN Hash slot not served"
}

// role is ROLE as replicas and masters answer it.
func (n *Node) role() any {
	if master := n.master(); master != nil {
		state := "connect"
		if n.masterLinkUp {
			state = "connected"
		}
		return []any{"slave", master.ip, master.port, state, int(n.offset)}
	}
	replicas := []any{}
	for _, other := range n.world.nodes {
		if other.listener != nil && other.masterLinkUp && other.self().masterID == n.id {
			replicas = append(replicas, []any{other.options.IP, strconv.Itoa(other.options.Port), strconv.FormatInt(other.offset, 10)})
		}
	}
	return []any{"master", int(n.offset), replicas}
}

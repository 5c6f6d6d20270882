// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"strconv"
	"strings"
)

const okReply = simple("OK")

// spec is a command: its handler gets the arguments after the name.
type spec struct {
	handler func(s *session, args []string) any
	// min and max number of arguments after the name, as for redis-server's arity. max -1: any number.
	min, max int
	// loading commands are served while the data set is read, open ones before authentication.
	loading, open bool
	// keys says which arguments are keys; nil for commands without. Commands that write are not for replicas, asking ones
	// need no ASKING (RESTORE-ASKING), and MIGRATE is local wherever its slot is open.
	keys                   func(args []string) []string
	write, asking, migrate bool
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
		"ACL":     {handler: (*session).acl, min: 1, max: -1, loading: true},
		"CONFIG":  {handler: (*session).config, min: 1, max: -1, loading: true},
		"COMMAND": {handler: (*session).commandInfo, max: -1, loading: true},
		"CLUSTER": {handler: (*session).cluster, min: 1, max: -1},
		"CLIENT":  {handler: (*session).client, min: 1, max: -1, loading: true},

		"ASKING":    {handler: func(s *session, _ []string) any { s.asking = true; return okReply }},
		"READONLY":  {handler: func(s *session, _ []string) any { s.readonly = true; return okReply }},
		"READWRITE": {handler: func(s *session, _ []string) any { s.readonly = false; return okReply }},

		"GET":            {handler: (*session).get, min: 1, max: 1, keys: firstKey},
		"SET":            {handler: (*session).mset, min: 2, max: 2, keys: firstKey, write: true},
		"MGET":           {handler: (*session).mget, min: 1, max: -1, keys: allKeys},
		"MSET":           {handler: (*session).mset, min: 2, max: -1, keys: everySecondKey, write: true},
		"DEL":            {handler: (*session).del, min: 1, max: -1, keys: allKeys, write: true},
		"UNLINK":         {handler: (*session).del, min: 1, max: -1, keys: allKeys, write: true},
		"EXISTS":         {handler: (*session).exists, min: 1, max: -1, keys: allKeys},
		"MEMORY":         {handler: (*session).memory, min: 2, max: 4, keys: secondKey},
		"DUMP":           {handler: (*session).dump, min: 1, max: 1, keys: firstKey},
		"TYPE":           {handler: (*session).typeOf, min: 1, max: 1, keys: firstKey},
		"RESTORE":        {handler: (*session).restore, min: 3, max: -1, keys: firstKey, write: true},
		"RESTORE-ASKING": {handler: (*session).restore, min: 3, max: -1, keys: firstKey, write: true, asking: true},
		"MIGRATE":        {handler: (*session).migrate, min: 5, max: -1, keys: migrateKeys, write: true, migrate: true},
		"FUNCTION":       {handler: (*session).function, min: 1, max: -1},
		"BGREWRITEAOF":   {handler: (*session).rewriteAOF},
		"MULTI":          {handler: (*session).multi},
		"EXEC":           {handler: (*session).exec},
		"FLUSHALL":       {handler: (*session).flushAll, max: 1},
	}
}

// execute runs one command (processCommand).
func (s *session) execute(args []string) any {
	asking := s.asking
	s.asking = false // it holds for one command (resetClient)
	command, known := commands[strings.ToUpper(args[0])]
	if !known {
		return errorText(fmt.Sprintf("ERR unknown command '%s', with args beginning with: %s", args[0], quoted(args[1:])))
	}
	if s.relay && !passes(args) {
		return errorText("ERR a relay passes nothing on that writes")
	}
	if !command.accepts(args[1:]) {
		return wrongArity(args[0])
	}
	if !s.authenticated && !s.node.open() && !command.open {
		return errorText("NOAUTH Authentication required.")
	}
	if s.node.loading && !command.loading {
		return errorText("LOADING Redis is loading the dataset in memory")
	}
	if command.keys != nil {
		if refusal := s.route(command, command.keys(args[1:]), asking || command.asking); refusal != "" {
			return refusal
		}
		if command.write && s.node.disk.failed && !s.node.self().replica && s.node.settings["appendonly"] == "yes" {
			return errorText("MISCONF Errors writing to the AOF file: No space left on device")
		}
	}
	if s.queues(args) {
		return simple("QUEUED")
	}
	return command.handler(s, args[1:])
}

// commandInfo is COMMAND INFO: the entries of the commands that this engine has, without key specifications.
func (s *session) commandInfo(args []string) any {
	if len(args) == 0 || !strings.EqualFold(args[0], "INFO") {
		return errorText("ERR only COMMAND INFO is simulated")
	}
	answer := []any{}
	for _, name := range args[1:] {
		answer = append(answer, s.describeCommand(name))
	}
	return answer
}

func (s *session) describeCommand(name string) any {
	container, sub, isSub := strings.Cut(strings.ToUpper(name), "|")
	arity, known := 0, false
	if command, found := commands[container]; found && !isSub {
		arity, known = -(command.min + 1), true
		if command.min == command.max {
			arity = -arity
		}
	}
	if command, found := clusterCommands[sub]; found && container == "CLUSTER" && command.existsAt(s.node) {
		arity, known = -(command.min + 2), true
		if command.min == command.max {
			arity = -arity
		}
	}
	if !known {
		return nullArray{}
	}
	return []any{strings.ToLower(name), arity, []any{}, 0, 0, 0, []any{}, []any{}, []any{}, []any{}}
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

// auth logs in as any user; all of them may do everything here.
func (s *session) auth(args []string) any {
	if s.relay {
		return okReply
	}
	name := defaultUser
	if len(args) == 2 {
		name = args[0]
	}
	if len(args) == 1 && s.node.open() {
		return errorText("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	}
	if !s.node.authenticates(name, args[len(args)-1]) {
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
	if !s.authenticated && !s.node.open() {
		return errorText("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> " +
			"AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	return []any{"server", "redis", "version", s.node.options.Version, "proto", 2, "mode", "cluster"}
}

func unknownSubcommand(command, sub string) errorText {
	return errorText(fmt.Sprintf("ERR unknown subcommand '%s'. Try %s HELP.", sub, command))
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
		if other.alive() && other.masterLinkUp && other.self().masterID == n.id {
			replicas = append(replicas, []any{other.options.IP, strconv.Itoa(other.options.Port), strconv.FormatInt(other.offset, 10)})
		}
	}
	return []any{"master", int(n.offset), replicas}
}

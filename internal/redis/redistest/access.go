// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"middleware.hc.cn/operator/internal/redis/redisconf"
)

const (
	defaultUser = "default"
	masterAuth  = "masterauth"
	masterUser  = "masteruser"
)

// SetConfig changes the lines of redis.conf that the node reads when it starts the next time (see NodeOptions.Config).
func (w *World) SetConfig(n *Node, config string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.options.Config = config
}

// loadUsers makes the users and the link be as the process finds them when it starts.
func (n *Node) loadUsers() {
	n.users = map[string][]string{defaultUser: {"on", "nopass", "~*", "&*", "+@all"}}
	delete(n.settings, masterAuth)
	delete(n.settings, masterUser)
	if password := n.options.Password; password != "" {
		n.setUser(defaultUser, []string{">" + password})
		n.settings[masterAuth] = password
	}
	for line := range strings.Lines(n.options.Config) {
		words, err := redisconf.SplitArguments(line)
		switch {
		case err != nil || len(words) < 2:
			panic(fmt.Sprintf("redistest: line %q of redis.conf", line))
		case words[0] == "user" && n.setUser(words[1], append([]string{"reset"}, words[2:]...)):
		case words[0] == "requirepass":
			n.setUser(defaultUser, []string{"resetpass", ">" + words[1]})
		case words[0] == masterAuth || words[0] == masterUser:
			n.settings[words[0]] = words[1]
		default:
			panic(fmt.Sprintf("redistest: line %q of redis.conf", line))
		}
	}
}

func digest(password string) string {
	sum := sha256.Sum256([]byte(password))
	return "#" + hex.EncodeToString(sum[:])
}

// setUser applies rules, all or none; false when one of them is unknown. Rules about keys, channels and commands are kept
// in the order given, and limit nobody.
func (n *Node) setUser(name string, rules []string) bool {
	user := slices.Clone(n.users[name])
	if user == nil {
		user = []string{"off"}
	}
	drop := func(which func(rule string) bool) { user = slices.DeleteFunc(user, which) }
	isPassword := func(rule string) bool { return strings.HasPrefix(rule, "#") || rule == "nopass" }
	for _, rule := range rules {
		switch {
		case rule == "":
			return false
		case rule == "reset":
			user = []string{"off"}
		case rule == "resetpass":
			drop(isPassword)
		case rule == "on" || rule == "off":
			drop(func(rule string) bool { return rule == "on" || rule == "off" })
			user = append([]string{rule}, user...)
		case rule == "nopass":
			drop(isPassword)
			user = append(user, rule)
		case rule[0] == '>' || rule[0] == '#':
			if rule[0] == '>' {
				rule = digest(rule[1:])
			}
			drop(func(other string) bool { return other == rule || other == "nopass" })
			user = append(user, rule)
		case strings.ContainsRune("~&+-%(", rune(rule[0])) || strings.HasPrefix(rule, "reset") || strings.HasPrefix(rule, "all"):
			drop(func(other string) bool { return other == rule })
			user = append(user, rule)
		default:
			return false
		}
	}
	n.users[name] = user
	return true
}

// open reports whether the default user needs no password.
func (n *Node) open() bool { return slices.Contains(n.users[defaultUser], "nopass") }

func (n *Node) authenticates(name, password string) bool {
	user := n.users[name]
	return slices.Contains(user, "on") && (slices.Contains(user, "nopass") || slices.Contains(user, digest(password)))
}

// linkable reports whether a master lets a replica in that connects now (the handshake of replication.c).
func (n *Node) linkable(master *Node) bool {
	password, name := n.settings[masterAuth], n.settings[masterUser]
	switch {
	case password == "":
		return master.open()
	case name == "":
		return !master.open() && master.authenticates(defaultUser, password)
	}
	return master.authenticates(name, password)
}

// acl is ACL LIST, SETUSER and DELUSER.
func (s *session) acl(args []string) any {
	n := s.node
	switch sub := strings.ToUpper(args[0]); {
	case sub == "LIST" && len(args) == 1:
		list := []any{}
		for _, name := range slices.Sorted(maps.Keys(n.users)) {
			list = append(list, "user "+name+" "+strings.Join(n.users[name], " "))
		}
		return list
	case sub == "SETUSER" && len(args) > 1:
		if !n.setUser(args[1], args[2:]) {
			return errorText("ERR Error in ACL SETUSER modifier: Syntax error")
		}
		return okReply
	case sub == "DELUSER" && len(args) > 1:
		deleted := 0
		for _, name := range args[1:] {
			if _, found := n.users[name]; found && name != defaultUser {
				delete(n.users, name)
				deleted++
			}
		}
		return deleted
	}
	return unknownSubcommand("ACL", args[0])
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// column is the engine of the table of settings that the node behaves like.
func (n *Node) column() string {
	family := "redis"
	if n.options.Valkey {
		family = "valkey"
	}
	major, rest, _ := strings.Cut(n.options.Version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	exact := family + "-" + major + "." + minor
	engines := redisconf.Engines()
	if slices.Contains(engines, exact) {
		return exact
	}
	newest := engines[0]
	for _, engine := range engines {
		if strings.HasPrefix(engine, family+"-") {
			newest = engine
		}
	}
	return newest
}

// defaultSettings are the settings of a node that was given no redis.conf.
func (n *Node) defaultSettings() map[string]string {
	all := redisconf.Defaults(n.column())
	all["cluster-node-timeout"] = strconv.FormatInt(n.world.options.NodeTimeout.Milliseconds(), 10)
	maps.Copy(all, n.tlsDefaults())
	return all
}

// SetFile makes the node read these settings whenever it starts; without, it keeps what it was
// told. It takes effect with the next start.
func (n *Node) SetFile(file map[string]string) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.file = maps.Clone(file)
}

// Setting is the value in force of a setting; empty when the node does not have it.
func (n *Node) Setting(name string) string {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	return n.settings[name]
}

// ShowAs makes CONFIG GET say a value of the setting in these words from now on, whatever it is set to.
func (n *Node) ShowAs(name, words string) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.words = map[string]string{name: words}
}

// readFile is what a starting process does with redis.conf.
func (n *Node) readFile() {
	if n.file == nil {
		return
	}
	n.settings = n.defaultSettings()
	for name, value := range n.file {
		n.settings[name] = shown(name, value)
	}
}

// config is CONFIG GET and SET (config.c).
func (s *session) config(args []string) any {
	n := s.node
	switch sub := strings.ToUpper(args[0]); {
	case sub == "GET" && len(args) > 1:
		names := slices.Clone(args[1:])
		if slices.Contains(names, "*") {
			names = slices.Collect(maps.Keys(n.settings))
		}
		slices.Sort(names)
		found := []any{}
		for _, name := range slices.Compact(names) {
			value, has := n.settings[name]
			if !has {
				continue
			}
			if words, otherwise := n.words[name]; otherwise {
				value = words
			}
			found = append(found, name, value)
		}
		return found
	case sub == "SET" && len(args) > 1 && len(args)%2 == 1:
		return n.configSet(args[1:])
	}
	return unknownSubcommand("CONFIG", args[0])
}

// configSet sets all of the pairs or none.
func (n *Node) configSet(pairs []string) any {
	for pair := range slices.Chunk(pairs, 2) {
		name := strings.ToLower(pair[0])
		if _, has := n.settings[name]; !has && !untabled(name) {
			return errorText(fmt.Sprintf("ERR Unknown option or number of arguments for CONFIG SET - '%s'", pair[0]))
		}
		if problem := n.objection(name, pair[1]); problem != "" {
			return errorText(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %s", pair[0], problem))
		}
	}
	for pair := range slices.Chunk(pairs, 2) {
		name := strings.ToLower(pair[0])
		was := n.settings[name]
		n.settings[name] = shown(name, pair[1])
		if name == "appendonly" {
			n.switchAOF(was, n.settings[name])
		}
		if name == "tls-cert-file" { // also to the value that it has: the engines read all files again
			n.loadCertificate()
		}
	}
	n.announcePorts()
	return okReply
}

func (n *Node) loadCertificate() {
	if loads := n.world.options.LoadsCertificate; loads != nil {
		loads(n.addr(), n.world.now)
	}
}

// untabled are settings that every engine has and the table leaves out, because the operator
// sets them in other ways.
func untabled(name string) bool {
	return slices.ContainsFunc([]string{"masterauth", "masteruser", "requirepass", "primary", "tls-",
		redisconf.NoFailover}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// objection is what the engine has against a value; of a few settings the values are checked.
func (n *Node) objection(name, value string) string {
	policies := []string{"volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl", "allkeys-lru", "allkeys-lfu", "allkeys-random",
		"noeviction"}
	switch {
	case redisconf.Immutable(name, n.column()):
		return "can't set immutable config"
	case name == "maxmemory" && !isNumber(shown(name, value)):
		return "argument must be a memory value"
	case name == "maxmemory-policy" && !slices.Contains(policies, value):
		return "argument(s) must be one of the following: " + strings.Join(policies, ", ")
	}
	return ""
}

// shown is how CONFIG GET writes a value: memory in bytes.
func shown(name, value string) string {
	if name != "maxmemory" {
		return value
	}
	for unit, factor := range map[string]int{"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30} {
		if digits, ok := strings.CutSuffix(strings.ToLower(value), unit); ok && isNumber(digits) {
			number, _ := strconv.Atoi(digits) // it is one
			return strconv.Itoa(number * factor)
		}
	}
	return value
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 63)
	return err == nil
}

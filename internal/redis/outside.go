// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis/replication"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Outside is what a server says that need not be in cluster mode: of itself, and where it is in the history of its data.
type Outside struct {
	Engine  Engine
	Version string
	Role    Role
	// At is where it is: of a replica, how far it has carried out what its master sent.
	At replication.Position
	// Keys are all keys; Others reports whether there are some in other databases than 0.
	Keys   int64
	Others bool
	// Cluster reports whether it is in cluster mode. Then ID is its node ID, Slots are those that it owns, of which Open are how many
	// it gives away or receives, and Peers is its table of the cluster. A server of its own has all slots.
	Cluster bool
	ID      string
	Slots   slots.Set
	Open    int
	Peers   []Peer
	// Modules are the names of those that are loaded, sorted.
	Modules []string
	// Linked reports of a replica that its master answers: it follows, or is being sent all data. Loading, that it reads data from disk.
	Linked, Loading bool
	// LoadErrors is how many commands of its append-only file, or of its master, it could not carry out.
	LoadErrors int64
	// Unsaved reports whether the append-only file is being written anew: what it copied may be in no file.
	Unsaved bool
	// Held is why a relay does not let it be followed at the moment; empty: it does, or is none.
	Held string
}

// FieldHeld is what a relay adds to INFO, to say why it does not let a server be followed.
const FieldHeld = "relay_held"

const (
	// mostModules is how many modules are read of.
	mostModules = 64
	longestHeld = 300
)

// Outside asks for it, in one round trip. Engines before Redis 7 know no list of sections, so that it asks for those that all send.
func (n *Node) Outside(ctx context.Context) (Outside, error) {
	commands := []command{{name: "INFO", args: words("INFO")}, {name: "CLUSTER NODES", args: words("CLUSTER NODES")}}
	answers, err := n.pipeline(ctx, commands...)
	if err != nil {
		return Outside{}, err
	}
	var texts [2]string
	var is Outside
	for i, answer := range answers {
		if i > 0 && !is.Cluster {
			is.Slots = slots.All()
			break // the answer is that there is none, or that it may not be told
		}
		if err := answer.Err(); err != nil {
			return Outside{}, n.failed(ctx, commands[i], err)
		}
		if texts[i], err = answer.Text(); err == nil && i == 0 {
			is, err = readOutside(texts[i])
		} else if err == nil {
			err = readTable(&is, texts[i])
		}
		if err != nil {
			return Outside{}, n.notUnderstood(commands[i], err)
		}
	}
	return is, nil
}

// readTable reads CLUSTER NODES. INFO and the table are of two moments: a node is a master that was one at both.
func readTable(is *Outside, text string) error {
	var view View
	if err := readNodes(&view, text); err != nil {
		return err
	}
	is.ID, is.Slots, is.Open, is.Peers = view.NodeID, view.Slots, len(view.Migrating)+len(view.Importing), view.Peers
	if view.Role != RoleMaster {
		is.Role = RoleReplica
	}
	return nil
}

func readOutside(text string) (Outside, error) {
	var view View
	info := parseFields(text)
	readVersion(&view, info)
	readReplication(&view, info)
	is := Outside{Engine: view.Engine, Version: view.Version, Role: view.Role, Cluster: info.values["cluster_enabled"] == "1",
		Unsaved: unsaved(info), Linked: view.MasterLinkUp || view.Syncing,
		Loading: info.values["loading"] == "1" || info.values["async_loading"] == "1",
		At:      replication.Position{ID: strings.Clone(info.word("master_replid")), Offset: view.ReplicationOffset}}
	if _, told := info.values["unexpected_error_replies"]; told { // engines before Redis 7 do not tell
		is.LoadErrors = info.count("unexpected_error_replies")
	}
	if info.err == nil {
		info.err = checkNodeID(is.At.ID)
	}
	if info.err == nil {
		info.err = countKeys(&view, text)
	}
	if info.err != nil {
		return Outside{}, info.err
	}
	is.Keys, is.Others, is.Held = view.Keys, otherDatabases(text), excerpt.Of(info.values[FieldHeld], longestHeld)
	for line := range strings.Lines(text) {
		module, found := strings.CutPrefix(line, "module:name=")
		if !found {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimRight(module, "\r\n"), ",")
		if len(is.Modules) == mostModules || len(name) > longestName {
			return Outside{}, fmt.Errorf("more than %d modules, or one with a longer name than %d bytes", mostModules, longestName)
		}
		is.Modules = append(is.Modules, strings.Clone(name))
	}
	slices.Sort(is.Modules)
	return is, nil
}

// otherDatabases reports whether INFO tells of keys in other databases than 0.
func otherDatabases(info string) bool {
	for line := range strings.Lines(info) {
		name, _, _ := strings.Cut(line, ":")
		number, isDB := strings.CutPrefix(name, "db")
		if _, err := strconv.ParseUint(number, 10, 31); isDB && err == nil && number != "0" {
			return true
		}
	}
	return false
}

// Connect opens a connection that is logged in, and on which nothing else was said.
func (n *Node) Connect(ctx context.Context) (net.Conn, error) {
	c := command{name: "AUTH", secrets: []string{n.key.credentials.Password}}
	dialing, cancel := context.WithTimeout(ctx, n.pool.options.DialTimeout)
	defer cancel()
	conn, err := n.pool.dial(dialing, n.key.addr, n.key.credentials)
	if err != nil {
		return nil, n.failed(ctx, c, err)
	}
	if n.key.credentials.Password == "" {
		return conn, nil
	}
	stop := context.AfterFunc(dialing, func() { _ = conn.Close() })
	err = login(conn, userOf(n.key.credentials), n.key.credentials.Password)
	if !stop() {
		err = errors.Join(dialing.Err(), err)
	}
	if err != nil {
		_ = conn.Close() // nothing is lost with it
		return nil, n.failed(ctx, c, err)
	}
	return conn, nil
}

func login(conn net.Conn, user, password string) error {
	_, err := fmt.Fprintf(conn, "*3\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(user), user, len(password), password)
	if err != nil {
		return err
	}
	line, err := bufio.NewReaderSize(conn, longestName).ReadString('\n') // nothing comes after it that nobody asked for
	if err != nil {
		return err
	}
	if line != "+OK\r\n" {
		return fmt.Errorf("%w: the login is answered with %.60q", ErrAuth, line)
	}
	return nil
}

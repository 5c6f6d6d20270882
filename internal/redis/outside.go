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

	"middleware.hc.cn/operator/internal/redis/replication"
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
	// Cluster reports whether it is in cluster mode.
	Cluster bool
	// Modules are the names of those that are loaded, sorted.
	Modules []string
	// LoadErrors is how many commands of its append-only file, or of its master, it could not carry out.
	LoadErrors int64
	// Unsaved reports whether the append-only file is being written anew: what it copied may be in no file.
	Unsaved bool
}

// mostModules is how many modules are read of.
const mostModules = 64

// Outside asks for it, in one round trip. Engines before Redis 7 know no list of sections, so that it asks for those that all send.
func (n *Node) Outside(ctx context.Context) (Outside, error) {
	c := command{name: "INFO", args: words("INFO")}
	answer, err := n.do(ctx, c)
	if err != nil {
		return Outside{}, err
	}
	text, err := answer.Text()
	if err != nil {
		return Outside{}, n.notUnderstood(c, err)
	}
	is, err := readOutside(text)
	if err != nil {
		return Outside{}, n.notUnderstood(c, err)
	}
	return is, nil
}

func readOutside(text string) (Outside, error) {
	var view View
	info := parseFields(text)
	readVersion(&view, info)
	readReplication(&view, info)
	is := Outside{Engine: view.Engine, Version: view.Version, Role: view.Role, Cluster: info.values["cluster_enabled"] == "1",
		Unsaved: unsaved(info),
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
	is.Keys, is.Others = view.Keys, otherDatabases(text)
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

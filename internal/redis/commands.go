// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// FailoverMode says what a failover may skip.
type FailoverMode string

// The modes of CLUSTER FAILOVER.
const (
	// FailoverDefault waits until the replica has everything of its master, which must be alive. It loses no write.
	FailoverDefault FailoverMode = ""
	// FailoverForce does not ask the master; a majority of the masters votes. Writes not yet replicated are lost.
	FailoverForce FailoverMode = "FORCE"
	// FailoverTakeover asks nobody. Only for a lost majority whose old masters are known to be gone.
	FailoverTakeover FailoverMode = "TAKEOVER"
)

// ResetMode says what a reset keeps.
type ResetMode string

// The modes of CLUSTER RESET.
const (
	// ResetSoft forgets the other nodes and gives up all slots.
	ResetSoft ResetMode = "SOFT"
	// ResetHard also takes a new node ID and sets the epochs to zero.
	ResetHard ResetMode = "HARD"
)

// secretSettings are the settings whose value is a password.
var secretSettings = []string{
	"requirepass", "masterauth", "primaryauth", "tls-key-file-pass", "tls-client-key-file-pass",
}

// Ping succeeds when the node answers and serves commands. A node that loads its data set fails with ErrLoading.
func (n *Node) Ping(ctx context.Context) error { return n.tell(ctx, "PING") }

// Identify is the node ID of whoever answers at this address, for the check before it is told anything: addresses are
// used again by other clusters.
func (n *Node) Identify(ctx context.Context) (string, error) {
	c := command{name: "CLUSTER MYID", args: []any{"CLUSTER", "MYID"}}
	answer, err := n.do(ctx, c)
	if err != nil {
		return "", err
	}
	id, err := answer.Text()
	if err == nil {
		err = checkNodeID(id)
	}
	if err != nil {
		return "", n.notUnderstood(c, err)
	}
	return id, nil
}

// Meet makes the node shake hands with the one at ip. It returns when the handshake is scheduled; View.Peers shows when
// it is done. ip must be an address, not a name.
func (n *Node) Meet(ctx context.Context, ip string, port, busPort int) error {
	return n.tell(ctx, "CLUSTER MEET", ip, port, busPort)
}

// AddSlots makes the node the owner of slots that have none, all of them or, when one is taken, none (ErrSlotBusy).
// The empty set sends nothing.
func (n *Node) AddSlots(ctx context.Context, set slots.Set) error {
	if set.IsEmpty() {
		return nil
	}
	return n.tell(ctx, "CLUSTER ADDSLOTSRANGE", bounds(set)...)
}

// SetConfigEpoch gives a node that is alone and at epoch zero its first configuration epoch. Distinct epochs spare a
// new cluster the resolution of collisions.
func (n *Node) SetConfigEpoch(ctx context.Context, epoch uint64) error {
	return n.tell(ctx, "CLUSTER SET-CONFIG-EPOCH", epoch)
}

// BumpEpoch gives the node a configuration epoch above all that it knows, without a vote, unless its own is the highest already.
// What it claims then wins over what everybody else claims.
func (n *Node) BumpEpoch(ctx context.Context) error {
	c := command{name: "CLUSTER BUMPEPOCH", args: words("CLUSTER BUMPEPOCH")}
	answer, err := n.do(ctx, c)
	if err != nil {
		return err
	}
	if text, err := answer.Text(); err != nil || !strings.HasPrefix(text, "BUMPED ") && !strings.HasPrefix(text, "STILL ") {
		return n.unexpected(c, answer, "BUMPED or STILL")
	}
	return nil
}

// Replicate makes the node a replica of the master. It is refused with ErrUnknownNode until gossip has told the node
// of the master, and when the node is a master that owns slots or keys.
func (n *Node) Replicate(ctx context.Context, masterID string) error {
	return n.tell(ctx, "CLUSTER REPLICATE", masterID)
}

// Forget removes nodes from this node's table, in one round trip, and bans them from coming back by gossip for 60 s. It
// concerns this node only (engines from Redis 7.2 on also tell the others). One that is refused does not keep the others. The
// error is ErrUnknownNode only if there is no worse one.
func (n *Node) Forget(ctx context.Context, nodeIDs ...string) error {
	commands := make([]command, len(nodeIDs))
	for i, id := range nodeIDs {
		commands[i] = command{name: "CLUSTER FORGET", args: []any{"CLUSTER", "FORGET", id}}
	}
	answers, err := n.pipeline(ctx, commands...)
	for i, answer := range answers {
		if err != nil && !errors.Is(err, ErrUnknownNode) {
			return err
		}
		if refused := answer.Err(); refused != nil {
			err = n.failed(ctx, commands[i], refused)
		} else if text, notText := answer.Text(); notText != nil || text != "OK" {
			err = n.unexpected(commands[i], answer, "OK")
		}
	}
	return err
}

// Failover makes this replica the master of its shard. It returns when the failover is scheduled (FORCE and default
// mode) or done (TAKEOVER); a scheduled one may still time out, which only the roles show.
func (n *Node) Failover(ctx context.Context, mode FailoverMode) error {
	if mode == FailoverDefault {
		return n.tell(ctx, "CLUSTER FAILOVER")
	}
	return n.tell(ctx, "CLUSTER FAILOVER", string(mode))
}

// Reset makes the node leave its cluster. A master that holds keys refuses.
func (n *Node) Reset(ctx context.Context, mode ResetMode) error {
	return n.tell(ctx, "CLUSTER RESET", string(mode))
}

// SaveConfig makes the node write its table (nodes.conf) to disk now.
func (n *Node) SaveConfig(ctx context.Context) error { return n.tell(ctx, "CLUSTER SAVECONFIG") }

// RewriteAOF makes the node write its append-only file anew, from what it holds. It returns when that has begun or is scheduled;
// View.Rewriting shows when it has come to its end, View.Rewritten whether it did well.
func (n *Node) RewriteAOF(ctx context.Context) error {
	c := command{name: "BGREWRITEAOF", args: words("BGREWRITEAOF")}
	answer, err := n.do(ctx, c)
	if err != nil {
		return err
	}
	if text, err := answer.Text(); err != nil || !strings.HasPrefix(text, "Background append only file rewriting") {
		return n.unexpected(c, answer, "that it has begun")
	}
	return nil
}

// ReopenAOF makes the node close its append-only file and begin another one, with all that it holds. Clients cannot write in between, and
// what they write until that has come to its end is in no file that a start would read. It makes the node forget that it could not write.
func (n *Node) ReopenAOF(ctx context.Context) error {
	var commands []command
	for _, line := range []string{"MULTI", "CONFIG SET appendonly no", "CONFIG SET appendonly yes", "EXEC"} {
		commands = append(commands, command{name: line, args: words(line)})
	}
	answers, err := n.pipeline(ctx, commands...)
	if err != nil {
		return err
	}
	for i, answer := range answers {
		if err := answer.Err(); err != nil {
			return n.failed(ctx, commands[i], err)
		}
	}
	last := len(commands) - 1
	results, err := answers[last].Slice()
	if err != nil || len(results) != last-1 {
		return n.unexpected(commands[last], answers[last], "two results")
	}
	for _, result := range results {
		if refused, is := result.(error); is {
			return n.failed(ctx, commands[last], refused)
		}
	}
	return nil
}

// ConfigGet is the values of the settings that match one of the patterns.
func (n *Node) ConfigGet(ctx context.Context, patterns ...string) (map[string]string, error) {
	c := command{name: "CONFIG GET", args: []any{"CONFIG", "GET"}}
	for _, pattern := range patterns {
		c.args = append(c.args, pattern)
	}
	answer, err := n.do(ctx, c)
	if err != nil {
		return nil, err
	}
	settings, err := settingsOf(answer)
	if err != nil {
		return nil, n.notUnderstood(c, err)
	}
	return settings, nil
}

// What is read of settings. Values are kept, compared and shown in the status.
const (
	mostSettings = 1000
	longestName  = 128
	longestValue = 16 << 10
)

// settingsOf reads the answer of CONFIG GET: names and values in turn.
func settingsOf(answer *redis.Cmd) (map[string]string, error) {
	pairs, err := answer.StringSlice()
	if err != nil {
		return nil, err
	}
	if len(pairs)%2 != 0 {
		return nil, fmt.Errorf("%d elements instead of pairs", len(pairs))
	}
	if len(pairs)/2 > mostSettings {
		return nil, fmt.Errorf("%d settings: an engine has no more than %d", len(pairs)/2, mostSettings)
	}
	settings := make(map[string]string, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		name, value := pair[0], pair[1]
		if len(name) > longestName || len(value) > longestValue {
			return nil, fmt.Errorf("setting %.80q: the name has %d bytes of %d at most, the value %d of %d", name, len(name), longestName,
				len(value), longestValue)
		}
		settings[name] = value
	}
	return settings, nil
}

// ConfigSet changes one setting of the running server. It is refused when the setting is unknown, cannot be changed at
// run time or the value is wrong.
func (n *Node) ConfigSet(ctx context.Context, name, value string) error {
	c := command{name: "CONFIG SET " + name, args: []any{"CONFIG", "SET", name, value}}
	if slices.Contains(secretSettings, name) {
		c.secrets = []string{value}
	}
	return n.tellCommand(ctx, c)
}

// tell sends a command of one or two words that answers OK (or PONG).
func (n *Node) tell(ctx context.Context, name string, args ...any) error {
	return n.tellCommand(ctx, command{name: name, args: append(words(name), args...)})
}

func (n *Node) tellCommand(ctx context.Context, c command) error {
	answer, err := n.do(ctx, c)
	if err != nil {
		return err
	}
	if text, err := answer.Text(); err != nil || (text != "OK" && text != "PONG") {
		return n.unexpected(c, answer, "OK")
	}
	return nil
}

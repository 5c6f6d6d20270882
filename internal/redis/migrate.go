// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/rediscluster/slots"
)

// MigrateTarget is where MIGRATE sends keys to. IP and Port are the address at which the source reaches the target;
// Node gives the password that the target asks for.
type MigrateTarget struct {
	Node *Node
	IP   string
	Port int
}

// MigrateBatch is what one MIGRATE carries: keys of one slot.
type MigrateBatch struct {
	Slot uint16
	Keys []string
	// Bytes is the memory that the keys take (see MemoryUsage). The more there are, the more time the command is given.
	Bytes int64
	// Replace overwrites keys that exist at the target. Without it they stay where they are, and the error is ErrBusyKey.
	Replace bool
}

const (
	// migratePatience is how long the source waits for the target to take or answer anything, besides the time for the
	// bytes. The source serves nobody meanwhile, so it must stay well below a node timeout.
	migratePatience = time.Second
	// slowestMigration is the rate, in bytes a second, that is allowed for. Values of many small elements, which are
	// rebuilt one by one, are the slowest: some 50 MiB/s were measured.
	slowestMigration = 16 << 20
)

// migrateTimeout is MIGRATE's own timeout: the longest time of silence between source and target.
func migrateTimeout(bytes int64) time.Duration {
	return migratePatience + time.Duration(float64(bytes)/slowestMigration*float64(time.Second))
}

// Migrate moves the batches' keys from this node to the target, all in one round trip, and returns one error or nil for
// each batch. Keys that are gone meanwhile are no error. The server works the batches off one after the other, and serves no
// other client while it does: the caller bounds their sum.
//
// A batch that failed with ErrTargetIO, or the call with ErrUnreachable, leaves each key at the source, at the target or at
// both.
func (n *Node) Migrate(ctx context.Context, to MigrateTarget, batches []MigrateBatch) ([]error, error) {
	commands := make([]command, len(batches))
	var timeout time.Duration
	for i, batch := range batches {
		commands[i] = migrateCommand(to, batch)
		timeout += 2 * migrateTimeout(batch.Bytes) // the server tries twice when a kept connection turns out to be closed
	}
	answers, err := n.pipelineWithin(ctx, timeout, commands...)
	if err != nil {
		return nil, err
	}
	results := make([]error, len(batches))
	for i, answer := range answers {
		if err := answer.Err(); err != nil {
			results[i] = n.failed(ctx, commands[i], err)
		} else if text, err := answer.Text(); err != nil || (text != "OK" && text != "NOKEY") {
			results[i] = n.notUnderstood(commands[i], fmt.Errorf("%v instead of OK or NOKEY", answer.Val()))
		}
	}
	return results, nil
}

func migrateCommand(to MigrateTarget, batch MigrateBatch) command {
	addr := net.JoinHostPort(to.IP, strconv.Itoa(to.Port))
	c := command{
		name: fmt.Sprintf("MIGRATE of %d keys of slot %d to %s", len(batch.Keys), batch.Slot, addr),
		args: []any{"MIGRATE", to.IP, to.Port, "", 0, migrateTimeout(batch.Bytes).Milliseconds()},
	}
	if batch.Replace {
		c.args = append(c.args, "REPLACE")
	}
	if password := to.Node.key.credentials.Password; password != "" {
		c.args = append(c.args, "AUTH", password)
		c.secrets = []string{password}
	}
	c.args = append(c.args, "KEYS")
	for _, key := range batch.Keys {
		c.args = append(c.args, key)
	}
	return c
}

// MemoryUsage estimates the bytes that each key takes, in one round trip; 0 for a key that is gone. Large collections are
// sampled by the server. importing is for keys of slots that the node imports; otherwise it owns them.
func (n *Node) MemoryUsage(ctx context.Context, keys []string, importing bool) ([]int64, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var commands []command
	for _, key := range keys {
		if importing {
			commands = append(commands, askingCommand)
		}
		commands = append(commands, command{name: "MEMORY USAGE", args: []any{"MEMORY", "USAGE", key}})
	}
	answers, err := n.pipeline(ctx, commands...)
	if err != nil {
		return nil, err
	}
	sizes, each := make([]int64, len(keys)), len(commands)/len(keys)
	for i := range keys {
		c, answer := commands[(i+1)*each-1], answers[(i+1)*each-1]
		// A slot that is open sends whoever asks for a key that is gone to the other end.
		if err := answer.Err(); errors.Is(err, redis.Nil) || err != nil && errors.Is(n.failed(ctx, c, err), ErrNotOwner) {
			continue
		} else if err != nil {
			return nil, n.failed(ctx, c, err)
		}
		if sizes[i], err = answer.Int64(); err != nil {
			return nil, n.notUnderstood(c, err)
		}
	}
	return sizes, nil
}

// Fingerprint is text that is equal for equal values of a key, whatever node they are on, in two round trips; empty when
// the node does not have the key. It compares values, not their expiry. It reads keys of slots that the node imports as well
// as those that it owns.
func (n *Node) Fingerprint(ctx context.Context, key string) (string, error) {
	kind, err := n.asking(ctx, "TYPE", key)
	if errors.Is(err, ErrNotOwner) { // a slot that is given away sends whoever asks for a key that is gone to the other end
		return "", nil
	}
	if err != nil {
		return "", err
	}
	// A large hash or set is dumped in the order of its table, which differs from process to process.
	read := map[string]string{"none": "", "hash": "HGETALL", "set": "SMEMBERS"}
	name, known := read[fmt.Sprint(kind.Val())]
	if !known {
		name = "DUMP"
	}
	if name == "" {
		return "", nil
	}
	value, err := n.asking(ctx, name, key)
	if errors.Is(err, redis.Nil) || errors.Is(err, ErrNotOwner) { // gone meanwhile
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if name == "DUMP" {
		return fmt.Sprint(kind.Val(), " ", value.Val()), nil
	}
	elements, err := value.StringSlice()
	if err != nil {
		return "", n.notUnderstood(command{name: name}, err)
	}
	return fmt.Sprint(kind.Val(), " ", canonical(elements, name == "HGETALL")), nil
}

// canonical is text that does not depend on the order of the elements, or of the pairs of elements.
func canonical(elements []string, pairs bool) string {
	size := 1
	if pairs {
		size = 2
	}
	var members []string
	for member := range slices.Chunk(elements, size) {
		members = append(members, fmt.Sprintf("%q", member))
	}
	slices.Sort(members)
	return strings.Join(members, ",")
}

// Discard deletes keys of slots that the node imports or owns, one round trip each.
func (n *Node) Discard(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if _, err := n.asking(ctx, "UNLINK", key); err != nil {
			return err
		}
	}
	return nil
}

var askingCommand = command{name: "ASKING", args: words("ASKING")}

// asking sends a command about one key behind an ASKING, which makes the node execute it in a slot that it imports.
func (n *Node) asking(ctx context.Context, name, key string) (*redis.Cmd, error) {
	c := command{name: nameOf(name, key), args: []any{name, key}}
	answers, err := n.pipeline(ctx, askingCommand, c)
	if err != nil {
		return nil, err
	}
	if err := answers[1].Err(); errors.Is(err, redis.Nil) {
		return nil, err
	} else if err != nil {
		return nil, n.failed(ctx, c, err)
	}
	return answers[1], nil
}

// nameOf names a command and the slot of its key; keys are the users' data and stay out of errors.
func nameOf(name, key string) string {
	return fmt.Sprintf("%s of a key of slot %d", name, slots.KeySlot(key))
}

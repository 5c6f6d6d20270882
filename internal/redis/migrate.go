// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis/slots"
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
	// migrateWaits is how long the source waits for the target to take or answer anything, besides the time for the
	// bytes. The source serves nobody meanwhile, so it must stay well below a node timeout.
	migrateWaits = time.Second
	// slowestMigration is the rate, in bytes a second, that is allowed for. Values of many small elements, which are
	// rebuilt one by one, are the slowest: some 50 MiB/s were measured.
	slowestMigration = 16 << 20
	// longestMigration is the longest that a call waits for its answers. The source goes on with what it was told, and the
	// next call finds what became of it.
	longestMigration = time.Minute
)

// migrateTimeout is MIGRATE's own timeout: the longest time of silence between source and target.
func migrateTimeout(bytes int64) time.Duration {
	return migrateWaits + time.Duration(float64(bytes)/slowestMigration*float64(time.Second))
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
	answers, err := n.pipelineWithin(ctx, min(timeout, longestMigration), commands...)
	if err != nil {
		return nil, err
	}
	results := make([]error, len(batches))
	for i, answer := range answers {
		if err := answer.Err(); err != nil {
			results[i] = n.failed(ctx, commands[i], err)
		} else if text, err := answer.Text(); err != nil || (text != "OK" && text != "NOKEY") {
			results[i] = n.unexpected(commands[i], answer, "OK or NOKEY")
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

// largestKey is the most memory that a key is believed to take: 4 TiB.
const largestKey = 4 << 40

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
		sizes[i], err = answer.Int64()
		if err == nil && (sizes[i] < 0 || sizes[i] > largestKey) {
			err = fmt.Errorf("%d bytes are more than a key can take", sizes[i])
		}
		if err != nil {
			return nil, n.notUnderstood(c, err)
		}
	}
	return sizes, nil
}

// Fingerprint is a digest that is equal for equal values of a key, whatever node they are on, in two round trips; empty when
// the node does not have the key. It compares values, not their expiry. It reads keys of slots that the node imports as well
// as those that it owns.
func (n *Node) Fingerprint(ctx context.Context, key string) (string, error) {
	answer, err := n.asking(ctx, n.pipeline, "TYPE", key)
	if errors.Is(err, ErrNotOwner) { // a slot that is given away sends whoever asks for a key that is gone to the other end
		return "", nil
	}
	if err != nil {
		return "", err
	}
	kind, err := answer.Text()
	if err != nil {
		return "", n.notUnderstood(command{name: "TYPE"}, err)
	}
	// A large hash or set is dumped in the order of its table, which differs from process to process.
	name := "DUMP"
	switch kind {
	case "none":
		return "", nil
	case "hash":
		name = "HGETALL"
	case "set":
		name = "SMEMBERS"
	}
	value, err := n.asking(ctx, n.readAll, name, key)
	if errors.Is(err, redis.Nil) || errors.Is(err, ErrNotOwner) { // gone meanwhile
		return "", nil
	}
	if tooLong(err) {
		return "", fmt.Errorf("%w: both ends have this key, and it is too large to be compared: delete it at the one that is wrong", err)
	}
	if err != nil {
		return "", err
	}
	elements := make([]string, 1)
	if name == "DUMP" {
		elements[0], err = value.Text()
	} else {
		elements, err = value.StringSlice()
	}
	if err != nil {
		return "", n.notUnderstood(command{name: name}, err)
	}
	return digest(kind, elements, kind == "hash"), nil
}

// digest does not depend on the order of the elements, or of the pairs of elements.
func digest(kind string, elements []string, pairs bool) string {
	size := 1
	if pairs {
		size = 2
	}
	members := slices.Collect(slices.Chunk(elements, size))
	slices.SortFunc(members, slices.Compare)
	sum := sha256.New()
	for _, member := range append([][]string{{kind}}, members...) {
		for _, part := range member {
			_ = binary.Write(sum, binary.BigEndian, uint64(len(part))) // a hash does not fail
			_, _ = io.WriteString(sum, part)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// Discard deletes keys of slots that the node imports or owns, in one round trip.
func (n *Node) Discard(ctx context.Context, keys []string) error {
	var commands []command
	for _, key := range keys {
		commands = append(commands, askingCommand, command{name: nameOf("UNLINK", key), args: []any{"UNLINK", key}})
	}
	answers, err := n.pipeline(ctx, commands...)
	for i, answer := range answers {
		if refused := answer.Err(); refused != nil && err == nil {
			err = n.failed(ctx, commands[i], refused)
		}
	}
	return err
}

var askingCommand = command{name: "ASKING", args: words("ASKING")}

// asking sends a command about one key behind an ASKING, which makes the node execute it in a slot that it imports.
func (n *Node) asking(ctx context.Context, send sender, name, key string) (*redis.Cmd, error) {
	c := command{name: nameOf(name, key), args: []any{name, key}}
	answers, err := send(ctx, askingCommand, c)
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

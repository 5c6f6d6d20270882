// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/excerpt"
)

// Node is one server at one address. Its methods are single round trips, bounded by the pool's timeouts and by the
// context, and fail with an *Error.
type Node struct {
	pool *Pool
	// key is behind a pointer, so that printing a Node prints no password.
	key *clientKey
	// lanes is the number of connections that a change of many slots is spread over; 0: one.
	lanes int
}

// InParallel is the same node for the change of many slots at an engine that answers each CLUSTER SETSLOT only when its
// replicas have executed it (Valkey from 8.0 on), one after the other on a connection: there it is spread over many
// connections, so that those on different ones share their waiting. Other commands work as with any Node.
func (n *Node) InParallel() *Node {
	key := *n.key
	key.parallel = true
	return &Node{pool: n.pool, key: &key, lanes: parallelLanes}
}

// Addr is the address the node is reached at, ip:port.
func (n *Node) Addr() string { return n.key.addr }

// String is the address.
func (n *Node) String() string { return n.Addr() }

// command names a command in errors and lists its arguments, of which secrets must not show up in an error.
type command struct {
	name    string
	args    []any
	secrets []string
}

// read is do for commands that change nothing and whose answer has the size that users gave to what is asked for. One that is
// over the ordinary limits is asked for again, within larger ones.
func (n *Node) read(ctx context.Context, c command) (*redis.Cmd, error) {
	answers, err := n.readAll(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := answers[0].Err(); err != nil {
		return nil, n.failed(ctx, c, err)
	}
	return answers[0], nil
}

// readAll is pipeline for commands of that kind. Answers that are over the ordinary limits are read one after the other in the
// whole process, so that those who wait share one allowance of memory.
func (n *Node) readAll(ctx context.Context, commands ...command) ([]*redis.Cmd, error) {
	answers, err := n.pipeline(ctx, commands...)
	if !tooLong(err) {
		return answers, err
	}
	select {
	case n.pool.large <- struct{}{}:
		defer func() { <-n.pool.large }()
	case <-ctx.Done():
		return nil, n.failed(ctx, commands[0], ctx.Err())
	}
	key := *n.key
	key.large = true
	return (&Node{pool: n.pool, key: &key}).pipeline(ctx, commands...)
}

// do sends one command and returns its answer.
func (n *Node) do(ctx context.Context, c command) (*redis.Cmd, error) {
	answers, err := n.pipeline(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := answers[0].Err(); err != nil {
		return nil, n.failed(ctx, c, err)
	}
	return answers[0], nil
}

// sender is pipeline or readAll.
type sender func(ctx context.Context, commands ...command) ([]*redis.Cmd, error)

// commandsAtOnce is how many commands one exchange has at most, so that ordinary answers to them stay within the limits.
const commandsAtOnce = 4096

// pipeline sends the commands at once and returns their answers, error replies among them. It fails when no
// authenticated connection could be made or it was lost.
func (n *Node) pipeline(ctx context.Context, commands ...command) (answers []*redis.Cmd, err error) {
	for some := range slices.Chunk(commands, commandsAtOnce) {
		next, err := n.pipelineWithin(ctx, n.pool.options.IOTimeout, some...)
		if err != nil {
			return nil, err
		}
		answers = append(answers, next...)
	}
	return answers, nil
}

// pipelineWithin is pipeline with a time of its own for the commands. A refused password is followed by the other one, if
// there is one: no command was sent then.
func (n *Node) pipelineWithin(ctx context.Context, timeout time.Duration, commands ...command) (answers []*redis.Cmd, err error) {
	answers, err = n.attempt(ctx, timeout, commands...)
	if other := n.key.credentials.Other; other != "" && errors.Is(err, ErrAuth) {
		key := *n.key
		key.credentials.Password, key.credentials.Other = other, ""
		return (&Node{pool: n.pool, key: &key}).attempt(ctx, timeout, commands...)
	}
	return answers, err
}

// attempt sends the commands with one password.
func (n *Node) attempt(ctx context.Context, timeout time.Duration, commands ...command) (answers []*redis.Cmd, err error) {
	client, err := n.pool.acquire(*n.key)
	if err != nil {
		return nil, n.failed(ctx, commands[0], err)
	}
	unreachable := false
	defer func() { n.pool.release(*n.key, client, unreachable) }()

	limited, cancel := context.WithTimeout(ctx, n.pool.options.DialTimeout+timeout)
	defer cancel()
	if err := limited.Err(); err != nil {
		return nil, n.failed(ctx, commands[0], unsent{err})
	}
	pipe := client.Pipeline()
	if timeout > n.pool.options.IOTimeout {
		pipe = client.WithTimeout(timeout).Pipeline() // shares the connections
	}
	for _, c := range commands {
		answers = append(answers, pipe.Do(limited, c.args...))
	}
	_, err = pipe.Exec(limited)
	if err == nil {
		return answers, nil
	}
	unreachable = !isReply(err) || slices.ContainsFunc(answers, func(answer *redis.Cmd) bool {
		return answer.Err() != nil && !isReply(answer.Err())
	})
	if slices.ContainsFunc(answers, func(answer *redis.Cmd) bool { return isReply(answer.Err()) }) {
		return answers, nil
	}
	// Either the connection is lost, or the authentication was refused: then the library sends no command, and all or none
	// have an error.
	at := slices.IndexFunc(answers, func(answer *redis.Cmd) bool { return answer.Err() != nil })
	return nil, n.failed(ctx, commands[max(at, 0)], err)
}

// isReply tells an error that the node answered from one of the network.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func (n *Node) failed(ctx context.Context, c command, err error) error {
	return newError(ctx, n.key.addr, c.name, err, append(c.secrets, n.key.credentials.Password, n.key.credentials.Other)...)
}

// notUnderstood reports an answer that is not what the command is documented to answer.
func (n *Node) notUnderstood(c command, err error) error {
	return &Error{Addr: n.key.addr, Command: c.name, Kind: ErrProtocol, Err: bounded(err)}
}

// unexpected reports an answer that is another than the ones that the command has.
func (n *Node) unexpected(c command, answer *redis.Cmd, instead string) error {
	return n.notUnderstood(c, fmt.Errorf("%s instead of %s", show(answer.Val()), instead))
}

// show is a value of an answer for people, of bounded length.
func show(value any) string {
	switch value := value.(type) {
	case string:
		return fmt.Sprintf("%.80q", value)
	case []any:
		return fmt.Sprintf("an array of %d elements", len(value))
	default:
		return excerpt.Of(fmt.Sprint(value), 80)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The classes of failure. Errors of this package match one of them with errors.Is; those that are an answer of the
// node match ErrRefused as well.
var (
	// ErrUnreachable means that no answer came: the connection was refused, timed out or was lost. Whether the command
	// was executed is not known.
	ErrUnreachable = errors.New("unreachable")
	// ErrProtocol means that an answer came and could not be understood. Perhaps no Redis listens there.
	ErrProtocol = errors.New("answer not understood")
	// ErrClosed means that the pool was closed.
	ErrClosed = errors.New("pool is closed")
	// ErrTargetIO means that MIGRATE lost the node it sends to (IOERR). Each of its keys is at the source, and may be at
	// the target as well.
	ErrTargetIO = errors.New("target of the migration does not answer")

	// ErrRefused means that the node answered with an error: the command was not executed.
	ErrRefused error = refusal("refused")
	// ErrAuth means that the credentials are missing, wrong or not sufficient (NOAUTH, WRONGPASS, NOPERM).
	ErrAuth error = refusal("authentication failed")
	// ErrLoading means that the node is reading its data set from disk.
	ErrLoading error = refusal("loading its data set")
	// ErrClusterDown means that the node does not serve because the cluster is not ok.
	ErrClusterDown error = refusal("cluster is down")
	// ErrUnknownNode means that the node addressed does not know the node ID it was given.
	ErrUnknownNode error = refusal("node ID is not known there")
	// ErrSlotBusy means that a slot that was to be assigned has an owner already.
	ErrSlotBusy error = refusal("slot has an owner")
	// ErrNotOwner means that the node does not own the slot, or answered with a redirection (MOVED, ASK).
	ErrNotOwner error = refusal("slot is not served here")
	// ErrAlreadyOwner means that a slot was to be imported by the node that owns it.
	ErrAlreadyOwner error = refusal("slot is owned already")
	// ErrSlotHasKeys means that a node that was to give a slot away still holds keys of it.
	ErrSlotHasKeys error = refusal("slot has keys")
	// ErrBusyKey means that the target of a MIGRATE has a key of the same name. The other keys of the command moved.
	ErrBusyKey error = refusal("key exists at the target")
	// ErrTryAgain means that a command needs several keys of a slot that is half moved (TRYAGAIN).
	ErrTryAgain error = refusal("slot is half moved")
	// ErrUnsupported means that the engine does not know the command.
	ErrUnsupported error = refusal("command is not supported")
	// ErrImmutable means that a running server does not change the setting.
	ErrImmutable error = refusal("setting cannot be changed while the server runs")
	// ErrNotCluster means that the server does not run in cluster mode.
	ErrNotCluster error = refusal("cluster mode is off")
)

// refusal is a class of error replies. Each one is an ErrRefused.
type refusal string

func (r refusal) Error() string { return string(r) }

// Is makes every class of reply match ErrRefused.
func (r refusal) Is(target error) bool { return target == ErrRefused }

// Error is a command that failed. It never holds a password.
type Error struct {
	// Addr is the address that was asked, Command the command without its arguments.
	Addr, Command string
	// Kind is the class, one of the Err… values, or context.Canceled when the caller gave up.
	Kind error
	// Err is what the node or the network said.
	Err error
}

// Error is one line such as `redis node 10.0.0.7:6379: CLUSTER FORGET: node ID is not known there: ERR Unknown node …`.
func (e *Error) Error() string {
	if errors.Is(e.Err, e.Kind) {
		return fmt.Sprintf("redis node %s: %s: %v", e.Addr, e.Command, e.Err)
	}
	return fmt.Sprintf("redis node %s: %s: %v: %v", e.Addr, e.Command, e.Kind, e.Err)
}

// Unwrap gives errors.Is and errors.As both the class and the cause.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }

// newError classifies what go-redis returned. The secrets are blanked out in replies, because a server that does not
// know a command answers with the beginning of its arguments. ctx is the caller's context.
func newError(ctx context.Context, addr, command string, err error, secrets ...string) *Error {
	failure := &Error{Addr: addr, Command: command, Kind: ErrUnreachable, Err: err}
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		failure.Kind = classify(reply.Error())
		failure.Err = errors.New(scrub(err.Error(), secrets))
	case errors.Is(err, ErrClosed):
		failure.Kind = ErrClosed
	case isUnparsable(err):
		failure.Kind = ErrProtocol
	case errors.Is(ctx.Err(), context.Canceled):
		failure.Kind = context.Canceled
	}
	return failure
}

// isUnparsable recognizes what the library itself says, which is that an answer is not RESP or not of the type the
// command has, unless it is about its connections. It has no error value for the former.
func isUnparsable(err error) bool {
	return strings.HasPrefix(err.Error(), "redis: ") && !errors.Is(err, redis.ErrClosed) &&
		!errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrPoolExhausted)
}

// classify maps an error reply to its class. Codes are the reply's first word; where the engines only say ERR, their
// sentences are the only distinction (src/cluster.c and src/server.c of Redis 7.0 to 8.0 and Valkey 8.1 to 9.1).
func classify(reply string) error {
	code, _, _ := strings.Cut(reply, " ")
	switch code {
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return ErrAuth
	case "LOADING":
		return ErrLoading
	case "CLUSTERDOWN":
		return ErrClusterDown
	case "MOVED", "ASK":
		return ErrNotOwner
	case "TRYAGAIN":
		return ErrTryAgain
	case "IOERR":
		return ErrTargetIO
	}
	lower := strings.ToLower(reply)
	for _, known := range []struct {
		part string
		kind error
	}{
		{"unknown node", ErrUnknownNode},
		{"i don't know about node", ErrUnknownNode},
		{"is already busy", ErrSlotBusy},
		{"i'm not the owner of hash slot", ErrNotOwner},
		{"i'm already the owner of hash slot", ErrAlreadyOwner},
		{"still hold keys for this hash slot", ErrSlotHasKeys},
		{"target instance replied with error: busykey", ErrBusyKey},
		{"unknown command", ErrUnsupported},
		{"unknown subcommand", ErrUnsupported},
		{"can't set immutable config", ErrImmutable},
		{"cluster support disabled", ErrNotCluster},
	} {
		if strings.Contains(lower, known.part) {
			return known.kind
		}
	}
	return ErrRefused
}

func scrub(text string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, redacted)
		}
	}
	return text
}

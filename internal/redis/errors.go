// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/excerpt"
)

// The classes of failure. Errors of this package match one of them with errors.Is; those that are an answer of the
// node match ErrRefused as well.
var (
	// ErrUnreachable means that no answer came: the connection was refused, timed out or was lost. Whether the command
	// was executed is not known.
	ErrUnreachable = errors.New("unreachable")
	// ErrUnsent means that no connection was made, so that nobody heard the command. It comes beside another class.
	ErrUnsent = errors.New("not sent")
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

// longestText is how much is repeated of what a server said.
const longestText = 200

// newError classifies what go-redis returned. The secrets are blanked out in replies, because a server that does not
// know a command answers with the beginning of its arguments. ctx is the caller's context.
func newError(ctx context.Context, addr, command string, err error, secrets ...string) *Error {
	failure := &Error{Addr: addr, Command: command, Kind: ErrUnreachable, Err: bounded(err)}
	var reply redis.Error
	switch {
	case errors.As(err, &reply):
		failure.Kind = classify(reply.Error())
		failure.Err = errors.New(excerpt.Of(scrub(err.Error(), secrets), longestText))
	case errors.Is(err, ErrClosed):
		failure.Kind = ErrClosed
	case isUnparsable(err):
		failure.Kind = ErrProtocol
	case errors.Is(ctx.Err(), context.Canceled):
		failure.Kind = context.Canceled
	}
	return failure
}

// unsent is why there is no connection for a command.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// Is makes it an ErrUnsent.
func (unsent) Is(target error) bool { return target == ErrUnsent }

// brief is an error with a text of bounded length.
type brief struct {
	text string
	err  error
}

func (e *brief) Error() string { return e.text }
func (e *brief) Unwrap() error { return e.err }

// bounded cuts off what an error repeats of an answer or of a certificate.
func bounded(err error) error {
	if text := err.Error(); excerpt.Of(text, longestText) != text {
		return &brief{text: excerpt.Of(text, longestText), err: err}
	}
	return err
}

// isUnparsable recognizes what the guard says, and the library itself: that an answer is not RESP or not of the type the
// command has, unless it is about its connections. It has no error value for the former.
func isUnparsable(err error) bool {
	var bad *badAnswer
	var number *strconv.NumError
	if errors.As(err, &bad) || errors.As(err, &number) {
		return true
	}
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

// scrub blanks out secrets, and their beginnings: servers cut off the arguments that they repeat.
func scrub(text string, secrets []string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := 0
		for _, secret := range secrets {
			n = max(n, revealed(text, secret))
		}
		if n > 0 {
			b.WriteString(redacted)
		} else {
			n = 1
			b.WriteByte(text[0])
		}
		text = text[n:]
	}
	return b.String()
}

// revealed is how many characters of the secret the text begins with; 0 when that may be so by chance.
func revealed(text, secret string) int {
	const byChance = 4
	n := 0
	for n < min(len(text), len(secret)) && text[n] == secret[n] {
		n++
	}
	if n < len(secret) && n <= byChance {
		return 0
	}
	return n
}

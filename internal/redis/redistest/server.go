// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"

	"middleware.hc.cn/operator/internal/redis/resp"
)

// FailureKind says how a command fails.
type FailureKind int

// The ways to fail.
const (
	// ReplyError answers Failure.Reply instead of executing the command.
	ReplyError FailureKind = iota + 1
	// DropBefore closes the connection without executing the command.
	DropBefore
	// DropAfter executes the command and closes the connection instead of answering.
	DropAfter
	// Hang neither executes nor answers; the connection stays open.
	Hang
	// TargetReplyLost is for MIGRATE: the target executes it, the source never hears of that, keeps the keys and answers
	// IOERR. The keys are at both ends then.
	TargetReplyLost
)

// Failure is one command that fails.
type Failure struct {
	Kind FailureKind
	// Reply is the error for ReplyError, with its code and without the dash, such as "ERR no".
	Reply string
}

// FailNext makes the next command of that name fail at this node: "PING", or "CLUSTER FORGET" for a subcommand. Called
// again it queues up: each failure is used once. It outlives restarts.
func (w *World) FailNext(n *Node, command string, failure Failure) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := strings.ToUpper(command)
	n.failures[name] = append(n.failures[name], failure)
}

// OnCommand calls back with each command that reaches a node, before it is executed; what the callback does to the world
// (Kill, Partition, Run) has happened by then. Nil ends that. It may be called from several goroutines at once.
func (w *World) OnCommand(callback func(n *Node, args []string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCommand = callback
}

// announce calls the callback, without the lock.
func (s *session) announce(args []string) {
	w := s.node.world
	w.mu.Lock()
	callback := w.onCommand
	if w.isolated[s.node] {
		callback = nil // the command does not arrive
	}
	w.mu.Unlock()
	if callback != nil {
		callback(s.node, args)
	}
}

// session is one connection of a client.
type session struct {
	node            *Node
	conn            net.Conn // nil for another node's
	authenticated   bool
	secured         bool // it came to the port for TLS
	relay           bool // it came through a relay, which asks for a password of its own
	asking          bool // the last command was ASKING
	readonly        bool
	targetReplyLost bool       // MIGRATE is made to fail
	queued          [][]string // since MULTI; nil without
}

// Types of replies beside string (bulk), int and []any (array).
type (
	simple    string
	errorText string
	null      struct{}
	nullArray struct{}
)

func (n *Node) serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // the node was stopped
		}
		n.world.mu.Lock()
		if n.listener != listener {
			n.world.mu.Unlock()
			_ = conn.Close() // the node is gone
			return
		}
		n.conns[conn] = true
		n.world.mu.Unlock()
		go n.converse(conn)
	}
}

func (n *Node) converse(conn net.Conn) {
	defer func() {
		_ = conn.Close() // it is gone either way
		n.world.mu.Lock()
		delete(n.conns, conn)
		n.world.mu.Unlock()
	}()
	client := &session{node: n, conn: conn}
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	for {
		args, err := resp.ReadCommand(in)
		if err != nil {
			return
		}
		reply, verdict := client.handle(args)
		switch verdict {
		case Hang:
			_, _ = io.Copy(io.Discard, conn) // until somebody closes it
			return
		case DropBefore, DropAfter:
			return
		case ReplyError, TargetReplyLost:
		}
		writeReply(out, reply)
		// What was pipelined is answered together, as far as it has arrived.
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return
			}
		}
	}
}

// handle executes one command unless a failure is due. The verdict says what becomes of the connection; zero, ReplyError
// and TargetReplyLost answer.
func (s *session) handle(args []string) (reply any, verdict FailureKind) {
	s.announce(args)
	n := s.node
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.world.elapse()
	if !n.conns[s.conn] {
		return nil, DropBefore // the process that it came to is gone
	}
	if n.world.isolated[n] {
		return nil, Hang
	}
	failure := n.dueFailure(args)
	switch failure.Kind {
	case ReplyError:
		return errorText(failure.Reply), ReplyError
	case DropBefore, Hang:
		return nil, failure.Kind
	case DropAfter, TargetReplyLost:
	}
	n.askedByTLS = s.secured
	s.targetReplyLost = failure.Kind == TargetReplyLost
	reply = s.execute(args)
	n.updateState()
	n.world.settle()
	return reply, failure.Kind
}

func (n *Node) dueFailure(args []string) Failure {
	names := []string{strings.ToUpper(args[0])}
	if len(args) > 1 {
		names = append(names, names[0]+" "+strings.ToUpper(args[1]))
	}
	for _, name := range names {
		if queue := n.failures[name]; len(queue) > 0 {
			n.failures[name] = queue[1:]
			return queue[0]
		}
	}
	return Failure{}
}

// writeReply writes RESP2. Errors show up when the writer is flushed.
func writeReply(out *bufio.Writer, reply any) {
	switch reply := reply.(type) {
	case simple:
		_, _ = fmt.Fprintf(out, "+%s\r\n", reply)
	case errorText:
		_, _ = fmt.Fprintf(out, "-%s\r\n", reply)
	case int:
		_, _ = fmt.Fprintf(out, ":%d\r\n", reply)
	case string:
		_, _ = fmt.Fprintf(out, "$%d\r\n%s\r\n", len(reply), reply)
	case null:
		_, _ = out.WriteString("$-1\r\n")
	case nullArray:
		_, _ = out.WriteString("*-1\r\n")
	case []any:
		_, _ = fmt.Fprintf(out, "*%d\r\n", len(reply))
		for _, element := range reply {
			writeReply(out, element)
		}
	default:
		panic(fmt.Sprintf("redistest: reply of type %T", reply))
	}
}

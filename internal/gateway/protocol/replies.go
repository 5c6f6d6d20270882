// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// mostSpecial bounds the commands of a transaction whose replies are read in a way of their own.
const mostSpecial = 1 << 10

// replies is what is known of a connection from what the instance has said.
type replies struct {
	session *Session
	from    source
	client  *bufio.Writer
	stack   []int64 // values that are awaited, of each aggregate that is being passed on

	// admitted reports that a reply has shown that the client was let in.
	admitted, resp3 bool
	// What the client is subscribed to, in numbers.
	channels, patterns, shards int64
	monitoring, watching       bool
	// off leaves out replies, skip the next one.
	off, skip bool
	// inTransaction is between MULTI and EXEC; queued are the commands of it, special those of them that are not ordinary.
	inTransaction bool
	queued        int64
	special       []queuedCommand
}

type queuedCommand struct {
	index int64
	kind  kind
}

// Replies passes an instance's replies on until it has ended between two of them.
func (s *Session) Replies(replies *Pipe) error {
	defer replies.release()
	r := &s.replies
	for {
		err := replies.await()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.session, r.from, r.client = s, source{Reader: replies.reader, fault: ErrServer}, replies.writer
		if err := r.next(); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return errors.Join(err, replies.flush())
		}
	}
}

// next passes on one reply, or what comes without being asked for.
func (r *replies) next() error {
	h, err := r.from.header()
	if err != nil {
		return err
	}
	if h.prefix == '>' || h.prefix == '*' && r.mayBeMessage() {
		return r.message(h)
	}
	if r.monitoring && isFeed(h) {
		return r.pass(h, r.client, ordinary)
	}
	command, found := r.session.outstanding.next()
	if !found {
		if h.prefix == '-' { // such as that there are too many clients
			err = r.pass(h, r.client, ordinary)
		}
		return errors.Join(err, r.from.broken("a reply that nobody asked for"))
	}
	return r.reply(h, command)
}

// mayBeMessage reports whether an array may be a message of a subscription: RESP2 has no type of its own for it. A client that is
// subscribed can do little else, so that hardly anything is to be told apart.
func (r *replies) mayBeMessage() bool {
	if r.resp3 {
		return false
	}
	command, found := r.session.outstanding.next()
	return r.channels+r.patterns+r.shards > 0 || found && command.kind.isSubscription()
}

// isFeed reports whether a line is one of MONITOR: it begins with a time, and the database and address in brackets.
func isFeed(h header) bool {
	time, _, found := bytes.Cut(h.text, []byte(" ["))
	return h.prefix == '+' && found && len(bytes.Trim(time, "0123456789.")) == 0
}

// message passes on a message, a confirmation of a subscription, or in RESP2 the reply of PING to who is subscribed.
func (r *replies) message(h header) error {
	prefix := h.prefix
	n, err := r.from.length(h, mostElements)
	if err != nil {
		return err
	}
	if n <= 0 {
		return r.from.broken("a message is empty")
	}
	name := ""
	if h, err = r.from.header(); err != nil {
		return err
	}
	isName := h.prefix == '$'
	if isName {
		length, err := r.from.length(h, mostElements)
		if err != nil {
			return err
		}
		if isName = 0 <= length && length <= longest; isName {
			word, err := r.from.collect(length)
			if err != nil {
				return err
			}
			name = string(word)
		}
	}
	to := r.client
	isReply := prefix == '*' && name == "pong"
	if isReply && r.off {
		to = nil
	}
	if to != nil {
		if err := writeHeader(to, prefix, n); err != nil {
			return err
		}
	}
	if !isName {
		if err := r.pass(h, to, ordinary); err != nil {
			return err
		}
	} else if to != nil {
		if err := writeString(to, []byte(name)); err != nil {
			return err
		}
	}
	k := confirmations[name]
	count, err := r.body(to, n-1, k != ordinary)
	if err != nil {
		return err
	}
	if isReply {
		if _, found := r.session.outstanding.next(); !found {
			return r.from.broken("a reply that nobody asked for")
		}
		r.answered(false)
		return nil
	}
	if k != ordinary {
		return r.confirmed(k, count)
	}
	return nil
}

// body passes on the values of a message after the first. Of a confirmation it returns the second of them, which is a number.
func (r *replies) body(to *bufio.Writer, n int64, confirms bool) (second int64, err error) {
	second = -1
	for i := range n {
		h, err := r.from.header()
		if err != nil {
			return 0, err
		}
		if confirms && i == 1 && h.prefix == ':' {
			if second, err = r.from.number(h.text, mostElements); err != nil {
				return 0, err
			}
		}
		if err := r.pass(h, to, ordinary); err != nil {
			return 0, err
		}
	}
	return second, nil
}

// confirmed counts what the client is subscribed to, and takes the confirmation for what was asked for.
func (r *replies) confirmed(k kind, count int64) error {
	counter, sum := &r.channels, r.channels+r.patterns
	switch int(k-subscribe) % int(unsubscribe-subscribe) {
	case int(psubscribe - subscribe):
		counter = &r.patterns
	case int(ssubscribe - subscribe):
		counter, sum = &r.shards, r.shards
	}
	before, change := *counter, count-sum
	if leaves := k >= unsubscribe; change != 0 && (leaves && change != -1 || !leaves && change != 1) || before+change < 0 {
		return r.from.broken("a number of subscriptions is impossible")
	}
	*counter += change
	r.admit()
	command, found := r.session.outstanding.next()
	if !found || command.kind != k {
		if k == sunsubscribe { // the slot has moved
			r.noteHeld()
			return nil
		}
		return r.from.broken("a confirmation that nobody asked for")
	}
	if command.count == 0 {
		r.session.outstanding.expect(uint32(min(max(1, before), mostElements)))
	}
	r.answered(false)
	return nil
}

// reply passes on the reply to a command.
func (r *replies) reply(h header, command run) error {
	k, ok, queued := command.kind, h.is("OK"), r.inTransaction && h.is("QUEUED")
	to := r.client
	if r.off || r.skip {
		to = nil
	}
	if h.prefix != '-' && k != reset || isRedirection(h.text) {
		r.admit()
	}
	skip := false
	switch {
	case k.isSubscription():
		if h.prefix != '-' {
			return r.from.broken("a subscription in a transaction, or a reply in place of its confirmation")
		}
	case queued:
		if err := r.queue(k); err != nil {
			return err
		}
	case k == hello:
		r.greeted(h)
	case k == reset && h.is("RESET"):
		*r = replies{session: r.session, from: r.from, client: r.client, stack: r.stack, admitted: r.admitted}
		to = r.client
	case k == multi && ok:
		r.inTransaction, r.queued, r.special = true, 0, nil
	case k == exec:
		if err := r.executed(h); err != nil {
			return err
		}
	case k == discard && ok:
		r.inTransaction, r.watching = false, false
	case k == watch && ok, k == unwatch && ok:
		r.watching = k == watch
	case k == monitor && ok:
		r.monitoring = true
	case k == replyOn && ok:
		r.off, to = false, r.client
	case k == replyOff && ok:
		r.off, to = true, nil
	case k == replySkip && ok:
		skip, to = !r.off, nil
	case k == refused && h.prefix == '-' && bytes.HasPrefix(h.text, []byte("ERR unknown command")):
		if err := write(to, []byte(Refusal+"\r\n")); err != nil {
			return err
		}
		to = nil
	}
	r.skip = skip
	if queued {
		k = ordinary
	}
	if err := r.pass(h, to, k); err != nil {
		return err
	}
	if k == exec {
		r.special = nil
	}
	r.answered(k.isSubscription())
	return nil
}

func (r *replies) admit() {
	if !r.admitted {
		r.admitted = true
		r.session.outstanding.admit()
	}
}

// greeted notes the version of the protocol, in which HELLO itself is answered.
func (r *replies) greeted(h header) {
	if h.prefix == '%' || h.prefix == '*' {
		r.resp3 = h.prefix == '%'
	}
}

// queue notes a command of a transaction.
func (r *replies) queue(k kind) error {
	if k != ordinary {
		if len(r.special) == mostSpecial {
			return r.from.broken("a transaction with too many commands on topology")
		}
		r.special = append(r.special, queuedCommand{index: r.queued, kind: k})
	}
	r.queued++
	return nil
}

// executed notes the end of a transaction. Whatever EXEC is answered with, it is over.
func (r *replies) executed(h header) error {
	if h.prefix == '*' {
		n, err := r.from.length(h, mostElements)
		if err != nil {
			return err
		}
		if n >= 0 && n != r.queued {
			return r.from.broken("EXEC is answered with another number of replies than it has commands")
		}
	}
	r.inTransaction, r.watching, r.queued = false, false, 0
	return nil
}

// answered takes the command, or one confirmation of it, from those that are outstanding.
func (r *replies) answered(all bool) {
	r.noteHeld()
	r.session.outstanding.answered(all)
}

func (r *replies) noteHeld() {
	r.session.held.Store(r.inTransaction || r.watching || r.monitoring || r.off || r.skip || r.channels+r.patterns+r.shards > 0)
}

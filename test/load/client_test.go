// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/net/dns/dnsmessage"

	"middleware.hc.cn/operator/internal/redis/resp"
)

// hangUp in place of an answer closes the connection.
const hangUp = "hang up"

// one is a cluster of one instance, which answers commands about keys with the answers
// given, in turn.
type one struct {
	listener net.Listener
	answers  chan string
}

func newOne(t *testing.T, answers ...string) *one {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	o := &one{listener: listener, answers: make(chan string, len(answers))}
	for _, answer := range answers {
		o.answers <- answer
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go o.serve(conn)
		}
	}()
	return o
}

func (o *one) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		args, err := resp.ReadCommand(in)
		if err != nil {
			return
		}
		answer := o.answer(args)
		if answer == hangUp+"\r\n" {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (o *one) answer(args []string) string {
	address := o.listener.Addr().(*net.TCPAddr)
	switch strings.ToLower(args[0]) {
	case "hello":
		return "-ERR unknown command\r\n"
	case "ping":
		return "+PONG\r\n"
	case "asking":
		return "+OK\r\n"
	case "command":
		return "*0\r\n"
	case "cluster":
		return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%d\r\n", len(address.IP.String()), address.IP, address.Port)
	}
	return strings.ReplaceAll(<-o.answers, "HERE", address.String()) + "\r\n"
}

// What the client library repeats by itself is a failed command all the same, while
// redirections are not.
func TestWhatCountsAsFailed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []string
		failed  int64
		reads   int64
	}{
		{"an answer", []string{"$-1"}, 0, 1},
		{"a redirection", []string{"-MOVED 1 HERE", "$-1"}, 0, 1},
		{"a slot on its way", []string{"-ASK 1 HERE", "$-1"}, 0, 1},
		{"an error that the library hides", []string{"-CLUSTERDOWN The cluster is down", "$-1"}, 1, 1},
		{"TRYAGAIN for a single key", []string{"-TRYAGAIN Multiple keys request during rehashing of slot", "$-1"}, 1, 1},
		{"an error after ASKING, which the library hides", []string{"-ASK 1 HERE", "-LOADING Redis is loading", "$-1"}, 1, 1},
		{"redirected for ever", []string{"-MOVED 1 HERE", "-MOVED 1 HERE", "-MOVED 1 HERE", "-MOVED 1 HERE"}, 1, 0},
		{"an error for good", []string{"-NOPERM no"}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := server{addresses: []string{newOne(t, tt.answers...).listener.Addr().String()}}
			s := &session{runOptions: runOptions{keys: 1, workers: 1}, attempts: &attempts{now: time.Now}, single: newLedger(1),
				values: values{sizes: "64"}}
			var err error
			if s.client, err = connect(t.Context(), server, 1, s.attempts); err != nil {
				t.Fatal(err)
			}
			defer s.client.Close()
			s.readOne(t.Context(), s.client, &latencies{}, 0)
			if s.failed.Load() != tt.failed || s.read.Load() != tt.reads {
				t.Errorf("%d failed, %d read; want %d and %d: %+v", s.failed.Load(), s.read.Load(), tt.failed, tt.reads, s.attempts.samples)
			}
		})
	}
}

// A command with two keys may meet one on each side; TRYAGAIN uses up the redirections that the library follows.
func TestWhatCountsAsTriedAgain(t *testing.T) {
	const moved, again, read = "-MOVED 1 HERE", "-TRYAGAIN Multiple keys request during rehashing of slot", "*2\r\n$1\r\n1\r\n$1\r\n1"
	for _, tt := range []struct {
		name               string
		answers            []string
		failed, triedAgain int64
	}{
		{"done at the second try", []string{again, "+OK", read}, 0, 0},
		{"TRYAGAIN in the end", []string{again, again, again, again, read}, 0, 1},
		{"given up after it", []string{again, moved, moved, moved, read}, 0, 1},
		{"given up without it", []string{moved, moved, moved, moved, read}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &session{attempts: &attempts{now: time.Now}, paired: newLedger(1), values: values{sizes: "64"}}
			var err error
			if s.client, err = connect(t.Context(), server{addresses: []string{newOne(t, tt.answers...).listener.Addr().String()}}, 1,
				s.attempts); err != nil {
				t.Fatal(err)
			}
			defer s.client.Close()
			s.pair(t.Context(), &latencies{}, 0)
			if s.failed.Load() != tt.failed || s.pairsTriedAgain.Load() != tt.triedAgain || s.torn.Load() != 0 {
				t.Errorf("%d failed, %d tried again, want %d and %d: %v", s.failed.Load(), s.pairsTriedAgain.Load(), tt.failed, tt.triedAgain, s.wrongs)
			}
		})
	}
}

// A client library that closes a connection which it uses has not met a cluster that failed.
func TestClientThatHangsUp(t *testing.T) {
	silent := newOne(t)
	attempts := &attempts{now: time.Now}
	s := &session{runOptions: runOptions{keys: 1, workers: 1}, attempts: attempts, single: newLedger(1), values: values{sizes: "64"}}
	var err error
	if s.client, err = connect(t.Context(), server{addresses: []string{silent.listener.Addr().String()}}, 1, attempts); err != nil {
		t.Fatal(err)
	}
	defer s.client.Close()
	if err := s.client.ForEachMaster(t.Context(), func(_ context.Context, node *redis.Client) error {
		time.AfterFunc(50*time.Millisecond, func() { _ = node.Close() })
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.readOne(t.Context(), s.client, &latencies{}, 0)
	if s.failed.Load() != 0 || s.read.Load() != 0 || attempts.failed != 0 || attempts.closedByClient == 0 {
		t.Errorf("%d commands and %d attempts failed, %d read, %d closed by the client; want some of the last only: %+v", s.failed.Load(), attempts.failed,
			s.read.Load(), attempts.closedByClient, attempts.samples)
	}
}

// A name server that is late says nothing of the cluster; a name that there is none of does.
func TestNameThatIsNotAnsweredAtOnce(t *testing.T) {
	at := newOne(t)
	port := at.listener.Addr().(*net.TCPAddr).Port
	var asked atomic.Int32
	former := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = former })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		if asked.Add(1) > 2 { // the first questions, of which there is one for each family of addresses, are not answered
			go answerName(theirs)
		}
		return ours, nil
	}}
	named := func(name string, dialTimeout time.Duration) server {
		return server{addresses: []string{fmt.Sprintf("%s:%d", name, port)}, dialTimeout: dialTimeout}
	}
	client, err := connect(t.Context(), named("cluster.test.", 200*time.Millisecond), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = client.Close()
	began := asked.Load()
	if _, err := connect(t.Context(), named("none.test.", time.Minute), 1, nil); err == nil {
		t.Error("reached a cluster by a name that there is none of")
	}
	if more := asked.Load() - began; more > 4 {
		t.Errorf("asked %d times for a name that there is none of", more)
	}
}

// answerName answers one question over TCP: cluster.test is 127.0.0.1, and there is no other name.
func answerName(conn net.Conn) {
	defer conn.Close()
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return
	}
	packed := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(conn, packed); err != nil {
		return
	}
	var message dnsmessage.Message
	if message.Unpack(packed) != nil || len(message.Questions) != 1 {
		return
	}
	question := message.Questions[0]
	message.Response, message.RecursionAvailable, message.Additionals = true, true, nil
	switch {
	case question.Name.String() != "cluster.test.":
		message.RCode = dnsmessage.RCodeNameError
	case question.Type == dnsmessage.TypeA:
		message.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET, TTL: 1},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	answer, err := message.AppendPack(make([]byte, 2))
	if err != nil {
		return
	}
	binary.BigEndian.PutUint16(answer, uint16(len(answer)-2))
	_, _ = conn.Write(answer)
}

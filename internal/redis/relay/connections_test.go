// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are from whichever addresses.
type pipes struct {
	come chan net.Conn
	ends context.Context
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.come:
		return conn, nil
	case <-p.ends.Done():
		return nil, net.ErrClosed
	}
}

func (*pipes) Close() error   { return nil }
func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

type attributed struct {
	net.Conn
	ip string
}

func (a attributed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.ip), Port: 1} }

// serve runs a relay that accepts the password right, to a server that answers pings, and returns how to connect to it from an address.
func serve(t *testing.T, r *Relay) func(ip string) (net.Conn, *bufio.Reader) {
	t.Helper()
	s := &server{answers: map[string]string{"PING": "+PONG\r\n"}}
	r.Dial = func(context.Context) (net.Conn, error) {
		client, server := net.Pipe()
		go s.serve(server)
		return client, nil
	}
	r.Report = func(text string) { t.Errorf("it reports %q", text) }
	r.Passwords = func() ([]string, error) { return []string{"right"}, nil }
	ctx, stop := context.WithCancel(t.Context())
	p, ended := &pipes{come: make(chan net.Conn), ends: ctx}, make(chan error, 1)
	go func() { ended <- r.Serve(ctx, p) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return func(ip string) (net.Conn, *bufio.Reader) {
		client, server := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		p.come <- attributed{server, ip}
		return client, bufio.NewReader(client)
	}
}

// Who opens connections without end and never logs in ends his own, and none of others: an instance that came before them logs in, and so
// does one that comes after.
func TestStrangersTakeNoPlaceOfOthers(t *testing.T) {
	connect := serve(t, &Relay{})
	early, earlyIn := connect("10.0.0.1")
	if got := ask(t, early, earlyIn, "PING"); got != "-NOAUTH Authentication required." {
		t.Fatal(got)
	}
	var strangers []net.Conn
	for range 4 * (mostStrangers + mostConnections) {
		conn, _ := connect("10.0.0.2")
		_, _ = io.WriteString(conn, "*2\r\n$4\r\nAUTH\r\n$4096\r\n") // it may have been ended before
		strangers = append(strangers, conn)
	}
	stay := 0
	for _, conn := range strangers {
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			stay++
		}
	}
	if stay > mostStrangers {
		t.Errorf("%d strangers stay", stay)
	}
	late, lateIn := connect("10.0.0.3")
	for name, got := range map[string]string{"early": ask(t, early, earlyIn, "AUTH right"), "late": ask(t, late, lateIn, "AUTH right")} {
		if got != "+OK" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := ask(t, early, earlyIn, "PING"); got != "+PONG" {
		t.Error(got)
	}
}

// Of too many strangers any of the address goes that most are from, and none of another.
func TestWhichStrangerGoes(t *testing.T) {
	c := &connections{}
	for i := range mostStrangers {
		ip := "10.0.0.2"
		if i%4 == 0 {
			ip = "10.0.0.1"
		}
		c.strangers = append(c.strangers, attributed{nil, ip})
	}
	gone := map[int]bool{}
	for range 500 {
		gone[c.excess()] = true
	}
	for i := range gone {
		if i%4 == 0 {
			t.Errorf("stranger %d goes, of an address that has opened few", i)
		}
	}
	if len(gone) < 2 {
		t.Errorf("it is always %v", gone)
	}
}

// When all other places are taken by who has logged in, an instance can log in and follow all the same; who takes its place for something
// else loses it, and so does who says nothing.
func TestPlacesForReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Relay{Rest: time.Hour} // so that a replica is answered, and stays
		r.refused.Store(time.Now().UnixNano())
		connect := serve(t, r)
		login := func() (net.Conn, *bufio.Reader) {
			conn, in := connect("10.0.0.1")
			if got := ask(t, conn, in, "AUTH right"); got != "+OK" {
				t.Fatal(got)
			}
			return conn, in
		}
		for range mostConnections - keptForReplicas {
			login()
		}
		info, infoIn := login()
		if got := ask(t, info, infoIn, "INFO"); got != "-ERR max number of clients reached" {
			t.Errorf("INFO in a place for replicas: %s", got)
		}
		_, silentIn := login()
		if n, err := io.Copy(io.Discard, silentIn); n > 0 || err != nil {
			t.Errorf("one that says nothing got %d bytes, %v", n, err)
		}
		synctest.Wait()
		for range keptForReplicas {
			conn, in := login()
			if got := ask(t, conn, in, "PING"); got != "+PONG" {
				t.Errorf("a replica: %s", got)
			}
			if got := ask(t, conn, in, "PSYNC ? -1"); !strings.HasPrefix(got, "-NOMASTERLINK") {
				t.Errorf("a replica: %s", got)
			}
			time.Sleep(2 * loginWithin)
			if got := ask(t, conn, in, "PING"); got != "+PONG" {
				t.Errorf("a replica, later: %s", got)
			}
		}
	})
}

// Who does not log in goes after a while, whatever he says meanwhile; who has logged in stays. There is an end of those, too.
func TestStrangersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connect := serve(t, &Relay{})
		var known []net.Conn
		var knownIn []*bufio.Reader
		for range mostConnections - keptForReplicas {
			conn, in := connect("10.0.0.1")
			if got := ask(t, conn, in, "AUTH right"); got != "+OK" {
				t.Fatal(got)
			}
			known, knownIn = append(known, conn), append(knownIn, in)
		}
		for range keptForReplicas {
			conn, in := connect("10.0.0.1")
			if got := ask(t, conn, in, "AUTH right"); got != "+OK" {
				t.Fatal(got)
			}
		}
		one, in := connect("10.0.0.1")
		if got := ask(t, one, in, "AUTH right"); got != "-ERR max number of clients reached" {
			t.Errorf("one too many: %s", got)
		}
		silent, _ := connect("10.0.0.2")
		drips, dripsIn := connect("10.0.0.3")
		var dripping sync.WaitGroup
		dripping.Go(func() {
			for {
				if _, err := io.WriteString(drips, command("PING")); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		})
		_, _ = io.Copy(io.Discard, dripsIn) // until it is ended
		dripping.Wait()
		if n, err := io.Copy(io.Discard, silent); n > 0 || err != nil {
			t.Errorf("the silent one got %d bytes, %v", n, err)
		}
		for i, conn := range known {
			if got := ask(t, conn, knownIn[i], "PING"); got != "+PONG" {
				t.Errorf("one that has logged in: %s", got)
			}
		}
	})
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
)

// application is a client that follows redirections and remembers what it was told.
type application struct {
	s *simulation
	// acknowledged is the last value of each key whose write was acknowledged; attempted
	// holds later ones whose fate is not known.
	acknowledged map[string]string
	attempted    map[string][]string
	writes       int
}

func newApplication(s *simulation) *application {
	return &application{s: s, acknowledged: map[string]string{}, attempted: map[string][]string{}}
}

// write sets a key to a value never written before. It says whether that was acknowledged.
func (a *application) write(key string) bool {
	a.writes++
	value := fmt.Sprint(a.writes)
	a.attempted[key] = append(a.attempted[key], value)
	answer := a.s.ask("SET", key, value)
	if answer == "+OK" {
		a.acknowledged[key], a.attempted[key] = value, nil
	}
	return answer == "+OK"
}

// writeAgain sets every key that was acknowledged anew, if anybody takes it.
func (a *application) writeAgain() {
	for _, key := range slices.Sorted(maps.Keys(a.acknowledged)) {
		a.write(key)
	}
}

// wantAll asserts that every key has the value that was acknowledged last.
func (a *application) wantAll() {
	a.s.t.Helper()
	for _, key := range slices.Sorted(maps.Keys(a.acknowledged)) {
		want := a.acknowledged[key]
		if got := a.s.ask("GET", key); got != want && !slices.Contains(a.attempted[key], got) {
			a.s.fail("%s is %q, want %q", key, got, want)
		}
	}
}

// ask sends a command and follows MOVED and ASK. The answer is one line: a value, +OK or an
// error; empty when no instance answers.
func (s *simulation) ask(args ...string) string {
	const most = 8
	for _, in := range s.instances {
		addr, asking := in.node.Addr(), false
		if s.byTLS {
			addr = net.JoinHostPort(in.pod.Status.PodIP, in.node.Setting("tls-port")) // where the Service leads to
		}
		for range most {
			answer := s.send(addr, asking, args)
			words := strings.Fields(answer)
			if len(words) != 3 || words[0] != "-MOVED" && words[0] != "-ASK" {
				if answer == "" {
					break // ask another instance
				}
				return answer
			}
			addr, asking = words[2], words[0] == "-ASK"
		}
	}
	return ""
}

// send is one command on a connection of its own.
func (s *simulation) send(addr string, asking bool, args []string) string {
	conn, err := s.world.Connect(s.t.Context(), addr)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }() // it is of no more use
	in := bufio.NewReader(conn)
	if s.cluster.AuthEnabled() {
		password := s.password()
		_, _ = fmt.Fprintf(conn, "*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n", len(password), password)
		_, _ = in.ReadString('\n')
	}
	if asking {
		_, _ = fmt.Fprint(conn, "*1\r\n$6\r\nASKING\r\n")
		_, _ = in.ReadString('\n')
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	_, _ = fmt.Fprint(conn, b.String())
	line, _ := in.ReadString('\n')
	if strings.HasPrefix(line, "$-1") {
		return "" // there is no such key
	}
	if strings.HasPrefix(line, "$") {
		line, _ = in.ReadString('\n')
	}
	return strings.TrimRight(line, "\r\n")
}

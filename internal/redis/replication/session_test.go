// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package replication

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"middleware.hc.cn/operator/internal/redis/resp"
)

const (
	id   = "0123456789abcdef0123456789abcdef01234567"
	next = "76543210fedcba9876543210fedcba9876543210"
	mark = "fedcba9876543210fedcba9876543210abcdef01"
)

// serve plays a server: it answers each command by its first word, and the first REPLCONF ACK with what there is for ACK.
func serve(t *testing.T, answers map[string]string) (client net.Conn, heard func() []string) {
	t.Helper()
	client, server := net.Pipe()
	var commands []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		in := bufio.NewReader(server)
		for {
			args, err := resp.ReadCommand(in)
			if err != nil {
				return
			}
			commands = append(commands, strings.Join(args, " "))
			answer, known := answers[args[0]]
			switch {
			case len(args) > 1 && args[1] == "ACK":
				answer = answers["ACK"]
				delete(answers, "ACK")
			case args[0] == "REPLCONF":
				answer = "+OK\r\n"
			case !known:
				answer = "-ERR unknown command\r\n"
			}
			go func() { _, _ = io.WriteString(server, answer) }() // the client may have closed the connection
		}
	}()
	return client, func() []string {
		_ = server.Close()
		<-done
		return commands
	}
}

func TestBaseAndStream(t *testing.T) {
	stream := "*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n" +
		"*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n*1\r\n$4\r\nEXEC\r\n"
	for name, base := range map[string]string{
		"of a length": "$4\r\nRDB\n",
		"to a mark":   "$EOF:" + mark + "\r\nRDB\n" + mark,
	} {
		t.Run(name, func(t *testing.T) {
			conn, heard := serve(t, map[string]string{"AUTH": "+OK\r\n", "PSYNC": "\n\n+FULLRESYNC " + id + " 100\r\n\n" + base, "ACK": stream})
			s, err := Follow(t.Context(), conn, Position{}, Options{Username: "u", Password: "p", Version: "9.0.1"})
			check(t, err)
			read, err := io.ReadAll(s.Base())
			if string(read) != "RDB\n" || err != nil {
				t.Fatalf("the base is %q, %v", read, err)
			}
			if got, want := s.Position(), (Position{id, 100}); got != want {
				t.Errorf("the position is %v, want %v", got, want)
			}
			var copied bytes.Buffer
			var whole []bool
			for range 5 {
				check(t, s.Copy(&copied))
				whole = append(whole, s.Whole())
			}
			if want := stream[len("*1\r\n$4\r\nPING\r\n"):]; copied.String() != want {
				t.Errorf("copied %q, want %q", copied.String(), want)
			}
			if got := fmt.Sprint(whole); got != "[true true false false true]" {
				t.Errorf("whole: %s", got)
			}
			if got, want := s.Position(), (Position{id, 100 + int64(len(stream))}); got != want {
				t.Errorf("the position is %v, want %v", got, want)
			}
			s.Close()
			commands := heard()
			if got := strings.Join(commands[:4], ", "); got != "AUTH u p, REPLCONF capa eof capa psync2, REPLCONF version 9.0.1, PSYNC ? -1" {
				t.Errorf("it was told %s", got)
			}
			if len(commands) > 4 && !strings.HasPrefix(commands[4], "REPLCONF ACK 100") {
				t.Errorf("it was told %s", commands[4])
			}
		})
	}
}

func TestContinue(t *testing.T) {
	for answer, want := range map[string]Position{
		"+CONTINUE\r\n":              {id, 100},
		"+CONTINUE " + next + "\r\n": {next, 100},
	} {
		conn, heard := serve(t, map[string]string{"PSYNC": answer})
		s, err := Follow(t.Context(), conn, Position{id, 100}, Options{})
		check(t, err)
		if s.Base() != nil || s.Position() != want {
			t.Errorf("%q: base %v, position %v", answer, s.Base(), s.Position())
		}
		s.Close()
		if commands := heard(); commands[1] != "PSYNC "+id+" 101" {
			t.Errorf("it was asked for %q", commands)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for answer, want := range map[string]error{
		"-NOMASTERLINK Can't SYNC while not connected with my master\r\n": ErrNotNow,
		"-LOADING Redis is loading the dataset in memory\r\n":             ErrNotNow,
		"-NOPERM no\r\n":                              ErrRefused,
		"+OK\r\n":                                     ErrProtocol,
		"+CONTINUE\r\n":                               ErrProtocol, // a base was asked for
		"+FULLRESYNC " + id + "\r\n":                  ErrProtocol,
		"+FULLRESYNC " + id + " -1\r\n":               ErrProtocol,
		"+FULLRESYNC x 1\r\n":                         ErrProtocol,
		"+FULLRESYNC " + id + " 1\r\n+OK\r\n":         ErrProtocol,
		"+FULLRESYNC " + id + " 1\r\n$-1\r\n":         ErrProtocol,
		"+FULLRESYNC " + id + " 1\r\n$EOF:short\r\n":  ErrProtocol,
		strings.Repeat("x", 2*longestLine) + "\r\n":   ErrProtocol,
		strings.Repeat("\n", 10) + "-ERR unknown\r\n": ErrRefused,
	} {
		conn, heard := serve(t, map[string]string{"PSYNC": answer})
		if _, err := Follow(t.Context(), conn, Position{}, Options{}); !errors.Is(err, want) {
			t.Errorf("%.80q: %v, want %v", answer, err, want)
		}
		heard()
	}
}

func TestNoPasswordInErrors(t *testing.T) {
	conn, heard := serve(t, map[string]string{"AUTH": "-ERR unknown command 'AUTH', with args beginning with: 'default' 'hunter2'\r\n"})
	_, err := Follow(t.Context(), conn, Position{}, Options{Username: "default", Password: "hunter2"})
	if !errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	heard()
}

// streamOf is a session whose stream is a text.
func streamOf(in io.Reader) *Session { return &Session{in: bufio.NewReaderSize(in, bufferSize)} }

func TestCopyRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"":                                      io.EOF,
		"*1\r\n$3\r\nSE":                        io.EOF,
		"*0\r\n":                                ErrProtocol,
		"*-1\r\n":                               ErrProtocol,
		"*9999999\r\n":                          ErrProtocol,
		"+OK\r\n":                               ErrProtocol,
		"*1\n$4\nPING\n":                        ErrProtocol,
		"*1\r\n$65\r\n":                         ErrProtocol,
		"*1\r\n$4\r\nPINGPONG":                  ErrProtocol,
		"*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n":     ErrRefused,
		"*1\r\n$99999999999999999999999999\r\n": ErrProtocol,
		"*" + strings.Repeat("1", bufferSize):   ErrProtocol,
	} {
		s := streamOf(strings.NewReader(text))
		if err := s.Copy(io.Discard); !errors.Is(err, want) || s.position.Offset != 0 {
			t.Errorf("%.40q: %v at %d, want %v", text, err, s.position.Offset, want)
		}
	}
}

// A command that is kept is not written until it is there whole, unless it is long; a long one that is torn says so.
func TestTornCommands(t *testing.T) {
	short := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$9\r\nabc"
	var out bytes.Buffer
	if err := streamOf(strings.NewReader(short)).Copy(&out); errors.Is(err, ErrTorn) || err == nil || out.Len() > 0 {
		t.Errorf("%v, and %d bytes were written", err, out.Len())
	}
	long := fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s", 3*held, strings.Repeat("v", 2*held))
	if err := streamOf(strings.NewReader(long)).Copy(&out); !errors.Is(err, ErrTorn) || out.Len() == 0 {
		t.Errorf("%v, and %d bytes were written", err, out.Len())
	}
	out.Reset()
	if err := streamOf(strings.NewReader("*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n")).Copy(full{}); !errors.Is(err, ErrTorn) {
		t.Errorf("what cannot be written ends with %v", err)
	}
	out.Reset()
	if err := streamOf(strings.NewReader("*2\r\n$6\r\nSELECT\r\n$1\r\n1\r\n")).Copy(&out); !errors.Is(err, ErrRefused) || out.Len() > 0 {
		t.Errorf("another database: %v, and %d bytes were written", err, out.Len())
	}
	long += strings.Repeat("v", held) + "\r\n"
	s := streamOf(strings.NewReader(long))
	if err := s.Copy(&out); err != nil || out.String() != long || s.position.Offset != int64(len(long)) {
		t.Errorf("%v, %d of %d bytes, at %d", err, out.Len(), len(long), s.position.Offset)
	}
}

// full is a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// What belongs to the cluster is dropped, and what changes data is not.
func TestDropped(t *testing.T) {
	for text, kept := range map[string]bool{
		"*1\r\n$4\r\nping\r\n":                                    false,
		"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$1\r\nm\r\n":           false,
		"*3\r\n$7\r\nCLUSTER\r\n$9\r\nsyncslots\r\n$3\r\nACK\r\n": false,
		"*3\r\n$7\r\nCLUSTER\r\n$9\r\nFLUSHSLOT\r\n$1\r\n1\r\n":   true,
		"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n":                       true,
		"*3\r\n$8\r\nFUNCTION\r\n$4\r\nLOAD\r\n$7\r\n#!lua x\r\n": true,
	} {
		var out bytes.Buffer
		s := streamOf(strings.NewReader(text))
		if err := s.Copy(&out); err != nil || (out.String() == text) != kept || s.position.Offset != int64(len(text)) {
			t.Errorf("%q became %q, at %d, %v", text, out.String(), s.position.Offset, err)
		}
	}
}

// The mark is found wherever the pieces in which it arrives begin, and a base that breaks off is none.
func TestBaseThatEndsWithAMark(t *testing.T) {
	data := strings.Repeat("0123456789", 30000) + mark[:39]
	for name, pieces := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader, "bytes": iotest.OneByteReader,
	} {
		got, err := io.ReadAll(&marked{in: pieces(strings.NewReader(data + mark)), mark: []byte(mark)})
		if string(got) != data || err != nil {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
		if _, err := io.ReadAll(&marked{in: pieces(strings.NewReader(data)), mark: []byte(mark)}); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: what breaks off ends with %v", name, err)
		}
	}
	if _, err := io.ReadAll(&counted{in: strings.NewReader("abc"), left: 4}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("what is shorter than announced ends with %v", err)
	}
}

// FuzzCopy: whatever a server sends, what is copied is what was sent, and the position counts it.
func FuzzCopy(f *testing.F) {
	f.Add([]byte("*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"))
	f.Add([]byte("*2\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n*2\r\n$3\r\nDEL\r\n$0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		if bytes.Contains(bytes.ToUpper(sent), []byte("GETACK")) {
			return // it is answered on the connection, and there is none
		}
		s := streamOf(bytes.NewReader(sent))
		var read int64
		for {
			var out bytes.Buffer
			before := s.Position().Offset
			if err := s.Copy(&out); err != nil {
				return
			}
			size := s.Position().Offset - before
			if size <= 0 || read+size > int64(len(sent)) {
				t.Fatalf("%d bytes after %d of %d", size, read, len(sent))
			}
			if out.Len() > 0 && !bytes.Equal(out.Bytes(), sent[read:read+size]) {
				t.Fatalf("%q was copied as %q", sent[read:read+size], out.Bytes())
			}
			read += size
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/plugin/terminal"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// talk is a look at a redis-cli whose server answers each command with lines.
func talk(t *testing.T, answer func(command string) []string) (*Look, *[]string) {
	t.Helper()
	reads, commands := io.Pipe()
	answers, writes := io.Pipe()
	t.Cleanup(func() { _, _ = commands.Close(), answers.Close() })
	asked := new([]string)
	go func() {
		for lines := bufio.NewScanner(reads); lines.Scan(); {
			said := []string{`"@mark"`}
			if lines.Text() != "ECHO @mark" {
				*asked = append(*asked, lines.Text())
				said = answer(lines.Text())
			}
			for _, line := range said {
				if _, err := fmt.Fprintln(writes, line); err != nil {
					return
				}
			}
		}
	}()
	return NewLook(Shard{Shard: 1, Instance: "cache-1-0"}, 2, "@mark", commands, answers), asked
}

func never() bool { return false }

// server answers for keys, in two parts, with what each takes.
func server(sizes map[string]string, lfu string) func(string) []string {
	return func(command string) []string {
		words := strings.SplitN(command, " ", 3)
		switch words[0] {
		case "DBSIZE":
			return []string{"(integer) 5"}
		case "CONFIG":
			return []string{`1) "maxmemory-policy"`, `2) "` + lfu + `"`}
		case "SCAN":
			if words[1] == "0" {
				return []string{`1) "17"`, `2) 1) "small"`, `   2) "\x00 large"`, "(0.61s)"}
			}
			return []string{`1) "0"`, `2)  1) "moved"`, `    2) "small"`, `    3) "mean"`}
		case "MEMORY":
			return []string{sizes[words[2]]}
		case "OBJECT":
			return []string{map[string]string{`"small"`: "(integer) 200", `"mean"`: "(integer) 3"}[words[2]]}
		case "TYPE":
			return []string{"hash"}
		}
		return nil
	}
}

var usual = map[string]string{`"small"`: "(integer) 56", `"\x00 large"`: "(integer) 3000000", `"mean"`: "(integer) 57",
	`"moved"`: "(error) MOVED 3 10.0.0.1:6379"}

func TestLargestKeys(t *testing.T) {
	look, asked := talk(t, server(usual, "noeviction"))
	if err := look.Run(never); err != nil {
		t.Fatal(err)
	}
	found := Merge("shop", "cache", []*Look{look}, 2)
	want := []Key{{Key: `"\x00 large"`, Type: "hash", Shard: 1, Slot: slots.KeySlot("\x00 large"), Bytes: 3000000},
		{Key: `"mean"`, Type: "hash", Shard: 1, Slot: slots.KeySlot("mean"), Bytes: 57}}
	if !slices.Equal(found.Largest, want) || found.MostUsed != nil {
		t.Errorf("got %+v", found)
	}
	if s := found.Shards[0]; !s.Ended || s.Keys != 5 || s.Looked != 4 || s.Error != "" {
		t.Errorf("got %+v", s)
	}
	if slices.ContainsFunc(*asked, func(command string) bool { return strings.HasPrefix(command, "OBJECT") }) {
		t.Errorf("asked %q", *asked)
	}
	text := found.Text(terminal.Page{Width: 80})
	for _, want := range []string{"4 of 5 keys", `"\x00 large"`, "2.9Mi", "LARGEST"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestMostUsedKeys(t *testing.T) {
	look, _ := talk(t, func(command string) []string {
		if command == `OBJECT FREQ "moved"` || command == `OBJECT FREQ "\x00 large"` {
			return []string{"(nil)"}
		}
		return server(usual, "allkeys-lfu")(command)
	})
	if err := look.Run(never); err != nil {
		t.Fatal(err)
	}
	found := Merge("shop", "cache", []*Look{look}, 10)
	if len(found.MostUsed) != 2 || found.MostUsed[0].Key != `"small"` || *found.MostUsed[0].Frequency != 200 || len(found.Largest) != 2 {
		t.Errorf("got %+v", found)
	}
}

// When time is over, what was found by then is told.
func TestTimeIsOver(t *testing.T) {
	look, _ := talk(t, server(usual, "noeviction"))
	looks := 0
	if err := look.Run(func() bool { looks++; return looks > 1 }); err != nil {
		t.Fatal(err)
	}
	found := Merge("shop", "cache", []*Look{look}, 10)
	if found.Shards[0].Ended || len(found.Largest) != 2 || found.Largest[0].Type != "hash" {
		t.Errorf("got %+v", found)
	}
	if text := found.Text(terminal.Page{Width: 80}); !strings.Contains(text, "--for") {
		t.Error(text)
	}
}

// Whatever a server says, no command is sent that we did not mean, and it ends.
func TestServersThatMeanHarm(t *testing.T) {
	for name, tt := range map[string]struct {
		scan []string
		also []string
		want string
	}{
		"no answer to a question": {[]string{"nonsense"}, nil, "not understood"},
		"a refusal":               {[]string{"(error) NOPERM no"}, nil, "NOPERM no"},
		"names that are no names": {[]string{`1) "0"`, `2) 1) "a" FLUSHALL"`,
			`   2) a`, `   3) "a\"`, "   4) \"\x1b[2J\"", `   5) "a\q"`}, nil, ""},
		"a cursor that is none":      {[]string{`1) "0 COUNT 1"`}, nil, "not understood"},
		"a name without an end":      {[]string{`1) "0"`, `2) 1) "` + strings.Repeat("x", 1<<20) + `"`}, nil, ""},
		"more names than were asked": {many(100_000), nil, "answers more"},
		"more answers than asked":    {[]string{`1) "0"`, `2) 1) "a"`}, []string{"(integer) 1", "(integer) 2"}, "answers more"},
		"fewer answers than asked":   {[]string{`1) "0"`, `2) 1) "a"`}, []string{}, "not answer all"},
		"a number that is none":      {[]string{`1) "0"`, `2) 1) "a"`}, []string{"(integer) 99999999999999999999"}, ""},
		"it refuses all":             {[]string{`1) "0"`, `2) 1) "a"`}, []string{"(error) LOADING"}, "LOADING"},
	} {
		t.Run(name, func(t *testing.T) {
			look, asked := talk(t, func(command string) []string {
				switch {
				case strings.HasPrefix(command, "SCAN"):
					return tt.scan
				case strings.HasPrefix(command, "MEMORY"):
					if tt.also == nil {
						return []string{"(integer) 1", "(integer) 1"}
					}
					return tt.also
				}
				return server(nil, "noeviction")(command)
			})
			err := look.Run(never)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v", err)
			}
			for _, command := range *asked {
				if !slices.Contains([]string{"DBSIZE", "CONFIG", "SCAN", "MEMORY", "TYPE"}, strings.Fields(command)[0]) ||
					strings.Contains(command, "FLUSHALL") {
					t.Errorf("sent %.100q", command)
				}
			}
		})
	}
}

func many(n int) []string {
	lines := []string{`1) "0"`}
	for i := range n {
		lines = append(lines, fmt.Sprintf(`    %d) "key-%d"`, i, i))
	}
	return lines
}

func TestServerThatEnds(t *testing.T) {
	look := NewLook(Shard{}, 1, "@mark", io.Discard, strings.NewReader("(integer) 5\n"))
	if err := look.Run(never); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// endless says the same again and again.
type endless string

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e[i%len(e)]
	}
	return len(p), nil
}

func TestServerWithoutAnEnd(t *testing.T) {
	for _, said := range []endless{"x", "\n", "(integer) 5\n"} {
		look := NewLook(Shard{}, 1, "@mark", io.Discard, said)
		if err := look.Run(never); err == nil || !strings.Contains(err.Error(), "too much") {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestUnquoted(t *testing.T) {
	for quoted, want := range map[string]string{`"a b"`: "a b", `"\"\\\n\r\t\a\b"`: "\"\\\n\r\t\a\b", `"\x00\xff!"`: "\x00\xff!", `""`: "",
		`"\x`: "\x00",
		`"\`:  `\`} {
		if got := unquoted(quoted); got != want {
			t.Errorf("%s: %q", quoted, got)
		}
	}
}

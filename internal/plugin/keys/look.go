// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package keys

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/internal/redis/slots"
)

const (
	// atOnce is for how many keys SCAN is asked at once: a server serves others in between.
	atOnce = 500
	// longestLine is how long a line of an answer may be: a key with a longer name is passed over.
	longestLine = 64 << 10
	// mostNamed are the bytes that the names of one answer to SCAN may take, and how many there may be; the rest is passed over.
	mostNamed, mostNames = 4 << 20, 20_000
	// mostSaid are the bytes of the answers to what is asked at once: a server that says more is left.
	mostSaid = 16 << 20
)

// Look looks at the keys of one master. Its methods are of one goroutine.
type Look struct {
	Shard Shard

	most              int
	largest, mostUsed []Key
	commands          io.Writer
	answers           *bufio.Reader
	mark              string
	frequency         bool
}

// NewLook looks for as many keys of each kind as most says, through a redis-cli (--no-raw) that reads commands and writes answers. The mark
// is a word that its server does not know.
func NewLook(of Shard, most int, mark string, commands io.Writer, answers io.Reader) *Look {
	return &Look{Shard: of, most: most, mark: mark, commands: commands, answers: bufio.NewReaderSize(answers, longestLine)}
}

var (
	cursorLine = regexp.MustCompile(`^1\) "([0-9]{1,20})"$`)
	// A name is as redis-cli quotes it (sdscatrepr), which is also how it reads one: it ends neither the word nor the line.
	nameLine = regexp.MustCompile(`^(?:2\)| {3,}) *[0-9]+\) ("(?:[^"\\[:cntrl:]]|\\(?:["\\nrtab]|x[0-9a-f]{2}))*")$`)
	number   = regexp.MustCompile(`^\(integer\) ([0-9]{1,18})$`)
	// redis-cli says how long an answer took that took long.
	took     = regexp.MustCompile(`^\([0-9]+\.[0-9]+s\)$`)
	typeName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
)

// Run looks at all keys, until time is over or an answer fails. What was found until then counts.
func (l *Look) Run(over func() bool) error {
	if err := l.begin(); err != nil {
		return err
	}
	for cursor := "0"; !over(); {
		next, names, err := l.scan(cursor)
		if err == nil {
			err = l.weigh(names)
		}
		if err != nil {
			_ = l.end() // that it cannot be asked any more is told
			return err
		}
		if cursor = next; cursor == "0" {
			l.Shard.Ended = true
			break
		}
	}
	return l.end()
}

// begin asks how many keys there are, and whether it is counted how often each is used.
func (l *Look) begin() error {
	policy, answered := false, false
	err := l.ask([]string{"DBSIZE", "CONFIG GET maxmemory-policy"}, func(line string) error {
		if n := number.FindStringSubmatch(line); n != nil {
			l.Shard.Keys, _ = strconv.ParseInt(n[1], 10, 64)
			answered = true
		}
		policy = policy || strings.HasSuffix(line, `"maxmemory-policy"`)
		l.frequency = l.frequency || policy && strings.HasSuffix(line, `-lfu"`)
		return refusal(line)
	})
	if err == nil && !answered {
		err = errors.New("the server does not say how many keys it has")
	}
	return err
}

// refusal is what a server said instead of an answer; nil: it did not.
func refusal(line string) error {
	if why, is := strings.CutPrefix(line, "(error) "); is {
		return fmt.Errorf("the server says %s", why)
	}
	return nil
}

func (l *Look) scan(cursor string) (next string, names []string, err error) {
	bytes := 0
	err = l.ask([]string{fmt.Sprintf("SCAN %s COUNT %d", cursor, atOnce)}, func(line string) error {
		if is := cursorLine.FindStringSubmatch(line); is != nil && next == "" {
			next = is[1]
			return nil
		}
		if is := nameLine.FindStringSubmatch(line); is != nil && len(names) < mostNames && bytes+len(is[1]) <= mostNamed {
			names, bytes = append(names, is[1]), bytes+len(is[1])
		}
		return refusal(line)
	})
	if err == nil && next == "" {
		err = errors.New("the answer to SCAN is not understood")
	}
	return next, names, err
}

// weigh asks what keys take, and how often each is used. One that is gone, or that has moved, is passed over.
func (l *Look) weigh(names []string) error {
	if len(names) == 0 {
		return nil
	}
	commands, each := make([]string, 0, 2*len(names)), 1
	for _, name := range names {
		commands = append(commands, "MEMORY USAGE "+name)
		if l.frequency {
			commands, each = append(commands, "OBJECT FREQ "+name), 2
		}
	}
	answers := make([]int64, 0, len(commands))
	var refused error
	err := l.ask(commands, func(line string) error {
		if len(answers) == len(commands) {
			return errors.New("the server answers more than it is asked")
		}
		n := int64(-1)
		if is := number.FindStringSubmatch(line); is != nil {
			n, _ = strconv.ParseInt(is[1], 10, 64)
		}
		answers = append(answers, n)
		refused = cmp.Or(refusal(line), refused)
		return nil
	})
	if err != nil {
		return err
	}
	if len(answers) != len(commands) {
		return errors.New("the server does not answer all that it is asked")
	}
	known := false
	for i, name := range names {
		k := Key{Key: name, Shard: l.Shard.Shard, Bytes: answers[i*each]}
		if k.Bytes < 0 {
			continue
		}
		known = true
		l.Shard.Looked++
		if used := answers[i*each+each-1]; l.frequency && used >= 0 {
			k.Frequency = &used
			l.mostUsed = keep(l.mostUsed, k, l.most, byUse)
		}
		l.largest = keep(l.largest, k, l.most, bySize)
	}
	if !known {
		return refused
	}
	return nil
}

// keep puts a key among the first of a list that is in order.
func keep(list []Key, k Key, most int, order func(a, b Key) int) []Key {
	at, _ := slices.BinarySearchFunc(list, k, order)
	again := func(other Key) bool { return other.Key == k.Key } // SCAN may tell a key twice
	if at >= most || slices.ContainsFunc(list, again) {
		return list
	}
	list = slices.Insert(list, at, k)
	return list[:min(most, len(list))]
}

// end asks of what was found what types it has.
func (l *Look) end() error {
	found := map[string]string{}
	var names, commands []string
	for _, k := range slices.Concat(l.largest, l.mostUsed) {
		if _, is := found[k.Key]; !is {
			found[k.Key] = ""
			names, commands = append(names, k.Key), append(commands, "TYPE "+k.Key)
		}
	}
	n := 0
	err := l.ask(commands, func(line string) error {
		if n < len(names) && typeName.MatchString(line) && line != "none" {
			found[names[n]] = line
		}
		n++
		return nil
	})
	for _, list := range [][]Key{l.largest, l.mostUsed} {
		for i := range list {
			list[i].Type, list[i].Slot = found[list[i].Key], slots.KeySlot(unquoted(list[i].Key))
		}
	}
	return err
}

// unquoted is a name that redis-cli has quoted.
func unquoted(quoted string) string {
	var b []byte
	text := strings.TrimSuffix(strings.TrimPrefix(quoted, `"`), `"`)
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b = append(b, text[i])
			continue
		}
		i++
		switch escaped := text[i]; escaped {
		case 'n', 'r', 't', 'a', 'b':
			b = append(b, map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'a': '\a', 'b': '\b'}[escaped])
		case 'x':
			hex := text[i+1 : min(i+3, len(text))]
			n, _ := strconv.ParseUint(hex, 16, 8)
			b = append(b, byte(n))
			i += len(hex)
		default:
			b = append(b, escaped)
		}
	}
	return string(b)
}

// ask sends commands, and tells each line of the answers, until the mark comes back. After an error no more can be asked.
func (l *Look) ask(commands []string, tell func(line string) error) error {
	sent := make(chan error, 1)
	go func() { // the server may answer before it has read all
		_, err := io.WriteString(l.commands, strings.Join(append(slices.Clone(commands), "ECHO "+l.mark), "\n")+"\n")
		sent <- err
	}()
	var failed error
	for left := mostSaid; ; {
		line, err := l.line(&left)
		switch {
		case left < 0:
			return errors.Join(failed, errors.New("the server says too much"))
		case err != nil:
			return errors.Join(failed, fmt.Errorf("read what the server says: %w", err))
		case line == `"`+l.mark+`"`:
			return errors.Join(failed, <-sent)
		case failed == nil && line != "" && !took.MatchString(line):
			failed = tell(line)
		}
	}
}

// line is the next line of the answers, and takes it off what they may have left; "": it is too long.
func (l *Look) line(left *int) (string, error) {
	for long := false; *left >= 0; long = true {
		line, err := l.answers.ReadSlice('\n')
		*left -= len(line)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil || long {
			return "", err
		}
		return strings.TrimRight(string(line), "\r\n"), nil
	}
	return "", nil
}

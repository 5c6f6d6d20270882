// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// hidden are the addresses 10.0.0.N:6379 and pod-N:6379, which are reached at redis.example.com:700N, N from 1 to 9.
type hidden struct{}

func (hidden) Outside(host string, port uint16) (Address, bool) {
	n := host[len(host)-1]
	if port != 6379 || n < '1' || n > '9' || host[:len(host)-1] != "10.0.0." && host[:len(host)-1] != "pod-" {
		return Address{}, false
	}
	return Address{Host: "redis.example.com", Port: 7000 + uint16(n-'0')}, true
}

func command(words ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	return text.String()
}

// lines are commands of words without blanks.
func lines(commands ...string) (text string) {
	for _, c := range commands {
		text += command(strings.Split(c, " ")...)
	}
	return text
}

// exchange is one session: what the instance gets, what the client gets, and how each direction ended.
func exchange(secure bool, said, replied string) (got, told string, client, instance error) {
	s := New(hidden{}, secure, &Counts{})
	var toInstance, toClient bytes.Buffer
	client = s.Requests(NewPipe(strings.NewReader(said), &toInstance, nil), func(Phase) {})
	instance = s.Replies(NewPipe(strings.NewReader(replied), &toClient, nil))
	return toInstance.String(), toClient.String(), client, instance
}

// checkReplies is what the client is told of what an instance replies to commands.
func checkReplies(t *testing.T, said, replied, want string) {
	t.Helper()
	_, told, client, instance := exchange(false, said, replied)
	if client != nil || instance != nil || told != want {
		t.Errorf("commands %q, replies %q\nare told as   %q,\nwant          %q\n(%v, %v)", said, replied, told, want, client, instance)
	}
}

const (
	slots2 = "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$8\r\n10.0.0.1\r\n:6379\r\n$2\r\nid\r\n*2\r\n$8\r\nhostname\r\n$5\r\npod-1\r\n"
	// The name of an instance is of no use outside.
	slots2Told  = "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$17\r\nredis.example.com\r\n:7001\r\n$2\r\nid\r\n*0\r\n"
	slots3      = "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$8\r\n10.0.0.1\r\n:6379\r\n$2\r\nid\r\n%1\r\n$8\r\nhostname\r\n$5\r\npod-1\r\n"
	slots3Told  = "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$17\r\nredis.example.com\r\n:7001\r\n$2\r\nid\r\n%0\r\n"
	nodes       = "a1 10.0.0.1:6379@16379,pod-1 myself,master - 0 0 1 connected 0-16383\nb2 10.0.0.12:6379@16379 slave a1 0 0 1 connected\n"
	nodesTold   = "a1 redis.example.com:7001@16379 myself,master - 0 0 1 connected 0-16383\nb2 10.0.0.12:6379@16379 slave a1 0 0 1 connected\n"
	helloReply3 = "%1\r\n$5\r\nproto\r\n:3\r\n"
	helloReply2 = "*2\r\n$5\r\nproto\r\n:2\r\n"
)

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func verbatim(text string) string {
	return fmt.Sprintf("=%d\r\ntxt:%s\r\n", len(text)+len("txt:"), text)
}

func confirmation(prefix, name, channel string, n int) string {
	return fmt.Sprintf("%s3\r\n%s%s:%d\r\n", prefix, bulk(name), bulk(channel), n)
}

func TestTopology(t *testing.T) {
	shard := "*1\r\n%2\r\n" + bulk("slots") + "*2\r\n:0\r\n:16383\r\n" + bulk("nodes") + "*1\r\n"
	for name, tc := range map[string]struct{ said, replied, want string }{
		"MOVED":                {"GET a", "-MOVED 3999 10.0.0.2:6379\r\n", "-MOVED 3999 redis.example.com:7002\r\n"},
		"ASK, by name":         {"GET a", "-ASK 3999 pod-3:6379\r\n", "-ASK 3999 redis.example.com:7003\r\n"},
		"MOVED, not in map":    {"GET a", "-MOVED 3999 10.0.0.77:6379\r\n", "-MOVED 3999 10.0.0.77:6379\r\n"},
		"MOVED, another port":  {"GET a", "-MOVED 3999 10.0.0.2:6380\r\n", "-MOVED 3999 10.0.0.2:6380\r\n"},
		"MOVED, no host":       {"GET a", "-MOVED 3999 :6379\r\n", "-MOVED 3999 :6379\r\n"},
		"a status is no error": {"GET a", "+MOVED 3999 10.0.0.2:6379\r\n", "+MOVED 3999 10.0.0.2:6379\r\n"},
		"SLOTS":                {"CLUSTER SLOTS", slots2, slots2Told},
		"SLOTS in RESP3":       {"cluster slots", slots3, slots3Told},
		"SLOTS, no host": {"CLUSTER SLOTS", "*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n$-1\r\n:6379\r\n$2\r\nid\r\n",
			"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n$-1\r\n:6379\r\n$2\r\nid\r\n"},
		"SLOTS refused":  {"CLUSTER SLOTS", "-NOPERM no\r\n", "-NOPERM no\r\n"},
		"NODES":          {"CLUSTER NODES", bulk(nodes), bulk(nodesTold)},
		"NODES in RESP3": {"CLUSTER NODES", verbatim(nodes), verbatim(nodesTold)},
		"REPLICAS": {"CLUSTER REPLICAS a1", "*1\r\n" + bulk("b2 10.0.0.2:6379@16379 slave a1"), "*1\r\n" +
			bulk("b2 redis.example.com:7002@16379 slave a1")},
		"a value like NODES": {"GET nodes", bulk(nodes), bulk(nodes)},
		"a list like SLOTS":  {"LRANGE slots 0 -1", slots2, slots2},
		"SHARDS": {"CLUSTER SHARDS",
			shard + "%5\r\n" + bulk("id") + bulk("a1") + bulk("port") + ":6379\r\n" + bulk("ip") + bulk("10.0.0.1") + bulk("endpoint") +
				bulk("10.0.0.1") + bulk("hostname") + bulk("pod-1"),
			shard + "%4\r\n" + bulk("id") + bulk("a1") + bulk("port") + ":7001\r\n" + bulk("ip") + bulk("redis.example.com") +
				bulk("endpoint") + bulk("redis.example.com")},
		"SHARDS of an instance with TLS": {"CLUSTER SHARDS",
			shard + "*6\r\n" + bulk("tls-port") + ":6379\r\n" + bulk("ip") + bulk("10.0.0.1") + bulk("role") + bulk("master"),
			shard + "*6\r\n" + bulk("port") + ":7001\r\n" + bulk("ip") + bulk("redis.example.com") + bulk("role") + bulk("master")},
	} {
		t.Run(name, func(t *testing.T) { checkReplies(t, lines(tc.said), tc.replied, tc.want) })
	}
	secure := shard + "%2\r\n" + bulk("port") + ":6379\r\n" + bulk("ip") + bulk("10.0.0.1")
	if _, told, _, err := exchange(true, lines("CLUSTER SHARDS"), secure); err != nil || !strings.Contains(told,
		"$8\r\ntls-port\r\n:7001\r\n") {
		t.Errorf("with TLS for clients SHARDS is told as %q, %v", told, err)
	}
}

// Replies belong to their commands whatever stands between.
func TestRepliesKeepTheirOrder(t *testing.T) {
	for name, tc := range map[string]struct{ said, replied, want string }{
		"pipeline": {lines("GET a", "CLUSTER SLOTS", "GET b", "CLUSTER NODES"), "$1\r\na\r\n" + slots2 + slots2 + bulk(nodes),
			"$1\r\na\r\n" + slots2Told + slots2 + bulk(nodesTold)},
		"transaction": {lines("MULTI", "GET a", "CLUSTER SLOTS", "EXEC", "CLUSTER SLOTS"),
			"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + slots2 + slots2 + slots2, "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + slots2 + slots2Told +
				slots2Told},
		"transaction that a key prevents": {lines("WATCH k", "MULTI", "CLUSTER SLOTS", "EXEC", "LRANGE a 0 -1"),
			"+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n" + slots2, "+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n" + slots2},
		"transaction with an error": {lines("MULTI", "NONSENSE", "CLUSTER SLOTS", "EXEC", "MULTI", "LRANGE a 0 -1", "EXEC"),
			"+OK\r\n-ERR unknown\r\n+QUEUED\r\n-EXECABORT no\r\n+OK\r\n+QUEUED\r\n*1\r\n" + slots2,
			"+OK\r\n-ERR unknown\r\n+QUEUED\r\n-EXECABORT no\r\n+OK\r\n+QUEUED\r\n*1\r\n" + slots2},
		"redirection in a transaction": {lines("MULTI", "EVAL x 0", "EXEC"), "+OK\r\n+QUEUED\r\n*1\r\n-ASK 1 10.0.0.1:6379\r\n",
			"+OK\r\n+QUEUED\r\n*1\r\n-ASK 1 redis.example.com:7001\r\n"},
		"what is published in a transaction to who does it": {lines("HELLO 3", "SUBSCRIBE c", "MULTI", "PUBLISH c x", "CLUSTER SLOTS", "EXEC"),
			helloReply3 + confirmation(">", "subscribe", "c", 1) + "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n>3\r\n" + bulk("message") + bulk("c") +
				bulk("x") + ":1\r\n" + slots3,
			helloReply3 + confirmation(">", "subscribe", "c", 1) + "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n>3\r\n" + bulk("message") + bulk("c") +
				bulk("x") + ":1\r\n" + slots3Told},
		"HELLO in a transaction": {lines("MULTI", "HELLO 3", "EXEC", "SUBSCRIBE c", "CLUSTER SLOTS"),
			"+OK\r\n+QUEUED\r\n*1\r\n" + helloReply3 + confirmation(">", "subscribe", "c", 1) + slots3,
			"+OK\r\n+QUEUED\r\n*1\r\n" + helloReply3 + confirmation(">", "subscribe", "c", 1) + slots3Told},
		"protocol switched in a pipeline": {lines("HELLO 3", "CLUSTER SLOTS", "RESET", "CLUSTER SLOTS", "HELLO 3", "HELLO 2", "CLUSTER SLOTS"),
			helloReply3 + slots3 + "+RESET\r\n" + slots2 + helloReply3 + helloReply2 + slots2,
			helloReply3 + slots3Told + "+RESET\r\n" + slots2Told + helloReply3 + helloReply2 + slots2Told},
		"pushes between replies": {lines("HELLO 3", "GET a", "CLUSTER SLOTS"),
			helloReply3 + ">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk("k") + bulk("a") + ">2\r\n" + bulk("invalidate") + "_\r\n" + slots3,
			helloReply3 + ">2\r\n" + bulk("invalidate") + "*1\r\n" + bulk("k") + bulk("a") + ">2\r\n" + bulk("invalidate") + "_\r\n" + slots3Told},
		"MONITOR": {lines("MONITOR", "RESET", "CLUSTER SLOTS"),
			"+OK\r\n+1.5 [0 10.0.0.1:6379] \"GET\" \"a\"\r\n+1.6 [0 x] \"b\"\r\n+RESET\r\n" + slots2,
			"+OK\r\n+1.5 [0 10.0.0.1:6379] \"GET\" \"a\"\r\n+1.6 [0 x] \"b\"\r\n+RESET\r\n" + slots2Told},
		"MONITOR of a large value": {lines("MONITOR", "CLUSTER SLOTS"),
			"+OK\r\n+1.5 [0 x] \"" + strings.Repeat("v", 20<<10) + "\"\r\n" + slots2,
			"+OK\r\n+1.5 [0 x] \"" + strings.Repeat("v", 20<<10) + "\"\r\n" + slots2Told},
		"an attribute": {lines("GET a", "CLUSTER SLOTS"), "|1\r\n+ttl\r\n:5\r\n" + bulk("a") + slots2, "|1\r\n+ttl\r\n:5\r\n" + bulk("a") +
			slots2Told},
	} {
		t.Run(name, func(t *testing.T) { checkReplies(t, tc.said, tc.replied, tc.want) })
	}
}

func TestSubscriptions(t *testing.T) {
	in2 := func(name, channel string, n int) string { return confirmation("*", name, channel, n) }
	null := "*3\r\n" + bulk("unsubscribe") + "$-1\r\n:0\r\n"
	message := "*3\r\n" + bulk("message") + bulk("a") + bulk("text")
	for name, tc := range map[string]struct{ said, replied string }{
		"RESP2, several, and from everything": {lines("SUBSCRIBE a b", "PSUBSCRIBE p*", "UNSUBSCRIBE", "PING", "PUNSUBSCRIBE p*",
			"CLUSTER SLOTS"),
			in2("subscribe", "a", 1) + message + in2("subscribe", "b", 2) + in2("psubscribe", "p*", 3) + message + in2("unsubscribe", "a", 2) +
				in2("unsubscribe", "b", 1) + "*2\r\n" + bulk("pong") + bulk("") + in2("punsubscribe", "p*", 0)},
		"nothing to leave": {lines("UNSUBSCRIBE", "UNSUBSCRIBE", "CLUSTER SLOTS"), null + null},
		"twice the same": {lines("SUBSCRIBE a a", "UNSUBSCRIBE a", "CLUSTER SLOTS"), in2("subscribe", "a", 1) + in2("subscribe", "a", 1) +
			in2("unsubscribe", "a", 0)},
		"refused": {lines("SUBSCRIBE a b", "SUBSCRIBE", "CLUSTER SLOTS"), "-NOPERM no\r\n-ERR wrong number\r\n"},
		"a shard's": {lines("SSUBSCRIBE {x}a", "SUNSUBSCRIBE", "CLUSTER SLOTS"), in2("ssubscribe", "{x}a", 1) + in2("sunsubscribe",
			"{x}a", 0)},
		"a slot moves": {lines("HELLO 3", "SSUBSCRIBE c", "CLUSTER SLOTS"), helloReply3 + confirmation(">", "ssubscribe", "c", 1) +
			confirmation(">", "sunsubscribe", "c", 0)},
		"RESP3": {lines("HELLO 3", "SUBSCRIBE a b", "GET x", "UNSUBSCRIBE", "CLUSTER SLOTS"), helloReply3 + confirmation(">",
			"subscribe", "a", 1) + confirmation(">", "subscribe", "b", 2) + bulk("x") + confirmation(">", "unsubscribe", "b", 1) +
			confirmation(">", "unsubscribe", "a", 0)},
		"left by RESET": {lines("SUBSCRIBE a", "RESET", "LRANGE l 0 -1", "CLUSTER SLOTS"), in2("subscribe", "a", 1) + message +
			"+RESET\r\n" + "*1\r\n" + bulk("message")},
		"a list afterwards": {lines("SUBSCRIBE a", "UNSUBSCRIBE a", "LRANGE l 0 -1", "CLUSTER SLOTS"), in2("subscribe", "a", 1) +
			in2("unsubscribe", "a", 0) + message},
	} {
		t.Run(name, func(t *testing.T) { checkReplies(t, tc.said, tc.replied+slots2, tc.replied+slots2Told) })
	}
}

// An instance is never told to leave out replies; the gateway does.
func TestRepliesLeftOut(t *testing.T) {
	for name, tc := range map[string]struct{ said, got, replied, want string }{
		"off and on": {lines("CLIENT REPLY OFF", "GET a", "CLUSTER SLOTS", "client reply on", "CLUSTER SLOTS"),
			lines("CLIENT REPLY ON", "GET a", "CLUSTER SLOTS", "CLIENT REPLY ON", "CLUSTER SLOTS"),
			"+OK\r\n" + bulk("a") + slots2 + "+OK\r\n" + slots2, "+OK\r\n" + slots2Told},
		"skip": {lines("CLIENT REPLY SKIP", "GET a", "GET b"), lines("CLIENT REPLY ON", "GET a", "GET b"),
			"+OK\r\n" + bulk("a") + bulk("b"), bulk("b")},
		"refused": {lines("CLIENT REPLY OFF", "GET a"), lines("CLIENT REPLY ON", "GET a"), "-NOPERM no\r\n" + bulk("a"),
			"-NOPERM no\r\n" + bulk("a")},
		"no way": {lines("CLIENT REPLY MAYBE", "CLIENT REPLY"), lines(refusedCommand, "CLIENT REPLY"),
			"-ERR unknown command\r\n-ERR b\r\n", Refusal + "\r\n-ERR b\r\n"},
		"ended by RESET": {lines("CLIENT REPLY OFF", "RESET", "GET a"), lines("CLIENT REPLY ON", "RESET", "GET a"), "+OK\r\n+RESET\r\n" +
			bulk("a"), "+RESET\r\n" + bulk("a")},
		"in a transaction": {lines("CLIENT REPLY OFF", "MULTI", "GET a", "EXEC", "CLIENT REPLY ON"), lines("CLIENT REPLY ON", "MULTI",
			"GET a", "EXEC", "CLIENT REPLY ON"), "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n" + bulk("a") + "+OK\r\n", "+OK\r\n"},
		"but messages pass": {lines("CLIENT REPLY OFF", "SUBSCRIBE a"), lines("CLIENT REPLY ON", "SUBSCRIBE a"), "+OK\r\n" +
			confirmation("*", "subscribe", "a", 1), confirmation("*", "subscribe", "a", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			checkReplies(t, tc.said, tc.replied, tc.want)
			if got, _, _, _ := exchange(false, tc.said, ""); got != tc.got {
				t.Errorf("the instance gets %q, want %q", got, tc.got)
			}
		})
	}
}

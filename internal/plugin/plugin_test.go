// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"middleware.hc.cn/operator/internal/plugin/journal"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

func nothing(string) (string, bool) { return "", false }

func TestKinds(t *testing.T) {
	for argument, want := range map[string]string{
		"cache": "RedisCluster cache", "rec/cache": "RedisCluster cache", "redisclusters.redis.middleware.hc.cn/cache": "RedisCluster cache",
		"app/web": "App web", "CronTabs/nightly": "CronTab nightly", "secret/x": "", "app/": "", "a/b/c": "", "": "",
	} {
		kind, name, err := kindOf(argument)
		if got := kind.Kind + " " + name; err == nil && got != want || err != nil && want != "" {
			t.Errorf("%q: %q, %v", argument, got, err)
		}
	}
}

// What is no terminal gets no colours and 80 columns; -o and --width are checked.
func TestPage(t *testing.T) {
	var out strings.Builder
	p := newProgram(Environment{Out: &out, Lookup: nothing})
	if page := p.page(); page.Colour || page.Width != 80 {
		t.Errorf("got %+v", page)
	}
	p.width = 1 << 30
	if page := p.page(); page.Width > 400 {
		t.Errorf("got %+v", page)
	}
	for _, arguments := range [][]string{{"status", "-o", "xml"}, {"status", "-w", "-o", "json"}, {"plan"}, {"plan", "-f", "/nowhere"},
		{"pause"}} {
		root := New(Environment{In: strings.NewReader(""), Out: &out, Err: &out, Lookup: nothing})
		root.SetArgs(arguments)
		if err := root.Execute(); err == nil {
			t.Errorf("%v is taken", arguments)
		}
	}
}

func TestFilesAreBoundedAndOfRedisClusters(t *testing.T) {
	const cluster = "apiVersion: redis.middleware.hc.cn/v1alpha1\nkind: RedisCluster\nmetadata: {name: cache}\n"
	for text, want := range map[string]string{
		"":      "holds no object",
		"# x\n": "holds no object",
		"kind: App\napiVersion: appcontroller.middleware.hc.cn/v1alpha1\n": "manager render",
		"a: b\n": "document without a kind",
		strings.Replace(cluster, "name: cache", "", 1):    "without metadata.name",
		strings.Repeat(cluster+"---\n", 101):              "more than 100",
		cluster + "# " + strings.Repeat("x", largestFile): "is longer than",
		"apiVersion: [": "read -",
		cluster + "---\n# only a comment\n---\n" + cluster: "",
	} {
		p := newProgram(Environment{In: strings.NewReader(text), Lookup: nothing})
		objects, err := p.objectsOf("-")
		if want == "" && (err != nil || len(objects) != 2) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %d objects, %v", text, len(objects), err)
		}
	}
}

// As many objects as there may be are taken, and none of another namespace than was asked for.
func TestFilesOfManyObjectsAndOtherNamespaces(t *testing.T) {
	const cluster = "apiVersion: redis.middleware.hc.cn/v1alpha1\nkind: RedisCluster\nmetadata: {name: cache, namespace: shop}\n---\n"
	p := newProgram(Environment{In: strings.NewReader(strings.Repeat(cluster, mostObjects)), Lookup: nothing})
	objects, err := p.objectsOf("-")
	if err != nil || len(objects) != mostObjects {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	for asked, refused := range map[string]bool{"": false, "shop": false, "other": true} {
		p.connection.overrides.Context.Namespace = asked
		if err := p.connection.agrees(objects); refused != (err != nil) {
			t.Errorf("-n %q: %v", asked, err)
		}
	}
}

// Logs of all pods come by time; one that cannot be read is named, and one without an end is cut off.
func TestLogs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("timestamps") != "true" || q.Get("container") != "redis" ||
			q.Get("tailLines") == "" || q.Get("limitBytes") == "" {
			t.Errorf("asked for %s", r.URL)
		}
		switch {
		case strings.Contains(r.URL.Path, "/pods/cache-0-0/log"):
			fmt.Fprint(w, "2026-11-24T12:00:02Z second\n")
		case strings.Contains(r.URL.Path, "/pods/cache-1-0/log"):
			fmt.Fprint(w, "2026-11-24T12:00:01Z first\n"+strings.Repeat("x", 3<<20))
		default:
			http.Error(w, "gone", http.StatusNotFound)
		}
	}))
	defer server.Close()
	var pods []corev1.Pod
	for _, name := range []string{"cache-0-0", "cache-1-0", "cache-2-0"} {
		pods = append(pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}})
	}
	c := &cluster{config: &rest.Config{Host: server.URL}}
	lines, unread, err := c.logs(context.Background(), pods, logsOf{container: "redis", tail: 5})
	if err != nil || len(lines) != 3 || lines[0].Text != "first" || lines[2].Text != "second" || len(lines[1].Text) > mostOfPod {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	slices.Sort(unread)
	if len(unread) != 2 || unread[0] != "cache-1-0: its last line is cut off at 1048576 bytes" ||
		!strings.HasPrefix(unread[1], "cache-2-0: ") {
		t.Errorf("unread: %v", unread)
	}
	if text := journal.Text(terminal.Page{Width: 80}, lines); len(text) > 4096 {
		t.Errorf("%d bytes of text", len(text))
	}
	if _, _, err := c.logs(context.Background(), pods[2:], logsOf{container: "redis", tail: 5}); err == nil {
		t.Error("no log at all is no error")
	}
}

// What a report says of events and of what it could not read has no passwords, however they are quoted, and is printable.
func TestReportedTextHasNoPasswords(t *testing.T) {
	encoded, err := encodedEvents([]corev1.Event{{Reason: "Failed", Message: `{"password":"a\"hunter2"} and password='b hunter2'`}})
	if err != nil || strings.Contains(string(encoded), "hunter2") || !strings.Contains(string(encoded), `"reason": "Failed"`) {
		t.Errorf("%v: %s", err, encoded)
	}
	if text := told([]string{"pods: \x1b[2J the password is hunter2", "x"}); strings.Contains(text, "hunter2") ||
		strings.Contains(text, "\x1b") || strings.Count(text, "\n") != 2 {
		t.Errorf("%q", text)
	}
}

// A command to type acts where this one did, as whom this one did, whatever the shell would read in a name.
func TestCommandsToTypeActInTheSameCluster(t *testing.T) {
	for _, tt := range []struct {
		given []string
		want  string
	}{
		{[]string{"-n", "shop", "--request-timeout=5s", "--width=90"}, "kubectl x -n shop"},
		{[]string{"--context=prod", "--kubeconfig", "/home/me/it's $(mine)"},
			`kubectl x -n shop --context=prod --kubeconfig='/home/me/it'\''s $(mine)'`},
		{[]string{"--as=eve", "--as-group=a", "--as-group=b c", "--token=hunter2"},
			"kubectl x -n shop --as=eve --as-group=a --as-group='b c' --token=TOKEN"},
	} {
		p := newProgram(Environment{Out: io.Discard, Lookup: nothing})
		command, rest, err := p.root().Find(append([]string{"status"}, tt.given...))
		if err != nil || command.ParseFlags(rest) != nil {
			t.Fatal(err)
		}
		if got := p.connection.typed("kubectl x -n shop"); got != tt.want {
			t.Errorf("%v: got %s", tt.given, got)
		}
	}
	flags := New(Environment{Out: io.Discard, Lookup: nothing}).PersistentFlags()
	if flags.Lookup("password") != nil || flags.Lookup("username") != nil || flags.Lookup("namespace").Shorthand != "n" {
		t.Error("the flags are not kubectl's")
	}
}

// A log that is longer than what is read of one ends with its newest line, and it is said what is missing.
func TestLongLogsEndWithTheirNewestLine(t *testing.T) {
	var all []string
	for i := range 40 {
		all = append(all, fmt.Sprintf("2026-11-24T12:00:%02dZ %s %d\n", i, strings.Repeat("x", 100<<10), i))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines := all
		if tail := r.URL.Query().Get("tailLines"); tail != "" {
			count, err := strconv.Atoi(tail)
			if err != nil || count < 0 {
				http.Error(w, "tailLines", http.StatusUnprocessableEntity)
				return
			}
			lines = all[len(all)-min(count, len(all)):]
		}
		limit, _ := strconv.Atoi(r.URL.Query().Get("limitBytes"))
		text := strings.Join(lines, "")
		fmt.Fprint(w, text[:min(limit, len(text))])
	}))
	defer server.Close()
	c := &cluster{config: &rest.Config{Host: server.URL}}
	pods := []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "cache-0-0", Namespace: "shop"}}}
	for _, tt := range []struct {
		tail  int64
		lines int
		said  string
	}{{allLines, 5, "cut off at 1048576 bytes: all but its last 5 lines"}, {20, 5, "all but its last 5 lines"},
		{11, 5, "last 5 lines"}, {3, 3, ""}} {
		lines, unread, err := c.logs(context.Background(), pods, logsOf{container: "redis", tail: tt.tail})
		if err != nil || len(lines) != tt.lines || !strings.HasSuffix(lines[len(lines)-1].Text, " 39") ||
			!strings.Contains(strings.Join(unread, "; "), tt.said) || tt.said == "" && len(unread) > 0 {
			t.Errorf("tail %d: %d lines, %v, %v", tt.tail, len(lines), unread, err)
		}
	}
}

// What others wrote steers no terminal in JSON and YAML either, and JSON stays what it was.
func TestJSONForATerminal(t *testing.T) {
	const hostile = "a\x1b[2J\u009b2J\u202e\u007f\U000e0001 ü\nb"
	encoded, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	safe := string(shown(encoded, "json"))
	var back string
	if err := json.Unmarshal([]byte(safe), &back); err != nil || back != hostile ||
		strings.ContainsAny(safe, "\x1b\u009b\u202e\u007f\U000e0001") {
		t.Errorf("%v: %q", err, safe)
	}
	if got := string(shown([]byte("a: \u202eb\n"), "yaml")); got != "a: ?b\n" {
		t.Errorf("%q", got)
	}
	if got := string(shown([]byte("\x1b[1m"), "text")); got != "\x1b[1m" {
		t.Errorf("%q", got)
	}
}

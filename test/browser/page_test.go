// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package browser looks at the page of `kubectl middleware web` in a real browser: `make test-browser`.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/plugin/web"
)

var update = flag.Bool("update", false, "take the pictures of docs/pictures anew")

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv("CHROMIUM") == "" {
		fmt.Fprintln(os.Stderr, "tests in a browser: CHROMIUM is not set; run them with make test-browser")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// shown is what the page is told: a list, and one RedisCluster of it.
type shown struct {
	mu      sync.Mutex
	list    overview.List
	cluster overview.Cluster
	down    bool
}

func (s *shown) Where() string { return "namespace shop at https://10.0.0.1:6443" }

func (s *shown) List(context.Context) (overview.List, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list, s.err()
}

func (s *shown) Cluster(context.Context, string, string) (overview.Cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster, s.err()
}

func (s *shown) Object(_ context.Context, kind, namespace, name string) (overview.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.list.Objects {
		if o.Kind == kind && o.Namespace == namespace && o.Name == name {
			return o, s.err()
		}
	}
	return overview.Object{}, web.NotFoundError{Err: errors.New("it is not there")}
}

func (s *shown) err() error {
	if s.down {
		return errors.New("dial tcp 10.0.0.1:6443: connect: connection refused")
	}
	return nil
}

// change changes what is there.
func (s *shown) change(how func(*overview.Cluster)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	encoded, _ := json.Marshal(s.cluster)
	var next overview.Cluster
	_ = json.Unmarshal(encoded, &next)
	how(&next)
	s.cluster = next
}

// model is a golden file of package overview.
func model[T any](t *testing.T, name string) (value T) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "internal", "plugin", "overview", "testdata", name+".json"))
	check(t, err)
	check(t, json.Unmarshal(content, &value))
	return value
}

// served is the page with a RedisCluster of the golden files.
func served(t *testing.T, name string) (*shown, string) {
	t.Helper()
	s := &shown{list: model[overview.List](t, "list"), cluster: model[overview.Cluster](t, name)}
	server := httptest.NewUnstartedServer(nil)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	check(t, err)
	handler := web.New(s, port, func() time.Time { return now })
	server.Config.Handler = http.Handler(handler)
	server.Start()
	t.Cleanup(server.Close)
	return s, handler.URL()
}

const drawn = "document.querySelector('.shard .instance')"

// Whatever the author of an object, a server or a pod writes, and wherever: it is text, and does nothing.
func TestWhatOthersWriteIsText(t *testing.T) {
	s, url := served(t, "broken")
	const hostile = `"><img src=x onerror="window.owned=1"><script>window.owned=1</script><a href="javascript:window.owned=1">{{7*7}}`
	s.mu.Lock()
	s.list.Objects = append(s.list.Objects, overview.Object{Kind: hostile, Namespace: hostile, Name: hostile, State: hostile, Message: hostile,
		Conditions: []overview.Condition{{Type: hostile, Status: hostile, Reason: hostile, Message: hostile}}})
	s.list.Unread = append(s.list.Unread, overview.Unread{What: hostile, Why: hostile})
	s.mu.Unlock()
	s.change(func(c *overview.Cluster) {
		c.Name, c.Namespace, c.Phase, c.Reason, c.Engine, c.Version, c.Target, c.Ready = hostile, hostile, hostile, hostile, hostile, hostile,
			hostile, hostile
		for i := range c.Shards {
			c.Shards[i].Slots = hostile
			for j := range c.Shards[i].Instances {
				in := &c.Shards[i].Instances[j]
				in.Name, in.Role, in.State, in.Message, in.Lag, in.Address = hostile+fmt.Sprint(i, j), hostile, hostile, hostile, hostile, hostile
				in.Node, in.Zone, in.Memory, in.Limit, in.Claim = hostile, hostile, hostile, hostile, hostile
			}
		}
		c.Plan = &overview.Plan{Step: hostile, Reason: hostile, BlockedBy: hostile, Moves: []string{hostile}, Settings: []string{hostile}}
		c.Work = []overview.Progress{{What: hostile, Message: hostile}}
		c.Findings = []overview.Finding{{Severity: hostile, Message: hostile, Type: hostile}}
		c.Events = []overview.Event{{Object: hostile, Reason: hostile, Message: hostile}}
		c.Unread = []overview.Unread{{What: hostile, Why: hostile}}
	})
	p := launch(t).open(t, url, 1280, 900, false)
	p.await(drawn)
	p.eval("location.hash = document.querySelectorAll('nav a')[document.querySelectorAll('nav a').length - 1].getAttribute('href')", nil)
	p.await("document.querySelector('main th, main .error')")
	p.eval("history.back()", nil)
	p.await(drawn)
	var found int
	p.eval(`document.querySelectorAll('img, iframe, object, script:not([src="page.js"]), a[href^="javascript"], [onerror]').length + (window.owned ? 100 : 0)`,
		&found)
	if text := p.text(); found > 0 || !strings.Contains(text, "<img src=x") || !strings.Contains(text, "{{7*7}}") {
		t.Errorf("%d elements that others wrote; the page says\n%s", found, text)
	}
	p.wantQuiet(url)
}

// A switchover is told and lit, slots that move change the band, and who is at the keyboard stays where he is.
func TestWhatChangesIsSeen(t *testing.T) {
	s, url := served(t, "scaling")
	p := launch(t).open(t, url, 1280, 900, false)
	p.await(drawn)
	var before []int
	shares := `[...document.querySelectorAll('.piece')].map((p) => Number(getComputedStyle(p).flexGrow))`
	p.eval(shares, &before)
	p.eval("document.querySelector('.shard[data-shard=\"1\"]').focus()", nil)
	p.await("document.querySelector('.piece.hot[data-shard=\"1\"]') && document.querySelector('main.pointing')")
	s.change(func(c *overview.Cluster) {
		c.Shards[0].Instances[0].Role, c.Shards[0].Instances[1].Role = "replica", "master"
		c.Shards[1].Slots, c.Shards[1].Count = "5461-9999", 4539
		c.Shards[3].Slots, c.Shards[3].Count = "4096-5460,10000-10922", 2288
	})
	p.await("document.querySelector('#told').textContent.includes('of shard 0 now')")
	p.await("document.querySelectorAll('.instance.lit').length === 2")
	p.await("document.querySelectorAll('.piece').length === " + fmt.Sprint(len(before)+1))
	p.await(`document.activeElement.dataset.shard === "1"`)
	if text := p.text(); !strings.Contains(text, "cache-0-1 is the master of shard 0 now") || !strings.Contains(text, "4539 slots") {
		t.Errorf("the page says\n%s", text)
	}
	p.eval("document.querySelector('#hold').click()", nil)
	s.change(func(c *overview.Cluster) { c.Reason = "something else" })
	p.eval("new Promise((done) => setTimeout(done, 3000))", nil)
	if strings.Contains(p.text(), "something else") {
		t.Error("it looks while it is held")
	}
	p.eval("document.querySelector('#hold').click()", nil)
	p.await("document.body.innerText.includes('something else')")
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	p.await("document.querySelector('main.old .error')?.innerText.includes('connection refused')")
	if !strings.Contains(p.text(), "cache-0-1") {
		t.Error("what was seen last is gone")
	}
	p.wantQuiet(url, "502") // which the browser complains of
}

// All can be reached and done with the keyboard, and it is seen where one is.
func TestKeyboard(t *testing.T) {
	_, url := served(t, "broken")
	p := launch(t).open(t, url, 1280, 900, false)
	p.await(drawn)
	seen := map[string]bool{}
	for range 80 {
		p.press("Tab", 9)
		var at struct {
			What    string
			Outline string
		}
		p.eval(`(() => { const e = document.activeElement; return {What: e.id || e.className || e.tagName, Outline: getComputedStyle(e).outlineStyle}; })()`,
			&at)
		if at.What == "BODY" {
			break // past the end
		}
		seen[strings.Fields(at.What)[0]] = true
		if at.Outline == "none" {
			t.Errorf("nothing shows that %s has the focus", at.What)
		}
	}
	for _, want := range []string{"skip", "hold", "theme", "filter", "A", "card", "BUTTON"} {
		if !seen[want] {
			t.Errorf("%s cannot be reached: %v", want, seen)
		}
	}
	p.eval("document.querySelector('nav a[href*=\"App\"]').focus()", nil)
	p.press("Enter", 13)
	p.await("document.querySelector('main h2')?.innerText.startsWith('front')")
	p.eval("document.querySelector('#filter').focus()", nil)
	p.eval("document.querySelector('#filter').value = 'cache'; document.querySelector('#filter').dispatchEvent(new Event('input'))", nil)
	p.await("document.querySelectorAll('nav a').length === 1")
	p.wantQuiet(url)
}

// contrast lists the texts whose contrast with what is behind them is too low (WCAG 2.2, 1.4.3), and how many were looked at.
const contrast = `(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (colour) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const low = [];
  let looked = 0;
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !e.getClientRects().length || e.closest('.unseen, noscript, .skip')) continue;
    let at = e, back = [0, 0, 0, 0];
    for (; at && back[3] < 255; at = at.parentElement) back = rgb(getComputedStyle(at).backgroundColor);
    if (e.classList.contains('none')) continue;
    looked++;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(e.className + ': ' + e.textContent.slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  return {low, looked};
})()`

func TestContrast(t *testing.T) {
	b := launch(t)
	for _, name := range []string{"scaling", "broken"} {
		for _, dark := range []bool{false, true} {
			_, url := served(t, name)
			p := b.open(t, url, 1280, 900, dark)
			p.await(drawn)
			var got struct {
				Low    []string
				Looked int
			}
			p.eval(contrast, &got)
			if len(got.Low) > 0 || got.Looked < 60 {
				t.Errorf("%s, dark %t: of %d texts: %s", name, dark, got.Looked, strings.Join(got.Low, "; "))
			}
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/plugin/overview"
)

const hostile = "<img src=x onerror=alert(1)>\u202e\x1b[2J</script>"

// seen is a source with one RedisCluster, which somebody hostile has named things in.
type seen struct{ looks int }

func (s *seen) Where() string { return "namespace shop" }

func (s *seen) List(context.Context) (overview.List, error) {
	s.looks++
	return overview.List{Objects: []overview.Object{{Kind: "RedisCluster", Namespace: "shop", Name: "cache", Message: hostile}}}, nil
}

func (s *seen) Cluster(_ context.Context, namespace, name string) (overview.Cluster, error) {
	s.looks++
	if name != "cache" || namespace != "shop" {
		return overview.Cluster{}, NotFoundError{errors.New(hostile + " not found")}
	}
	return overview.Cluster{Kind: "RedisCluster", Name: name, Reason: hostile,
		Shards: []overview.Shard{{Slots: strings.Repeat("1,", 4000)}}}, nil
}

func (s *seen) Object(_ context.Context, kind, _, name string) (overview.Object, error) {
	s.looks++
	return overview.Object{Kind: kind, Name: name}, errors.New("the API server does not answer")
}

func get(t *testing.T, h *Handler, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, h.URL(), http.NoBody)
	change(r)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	answer := w.Result()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// Nobody but the page itself, opened by its address, is told anything; and nothing can be changed.
func TestWhoIsTold(t *testing.T) {
	source := &seen{}
	h := New(source, "4711", time.Now)
	at := func(file string) func(*http.Request) {
		return func(r *http.Request) { r.URL.Path += file }
	}
	both := func(all ...func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			for _, change := range all {
				change(r)
			}
		}
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	site := func(of string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", of) }
	}
	for name, tt := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"the page":                     {at(""), http.StatusOK},
		"by localhost":                 {host("localhost:4711"), http.StatusOK},
		"its script":                   {at("page.js"), http.StatusOK},
		"the list":                     {both(at("list"), site("same-origin")), http.StatusOK},
		"from a link":                  {site("cross-site"), http.StatusOK},
		"another name (DNS rebinding)": {both(at("list"), host("evil.example:4711")), http.StatusMisdirectedRequest},
		"another port":                 {both(at("list"), host("127.0.0.1:80")), http.StatusMisdirectedRequest},
		"no name":                      {both(at("list"), host("")), http.StatusMisdirectedRequest},
		"without the secret":           {func(r *http.Request) { r.URL.Path = "/list" }, http.StatusNotFound},
		"with another one":             {func(r *http.Request) { r.URL.Path = "/" + strings.Repeat("A", 26) + "/list" }, http.StatusNotFound},
		"the root":                     {func(r *http.Request) { r.URL.Path = "/" }, http.StatusNotFound},
		"another page asks":            {both(at("list"), site("cross-site")), http.StatusForbidden},
		"another port's page asks":     {both(at("list"), site("same-site")), http.StatusForbidden},
		"another file":                 {at("../web.go"), http.StatusNotFound},
		"the folder":                   {at("page"), http.StatusNotFound},
		"a write":                      {both(at("list"), func(r *http.Request) { r.Method = http.MethodPost }), http.StatusMethodNotAllowed},
		"a deletion":                   {func(r *http.Request) { r.Method = http.MethodDelete }, http.StatusMethodNotAllowed},
	} {
		source.looks = 0
		answer, body := get(t, h, tt.change)
		if answer.StatusCode != tt.status || tt.status != http.StatusOK && (source.looks > 0 || strings.Contains(body, h.token)) {
			t.Errorf("%s: %d, %d looks: %.80s", name, answer.StatusCode, source.looks, body)
		}
		if p := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "default-src 'none'; script-src 'self';") ||
			strings.Contains(p, "unsafe") || answer.Header.Get("X-Content-Type-Options") != "nosniff" ||
			answer.Header.Get("Referrer-Policy") != "no-referrer" || answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", name, answer.Header)
		}
	}
	if other := New(source, "4711", time.Now); other.token == h.token || len(h.token) < 26 {
		t.Errorf("the secret %q is no secret", h.token)
	}
}

// What others wrote is printable, and JSON that no browser takes for a page; long ranges of slots stay whole.
func TestWhatIsTold(t *testing.T) {
	h := New(&seen{}, "4711", time.Now)
	for query, status := range map[string]int{"kind=RedisCluster&namespace=shop&name=cache": http.StatusOK,
		"kind=RedisCluster&namespace=shop&name=none": http.StatusNotFound, "kind=App&namespace=shop&name=web": http.StatusBadGateway,
		"": http.StatusBadGateway} {
		answer, body := get(t, h, func(r *http.Request) { r.URL.Path, r.URL.RawQuery = r.URL.Path+"object", query })
		if answer.StatusCode != status || answer.Header.Get("Content-Type") != "application/json; charset=utf-8" ||
			strings.ContainsAny(body, "<>\x1b\u202e") || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", query, answer.StatusCode, body[:min(len(body), 200)])
		}
		if status == http.StatusOK && (strings.Count(body, "1,") < 3999 || !strings.Contains(body, `alert(1)`)) {
			t.Errorf("%s: %d bytes", query, len(body))
		}
	}
}

// A look that nobody waits for any more takes no turn.
func TestLooksTakeTurns(t *testing.T) {
	source := &seen{}
	h := New(source, "4711", time.Now)
	for range atOnce {
		h.turns <- struct{}{}
	}
	ctx, end := context.WithCancel(t.Context())
	end()
	get(t, h, func(r *http.Request) { *r = *r.WithContext(ctx); r.URL.Path += "list" })
	if source.looks > 0 {
		t.Error("it looked")
	}
}

// The page has no script, style or handler of its own in it, names no other site, and its script parses no HTML.
func TestThePageIsItsFiles(t *testing.T) {
	for name := range types {
		content, err := files.ReadFile("page/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
		if found := regexp.MustCompile(`(?i)https?:|innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function|DOMParser|` +
			`srcdoc|javascript:|@import|url\(|\son[a-z]+="|style="|<style|<script>`).FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
	}
}

// stuck is a source that does not answer.
type stuck struct{ seen }

func (*stuck) List(ctx context.Context) (overview.List, error) {
	<-ctx.Done()
	return overview.List{}, ctx.Err()
}

// A look at an API server that does not answer ends, and so does waiting for a turn.
func TestLooksEnd(t *testing.T) {
	h := New(&stuck{}, "4711", time.Now)
	h.lookTimeout = 10 * time.Millisecond
	list := func(r *http.Request) { r.URL.Path += "list" }
	if answer, body := get(t, h, list); answer.StatusCode != http.StatusBadGateway {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
	for range atOnce {
		h.turns <- struct{}{}
	}
	if answer, body := get(t, h, list); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d: %s", answer.StatusCode, body)
	}
}

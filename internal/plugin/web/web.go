// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package web is the page of `kubectl middleware web`: an HTTP handler that shows the models of package overview, and changes nothing.
// Who may ask it is decided by a secret in the path, so that no other user of the machine can, and by the name that it is asked by, so
// that no page of another site can.
package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/plugin/overview"
)

//go:embed page
var files embed.FS

// types are the files of the page, and what they are.
var types = map[string]string{
	"index.html": "text/html; charset=utf-8",
	"page.js":    "text/javascript; charset=utf-8",
	"style.css":  "text/css; charset=utf-8",
	"icon.svg":   "image/svg+xml",
}

// Source is where the page looks.
type Source interface {
	// Where says in a few words what is looked at.
	Where() string
	List(ctx context.Context) (overview.List, error)
	Cluster(ctx context.Context, namespace, name string) (overview.Cluster, error)
	// Object is one of another kind than RedisCluster.
	Object(ctx context.Context, kind, namespace, name string) (overview.Object, error)
}

// Handler serves the page at one address.
type Handler struct {
	source Source
	now    func() time.Time
	// hosts are the names that it may be asked by, token the first element of every path.
	hosts []string
	token string
	// turns are as many as there may be looks at the same time.
	turns chan struct{}
	// lookTimeout is how long a look may take, with the wait for its turn.
	lookTimeout time.Duration
}

// atOnce is how many looks there are at the same time: each is some requests to the API server.
const atOnce = 2

// longestLook is how long one may take: less than the server has for its answer.
const longestLook = 40 * time.Second

// New is a handler for a port of the loopback interface.
func New(source Source, port string, now func() time.Time) *Handler {
	return &Handler{source: source, now: now, hosts: []string{"127.0.0.1:" + port, "localhost:" + port}, token: rand.Text(),
		turns: make(chan struct{}, atOnce), lookTimeout: longestLook}
}

// URL is the address of the page.
func (h *Handler) URL() string { return "http://" + h.hosts[0] + "/" + h.token + "/" }

// policy lets the page load from where it came from, and nothing else do anything with it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	for name, value := range map[string]string{"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff",
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "Cross-Origin-Resource-Policy": "same-origin",
		"Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY"} {
		head.Set(name, value)
	}
	token, file, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Host != h.hosts[0] && r.Host != h.hosts[1]: // another name that leads here (DNS rebinding)
		http.Error(w, "asked by another name than "+h.hosts[0], http.StatusMisdirectedRequest)
	case subtle.ConstantTimeCompare([]byte(token), []byte(h.token)) != 1:
		http.Error(w, "the address is not complete: it is in the terminal", http.StatusNotFound)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "it can only be looked at", http.StatusMethodNotAllowed)
	case file != "" && foreign(r):
		http.Error(w, "asked by another page", http.StatusForbidden)
	case file == "list":
		h.look(w, r, h.list)
	case file == "object":
		h.look(w, r, h.object)
	case !found:
		http.Redirect(w, r, "/"+h.token+"/", http.StatusMovedPermanently)
	default:
		serve(w, file)
	}
}

// foreign reports whether a browser says that another page has asked.
func foreign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

func serve(w http.ResponseWriter, file string) {
	if file == "" {
		file = "index.html"
	}
	kind, known := types[file]
	if !known {
		http.Error(w, "there is no such thing", http.StatusNotFound)
		return
	}
	content, err := fs.ReadFile(files, path.Join("page", file))
	if err != nil {
		http.Error(w, "there is no such thing", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content) //nolint:gosec // one of the files above; who has gone gets nothing
}

// NotFoundError says that there is no such object.
type NotFoundError struct{ Err error }

func (e NotFoundError) Error() string { return e.Err.Error() }

// Unwrap is the error of the API server.
func (e NotFoundError) Unwrap() error { return e.Err }

// look answers with what one of the looks came to. Texts that are told are printable, as on a terminal.
func (h *Handler) look(w http.ResponseWriter, r *http.Request, at func(*http.Request) (any, error)) {
	ctx, end := context.WithTimeout(r.Context(), h.lookTimeout)
	defer end()
	r = r.WithContext(ctx)
	select {
	case h.turns <- struct{}{}:
		defer func() { <-h.turns }()
	case <-ctx.Done():
		http.Error(w, "too many look at the same time", http.StatusServiceUnavailable)
		return
	}
	model, err := at(r)
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadGateway
		var gone NotFoundError
		if errors.As(err, &gone) {
			status = http.StatusNotFound
		}
		model = map[string]string{"error": err.Error()}
	}
	encoded, err := printable(model)
	if err != nil {
		status, encoded = http.StatusInternalServerError, []byte(`{"error":"what was read cannot be shown"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(encoded) // who has gone gets nothing
}

func (h *Handler) list(r *http.Request) (any, error) {
	list, err := h.source.List(r.Context())
	return struct {
		Now   time.Time     `json:"now"`
		Where string        `json:"where"`
		List  overview.List `json:"list"`
	}{h.now().UTC(), h.source.Where(), list}, err
}

func (h *Handler) object(r *http.Request) (any, error) {
	asked := r.URL.Query()
	kind, namespace, name := asked.Get("kind"), asked.Get("namespace"), asked.Get("name")
	if kind == "RedisCluster" {
		cluster, err := h.source.Cluster(r.Context(), namespace, name)
		return struct {
			Now     time.Time        `json:"now"`
			Cluster overview.Cluster `json:"cluster"`
		}{h.now().UTC(), cluster}, err
	}
	object, err := h.source.Object(r.Context(), kind, namespace, name)
	return struct {
		Now    time.Time       `json:"now"`
		Object overview.Object `json:"object"`
	}{h.now().UTC(), object}, err
}

// longest is how much of one text is told: the ranges of slots of a shard may be long.
const longest = 16 << 10

// printable is the JSON of a model in which no text has characters that do not print: those that turn the direction of text would do so
// in a browser, too.
func printable(model any) ([]byte, error) {
	encoded, err := json.Marshal(model)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(encoded, &value); err != nil {
		return nil, err
	}
	return json.Marshal(cleaned(value))
}

func cleaned(value any) any {
	switch v := value.(type) {
	case string:
		return excerpt.Of(v, longest)
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = cleaned(v[name])
		}
	}
	return value
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Requests counts and notes what a client asks of the API server, watches and Events apart. The zero value is ready.
type Requests struct {
	// Int64 is their number.
	atomic.Int64

	mu       sync.Mutex
	list     []string
	refused  []string
	warnings []string
}

// Of returns a copy of a configuration whose clients are observed.
func (r *Requests) Of(as *rest.Config) *rest.Config {
	observed := rest.CopyConfig(as)
	observed.QPS = -1
	observed.Wrap(func(next http.RoundTripper) http.RoundTripper { return observer{next, r} })
	return observed
}

// List is what was asked so far, each as "PATCH /apis/…".
func (r *Requests) List() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Refused are the requests that were answered with 403 Forbidden, Events apart.
func (r *Requests) Refused() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refused)
}

// Warnings are the Events of type Warning that were sent, whatever was answered.
func (r *Requests) Warnings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.warnings)
}

// warn notes an Event of type Warning.
func (r *Requests) warn(request *http.Request) {
	if request.GetBody == nil {
		return
	}
	body, err := request.GetBody()
	if err != nil {
		return
	}
	text, _ := io.ReadAll(body) // it is in memory
	if bytes.Contains(text, []byte("Warning")) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.warnings = append(r.warnings, string(text))
	}
}

type observer struct {
	next     http.RoundTripper
	requests *Requests
}

func (o observer) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.Contains(request.URL.Path, "/events") {
		o.requests.warn(request)
		return o.next.RoundTrip(request)
	}
	if request.URL.Query().Get("watch") != "" {
		return o.next.RoundTrip(request)
	}
	asked := request.Method + " " + request.URL.Path
	o.requests.Add(1)
	o.requests.note(&o.requests.list, asked)
	response, err := o.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusForbidden {
		o.requests.note(&o.requests.refused, asked)
	}
	return response, err
}

func (r *Requests) note(in *[]string, asked string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*in = append(*in, asked)
}

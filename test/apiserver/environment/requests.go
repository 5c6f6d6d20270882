// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
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

	mu   sync.Mutex
	list []string
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

type observer struct {
	next     http.RoundTripper
	requests *Requests
}

func (o observer) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" && !strings.Contains(request.URL.Path, "/events") {
		o.requests.Add(1)
		o.requests.mu.Lock()
		o.requests.list = append(o.requests.list, request.Method+" "+request.URL.Path)
		o.requests.mu.Unlock()
	}
	return o.next.RoundTrip(request)
}

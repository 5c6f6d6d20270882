// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/test/crash"
)

// News is what watches tell the caches of a client: it can be held back, lost, and that of a past. What the client reads itself is
// not touched. A resource is a plural, such as "pods"; with " (metadata)" after it the news of which only metadata is asked for,
// which go to a cache of their own. The zero value lets all of it pass.
type News struct {
	mu sync.Mutex
	// held are the resources of which nothing arrives; thawed is closed when all of it arrives again.
	held   map[string]bool
	thawed chan struct{}
	// lost are those whose watch ended, so that they are to be listed again.
	lost map[string]bool
	// past is the version that caches begin with; empty: that of now.
	past    string
	watches map[string][]*newsOf
}

// Of returns a copy of a configuration whose clients get this news.
func (n *News) Of(as *rest.Config) *rest.Config {
	told := rest.CopyConfig(as)
	told.Wrap(func(next http.RoundTripper) http.RoundTripper { return newsTransport{next, n} })
	return told
}

// Resources are those that were watched so far.
func (n *News) Resources() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Sorted(maps.Keys(n.watches))
}

// Hold lets nothing of some resources arrive any more.
func (n *News) Hold(resources ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held == nil {
		n.held, n.thawed = map[string]bool{}, make(chan struct{})
	}
	for _, resource := range resources {
		n.held[resource] = true
	}
}

// Begin makes the caches of clients that begin now be those of a past version, and stay so until news arrives again.
func (n *News) Begin(past string) {
	n.mu.Lock()
	n.past = past
	n.mu.Unlock()
	n.Hold(n.Resources()...)
}

// Lose makes what was held back never arrive: the watches end, and nobody knows any more what they would have told.
func (n *News) Lose() {
	n.mu.Lock()
	n.lost = maps.Clone(n.held)
	var ended []*newsOf
	for resource := range n.held {
		ended = append(ended, n.watches[resource]...)
		n.watches[resource] = nil
	}
	for _, w := range ended {
		w.lost = true
	}
	n.mu.Unlock()
	for _, w := range ended {
		_ = w.ReadCloser.Close()
	}
	n.Thaw()
}

// Thaw lets everything arrive that was held back, and all that comes.
func (n *News) Thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.held != nil {
		close(n.thawed)
	}
	n.held, n.past = nil, ""
}

// Version is the API server's present one.
func Version(t testing.TB, api client.Client) string {
	t.Helper()
	var list corev1.NamespaceList
	Check(t, api.List(t.Context(), &list, client.Limit(1)))
	return list.ResourceVersion
}

type newsTransport struct {
	next http.RoundTripper
	*News
}

func (t newsTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	watches, lists := query.Get("watch") != "", query.Get("sendInitialEvents") == "true"
	resource := path.Base(request.URL.Path)
	if strings.Contains(request.Header.Get("Accept"), "as=PartialObjectMetadata") {
		resource += " (metadata)"
	}
	t.mu.Lock()
	past, lost := t.past, t.lost[resource]
	if lists || !watches && query.Get("resourceVersion") == "0" {
		delete(t.lost, resource)
	}
	t.mu.Unlock()
	switch {
	case past != "" && lists: // the cache lists in another way then
		return crash.Refuse(request, apierrors.NewBadRequest("there is no list of this kind"))
	case past != "" && !watches && query.Get("resourceVersion") == "0":
		query.Set("resourceVersion", past)
		query.Set("resourceVersionMatch", "Exact")
		request = request.Clone(request.Context())
		request.URL.RawQuery = query.Encode()
	case lost && watches && !lists:
		return crash.Refuse(request, apierrors.NewResourceExpired("too old resource version"))
	}
	response, err := t.next.RoundTrip(request)
	if err == nil && watches && response.StatusCode == http.StatusOK {
		response.Body = t.watch(resource, response.Body)
	}
	return response, err
}

func (n *News) watch(resource string, body io.ReadCloser) io.ReadCloser {
	w := &newsOf{ReadCloser: body, news: n, resource: resource, closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watches == nil {
		n.watches = map[string][]*newsOf{}
	}
	n.watches[resource] = append(n.watches[resource], w)
	return w
}

// newsOf is what one watch tells.
type newsOf struct {
	io.ReadCloser
	news     *News
	resource string
	lost     bool // the Lock of News guards it
	closed   chan struct{}
	once     sync.Once
}

// Read implements io.Reader.
func (w *newsOf) Read(p []byte) (int, error) {
	read, err := w.ReadCloser.Read(p)
	w.news.mu.Lock()
	thawed := w.news.thawed
	if !w.news.held[w.resource] {
		thawed = nil
	}
	w.news.mu.Unlock()
	if thawed != nil {
		select {
		case <-thawed:
		case <-w.closed:
		}
	}
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	if w.lost {
		return 0, io.EOF
	}
	return read, err
}

// Close implements io.Closer.
func (w *newsOf) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.ReadCloser.Close()
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"middleware.hc.cn/operator/internal/chart"
)

// asker answers for discovery, and counts how often it is asked.
type asker struct {
	apis  []string
	err   error
	asked int
}

func (a *asker) ask() (chart.Capabilities, error) {
	a.asked++
	return chart.Capabilities{APIVersions: a.apis}, a.err
}

func TestDiscoveryIsAskedAgainWhenItMatters(t *testing.T) {
	const route = "gateway.networking.k8s.io/v1/HTTPRoute"
	cluster, clock := &asker{apis: []string{"v1"}}, now
	d := &discovered{ask: cluster.ask, now: func() time.Time { return clock }}
	steps := []struct {
		name   string
		later  time.Duration
		doubt  bool
		needed []string
		serves []string
		err    error
		asked  int
	}{
		{"the first time", 0, false, nil, []string{"v1"}, nil, 1},
		{"soon after", 9 * time.Minute, false, nil, []string{"v1"}, nil, 1},
		{"an API is missing", 0, false, []string{route}, []string{"v1"}, nil, 2},
		{"it is missing still", 59 * time.Second, false, []string{route}, []string{"v1"}, nil, 2},
		{"a minute later", time.Second, false, []string{route}, []string{"v1", route}, nil, 3},
		{"it is there", 9 * time.Minute, false, []string{route}, []string{"v1", route}, nil, 3},
		{"it was found gone", 0, true, []string{route}, []string{"v1"}, nil, 4},
		{"a server is away", 10 * time.Minute, false, nil, []string{"v1"},
			&discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1"}: errors.New("away")}},
			5},
		{"soon after that", 59 * time.Second, false, nil, []string{"v1"}, errors.New("is not asked"), 5},
		{"no answer at all", time.Second, false, nil, nil, errors.New("connection refused"), 6},
		{"which is not remembered", 0, false, nil, []string{"v1"}, nil, 7},
	}
	for _, s := range steps {
		clock = clock.Add(s.later)
		if s.doubt {
			d.doubt()
		}
		cluster.apis, cluster.err = s.serves, s.err
		_, err := d.get(s.needed...)
		if away := s.name == "a server is away" ||
			s.name == "soon after that"; away != discovery.IsGroupDiscoveryFailedError(errors.Unwrap(err)) {
			t.Errorf("%s: %v", s.name, err)
		}
		if cluster.asked != s.asked {
			t.Fatalf("%s: asked %d times, want %d", s.name, cluster.asked, s.asked)
		}
	}
}

// A server that is away keeps those charts waiting only that ask for its group: unknown is not absent.
func TestUnknownGroups(t *testing.T) {
	failed := &discovery.ErrGroupDiscoveryFailed{
		Groups: map[schema.GroupVersion]error{{Group: "metrics.k8s.io", Version: "v1"}: errors.New("away")}}
	for _, tc := range []struct {
		name, template string
		err            error
		known          bool
	}{
		{"another group", `{{ .Capabilities.APIVersions.Has "policy/v1" }}`, failed, true},
		{"that group", `{{ .Capabilities.APIVersions.Has "metrics.k8s.io/v1" }}`, failed, false},
		{"a kind of that group", `{{ .Capabilities.APIVersions.Has "metrics.k8s.io/v1/NodeMetrics" }}`, failed, false},
		{"a group whose name begins alike", `{{ .Capabilities.APIVersions.Has "metrics.k8s.io/v1beta1" }}`, failed, true},
		{"whatever there is", `{{ .Capabilities.APIVersions }}`, failed, false},
		{"no answer at all", `{{ .Capabilities.APIVersions.Has "policy/v1" }}`, errors.New("connection refused"), false},
		{"a chart that does not ask", "", errors.New("connection refused"), true},
	} {
		c, err := chart.Load(fstest.MapFS{
			"Chart.yaml":       {Data: []byte("apiVersion: v2\nname: x\nversion: 1.0.0\n")},
			"templates/a.yaml": {Data: []byte("# " + tc.template)},
		})
		if err != nil {
			t.Fatal(err)
		}
		cluster := &asker{apis: []string{"v1"}, err: tc.err}
		r := &Reconciler{chart: c, cluster: &discovered{ask: cluster.ask, now: func() time.Time { return now }}}
		if _, err := r.capabilities(); (err == nil) != tc.known {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// A resource that does without an API that it asks for is looked at again.
func TestAwaitedAPIsAreLookedFor(t *testing.T) {
	result, err := new(Reconciler).outcomeOf(&unstructured.Unstructured{}, effect{step: Nothing{}, awaited: []string{"a/v1/A"}}).Result()
	if err != nil || result.RequeueAfter < incompleteFor || result.RequeueAfter > 2*incompleteFor {
		t.Errorf("again after %v, %v", result.RequeueAfter, err)
	}
}

// What the API server is and serves is known from its answers; a group whose server is away is told, and the others are known.
func TestDiscover(t *testing.T) {
	answers := map[string]string{"/version": `{"gitVersion": "v1.31.0"}`,
		"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/api/v1": `{"groupVersion": "v1", "resources": [{"name": "pods", "kind": "Pod"}]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [
			{"name": "metrics.k8s.io", "versions": [{"groupVersion": "metrics.k8s.io/v1", "version": "v1"}]},
			{"name": "a.io", "versions": [{"groupVersion": "a.io/v1", "version": "v1"}]}]}`,
		"/apis/a.io/v1":           `{"groupVersion": "a.io/v1", "resources": [{"name": "b", "kind": "B"}]}`,
		"/apis/metrics.k8s.io/v1": `{"groupVersion": "metrics.k8s.io/v1", "resources": []}`}
	for without, want := range map[string]struct {
		fails, partial bool
		apis           string
	}{
		"":                        {false, false, "a.io/v1 a.io/v1/B metrics.k8s.io/v1 v1 v1/Pod"},
		"/version":                {true, false, ""},
		"/apis":                   {true, false, ""},
		"/apis/metrics.k8s.io/v1": {true, true, "a.io/v1 a.io/v1/B v1 v1/Pod"},
	} {
		api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if answers[r.URL.Path] == "" || r.URL.Path == without {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte(answers[r.URL.Path]))
		}))
		cluster := newDiscovered(&rest.Config{Host: api.URL}, api.Client(), time.Now)
		found, err := cluster.get()
		api.Close()
		if (err != nil) != want.fails || discovery.IsGroupDiscoveryFailedError(errors.Unwrap(err)) != want.partial ||
			strings.Join(found.APIVersions, " ") != want.apis || (found.KubeVersion == "v1.31.0") == (without == "/version") {
			t.Errorf("without %s: %+v, %v", without, found, err)
		}
	}
	if _, err := Discover(&rest.Config{Host: "a b"}, http.DefaultClient); err == nil {
		t.Error("an address that is none is asked")
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// server answers lists with a version; away makes it fail.
type server struct {
	version string
	away    string // unreachable, or erring
	asked   []string
}

func (s *server) RoundTrip(request *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, request.URL.RequestURI())
	if s.away == "unreachable" {
		return nil, errors.New("connection refused")
	}
	answer := httptest.NewRecorder()
	if s.away == "erring" {
		answer.WriteHeader(http.StatusBadGateway)
	}
	fmt.Fprintf(answer, `{"metadata":{"resourceVersion":%q},"items":[{}]}`, s.version)
	return answer.Result(), nil
}

// A restored etcd is noticed when a watch is resumed after the API server was away, and nothing is asked otherwise.
func TestRewinds(t *testing.T) {
	const path = "/apis/a.example.com/v1/namespaces/n/things"
	const watch = path + "?allowWatchBookmarks=true&labelSelector=x%3Dy&resourceVersion=100&timeoutSeconds=300&watch=true"
	const list = path + "?labelSelector=x%3Dy&limit=1"
	for name, tc := range map[string]struct {
		away    string
		version string
		later   time.Duration
		request string
		asked   []string
		noticed int
	}{
		"it was never away":                 {version: "90", request: watch, asked: []string{watch}},
		"it was restored":                   {away: "unreachable", version: "90", request: watch, asked: []string{list, watch}, noticed: 1},
		"it was restored behind a balancer": {away: "erring", version: "90", request: watch, asked: []string{list, watch}, noticed: 1},
		"a version of fewer digits":         {away: "unreachable", version: "99", request: watch, asked: []string{list, watch}, noticed: 1},
		"it was restarted":                  {away: "unreachable", version: "100", request: watch, asked: []string{list, watch}},
		"it went on":                        {away: "unreachable", version: "101", request: watch, asked: []string{list, watch}},
		"it says no version":                {away: "unreachable", request: watch, asked: []string{list, watch}},
		"it was away long ago":              {away: "unreachable", version: "90", later: resumedWithin, request: watch, asked: []string{watch}},
		"a watch from now on":               {away: "unreachable", version: "90", request: path + "?watch=1", asked: []string{path + "?watch=1"}},
		"a watch from anywhere": {away: "unreachable", version: "90", request: path + "?resourceVersion=0&watch=1",
			asked: []string{path + "?resourceVersion=0&watch=1"}},
		"a list": {away: "unreachable", version: "90", request: path + "?resourceVersion=100",
			asked: []string{path + "?resourceVersion=100"}},
	} {
		t.Run(name, func(t *testing.T) {
			now, noticed := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), 0
			api := &server{version: tc.version, away: tc.away}
			transport := (&rewinds{now: func() time.Time { return now }, noticed: func() { noticed++ }}).wrap(api)
			send := func(uri string) {
				if response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "http://api"+uri, strings.NewReader(""))); err == nil {
					_ = response.Body.Close()
				}
			}
			send("/api")
			api.away, api.asked, now = "", nil, now.Add(tc.later)
			send(tc.request)
			if diff := cmp.Diff(tc.asked, api.asked); diff != "" || noticed != tc.noticed {
				t.Errorf("noticed %d times, want %d; asked (-want +got):\n%s", noticed, tc.noticed, diff)
			}
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// errRewound ends the operator: its caches hold a past that never was.
var errRewound = errors.New("the API server's etcd was restored from a backup, so that what was read and written since then does not count: the operator starts anew")

const (
	// resumedWithin is how long after the API server was last away watches are resumed: client-go tries at least once a minute.
	resumedWithin = 2 * time.Minute
	// latestWithin bounds the time that asking for the latest version may take.
	latestWithin = 10 * time.Second
	// maxLatest bounds the answer, in bytes: the metadata of one object.
	maxLatest = 1 << 20
)

// rewinds notices that etcd was restored to an earlier state. The API server accepts a watch from a version that etcd does not
// know any more, and tells nothing on it until versions have passed that one (Kubernetes asks to restart what watches). Only
// while watches are resumed after the API server was away is anything asked, by a list of one object's metadata for each.
type rewinds struct {
	now     func() time.Time
	noticed func()
	away    atomic.Int64 // when the API server last did not answer, in nanoseconds of Unix time
}

func (r *rewinds) wrap(next http.RoundTripper) http.RoundTripper { return rewindsTransport{next, r} }

type rewindsTransport struct {
	next http.RoundTripper
	*rewinds
}

var _ utilnet.RoundTripperWrapper = rewindsTransport{}

// WrappedRoundTripper implements utilnet.RoundTripperWrapper: client-go looks for whoever can cancel a request, and warns if nobody can.
func (t rewindsTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t rewindsTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if from := resumedFrom(request); from != "" && t.now().Sub(time.Unix(0, t.away.Load())) < resumedWithin {
		latest, err := t.latest(request)
		order, incomparable := resourceversion.CompareResourceVersion(latest, from)
		if err == nil && incomparable == nil && order < 0 {
			t.noticed()
		}
	}
	response, err := t.next.RoundTrip(request)
	if err != nil && request.Context().Err() == nil || err == nil && response.StatusCode >= http.StatusInternalServerError {
		t.away.Store(t.now().UnixNano())
	}
	return response, err
}

// resumedFrom is the version that a watch goes on from; empty when the request is no such watch.
func resumedFrom(request *http.Request) string {
	query := request.URL.Query()
	if watch := query.Get("watch"); watch != "true" && watch != "1" {
		return ""
	}
	if version := query.Get("resourceVersion"); version != "0" {
		return version
	}
	return ""
}

// latest asks for the present version of what a watch is about: that of a list is etcd's own.
func (t rewindsTransport) latest(watch *http.Request) (string, error) {
	ctx, cancel := context.WithTimeout(watch.Context(), latestWithin)
	defer cancel()
	list := watch.Clone(ctx)
	query := list.URL.Query()
	for _, name := range []string{"watch", "resourceVersion", "resourceVersionMatch", "allowWatchBookmarks", "sendInitialEvents",
		"timeoutSeconds", "timeout"} {
		query.Del(name)
	}
	query.Set("limit", "1")
	list.URL.RawQuery = query.Encode()
	list.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	response, err := t.next.RoundTrip(list)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the API server answers %s", response.Status)
	}
	var answer struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	err = json.NewDecoder(io.LimitReader(response.Body, maxLatest)).Decode(&answer)
	return answer.Metadata.ResourceVersion, err
}

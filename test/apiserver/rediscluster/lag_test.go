// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// lag is how late the operator learns what became of a RedisCluster: far longer than a reconciliation takes.
const lag = 300 * time.Millisecond

// late delays what watches of RedisClusters tell.
func late(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return lateWatches{next} })
}

type lateWatches struct{ next http.RoundTripper }

func (l lateWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil && strings.HasSuffix(request.URL.Path, "/redisclusters") && request.URL.Query().Get("watch") != "" {
		response.Body = lateBody{response.Body}
	}
	return response, err
}

type lateBody struct{ io.ReadCloser }

func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(lag)
	return n, err
}

// A cache that lags behind the operator's own writes does not have it do, and tell, things twice.
func TestCacheLagsBehind(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world, late)
	cluster := newCluster(namespace, "cache")
	create(t, cluster)
	awaitWhole(t, cluster)
	scaleTo(t, cluster, 8)
	awaitWhole(t, cluster)
	eventually(t, "what happened is told", func() string {
		told := said(t, cluster)
		for _, once := range []string{"AddFinalizer", "CreateAuth", "AssignSlots", "RecordGoal"} {
			if n := told["Normal "+once]; n != 1 {
				return fmt.Sprintf("%s is told %d times", once, n)
			}
		}
		return ""
	})
	remove(t, cluster)
	awaitGone(t, cluster.DeepCopy())
	for what, n := range said(t, cluster) {
		if strings.HasPrefix(what, "Warning") {
			t.Errorf("%s is told %d times", what, n)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/application"
)

// load is an application of a cluster, with the test that it belongs to.
type load struct {
	t       *testing.T
	app     *application.Application
	running *application.Running
	data    []string // the flags of what was filled in
}

// newLoad starts the application of a cluster that is Ready.
func newLoad(t *testing.T, cluster *v1alpha1.RedisCluster) *load {
	t.Helper()
	app, err := application.Start(t.Context(), pods(), cluster.Namespace, cluster.Name, cluster.AuthSecretName())
	if err != nil {
		t.Fatal(err)
	}
	return &load{t: t, app: app}
}

// fill puts keys of every type in, and six big ones of a mebibyte, one of each type.
func (l *load) fill(keys int) {
	l.t.Helper()
	l.data = []string{"--keys", fmt.Sprint(keys), "--types", "all", "--big", "6"}
	if out, err := l.app.Do(l.t.Context(), "fill", l.data...); err != nil {
		l.t.Fatalf("fill: %v %s", err, out)
	}
}

// wantData checks every key that fill has put in, and that no key is on two masters.
func (l *load) wantData() {
	l.t.Helper()
	out, err := l.app.Do(l.t.Context(), "verify", l.data...)
	if err != nil {
		l.t.Errorf("verify: %v", err)
		return
	}
	var seen struct{ Keys, KeysOnMasters int64 }
	if err := json.Unmarshal([]byte(out), &seen); err != nil || seen.Keys != seen.KeysOnMasters {
		l.t.Errorf("%d keys were put in, the masters hold %d (%v)", seen.Keys, seen.KeysOnMasters, err)
	}
}

// start begins to write, to read, to do both with two keys at once, and to connect anew.
func (l *load) start() {
	l.t.Helper()
	var err error
	l.running, err = l.app.Begin(l.t.Context(), "run", "--addr", l.app.Address(), "--writes", "400", "--reads", "400", "--pairs", "20", "--arrivals", "4", "--keys", "5000")
	if err != nil {
		l.t.Fatal(err)
	}
}

// stop ends the load and returns what it saw.
func (l *load) stop() application.LoadResult {
	l.t.Helper()
	var r application.LoadResult
	if err := l.running.End(l.t.Context(), &r); err != nil {
		l.t.Fatalf("load: %v", err)
	}
	l.t.Logf("load: %d writes, %d reads, %d pairs, %d arrivals in %.0f s; %d redirected, %d pairs tried again; longest stall %.0f ms (this program's own %.0f ms), median %.2f ms, p99 %.1f ms",
		r.Writes, r.Reads, r.Pairs, r.Arrivals, r.Seconds, r.Redirected, r.PairsTriedAgain, r.LongestStallMS, r.ClientStallMS, r.P50MS, r.P99MS)
	return r
}

// wantUnnoticed says that planned work went unnoticed: nothing failed, nothing was lost.
func wantUnnoticed(t *testing.T, r application.LoadResult) {
	t.Helper()
	if r.Writes == 0 || r.Reads == 0 || r.Pairs == 0 || r.Arrivals == 0 {
		t.Error("the load did nothing")
	}
	if r.Failed+r.FailedAttempts > 0 {
		t.Errorf("%d commands failed (%d attempts): %s %s %s", r.Failed, r.FailedAttempts, r.Errors, r.Samples, r.Wrong)
	}
	if r.Lost+r.Stale+r.Corrupt+r.Torn+r.Unread > 0 {
		t.Errorf("%d acknowledged writes lost, %d stale reads, %d corrupt, %d torn, %d unread: %s", r.Lost, r.Stale, r.Corrupt, r.Torn, r.Unread, r.Wrong)
	}
}

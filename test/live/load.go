// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/application"
)

// Load is an application of a cluster, with the test that it belongs to.
type Load struct {
	t           *testing.T
	namespace   string
	Application *application.Application
	running     *application.Running
	data        []string // the flags of what was filled in
	began       bool     // with the data of another cluster
	authority   string   // certificates to trust, in PEM; empty: without TLS
}

// Secured is another load of the same application, by TLS at the port for it. One of them runs at a time.
func (l *Load) Secured(authority []byte) *Load {
	return &Load{t: l.t, namespace: l.namespace, Application: l.Application, authority: string(authority)}
}

// NewLoad starts the application of a cluster that is Ready.
func NewLoad(t *testing.T, cluster *v1alpha1.RedisCluster) *Load {
	t.Helper()
	app, err := application.Start(t.Context(), Pods(), cluster.Namespace, cluster.Name, cluster.AuthSecretName())
	if err != nil {
		t.Fatal(err)
	}
	return &Load{t: t, namespace: cluster.Namespace, Application: app}
}

// Fill puts keys of every type in, and six big ones of a mebibyte, one of each type.
func (l *Load) Fill(keys int) {
	l.t.Helper()
	l.filled(keys)
	if out, err := l.Application.Do(l.t.Context(), "fill", l.data...); err != nil {
		l.t.Fatalf("fill: %v %s", err, out)
	}
}

// Began says that the cluster began with the data of another that was filled with as many keys, and may have had more.
func (l *Load) Began(keys int) {
	l.began = true
	l.filled(keys)
}

func (l *Load) filled(keys int) {
	l.data = []string{"--keys", fmt.Sprint(keys), "--types", "all", "--big", "6"}
}

// WantData checks every key that fill has put in, with further flags of verify, and that no key is on two masters.
func (l *Load) WantData(flags ...string) {
	l.t.Helper()
	out, err := l.Application.Do(l.t.Context(), "verify", slices.Concat(l.data, flags)...)
	if err != nil {
		l.t.Errorf("verify: %v", err)
		return
	}
	var seen struct{ Keys, KeysOnMasters int64 }
	if err := json.Unmarshal([]byte(out), &seen); err != nil || seen.Keys > seen.KeysOnMasters || seen.Keys < seen.KeysOnMasters && !l.began {
		l.t.Errorf("%d keys were put in, the masters hold %d (%v)", seen.Keys, seen.KeysOnMasters, err)
	}
}

// asAdvised are the two settings of a client that docs/reliability.md advises for pods, whose addresses change: with the
// library's own it asks addresses of former pods for the present ones, 5 s each, and closes connections that it uses. It
// repeats nothing.
var asAdvised = []string{"--dial-timeout", "2s", "--refresh", "1s"}

// Start begins to write, to read, to do both with two keys at once, and to connect anew.
func (l *Load) Start() {
	l.t.Helper()
	l.StartAt(250)
}

// StartAt is Start with a number of writes a second, and as many reads.
func (l *Load) StartAt(perSecond int) {
	l.t.Helper()
	rate := strconv.Itoa(perSecond)
	address := l.Application.Address()
	if l.authority != "" {
		address = l.Application.SecuredAddress(l.namespace)
	}
	flags := []string{"--addr", address, "--ca", l.authority, "--writes", rate, "--reads", rate, "--pairs", "20", "--arrivals", "4", "--keys",
		"5000"}
	var err error
	l.running, err = l.Application.Begin(l.t.Context(), "run", slices.Concat(flags, asAdvised)...)
	if err != nil {
		l.t.Fatal(err)
	}
}

// Stop ends the load and returns what it saw.
func (l *Load) Stop() application.LoadResult {
	l.t.Helper()
	var r application.LoadResult
	if err := l.running.End(l.t.Context(), &r); err != nil {
		l.t.Fatalf("load: %v", err)
	}
	l.t.Logf("load: %d writes, %d reads, %d pairs, %d arrivals in %.0f s; %d redirected, %d answers TRYAGAIN, %d pairs tried again, %d connections closed by the client itself, %d attempts while the machine stalled (%.1f s in all); longest stall %.0f ms (this program's own %.0f ms), median %.2f ms, p99 %.1f ms",
		r.Writes, r.Reads, r.Pairs, r.Arrivals, r.Seconds, r.Redirected, r.TryAgain, r.PairsTriedAgain, r.ClosedByClient, r.Stalled,
		r.StallSeconds,
		r.LongestStallMS, r.ClientStallMS, r.P50MS, r.P99MS)
	return r
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strconv"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/application"
	"middleware.hc.cn/operator/test/live"
)

// journal is what `load journal` wrote to a cluster, and when.
type journal struct {
	running *application.Running
	Writers []struct {
		Keys               []string
		Sent, Acknowledged [][]int64
	}
}

func openJournal(t *testing.T, load *live.Load) *journal {
	t.Helper()
	running, err := load.Application.Begin(t.Context(), "journal", "--addr", load.Application.Address())
	if err != nil {
		t.Fatal(err)
	}
	return &journal{running: running}
}

func (j *journal) close(t *testing.T) {
	t.Helper()
	if err := j.running.End(t.Context(), j); err != nil {
		t.Fatal(err)
	}
}

// wantMoment fails unless a cluster has what wantKeys says of the moment that it says it began with.
func (j *journal) wantMoment(t *testing.T, cluster *v1alpha1.RedisCluster, latest time.Time) {
	t.Helper()
	j.wantKeys(t, cluster, cluster.Status.Restored, latest)
}

// wantKeys fails unless a cluster has all that was acknowledged before a moment, nothing that was sent more than a second later (the status
// has whole seconds), nothing that came after the latest that was asked for, and, if it is one moment of all shards, nothing without what
// was written before it.
func (j *journal) wantKeys(t *testing.T, cluster *v1alpha1.RedisCluster, is *v1alpha1.RestoredData, latest time.Time) {
	t.Helper()
	from := is.MarkedAt.UnixMilli()
	until := min(from+1000, latest.UnixMilli()+1)
	var asked []string
	for _, w := range j.Writers {
		for _, key := range w.Keys {
			asked = append(asked, "get "+key)
		}
	}
	answers, err := batch(t, cluster, cluster.Status.Nodes[0].Name, asked)
	if err != nil || len(answers) != len(asked) {
		t.Fatalf("%d answers to %d questions: %v", len(answers), len(asked), err)
	}
	for i, w := range j.Writers {
		before, first := 0, 0
		for part, key := range w.Keys {
			answer := answers[i*len(w.Keys)+part]
			n, err := strconv.Atoi(answer)
			if err != nil || n < 1 || n > len(w.Sent[part]) {
				t.Fatalf("%s is %q, and %d numbers were written", key, answer, len(w.Sent[part]))
			}
			if sent := w.Sent[part][n-1]; sent > until {
				t.Errorf("%s is %d, which was sent %d ms after the moment", key, n, sent-from)
			}
			if n < len(w.Sent[part]) && w.Acknowledged[part][n] < from {
				t.Errorf("%s is %d, and %d was acknowledged %d ms before the moment", key, n, n+1, from-w.Acknowledged[part][n])
			}
			if part > 0 && is.Consistent && (n > before || n < first-1) {
				t.Errorf("%s is %d, the key before it %d, the first %d", key, n, before, first)
			}
			if part == 0 {
				first = n
			}
			before = n
		}
	}
}

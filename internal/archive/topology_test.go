// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
)

// An address that was learnt may be another cluster's by now, and one that was given for a while, when a Service has not heard of it yet.
func TestAnotherClusterIsNotTakenForTheOneBefore(t *testing.T) {
	peers := func(ids ...string) (list []redis.Peer) {
		for _, id := range ids {
			list = append(list, redis.Peer{ID: id})
		}
		return list
	}
	s := &seeds{given: []string{"cache.shop.svc:6379"}, within: time.Hour}
	if !s.recognise(peers("other"), true) {
		t.Error("nothing is known, and nobody is taken for the cluster")
	}
	s.expect(map[string]bool{"a": true, "b": true})
	for name, tt := range map[string]struct {
		peers []redis.Peer
		given bool
		want  bool
	}{
		"all of them":            {peers("a", "b"), true, true},
		"one of them":            {peers("c", "b"), false, true},
		"another, where told":    {peers("c"), true, false},
		"another, where learnt":  {peers("c"), false, false},
		"nobody, where told":     {nil, true, false},
		"one of them, as learnt": {peers("a"), false, true},
	} {
		if got := s.recognise(tt.peers, tt.given); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	s.within = 0
	if !s.recognise(peers("c"), true) || s.recognise(peers("c"), false) {
		t.Error("after a while, the cluster is who answers where it was said to be, and nowhere else")
	}
}

func TestNamesLeadToAnotherInstanceEachTime(t *testing.T) {
	for addr, want := range map[string]bool{"cache.shop.svc:6379": true, "localhost:6379": true, "10.0.0.7:6379": false,
		"[fd00::1]:6379": false, "nonsense": false} {
		if isName(addr) != want {
			t.Errorf("%s: %t", addr, !want)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const failed = snapshot.AppendOnlyError

// A master that cannot write its data to disk refuses writes: a larger volume comes first, then a replica that can write.
func TestDisk(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(s *snapshot.Snapshot, d *Desired)
		step, why string
	}{
		"a replica that can write takes over": {step: "Switchover", why: "c-0-1 takes over"},
		"a volume that is too small grows first": {change: func(s *snapshot.Snapshot, d *Desired) {
			d.ClaimBytes, s.Claims = 2, []snapshot.Claim{{Name: "data-c-0-0", Requested: 1}}
		}, step: "ExpandPVCs", why: "data-c-0-0"},
		"a replica that cannot write either does not": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Redis.PersistenceError = failed
		}, step: "RewriteAOF", why: "c-0-0 could not write its data to disk (aof_last_write_status of INFO) and refuses writes: its append-only file is written anew, in case there is room"},
		"one that was asked for a new file a moment ago is not asked again": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Ready, s.Find(0, 0).Redis.RewriteAt = false, now.Add(1-rewriteAgain)
		}, step: "Stall", why: "c-0-0 could not write its data to disk (aof_last_write_status of INFO) and refuses writes, and no replica can take over now"},
		"nor is one whose snapshot failed, which tries again by itself": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Ready, s.Find(0, 0).Redis.PersistenceError = false, "rdb_last_bgsave_status"
		}, step: "Stall", why: "no replica can take over now"},
		"one that writes a new file is waited for": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Ready, s.Find(0, 0).Redis.Rewriting = false, true
		}, step: "Stall", why: "no replica can take over now"},
		"one that has written it and does not notice begins another": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Ready, s.Find(0, 0).Redis.Rewritten, s.Find(0, 0).Redis.RewriteAt = false, true, now.Add(-rewriteAgain)
		}, step: "RewriteAOF", why: "there is room for a new append-only file, and it begins one"},
		"another master's successor comes before that": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Ready, s.Find(1, 0).Redis.PersistenceError = false, failed
		}, step: "Switchover", why: "c-1-1 takes over"},
		"a replica that has lost its master's link does not": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Redis.MasterLinkUp = false
		}, step: "RewriteAOF", why: "c-0-0 could not write"},
		"a replica whose pod is not ready does not": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Ready = false
		}, step: "RewriteAOF", why: "c-0-0 could not write"},
		"a replica that did not take over a moment ago is left alone": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Redis.SwitchoverAt = now.Add(-time.Minute)
		}, step: "RewriteAOF", why: "c-0-0 could not write"},
		"a master that is about to stop switches over itself": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 0).Terminating = true
		}, step: "Wait", why: "refuses writes"},
		"a replica of another shard does not": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Ready = false
			s.Find(1, 1).Ready, s.Find(2, 1).Ready = true, true
		}, step: "RewriteAOF", why: "c-0-0 could not write"},
		"a replica's own disk refuses nobody's writes": {change: func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 0).Redis.PersistenceError, s.Find(0, 1).Redis.PersistenceError = "", failed
		}, step: "None"},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := placed("a", "b", "c", "b", "c", "a"), spreading(3)
			s.Find(0, 0).Redis.PersistenceError = failed
			if tt.change != nil {
				tt.change(s, &d)
			}
			got := decide(d, s, now)
			if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("%s: %s, want %s: %s", got.Step.Name(), got.Step.Why(), tt.step, tt.why)
			}
			if refused := s.Find(0, 0).Redis.PersistenceError != ""; got.Healthy == refused {
				t.Errorf("healthy is %t although a master refuses writes: %t", got.Healthy, refused)
			}
			if rewrite, is := got.Step.(RewriteAOF); is && (rewrite.On.Pod != "c-0-0" || rewrite.Reopen != s.Find(0, 0).Redis.Rewritten) {
				t.Errorf("%+v", rewrite)
			}
			if stall, ok := got.Step.(Stall); ok && (stall.Cause != "WritesRefused" || stall.BlockedBy != WritesAccepted) {
				t.Errorf("it stalls for %s, %s", stall.Cause, stall.BlockedBy)
			}
		})
	}
}

// Only a master that owns slots refuses anybody's writes.
func TestWritesAccepted(t *testing.T) {
	for name, tt := range map[string]struct {
		redis snapshot.Redis
		holds bool
	}{
		"a master that writes":      {snapshot.Redis{Master: true, Slots: slots.Of(1)}, true},
		"one that cannot":           {snapshot.Redis{Master: true, Slots: slots.Of(1), PersistenceError: failed}, false},
		"one that owns nothing yet": {snapshot.Redis{Master: true, PersistenceError: failed}, true},
		"a replica":                 {snapshot.Redis{PersistenceError: failed}, true},
	} {
		if v := writesAccepted(&snapshot.Instance{Name: "c-0-0", Redis: &tt.redis}); v.Holds != tt.holds || v.Predicate != WritesAccepted {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

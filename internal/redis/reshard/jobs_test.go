// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// task is an entry of what a destination answers to CLUSTER MIGRATION STATUS.
func task(id, set, source, target, state, message string) []string {
	return []string{"id", id, "slots", set, "source", source, "dest", target, "operation", "import", "state", state, "last_error", message}
}

func tasks(all ...[]string) func(string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(all))
	for _, one := range all {
		fmt.Fprintf(&b, "*%d\r\n", len(one)+2)
		for _, word := range one {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
		b.WriteString("$11\r\ncreate_time\r\n:1\r\n")
	}
	return func(command string) string {
		switch {
		case strings.HasPrefix(command, "CLUSTER MIGRATION IMPORT"):
			return "$3\r\nnew\r\n"
		case strings.HasPrefix(command, "CLUSTER COUNTKEYSINSLOT"):
			return ":3\r\n"
		}
		return b.String()
	}
}

// Where the destination fetches the slots, it is the one that is told and asked; the source gets no command.
func TestJobsOfTheDestination(t *testing.T) {
	from, to := &script{}, &script{answer: tasks(
		task("ours", "5-9", "from", "to", "streaming-buffer", ""), task("of other slots", "1-4", "from", "to", "streaming-buffer", ""),
		task("from another", "5", "other", "to", "streaming-buffer", ""), task("to another", "5", "from", "other", "streaming-buffer", ""),
		task("ended", "5", "from", "to", "completed", ""))}
	m := Move{From: from.end(t, "from"), To: to.end(t, "to"), Slots: slots.Range(4, 5).Subtract(slots.Of(4))}
	jobs, err := underWay(t.Context(), m, slots.AtomicDestination)
	if err != nil || len(jobs) != 1 || jobs[0].ID != "ours" {
		t.Errorf("under way: %v, %v", jobs, err)
	}
	job, err := begin(t.Context(), m, slots.AtomicDestination, m.Slots)
	if err != nil || job.ID != "new" || !job.Slots.Equal(m.Slots) || job.SourceID != "from" || job.TargetID != "to" {
		t.Errorf("begun: %+v, %v", job, err)
	}
	listed := to.answer
	to.answer = refusing("CLUSTER MIGRATION IMPORT", listed)
	if _, err := begin(t.Context(), m, slots.AtomicDestination, m.Slots); !errors.Is(err, redis.ErrRefused) {
		t.Errorf("a job that is refused: %v", err)
	}
	to.answer = refusing("CLUSTER MIGRATION STATUS", listed)
	if jobs, err := underWay(t.Context(), m, slots.AtomicDestination); !errors.Is(err, redis.ErrRefused) || len(jobs) > 0 {
		t.Errorf("jobs that are not told: %v, %v", jobs, err)
	}
	want := []string{"CLUSTER MIGRATION STATUS ALL", "CLUSTER MIGRATION IMPORT 5 5", "CLUSTER MIGRATION IMPORT 5 5",
		"CLUSTER MIGRATION STATUS ALL"}
	if diff := cmp.Diff(want, to.commands("CLUSTER")); diff != "" || len(from.commands("")) > 0 {
		t.Errorf("commands (-want +got):\n%s, at the source %v", diff, from.commands(""))
	}
}

// How following a job ends. The engine tries a failed import again by itself: the error of the last attempt is told when the slice ends.
func TestFollow(t *testing.T) {
	for name, tt := range map[string]struct {
		jobs func(string) string
		says string
		done Progress
	}{
		"it has succeeded": {tasks(task("another", "5", "from", "to", "failed", "x"), task("a", "5-6", "from", "to", "completed", "")), "",
			Progress{Slots: slots.Of(5), Keys: 3}},
		"it was cancelled":          {tasks(task("a", "5", "from", "to", "canceled", "by a user")), "job a is canceled: by a user", Progress{}},
		"it goes on":                {tasks(task("a", "5", "from", "to", "streaming-buffer", "")), "", Progress{}},
		"it goes on after failures": {tasks(task("a", "5", "from", "to", "failed", "closed")), "job a is failed: closed", Progress{}},
		"it is gone":                {tasks(task("b", "5", "from", "to", "completed", "")), "job a is gone: 10.0.0.1:6379 restarted", Progress{}},
		"nobody tells":              {refusing("CLUSTER MIGRATION", nil), "ERR no", Progress{}},
		"the keys are not counted": {refusing("CLUSTER COUNT", tasks(task("a", "5", "from", "to", "completed", ""))), "ERR no",
			Progress{Slots: slots.Of(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := &script{}, &script{answer: tt.jobs}
			m := Move{From: from.end(t, "from"), To: to.end(t, "to"), Slots: slots.Of(5)}
			now, done := stepping(time.Millisecond), Progress{}
			job := redis.SlotMigration{ID: "a", Slots: m.Slots, SourceID: "from", TargetID: "to"}
			err := follow(t.Context(), m, slots.AtomicDestination, job, &done, now, now().Add(3*time.Millisecond))
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
			if !done.Slots.Equal(tt.done.Slots) || done.Keys != tt.done.Keys {
				t.Errorf("%+v, want %+v", done, tt.done)
			}
			if len(from.commands("")) > 0 {
				t.Errorf("the source was asked: %v", from.commands(""))
			}
		})
	}
}

// A slice that ends when a job is asked for the first time is over.
func TestFollowEndsWithTheSlice(t *testing.T) {
	to := &script{answer: tasks(task("a", "5", "from", "to", "streaming-buffer", ""))}
	m := Move{From: (&script{}).end(t, "from"), To: to.end(t, "to"), Slots: slots.Of(5)}
	now := time.Unix(0, 0)
	err := follow(t.Context(), m, slots.AtomicDestination, redis.SlotMigration{ID: "a"}, &Progress{}, func() time.Time { return now }, now)
	if err != nil || len(to.commands("CLUSTER")) != 1 {
		t.Errorf("%v after %d looks", err, len(to.commands("CLUSTER")))
	}
}

// A job that goes on is asked for less and less often, and to the end of the slice; that the caller gave up before is told.
func TestFollowAsksSeldom(t *testing.T) {
	to := &script{answer: tasks(task("a", "5", "from", "to", "streaming-buffer", ""))}
	synctest.Test(t, func(t *testing.T) {
		m := Move{From: (&script{}).end(t, "from"), To: to.end(t, "to"), Slots: slots.Of(5)}
		err := follow(t.Context(), m, slots.AtomicDestination, redis.SlotMigration{ID: "a"}, &Progress{}, time.Now, time.Now().Add(time.Second))
		if looks := len(to.commands("CLUSTER")); err != nil || looks != 10 {
			t.Errorf("%v after %d looks", err, looks)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = follow(ctx, m, slots.AtomicDestination, redis.SlotMigration{ID: "a"}, &Progress{}, time.Now, time.Now().Add(time.Minute))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller gave up: %v", err)
		}
	})
}

// The source of a job knows that it failed, the target why: both are told, of the job and of no other.
func TestWhyAJobFailed(t *testing.T) {
	export := func(id, message string) []string {
		return []string{"name", id, "operation", "IMPORT", "slot_ranges", "5-5", "target_node", "to", "source_node", "from", "state", "failed",
			"message", message}
	}
	for name, tt := range map[string]struct {
		jobs func(string) string
		want string
	}{
		"the target tells":         {tasks(export("b", "another's"), export("a", "out of memory")), "lost Target: out of memory"},
		"the target has no words":  {tasks(export("a", "")), "lost"},
		"the target knows nothing": {tasks(export("b", "another's")), "lost"},
		"the target is gone":       {refusing("CLUSTER", nil), "lost"},
	} {
		m := Move{From: (&script{}).end(t, "from"), To: (&script{answer: tt.jobs}).end(t, "to"), Slots: slots.Of(5)}
		err := failed(t.Context(), m, slots.AtomicSource, redis.SlotMigration{ID: "a", Slots: m.Slots, State: "failed", Message: "lost"})
		if want := "slots 5: job a is failed: " + tt.want; err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// The command that makes a job does not tell its name: the job is the newest for just these slots and this target.
func TestJobThatWasMade(t *testing.T) {
	export := func(id, set, target string) []string {
		return []string{"name", id, "operation", "EXPORT", "slot_ranges", set, "target_node", target, "source_node", "from", "state", "success",
			"message", ""}
	}
	for name, tt := range map[string]struct {
		jobs [][]string
		want string
	}{
		"made":   {[][]string{export("x", "5-5", "other"), export("y", "5-6", "to"), export("a", "5-5", "to"), export("old", "5-5", "to")}, "a"},
		"gone":   {[][]string{export("x", "5-5", "other"), export("y", "5-6", "to")}, ""},
		"no job": {nil, ""},
	} {
		from := &script{}
		list := tasks(tt.jobs...)
		from.answer = func(command string) string {
			if strings.HasPrefix(command, "CLUSTER MIGRATESLOTS") {
				return ""
			}
			return list(command)
		}
		m := Move{From: from.end(t, "from"), To: (&script{}).end(t, "to"), Slots: slots.Of(5)}
		job, err := begin(t.Context(), m, slots.AtomicSource, m.Slots)
		if job.ID != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: job %q, %v", name, job.ID, err)
		}
		if !slices.Equal(from.commands("CLUSTER"), []string{"CLUSTER MIGRATESLOTS SLOTSRANGE 5 5 NODE to", "CLUSTER GETSLOTMIGRATIONS"}) {
			t.Errorf("%s: commands %v", name, from.commands("CLUSTER"))
		}
		for _, refused := range []string{"CLUSTER MIGRATESLOTS", "CLUSTER GETSLOTMIGRATIONS"} {
			from.answer = refusing(refused, holding(nil))
			if _, err := begin(t.Context(), m, slots.AtomicSource, m.Slots); !errors.Is(err, redis.ErrRefused) {
				t.Errorf("%s is refused: %v", refused, err)
			}
		}
	}
}

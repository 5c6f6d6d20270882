// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/redis/stats"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var start = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// cluster is three shards of a master and a replica with 1 GiB each, healthy, changed.
func cluster(change func(s *snapshot.Snapshot)) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Formed: true}
	for i := range 3 {
		s.Shards = append(s.Shards, snapshot.Shard{Index: i, Replicas: 2})
		for j := range 2 {
			name := fmt.Sprintf("c-%d-%d", i, j)
			r := &snapshot.Redis{NodeID: name, Master: j == 0, Offset: 1 << 30, AnsweredIn: 10 * time.Millisecond}
			if r.Master {
				r.Slots = slots.Of(uint16(i))
			} else {
				r.MasterID, r.MasterLinkUp = fmt.Sprintf("c-%d-0", i), true
			}
			for k := range r.Stats {
				r.Stats[k] = stats.Unknown
			}
			r.Stats[rss], r.Stats[used], r.Stats[inBuffers], r.Stats[lastFork] = 1<<30, 1<<30, 0, 0
			s.Claims = append(s.Claims, snapshot.Claim{Name: "data-" + name, Shard: i, Ordinal: j, Requested: 4 << 30})
			s.Instances = append(s.Instances, snapshot.Instance{Name: name, UID: name, Shard: i, Ordinal: j, NodeName: "node-" + name, Redis: r})
		}
	}
	if change != nil {
		change(s)
	}
	return s.Indexed()
}

// of changes one instance.
func of(name string, change func(*snapshot.Redis)) func(*snapshot.Snapshot) {
	return func(s *snapshot.Snapshot) {
		for i := range s.Instances {
			if s.Instances[i].Name == name {
				change(s.Instances[i].Redis)
			}
		}
	}
}

// watch looks at a cluster every half a minute, at each state for as long as it is said.
type watch struct {
	t       *testing.T
	history History
	now     time.Time
	found   []Anomaly
}

func (w *watch) see(change func(*snapshot.Snapshot), lasts time.Duration) []string {
	w.t.Helper()
	for end := w.now.Add(lasts); !w.now.After(end); w.now = w.now.Add(30 * time.Second) {
		w.history, w.found = w.history.Next(cluster(change), w.now)
	}
	var told []string
	for _, a := range w.found {
		told = append(told, a.Of+" "+a.Reason)
	}
	return told
}

func (w *watch) expect(when string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: found %q, want %q", when, got, want)
	}
}

// Each sign becomes an anomaly when it has lasted, keeps its words while it lasts, and ends when it is well below its bound.
func TestSigns(t *testing.T) {
	for reason, tt := range map[string]struct {
		name, message string
		bad, worse    func(*snapshot.Redis)
		between       func(*snapshot.Redis)
		lasts         time.Duration
	}{
		ReplicaBehind: {name: "c-1-1", message: "100 MiB behind", lasts: 2 * time.Minute,
			bad: func(r *snapshot.Redis) { r.Offset -= 100 << 20 }, worse: func(r *snapshot.Redis) { r.Offset -= 300 << 20 },
			between: func(r *snapshot.Redis) { r.Offset -= 20 << 20 }},
		Fragmented: {name: "c-0-0", message: "takes 2.0 times the memory", lasts: 10 * time.Minute,
			bad: func(r *snapshot.Redis) { r.Stats[rss] = 2 << 30 }, worse: func(r *snapshot.Redis) { r.Stats[rss] = 3 << 30 },
			between: func(r *snapshot.Redis) { r.Stats[rss] = 1.4 * (1 << 30) }},
		ClientBuffers: {name: "c-0-0", message: "buffers of clients take 50 % of its memory", lasts: time.Minute,
			bad: func(r *snapshot.Redis) { r.Stats[inBuffers] = 1 << 29 }, worse: func(r *snapshot.Redis) { r.Stats[inBuffers] = 1 << 30 },
			between: func(r *snapshot.Redis) { r.Stats[inBuffers] = 1 << 27 }},
		SlowFork: {name: "c-2-1", message: "answered nobody for 1.5 s",
			bad: func(r *snapshot.Redis) { r.Stats[lastFork] = 1.5 }, worse: func(r *snapshot.Redis) { r.Stats[lastFork] = 3 },
			between: func(r *snapshot.Redis) { r.Stats[lastFork] = 0.7 }},
		SlowInstance: {name: "c-2-1", message: "takes 20 times as long to answer as others do: look at node node-c-2-1", lasts: 2 * time.Minute,
			bad: func(r *snapshot.Redis) { r.AnsweredIn = 200 * time.Millisecond }, worse: func(r *snapshot.Redis) { r.AnsweredIn = time.Second },
			between: func(r *snapshot.Redis) { r.AnsweredIn = 40 * time.Millisecond * 3 }},
		VolumeShort: {name: "c-1-0", message: "its files may take 4608 MiB, which is 1.1 times its claim", lasts: 2 * time.Minute,
			bad:     func(r *snapshot.Redis) { r.AppendOnlySize = 1 << 29; r.UsedMemory = 2 << 30 },
			worse:   func(r *snapshot.Redis) { r.UsedMemory = 3 << 30 },
			between: func(r *snapshot.Redis) { r.UsedMemory = 1900 << 20 }},
	} {
		t.Run(reason, func(t *testing.T) {
			w := watch{t: t, now: start}
			w.expect("all is well", w.see(nil, time.Hour))
			if tt.lasts > 0 {
				w.expect("for a while", w.see(of(tt.name, tt.bad), tt.lasts-time.Minute))
				w.expect("well again", w.see(nil, 0))
				w.expect("anew", w.see(of(tt.name, tt.bad), tt.lasts-time.Minute))
			}
			w.expect("it lasts", w.see(of(tt.name, tt.bad), time.Minute), tt.name+" "+reason)
			began := w.found[0]
			if !strings.Contains(began.Message, tt.message) {
				t.Errorf("%q does not say %q", began.Message, tt.message)
			}
			w.expect("it gets worse", w.see(of(tt.name, tt.worse), time.Minute), tt.name+" "+reason)
			w.expect("a little better", w.see(of(tt.name, tt.between), time.Minute), tt.name+" "+reason)
			w.expect("nobody answers", w.see(func(s *snapshot.Snapshot) {
				for i := range s.Instances {
					s.Instances[i].Redis = nil
				}
			}, time.Minute), tt.name+" "+reason)
			if w.found[0] != began {
				t.Errorf("%+v became %+v", began, w.found[0])
			}
			w.expect("its pod is another one", w.see(func(s *snapshot.Snapshot) {
				of(tt.name, tt.between)(s)
				for i := range s.Instances {
					s.Instances[i].UID += "-new"
				}
			}, 0))
		})
	}
}

// What is small, what nobody tells, and what all have in common is nothing.
func TestNoAnomaly(t *testing.T) {
	for name, change := range map[string]func(*snapshot.Snapshot){
		"little memory": of("c-0-0", func(r *snapshot.Redis) { r.Stats[rss], r.Stats[used], r.Stats[inBuffers] = 50<<20, 10<<20, 9<<20 }),
		"little of its limit": of("c-0-0", func(r *snapshot.Redis) {
			r.Stats[inBuffers], r.MaxMemory = 1<<29, 16<<30
		}),
		"nothing is told":   of("c-0-0", func(r *snapshot.Redis) { r.Stats, r.SlowCommands = stats.Values{}, -1; r.Stats[rss] = stats.Unknown }),
		"a replica alone":   of("c-1-1", func(r *snapshot.Redis) { r.Offset, r.MasterLinkUp = 0, false }),
		"ahead of a master": of("c-1-1", func(r *snapshot.Redis) { r.Offset += 1 << 40 }),
		"slower, and quick": of("c-2-1", func(r *snapshot.Redis) { r.AnsweredIn = 90 * time.Millisecond }),
		"all are slow": func(s *snapshot.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Redis.AnsweredIn = time.Second
			}
		},
		"two of them": func(s *snapshot.Snapshot) {
			s.Instances = s.Instances[:2]
			s.Instances[1].Redis.AnsweredIn = time.Second
		},
	} {
		w := watch{t: t, now: start}
		w.expect(name, w.see(change, time.Hour))
	}
}

// Slow commands are counted over half a minute at the least, however often an instance is looked at, and from its start on.
func TestSlowCommands(t *testing.T) {
	w := watch{t: t, now: start}
	count := int64(1000)
	at := func(perLook int64, every time.Duration, lasts time.Duration) (found []Anomaly) {
		for end := w.now.Add(lasts); w.now.Before(end); w.now = w.now.Add(every) {
			count += perLook
			w.history, found = w.history.Next(cluster(of("c-0-0", func(r *snapshot.Redis) { r.SlowCommands = count })), w.now)
		}
		return found
	}
	if found := at(0, time.Minute, 10*time.Minute); len(found) != 0 {
		t.Errorf("what was before counts: %+v", found)
	}
	if found := at(1, time.Second, 3*time.Minute); len(found) != 1 || found[0].Reason != SlowCommands ||
		!strings.Contains(found[0].Message, "60 slow commands a minute") {
		t.Errorf("found %+v", found)
	}
	count = 0
	if found := at(0, time.Minute, 2*time.Minute); len(found) != 0 {
		t.Errorf("after a restart: %+v", found)
	}
}

// A shard whose masters fail again and again is told, until an hour after the first of the last three. Who becomes a master because the
// operator wants it does not count.
func TestFailsOver(t *testing.T) {
	w := watch{t: t, now: start}
	master := 0
	deleted := false
	fails := func(planned bool, lasts time.Duration) []string {
		was := 2 + master
		master = 1 - master
		if planned {
			w.history.Planned(fmt.Sprintf("c-1-%d", master))
		}
		return w.see(func(s *snapshot.Snapshot) {
			a, b := s.Instances[2].Redis, s.Instances[3].Redis
			if master == 1 {
				a.Master, a.MasterID, a.MasterLinkUp, a.Slots = false, b.NodeID, true, slots.Set{}
				b.Master, b.MasterID, b.MasterLinkUp, b.Slots = true, "", false, slots.Of(1)
			}
			s.Instances[was].Terminating = deleted
		}, lasts)
	}
	w.expect("at first", w.see(nil, 5*time.Minute))
	w.expect("once", fails(false, 5*time.Minute))
	w.expect("twice", fails(false, 5*time.Minute))
	w.expect("as planned", fails(true, 5*time.Minute))
	deleted = true
	w.expect("its pod is deleted", fails(false, 0))
	w.expect("and that one's", fails(false, 0))
	deleted = false
	w.expect("three times", fails(false, 5*time.Minute), "shard 1 FailsOver")
	w.expect("it is told for an hour", fails(true, 30*time.Minute), "shard 1 FailsOver")
	w.expect("and is over", fails(true, 30*time.Minute))
	w.expect("who was planned once is not for ever", append(fails(false, 0), append(fails(false, 0), fails(false, 0)...)...),
		"shard 1 FailsOver")
	for range 2 * mostFailovers {
		fails(false, 0)
	}
	if n := len(w.history.shards[1].changes); n != mostFailovers {
		t.Errorf("%d are remembered", n)
	}
}

func TestYoung(t *testing.T) {
	w := watch{t: t, now: start}
	w.see(nil, 9*time.Minute)
	if !w.history.Young(w.now) || w.history.Young(start.Add(10*time.Minute)) {
		t.Errorf("since %s", w.history.since)
	}
}

// Whatever an instance tells, what is told of it has an end.
func TestMessagesAreBounded(t *testing.T) {
	w := watch{t: t, now: start}
	w.see(of("c-0-0", func(r *snapshot.Redis) {
		r.Stats[rss], r.Stats[used], r.Stats[inBuffers], r.Stats[lastFork] = math.MaxFloat64, 1e-300, math.MaxFloat64, math.MaxFloat64
		r.SlowCommands, r.AnsweredIn = w.now.Unix()<<30, math.MaxInt64
	}), time.Hour)
	for _, a := range w.found {
		if len(a.Message) > 300 {
			t.Errorf("%s: %d bytes", a.Reason, len(a.Message))
		}
	}
	if len(w.found) < 4 {
		t.Errorf("found %+v", w.found)
	}
}

// A container that ends again and again is told of, once, with its remedy, whether the instance answers in between or not.
func TestCrashLooping(t *testing.T) {
	w := watch{t: t, now: start}
	restarted := func(times int32, answers bool) func(*snapshot.Snapshot) {
		return func(s *snapshot.Snapshot) {
			in := &s.Instances[3]
			if in.Restarts, in.LastEnd = times, "OOMKilled, exit code 137"; !answers {
				in.Redis = nil
			}
		}
	}
	w.expect("restarts of the time before", w.see(restarted(7, true), 5*time.Minute))
	w.expect("one more", w.see(restarted(8, false), 5*time.Minute))
	w.expect("two", w.see(restarted(9, true), 5*time.Minute))
	w.expect("three", w.see(restarted(10, false), 5*time.Minute), "c-1-1 CrashLooping")
	if said := w.found[0].Message; !strings.Contains(said, "3 times within an hour (OOMKilled, exit code 137): ") {
		t.Error(said)
	}
	began := w.found[0]
	w.expect("it stays", w.see(restarted(10, true), 40*time.Minute), "c-1-1 CrashLooping")
	if w.found[0] != began {
		t.Errorf("%+v became %+v", began, w.found[0])
	}
	w.expect("an hour after the first", w.see(restarted(10, true), 10*time.Minute))
	w.expect("many at once, and another pod", append(w.see(restarted(2000000000, true), time.Minute), w.see(func(s *snapshot.Snapshot) {
		restarted(2000000001, true)(s)
		s.Instances[3].UID = "another"
	}, time.Minute)...), "c-1-1 CrashLooping")
}

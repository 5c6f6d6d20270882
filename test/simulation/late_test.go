// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/resp"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/test/crash"
)

// arrivals are the commands of what arrived last at each node, and how many of them were carried out.
type arrivals struct {
	mu   sync.Mutex
	last map[string][][]string
}

// note is told what arrives at a node.
func (a *arrivals) note(addr string, sent []byte) {
	var commands [][]string
	for in := bufio.NewReader(bytes.NewReader(sent)); ; {
		args, err := resp.ReadCommand(in)
		if err != nil {
			break
		}
		commands = append(commands, args)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == nil {
		a.last = map[string][][]string{}
	}
	a.last[addr] = commands
}

// from is a command with those that arrived after it in one go.
func (a *arrivals) from(addr string, args []string) [][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.last[addr], func(c []string) bool { return slices.Equal(c, args) })
	if at < 0 {
		return [][]string{args}
	}
	return a.last[addr][at:]
}

// hold keeps a write of a process that is stopped.
func (s *simulation) hold(write func()) {
	s.process.End() // whatever else it was about to write comes no more: it waits for this one
	s.late = append(s.late, write)
}

// holdCommands keeps a command to a node with what the process sent together with it.
func (s *simulation) holdCommands(n *redistest.Node, args []string) {
	commands := s.arrives.from(n.Addr(), args)
	s.hold(func() { s.sendLate(n, commands) })
}

// sendLate sends commands on a connection that has been there for long.
func (s *simulation) sendLate(n *redistest.Node, commands [][]string) {
	s.say("late at %s: %v", n.Addr(), commands)
	conn, err := s.world.Connect(s.t.Context(), n.Addr())
	if err != nil {
		return // nobody is there any more
	}
	defer func() { _ = conn.Close() }() // it is of no more use
	if s.cluster.AuthEnabled() {
		commands = append([][]string{{"AUTH", s.password()}}, commands...)
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	for _, args := range commands {
		var b bytes.Buffer
		_, _ = fmt.Fprintf(&b, "*%d\r\n", len(args))
		for _, arg := range args {
			_, _ = fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
		}
		_, _ = conn.Write(b.Bytes()) // whether it is taken is seen
	}
	time.Sleep(time.Millisecond) // which is over when nobody has anything to do
}

// goOn lets the process go on that was stopped, if one was: what it was about to write goes out, and the present one brings about
// what is wanted once more. Applications have written meanwhile.
func (s *simulation) goOn(app *application) {
	if len(s.late) == 0 {
		return
	}
	app.writeAgain()
	for _, write := range s.late {
		write()
	}
	s.late = nil
	s.rest()
}

// isSeen is what the API server does with preconditions, and a fake one does not.
func (s *simulation) isSeen(object client.Object, only *metav1.Preconditions) error {
	now := object.DeepCopyObject().(client.Object)
	err := s.kube.Get(s.t.Context(), client.ObjectKeyFromObject(object), now)
	if err != nil || only == nil || only.UID == nil || now.GetUID() == *only.UID {
		return client.IgnoreNotFound(err) // what is not there is told by the write
	}
	return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), fmt.Errorf("it is %s now", now.GetUID()))
}

// struck lets the operator work until the write came at which something happens. timed: there may be no such write.
func (s *simulation) struck(timed bool) {
	s.t.Helper()
	for range 1000 { // slots that follow the load wait for ten minutes
		if s.killer.Struck() {
			return
		}
		s.reconcile()
		s.world.Run(time.Second)
		if s.awaits != nil {
			s.awaits()
		}
	}
	if !timed {
		s.fail("there is no write %d", s.killer.At)
	}
}

// runBack takes a cluster through a flow until what happens at one of the writes, and back. A write that is held goes out a number of
// reconciliations later, or, with 0, when the cluster is at rest.
func (f flow) runBack(t *testing.T, k *crash.Killer, later int) (outcome string) {
	t.Helper()
	s, app := f.start(t, k)
	s.struck(f.timed)
	s.cluster.Generation++
	f.undo(s)
	for range later {
		s.reconcile()
		s.world.Run(time.Second)
	}
	if later == 0 {
		s.rest()
	}
	s.goOn(app)
	s.rest()
	s.part() // where they are depends on how often they switched over
	return f.end(s, app)
}

// TestLateWrites: a process that is stopped at a write, and goes on when its successor has done what was asked since, does no harm.
// What was asked of the first is taken back meanwhile. The cluster is then what it is when that write never came; and no write of
// an application is lost, those to the successor's cluster neither. (That a late write changes nothing where nothing else is asked
// is a part of TestCrashAtEveryWrite.)
func TestLateWrites(t *testing.T) {
	for i, f := range flows {
		if f.undo == nil {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var undisturbed crash.Killer
			synctest.Test(t, func(t *testing.T) { f.run(t, &undisturbed) })
			f.shared = true // which slots are moved twice depends on how far the first came
			first, stride, laters := 1+i%3, len(undisturbed.Writes())/2+1, []int{i % 4}
			if crash.All() {
				first, stride, laters = 1, 1, []int{0, 1, 2, 3}
			}
			tried := map[string]int{}
			for at := first; at <= len(undisturbed.Writes()); at += stride {
				for _, later := range laters {
					outcomes := map[crash.Moment]string{}
					for _, when := range []crash.Moment{crash.Before, crash.Late} {
						synctest.Test(t, func(t *testing.T) { outcomes[when] = f.runBack(t, &crash.Killer{At: at, When: when}, 4*later) })
					}
					tried["late writes after another change"]++
					if diff := cmp.Diff(outcomes[crash.Before], outcomes[crash.Late]); diff != "" {
						t.Errorf("write %d of %d, %d reconciliations late (-never +late):\n%s", at, len(undisturbed.Writes()), 4*later, diff)
					}
				}
			}
			t.Logf("%d writes, %d of them to the API server: %v", len(undisturbed.Writes()), len(undisturbed.Requests()), tried)
		})
	}
}

// A process is stopped before it tells a source that slots are another one's; its successor moves them there and back; and then the
// source is told. It gives away those of which it holds no key, to a master that does not know of it, and is told that they are its own.
func TestLateSlotsAreReclaimed(t *testing.T) {
	f := flows[slices.IndexFunc(flows, func(f flow) bool { return f.name == "scale out, key by key" })]
	f.shared = true
	var undisturbed crash.Killer
	synctest.Test(t, func(t *testing.T) { f.run(t, &undisturbed) })
	at := slices.IndexFunc(undisturbed.Writes(), func(write string) bool {
		return strings.HasPrefix(write, "CLUSTER SETSLOT ") && strings.Contains(write, " NODE ") && strings.HasSuffix(write, " at c-1-0")
	})
	synctest.Test(t, func(t *testing.T) {
		s, app := f.start(t, &crash.Killer{At: 1 + at, When: crash.Late})
		s.struck(false)
		s.cluster.Generation++
		f.undo(s)
		isBack := func() bool {
			owned := 0
			for shard, master := range s.observe().Masters() {
				if shard < 3 {
					owned += master.Redis.Slots.Len()
				}
			}
			return owned == slots.Count
		}
		for seconds := 0; !isBack() || s.observe().Goal != nil; seconds++ {
			if seconds == 1000 {
				s.fail("after so many seconds the first three shards do not own all slots")
			}
			s.reconcile()
			s.world.Run(time.Second)
		}
		s.goOn(app)
		f.end(s, app)
		if !slices.ContainsFunc(s.narrative, func(line string) bool { return strings.HasPrefix(line, "ReclaimSlots: nobody claims slots ") }) {
			s.fail("nothing was reclaimed")
		}
	})
}

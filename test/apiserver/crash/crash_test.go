// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
)

// quiet is how long an operator that has looked at its object must do nothing to be at rest; told to come again after a second, it
// waits for so long.
const (
	quiet     = 300 * time.Millisecond
	toldLater = 1500 * time.Millisecond
	// lookAgain is how long after a look at all objects that showed a difference the next is worth its cost.
	lookAgain = 200 * time.Millisecond
)

// flow is something that the operator does for an object in several writes.
type flow struct {
	name string
	// elsewhere: there are children in a second namespace.
	elsewhere bool
	// invents: the chart gives something else each time that it is rendered.
	invents bool
	// add registers the kind's controller for the namespaces of a run, the object's first, with a clock: whoever asks it looks at an object.
	add func(mgr ctrl.Manager, children cache.Cache, namespaces []string, now func() time.Time) error
	// next is add of the operator that comes after first; nil: it is the same one.
	next func(mgr ctrl.Manager, children cache.Cache, namespaces []string, now func() time.Time) error
	// object is made first. before is what there is besides it when the operator first sees it; nil: nothing.
	object func(namespaces []string) *unstructured.Unstructured
	before func(t *testing.T, object *unstructured.Unstructured)
	// others are kinds of what the operator makes for the object, besides kinds.
	others []schema.GroupVersionKind
	// first is the condition, as Type=Status, in which the object is before the change; without one there is no operator before it.
	first string
	// change is what is asked for; nil: that the object exists.
	change func(t *testing.T, object *unstructured.Unstructured)
	// last is the condition in which the change ends; empty: the object is gone.
	last string
}

// run is one time that an operator goes through a flow.
type run struct {
	flow
	t      *testing.T
	killer *crash.Killer
	object *unstructured.Unstructured
	world  crash.World
	// looks counts how often the present process looked at its object.
	looks atomic.Int64
	story []string
}

// TestCrashAtEveryWriteToTheAPIServer: whichever write the operator's process ends at, and whether that was carried out or not, its
// successor brings about what an operator that lives does: the same objects, fields and their managers, release records, finalizers
// and status, and nothing is left over. So it is when the successor ends, too, when the API server refuses a write once, and when
// an answer is lost. A further process that finds all of it done changes nothing. One trial of each flow; SIMULATION=all tries
// all.
func TestCrashAtEveryWriteToTheAPIServer(t *testing.T) {
	for i, f := range flows {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			crash.Try(t, i, f.run)
		})
	}
}

// TestTheRecordIsOfWhatWasApplied: a revision that could not be recorded at once is recorded as it was applied, with the password that
// its chart invented then. Drift is put back by that record.
func TestTheRecordIsOfWhatWasApplied(t *testing.T) {
	t.Parallel()
	f := flow{add: addChart(together(site, invented)), object: web, last: ready}
	undisturbed := &crash.Killer{}
	want := f.run(t, undisturbed, "")
	record := 1 + slices.IndexFunc(undisturbed.Writes(), func(w string) bool { return strings.HasPrefix(w, "POST ") })
	f.run(t, &crash.Killer{At: record, When: "500"}, want)
}

// run takes an object through a flow, with what happens at one of the writes, until there is what is wanted, or, without that, until
// the flow has come to its end. It returns what came of it.
func (f flow) run(t *testing.T, k *crash.Killer, want string) string {
	t.Helper()
	namespaces := []string{environment.NewNamespace(t, api, "crash")}
	if f.elsewhere {
		namespaces = append(namespaces, environment.NewNamespace(t, api, "other"))
	}
	r := &run{flow: f, t: t, killer: k, object: f.object(namespaces)}
	k.Say = func(format string, arguments ...any) { r.story = append(r.story, fmt.Sprintf(format, arguments...)) }
	r.object.SetNamespace(namespaces[0])
	made := slices.Concat(kinds, f.others, []schema.GroupVersionKind{r.object.GroupVersionKind()})
	r.world = crash.World{API: api, Kinds: made, Namespaces: namespaces, Normalise: normalise}
	t.Cleanup(func() { check(t, r.world.Clear(context.Background())) })
	check(t, api.Create(t.Context(), r.object))
	if f.before != nil {
		f.before(t, r.object)
	}
	k.Heed(f.first == "")
	operator := k.Operate(r.start, func(err error) { t.Error(err) })
	defer operator.Stop()
	if f.first != "" {
		r.rest("the beginning", func() string { return r.is(f.first) })
		k.Heed(true)
	}
	if f.next != nil {
		r.add = f.next
		operator.Restart()
	}
	if f.change != nil {
		f.change(t, r.object)
	}
	if k.When == "403" || k.When == "422" { // what a person has to mend; a minute later it would be tried again
		r.rest("the refusal", func() string {
			if k.Struck() {
				return ""
			}
			return r.is(f.last)
		})
		operator.Restart()
	}
	if want == "" {
		r.rest("the end", func() string {
			if len(k.Writes()) == 0 { // it does not know of the change yet, and the object is still as it was
				return "nothing was written"
			}
			return r.is(f.last)
		})
		want = r.outcome()
		r.wantIdempotent(operator, want)
		return want
	}
	if f.invents && k.When == "403" && slices.ContainsFunc(r.story, refusedRecord.MatchString) {
		r.rest("what is not known any more is not recorded", r.lost)
		return want
	}
	r.rest("what an operator brings about that lives", func() string { return r.differs(want) })
	if k.When == crash.Late {
		time.Sleep(time.Second) // the API server tells one apply from the next by the second
	}
	if operator.Resume() {
		k.Stirs()
		r.rest("what its successor brought about, when a process that was stopped goes on", func() string { return r.differs(want) })
	}
	if k.At > 0 && !k.Struck() { // what is seen in one look, and what in two, is chance
		t.Logf("there is no write %d: %s", k.At, strings.Join(k.Writes(), "\n"))
	}
	return want
}

// wantIdempotent asserts that a process which finds everything done changes nothing. (That of Applications applies once to learn that.)
func (r *run) wantIdempotent(operator *crash.Operator, want string) {
	r.t.Helper()
	r.killer.Heed(false)
	before := r.objects()
	operator.Restart()
	r.rest("a process that finds everything done", func() string { return r.differs(want) })
	if diff := cmp.Diff(before, r.objects()); diff != "" {
		r.t.Errorf("a process that found everything done changed something: %s\n%s", diff, strings.Join(r.story, "\n"))
	}
}

// objects are all that there are, with what says when they were changed.
func (r *run) objects() map[string]any {
	r.t.Helper()
	objects, err := r.world.Objects(r.t.Context())
	check(r.t, err)
	content := map[string]any{}
	for _, object := range objects {
		content[object.GetNamespace()+" "+object.GetKind()+" "+object.GetName()] = object.Object
	}
	return content
}

// start begins a process of the operator for the namespaces of the run.
func (r *run) start(process *crash.Process) (end func(), err error) {
	r.looks.Store(0)
	mgr, children, err := environment.NewManager(process.Of(admin), scheme.Scheme, r.world.Namespaces...)
	if err != nil {
		return nil, err
	}
	clock := func() time.Time {
		r.looks.Add(1)
		r.killer.Stirs()
		return time.Now()
	}
	if err := r.add(mgr, children, r.world.Namespaces, clock); err != nil {
		return nil, err
	}
	return environment.Start(r.t, mgr), nil
}

// rest waits until something holds, the operator has looked at the object if there is one, and does nothing any more.
func (r *run) rest(what string, holds func() string) {
	r.t.Helper()
	long := quiet
	if r.killer.When == "429" {
		long = toldLater
	}
	environment.Eventually(r.t, what, func() string {
		if time.Since(r.killer.Latest()) < long {
			return "the operator still works" // and what it brings about is not looked at meanwhile
		}
		if r.looks.Load() == 0 && environment.Get(r.t, api, r.object) {
			return "the operator has not looked yet"
		}
		return holds()
	})
}

// differs says how what there is differs from what is wanted.
func (r *run) differs(want string) string {
	if why := r.is(r.last); why != "" {
		return why
	}
	if got := r.outcome(); got != want {
		time.Sleep(lookAgain)
		return fmt.Sprintf("%s (-undisturbed +now):\n%s", strings.Join(r.story, "\n"), cmp.Diff(want, got))
	}
	return ""
}

// refusedRecord is what is told of a record of Helm's history that the API server refused.
var refusedRecord = regexp.MustCompile(`(POST \S*/secrets|PUT \S*/secrets/sh\.helm\.\S*): answered with 403`)

// lost says why a revision that could not be recorded, before the operator was started again, is recorded nevertheless: nobody knows what
// the chart invented then.
func (r *run) lost() string {
	r.t.Helper()
	if why := r.is(r.last); why != "" {
		return why
	}
	c := meta.FindStatusCondition(conditions.Read(r.object), release.TypeHistoryRecorded)
	if c == nil || c.Reason != release.ReasonHistoryLost {
		return fmt.Sprintf("%s: %v", release.TypeHistoryRecorded, c)
	}
	revision, _, _ := unstructured.NestedInt64(r.object.Object, "status", "deployedRelease", "revision")
	record := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.object.GetNamespace(),
		Name: chart.StoredName(r.object.GetName(), int(revision))}}
	if environment.Get(r.t, api, record) {
		return "it is recorded"
	}
	return ""
}

// is says why an object is not in a condition; "" stands for being gone.
func (r *run) is(wanted string) string {
	r.t.Helper()
	there := environment.Get(r.t, api, r.object)
	if wanted == "" && there {
		_, err := r.world.Collect(r.t.Context())
		check(r.t, err)
		return fmt.Sprintf("it is there, finalizers %v", r.object.GetFinalizers())
	}
	if wanted == "" {
		return ""
	}
	policy, _, _ := unstructured.NestedString(r.object.Object, "spec", "deletionPolicy")
	if wanted == backedUp && policy != string(v1alpha1.BackupDelete) && len(r.object.GetFinalizers()) > 0 {
		return "its finalizer is left to take off"
	}
	if there && wanted == followed {
		if n, _, _ := unstructured.NestedInt64(r.object.Object, "status", "backups"); n != 1 {
			return "there is a backup that is to go"
		}
	}
	throwaway := &v1alpha1.RedisCluster{}
	throwaway.Namespace, throwaway.Name = r.object.GetNamespace(), r.object.GetName()+"-verify"
	if there && wanted == verified && environment.Get(r.t, api, throwaway) {
		return "the RedisCluster that the backup was restored into is left to delete"
	}
	if job, _, _ := unstructured.NestedString(r.object.Object, "status", "jobName"); wanted == beingTaken && job == "" {
		return "there is no Job yet"
	}
	name, status, _ := strings.Cut(wanted, "=")
	c := meta.FindStatusCondition(conditions.Read(r.object), name)
	if !there || c == nil || c.Status != metav1.ConditionStatus(status) || c.ObservedGeneration != r.object.GetGeneration() {
		return fmt.Sprintf("%s is not there: %v\n%s", wanted, r.object.Object["status"], strings.Join(r.story, "\n"))
	}
	return ""
}

func (r *run) outcome() string {
	r.t.Helper()
	text, err := r.world.Outcome(r.t.Context(), r.names()...)
	check(r.t, err)
	return text
}

// names are what differs from run to run and shows up in several objects: the digests, which depend on the namespaces, the password
// that a chart invents.
func (r *run) names() (names []string) {
	r.t.Helper()
	names = append(names, string(r.object.GetUID()), "UID")
	if digest, _, _ := unstructured.NestedString(r.object.Object, "status", "deployedRelease", "digest"); digest != "" {
		names = append(names, digest, "DIGEST", digest[:12], "DIGEST")
	}
	if spec, _, _ := unstructured.NestedString(r.object.Object, "status", "deployedRelease", "spec"); spec != "" {
		names = append(names, spec, "SPEC")
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.object.GetNamespace(), Name: "web-password"}}
	if environment.Get(r.t, api, secret) {
		password := secret.Data["password"]
		names = append(names, string(password), "PASSWORD", base64.StdEncoding.EncodeToString(password), "PASSWORD")
	}
	return names
}

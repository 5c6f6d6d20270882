// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// gold and silver are labels of two operators.
var gold, silver = labels.Set{"tier": "gold"}, labels.Set{"tier": "silver"}

func labelled(o client.Object, with labels.Set) {
	own := maps.Clone(o.GetLabels())
	if own == nil {
		own = map[string]string{}
	}
	delete(own, "tier")
	maps.Copy(own, with)
	o.SetLabels(own)
}

// selecting is a cache with a selector.
type selecting struct {
	client.Reader
	selector labels.Selector
}

func (c selecting) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.Reader.List(ctx, list, append(options, client.MatchingLabelsSelector{Selector: c.selector})...)
}

// world is an API server, and an operator with a selector.
type world struct {
	api    client.WithWatch
	writes int
	r      *reconciler
	name   client.ObjectKey
	clock  time.Time
	// refused is whose labels an admission keeps as they are.
	refused string
}

func newWorld(t *testing.T, selector labels.Selector, s *Snapshot) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{name: client.ObjectKeyFromObject(s.Schedule), clock: now}
	objects := []client.Object{s.Schedule.DeepCopy(), s.Cluster.DeepCopy()}
	for i := range s.Backups {
		objects = append(objects, s.Backups[i].DeepCopy())
	}
	if s.Throwaway != nil {
		objects = append(objects, s.Throwaway.DeepCopy())
	}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(s.Schedule).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			options ...client.PatchOption) error {
			w.writes++
			if o.GetName() == w.refused {
				return errors.New("nobody changes it")
			}
			return c.Patch(ctx, o, p, options...)
		}}).Build()
	w.r = &reconciler{cache: selecting{w.api, selector}, live: w.api, selector: selector, recorder: events.NewFakeRecorder(100),
		now: func() time.Time { return w.clock }}
	return w
}

// settle reconciles until the schedule rests, and returns for how long it does.
func (w *world) settle(t *testing.T) time.Duration {
	t.Helper()
	for range 20 {
		result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: w.name})
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter != soon {
			return result.RequeueAfter
		}
	}
	t.Fatal("it does not come to rest")
	return 0
}

// tiers are the labels of all that a schedule may have made, by name.
func (w *world) tiers(t *testing.T) map[string]string {
	t.Helper()
	var backups v1alpha1.RedisBackupList
	var clusters v1alpha1.RedisClusterList
	for _, list := range []client.ObjectList{&backups, &clusters} {
		if err := w.api.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	tiers := map[string]string{}
	for i := range backups.Items {
		tiers[backups.Items[i].Name] = backups.Items[i].Labels["tier"]
	}
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.Name != "cache" {
			tiers[c.Name] = c.Labels["tier"]
		}
	}
	return tiers
}

// came is a schedule that came from the operator of gold with its RedisCluster, and so did neither its backups nor its throw-away cluster.
func came(to labels.Set, changes ...func(*Snapshot)) *Snapshot {
	s := toVerify(changes...)
	labelled(s.Schedule, to)
	labelled(s.Cluster, to)
	for i := range s.Backups {
		labelled(&s.Backups[i], gold)
	}
	if s.Throwaway != nil {
		labelled(s.Throwaway, gold)
	}
	return s
}

// Whose a schedule is now goes on with what another operator made for it: the backup, the throw-away cluster and their end.
func TestAScheduleComesFromAnotherOperator(t *testing.T) {
	notDue := func(s *Snapshot) { s.Schedule.Status.LastVerificationTime = stamp(now) }
	keepOne := func(s *Snapshot) { s.Schedule.Spec.Retention = &v1alpha1.BackupRetention{KeepLast: ptr.To[int32](1)} }
	left := func(s *Snapshot) { restored(s); s.Schedule.Status.Verification = nil; notDue(s) }
	running := func(s *Snapshot) { notDue(s); s.Backups[0].Status.Phase = v1alpha1.BackupRunning }
	foreign := func(s *Snapshot) { notDue(s); s.Backups[1].Labels = nil }
	for what, tt := range map[string]struct {
		to       labels.Set
		selector string
		changes  []func(*Snapshot)
		want     map[string]string
		verified metav1.ConditionStatus
	}{
		"in the middle of a verification": {silver, "tier=silver", []func(*Snapshot){made},
			map[string]string{"nightly-0": "silver", "nightly-1": "silver", "nightly-verify": "silver"}, metav1.ConditionUnknown},
		"to the operator of what has no label": {nil, "tier!=gold", []func(*Snapshot){made},
			map[string]string{"nightly-0": "", "nightly-1": "", "nightly-verify": ""}, metav1.ConditionUnknown},
		"when its backup is restored": {silver, "tier=silver", []func(*Snapshot){restored},
			map[string]string{"nightly-0": "silver", "nightly-1": "silver"}, metav1.ConditionTrue},
		"with a throw-away cluster that was to be deleted": {silver, "tier=silver", []func(*Snapshot){left},
			map[string]string{"nightly-0": "silver", "nightly-1": "silver"}, metav1.ConditionUnknown},
		"with backups that are not to be kept": {silver, "tier=silver", []func(*Snapshot){notDue, keepOne},
			map[string]string{"nightly-1": "silver"}, metav1.ConditionUnknown},
		"with a backup that is being taken": {silver, "tier=silver", []func(*Snapshot){running},
			map[string]string{"nightly-0": "silver", "nightly-1": "silver"}, metav1.ConditionUnknown},
		"beside a backup that it has not made": {silver, "tier=silver", []func(*Snapshot){foreign},
			map[string]string{"nightly-0": "gold", "nightly-1": "silver"}, metav1.ConditionUnknown},
	} {
		t.Run(what, func(t *testing.T) {
			selector, err := labels.Parse(tt.selector)
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, selector, came(tt.to, tt.changes...))
			if rests := w.settle(t); rests > latest {
				t.Errorf("it is looked at again after %s", rests)
			}
			if diff := cmp.Diff(tt.want, w.tiers(t)); diff != "" {
				t.Errorf("what there is, and its labels: %s", diff)
			}
			var schedule v1alpha1.RedisBackupSchedule
			if err := w.api.Get(t.Context(), w.name, &schedule); err != nil {
				t.Fatal(err)
			}
			for _, c := range schedule.Status.Conditions {
				if c.Type == v1alpha1.ScheduleConditionVerified && c.Status != tt.verified {
					t.Errorf("Verified is %s: %s", c.Status, c.Message)
				}
			}
		})
	}
}

// What somebody does not let be relabelled keeps nothing else from being done, and is told.
func TestLabelsThatAreRefused(t *testing.T) {
	w := newWorld(t, labels.SelectorFromSet(silver), came(silver, restored))
	w.refused = "nightly-0"
	for range 5 {
		if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: w.name}); err == nil {
			t.Error("it is not tried again")
		}
	}
	if diff := cmp.Diff(map[string]string{"nightly-0": "gold", "nightly-1": "silver"}, w.tiers(t)); diff != "" {
		t.Errorf("what there is, and its labels: %s", diff)
	}
	var schedule v1alpha1.RedisBackupSchedule
	if err := w.api.Get(t.Context(), w.name, &schedule); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(schedule.Status.Conditions, v1alpha1.ScheduleConditionScheduled)
	if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "nightly-0") ||
		!strings.Contains(c.Message, "nobody changes it") {
		t.Errorf("%+v", c)
	}
}

// A backup that is being taken ends where its RedisCluster is: the operator that does not see the backup lets slots move.
func TestABackupStaysWithItsCluster(t *testing.T) {
	s := came(silver, func(s *Snapshot) {
		s.Schedule.Status.LastVerificationTime = stamp(now)
		s.Backups[0].Status.Phase = v1alpha1.BackupRunning
	})
	labelled(s.Cluster, gold)
	w := newWorld(t, labels.SelectorFromSet(silver), s)
	if rests := w.settle(t); rests != lentFor {
		t.Errorf("it is looked at again after %s", rests)
	}
	if diff := cmp.Diff(map[string]string{"nightly-0": "silver", "nightly-1": "gold"}, w.tiers(t)); diff != "" {
		t.Error(diff)
	}
	w.set(t, "nightly-1", func(b *v1alpha1.RedisBackup) { b.Status.Phase = v1alpha1.BackupFailed })
	w.settle(t)
	if got := w.tiers(t)["nightly-1"]; got != "silver" {
		t.Errorf("when it has ended it is %s", got)
	}
}

func (w *world) set(t *testing.T, name string, change func(*v1alpha1.RedisBackup)) {
	t.Helper()
	b := &v1alpha1.RedisBackup{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, b); err != nil {
		t.Fatal(err)
	}
	change(b)
	if err := w.api.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// outdated is a cache that shows a schedule as it was.
type outdated struct {
	client.Reader
	schedule *v1alpha1.RedisBackupSchedule
}

func (c outdated) Get(ctx context.Context, name client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if schedule, is := into.(*v1alpha1.RedisBackupSchedule); is {
		c.schedule.DeepCopyInto(schedule)
		return nil
	}
	return c.Reader.Get(ctx, name, into, options...)
}

// The operator that lost a schedule, and has not heard of it, takes no step: it makes nothing, deletes nothing and takes no label back.
func TestTheFormerOperatorTakesNoStep(t *testing.T) {
	for what, change := range map[string]func(*Snapshot){
		"the throw-away cluster is to be made":  begun,
		"its labels are another operator's":     made,
		"it is restored":                        restored,
		"a throw-away cluster is to be deleted": func(s *Snapshot) { restored(s); s.Schedule.Status.Verification = nil },
		"a backup is due":                       func(s *Snapshot) { s.Schedule.Status.LastScheduleTime = stamp(now.AddDate(0, 0, -1)) },
		"a backup is not to be kept": func(s *Snapshot) {
			s.Schedule.Spec.Retention = &v1alpha1.BackupRetention{KeepLast: ptr.To[int32](1)}
		},
		"a backup is to be verified":              func(*Snapshot) {},
		"nothing is to be done but to ask it all": func(s *Snapshot) { s.Schedule.Status.LastVerificationTime = stamp(now) },
	} {
		s := came(silver, change)
		for i := range s.Backups {
			labelled(&s.Backups[i], silver)
		}
		if s.Throwaway != nil {
			labelled(s.Throwaway, silver)
		}
		w := newWorld(t, labels.SelectorFromSet(gold), s)
		former := s.Schedule.DeepCopy()
		labelled(former, gold)
		former.ResourceVersion = "1"
		w.r.cache = outdated{w.api, former}
		before := w.tiers(t)
		result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: w.name})
		if err != nil || result.RequeueAfter != soon {
			t.Errorf("%s: %v, %v", what, result, err)
		}
		if diff := cmp.Diff(before, w.tiers(t)); diff != "" || w.writes > 0 {
			t.Errorf("%s: %d patches, %s", what, w.writes, diff)
		}
	}
}

// The labels by which a schedule knows what it made are its own, whatever a selector names; other labels stay.
func TestInherit(t *testing.T) {
	selector, err := labels.Parse("tier!=gold,team,tier," + v1alpha1.LabelScheduleUID + "!=s")
	if err != nil {
		t.Fatal(err)
	}
	keys := keysOf(selector)
	if slices.Sort(keys); !slices.Equal(keys, []string{"team", "tier"}) {
		t.Errorf("the keys are %v", keys)
	}
	s := snapshotOf(func(s *Snapshot) { s.Schedule.Labels = map[string]string{"team": "a", "app": "shop"} })
	b := backup("nightly-1", time.Hour, v1alpha1.BackupCompleted)
	labelled(&b, labels.Set{"tier": "silver", "mine": "yes"})
	s.Keys = keys
	if inherits(s, &b) {
		t.Error("it has another operator's label")
	}
	inherit(keys, s.Schedule, &b)
	var own []string
	for key, value := range b.Labels {
		if !strings.HasPrefix(key, "redis.middleware.hc.cn/") {
			own = append(own, fmt.Sprintf("%s=%s", key, value))
		}
	}
	if slices.Sort(own); !slices.Equal(own, []string{"mine=yes", "team=a"}) || !s.Schedule.Made(&b) || !inherits(s, &b) {
		t.Errorf("the labels are %v", b.Labels)
	}
}

// Who has all objects asks for nothing more than before: the cache holds all that there is.
func TestWithoutASelectorTheCacheIsBelieved(t *testing.T) {
	w := newWorld(t, labels.Everything(), came(silver, func(s *Snapshot) { s.Schedule.Status.LastVerificationTime = stamp(now) }))
	w.r.live = nil // it would panic
	s, err := w.r.observe(t.Context(), came(silver).Schedule, w.r.cache)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Keys) > 0 || w.r.mayMiss(s) || relabel(s) != nil {
		t.Errorf("keys %v", s.Keys)
	}
}

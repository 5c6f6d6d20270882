// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// What the cache shows may be of before: nothing is made or deleted unless the API server has what that was decided on.
func TestOldNews(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	newest, old := backup("nightly-2", time.Hour, v1alpha1.BackupCompleted), backup("nightly-1", 25*time.Hour, v1alpha1.BackupCompleted)
	running := backup("nightly-3", time.Minute, v1alpha1.BackupRunning)
	made := func(s *Snapshot) { s.Schedule.Status.LastScheduleTime = stamp(now.Truncate(time.Hour)) }
	for what, tt := range map[string]struct {
		change      func(*Snapshot)
		cache, live []client.Object
		want        []string
	}{
		"the newest is gone by now":               {made, []client.Object{&newest, &old}, []client.Object{&old}, []string{"nightly-1"}},
		"nothing is of before":                    {made, []client.Object{&newest, &old}, []client.Object{&newest, &old}, []string{"nightly-2"}},
		"one is being taken by now":               {func(*Snapshot) {}, nil, []client.Object{&running}, []string{"nightly-3"}},
		"one was being taken, and is gone by now": {func(*Snapshot) {}, []client.Object{&running}, nil, []string{"nightly-202611231000"}},
	} {
		s := snapshotOf(func(s *Snapshot) {
			tt.change(s)
			s.Schedule.Spec.Retention = &v1alpha1.BackupRetention{KeepLast: ptr.To[int32](1)}
		})
		cluster := &v1alpha1.RedisCluster{}
		cluster.Namespace, cluster.Name = "shop", "cache"
		build := func(objects []client.Object) client.WithWatch {
			b := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(s.Schedule).WithObjects(s.Schedule.DeepCopy(), cluster)
			for _, object := range objects {
				b.WithObjects(object.DeepCopyObject().(client.Object)) //nolint:forcetypeassert // it is one
			}
			return b.Build()
		}
		live := build(tt.live)
		r := &reconciler{cache: build(tt.cache), live: live, selector: labels.Everything(), recorder: events.NewFakeRecorder(10),
			now: func() time.Time { return now }}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.Schedule)}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var list v1alpha1.RedisBackupList
		if err := live.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, b := range list.Items {
			names = append(names, b.Name)
		}
		if !slices.Equal(names, tt.want) {
			t.Errorf("%s: there are %v, want %v", what, names, tt.want)
		}
	}
}

// What a schedule makes is of the operator that the schedule is of, and what is another operator's does not count for it.
func TestASelectorSelectsWhatIsMade(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	selector := labels.SelectorFromSet(labels.Set{"tier": "gold"})
	s := snapshotOf(func(s *Snapshot) { s.Schedule.Labels = map[string]string{"tier": "gold", "app": "shop"} })
	cluster := &v1alpha1.RedisCluster{}
	cluster.Namespace, cluster.Name = "shop", "cache"
	for what, tt := range map[string]struct {
		cluster map[string]string
		made    bool
	}{
		"a cluster of the operator":      {map[string]string{"tier": "gold"}, true},
		"a cluster of another operator":  {map[string]string{"tier": "silver"}, false},
		"a cluster of nobody's operator": {nil, false},
	} {
		cluster.Labels = tt.cluster
		c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(s.Schedule).
			WithObjects(s.Schedule.DeepCopy(), cluster.DeepCopy()).Build()
		r := &reconciler{cache: c, live: c, selector: selector, recorder: events.NewFakeRecorder(10), now: func() time.Time { return now }}
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s.Schedule)}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		var list v1alpha1.RedisBackupList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		if (len(list.Items) == 1) != tt.made {
			t.Errorf("%s: there are %d backups", what, len(list.Items))
		}
		for i := range list.Items {
			b := &list.Items[i]
			if !selector.Matches(labels.Set(b.Labels)) || b.Labels["app"] != "" || !s.Schedule.Made(b) {
				t.Errorf("%s: its labels are %v", what, b.Labels)
			}
		}
	}
	throwaway := throwawayOf(s.Schedule, cluster, &v1alpha1.RedisBackup{})
	inherit(keysOf(selector), s.Schedule, throwaway)
	if !selector.Matches(labels.Set(throwaway.Labels)) || !s.Schedule.Throwaway(throwaway) {
		t.Errorf("the throwaway has the labels %v", throwaway.Labels)
	}
}

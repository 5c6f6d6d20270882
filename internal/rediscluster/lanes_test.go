// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// waiting is a queue of the controller, in which nobody works.
type waiting struct {
	*Reconciler
	queue priorities
	at    time.Time
}

func newWaiting(t *testing.T) *waiting {
	t.Helper()
	w := &waiting{at: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), queue: priorityqueue.New[reconcile.Request](t.Name())}
	w.Reconciler = &Reconciler{now: func() time.Time { return w.at }}
	t.Cleanup(w.queue.ShutDown)
	return w
}

// first takes a number of clusters out of the queue, as namespace/name, in the order in which they are worked on.
func (w *waiting) first(n int) []string {
	var order []string
	for range n {
		request, _ := w.queue.Get()
		order = append(order, request.String())
	}
	return order
}

// instance is a pod of a cluster, namespace/name, ready or not.
func instance(cluster string, ready bool) *corev1.Pod {
	namespace, name, _ := strings.Cut(cluster, "/")
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-0-0", Labels: map[string]string{v1alpha1.LabelCluster: name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name + "-0", Controller: ptr.To(true)}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: is}}}}
}

// found tells the controller of a pod that was there when the operator started.
func (w *waiting) found(t *testing.T, o client.Object) {
	w.fairly(w.instances()).Create(t.Context(), event.CreateEvent{Object: o, IsInInitialList: true}, w.queue)
}

func (w *waiting) became(t *testing.T, was, is client.Object) {
	w.fairly(w.instances()).Update(t.Context(), event.UpdateEvent{ObjectOld: was, ObjectNew: is}, w.queue)
}

// change tells the controller that the spec of a cluster has changed.
func (w *waiting) change(t *testing.T, cluster string) {
	namespace, name, _ := strings.Cut(cluster, "/")
	was := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: "1"}}
	is := was.DeepCopy()
	is.ResourceVersion = "2"
	w.fairly(metrics.Enqueue(v1alpha1.GroupVersion.WithKind("RedisCluster"))).Update(t.Context(),
		event.UpdateEvent{ObjectOld: was, ObjectNew: is}, w.queue)
}

// When the operator starts, clusters that lack an instance are served first, then what was changed, then all the others.
func TestBrokenClustersAreServedFirst(t *testing.T) {
	w := newWaiting(t)
	for i := range 1000 {
		w.found(t, instance(fmt.Sprintf("n%d/c%d", i/25, i), i != 700))
	}
	incomplete := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n3", Name: "c80-0",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisCluster", Name: "c80",
			Controller: ptr.To(true)}}},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](2)}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 1}}
	w.found(t, incomplete)
	w.change(t, "n36/c900")
	got := w.first(4)
	slices.Sort(got[:2])
	if !slices.Equal(got[:3], []string{"n28/c700", "n3/c80", "n36/c900"}) {
		t.Errorf("served first: %v", got)
	}
}

// A cluster that loses an instance goes before all that were changed, and before the looks at those to which nothing happened.
func TestFailuresGoFirst(t *testing.T) {
	for name, lost := range map[string]func(*testing.T, *waiting){
		"not ready any more": func(t *testing.T, w *waiting) { w.became(t, instance("n/lost", true), instance("n/lost", false)) },
		"deleted": func(t *testing.T, w *waiting) {
			w.fairly(w.instances()).Delete(t.Context(), event.DeleteEvent{Object: instance("n/lost", true)}, w.queue)
		},
		"about to be": func(t *testing.T, w *waiting) {
			leaving := instance("n/lost", true)
			leaving.DeletionTimestamp = &metav1.Time{}
			w.became(t, instance("n/lost", true), leaving)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWaiting(t)
			for i := range 10 {
				w.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(routine)}, requestOf(fmt.Sprintf("n/rest%d", i)))
				w.change(t, fmt.Sprintf("n/changed%d", i))
			}
			w.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(routine), After: time.Hour}, requestOf("n/lost")) // its next look
			lost(t, w)
			order := w.first(21)
			if order[0] != "n/lost" {
				t.Errorf("first is %s", order[0])
			}
			for i, cluster := range order[1:] {
				if changed := strings.HasPrefix(cluster, "n/changed"); changed != (i < 10) {
					t.Errorf("%d: %s", i, cluster)
				}
			}
		})
	}
}

// However much one namespace changes and loses, what happens in others waits for no more than its budgets, and a cluster to which nothing
// happened is not put off for ever.
func TestOneNamespaceGoesFirstSoOften(t *testing.T) {
	w := newWaiting(t)
	w.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(routine)}, requestOf("other/rest"))
	for i := range 500 {
		w.change(t, fmt.Sprintf("flood/changed%d", i))
		w.became(t, instance(fmt.Sprintf("flood/lost%d", i), true), instance(fmt.Sprintf("flood/lost%d", i), false))
	}
	w.change(t, "other/changed")
	w.became(t, instance("other/lost", true), instance("other/lost", false))
	order := w.first(3 * (firstAtOnce + 1))
	for cluster, most := range map[string]int{"other/lost": firstAtOnce, "other/changed": 2*firstAtOnce + 1, "other/rest": 2*firstAtOnce + 2} {
		if at := slices.Index(order, cluster); at < 0 || at > most {
			t.Errorf("%s is at %d, at most %d before it: %v", cluster, at, most, order)
		}
	}
}

func requestOf(cluster string) reconcile.Request {
	namespace, name, _ := strings.Cut(cluster, "/")
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

// A namespace that has used its budget has it again as time passes, and no more than that.
func TestBudget(t *testing.T) {
	var b budget
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	taken := func(namespace string) (n int) {
		for b.take(namespace, at) {
			n++
		}
		return n
	}
	for i, want := range []struct {
		after time.Duration
		n     int
	}{{0, firstAtOnce}, {0, 0}, {firstInterval, 1}, {3 * firstInterval, 3}, {24 * time.Hour, firstAtOnce}} {
		at = at.Add(want.after)
		if got := taken("n"); got != want.n {
			t.Errorf("%d: %d, want %d", i, got, want.n)
		}
	}
	if got := taken("other"); got != firstAtOnce {
		t.Errorf("another namespace has %d", got)
	}
	at = at.Add(24 * time.Hour)
	n := 0
	for i := range 100 {
		n += taken(fmt.Sprint(i))
	}
	if n != ofAll*firstAtOnce {
		t.Errorf("a hundred namespaces have %d together", n)
	}
	at = at.Add(24 * time.Hour)
	if b.take("n", at); len(b.spent) != 1 {
		t.Errorf("%d namespaces are remembered", len(b.spent))
	}
}

// A cluster that waits takes from the budgets of its namespace once, however much happens to it until it is reconciled: the others of the
// namespace go first as well. What is reconciled, and changes again, takes again.
func TestAClusterThatWaitsTakesOnce(t *testing.T) {
	w := newWaiting(t)
	w.client, w.shares = fake.NewClientBuilder().Build(), &shares{workers: 2}
	w.queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(routine)}, requestOf("n/rest"))
	for range 10 * firstAtOnce {
		w.change(t, "n/busy")
		w.became(t, instance("n/busy", true), instance("n/busy", false))
	}
	w.change(t, "n/changed")
	w.became(t, instance("n/lost", true), instance("n/lost", false))
	if order := w.first(4); !slices.Equal(order, []string{"n/busy", "n/lost", "n/changed", "n/rest"}) {
		t.Errorf("the order is %v", order)
	}
	taken := 0
	for range 10 * firstAtOnce {
		if w.changed(requestOf("n/busy").NamespacedName) == wanted {
			taken++
		}
		if _, err := w.Reconcile(t.Context(), requestOf("n/busy")); err != nil && !strings.Contains(err.Error(), "RedisCluster") {
			t.Fatal(err)
		}
	}
	if taken > firstAtOnce {
		t.Errorf("it went first %d times", taken)
	}
	if w.granted.use(requestOf("n/changed").NamespacedName); len(w.granted.of) > 1 { // of n/lost
		t.Errorf("remembered is %v", w.granted.of)
	}
}

// When a cluster is looked at next it goes with those of its kind, whatever it came with.
func TestNextPriority(t *testing.T) {
	r := &Reconciler{now: time.Now}
	for name, tt := range map[string]struct {
		situation plan.Situation
		rest      bool
		want      int
	}{
		"at rest":    {plan.Steady, true, routine},
		"is healed":  {plan.Healing, false, failed},
		"is scaled":  {plan.ScalingOut, false, wanted},
		"not ending": {plan.Steady, false, wanted},
	} {
		report := Report{Reconciliation: status.Reconciliation{Decision: plan.Decision{Situation: tt.situation}}}
		if got := r.next(requestOf("n/a").NamespacedName, report, tt.rest); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	result, err := in(failed, ctrl.Result{RequeueAfter: time.Second}, nil)
	if err != nil || result.RequeueAfter != time.Second || *result.Priority != failed {
		t.Errorf("%+v, %v", result, err)
	}
}

// What could not be looked at goes with what was changed, whatever it came with; one that had no turn comes again as it came.
func TestPriorityAfterAFailure(t *testing.T) {
	failing := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey,
		client.Object, ...client.GetOption) error {
		return errors.New("the cache is away")
	}}).Build()
	r := &Reconciler{now: time.Now, client: failing, shares: &shares{workers: 2}}
	request := requestOf("n/a")
	if result, err := r.Reconcile(t.Context(), request); err == nil || result.Priority == nil || *result.Priority != wanted {
		t.Errorf("%+v, %v", result, err)
	}
	held := enterAll(r.shares, "n", r.now())
	if result, err := r.Reconcile(t.Context(), request); err != nil || result.RequeueAfter != turnedAway || result.Priority != nil {
		t.Errorf("without a turn: %+v, %v", result, err)
	}
	for _, turn := range held {
		r.shares.leave(turn, r.now())
	}
}

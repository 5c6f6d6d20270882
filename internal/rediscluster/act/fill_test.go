// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

var fromMonday = v1alpha1.BackupLocation{Name: "monday", Namespace: "n", Cluster: "c",
	Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "store"}}}

// beginning is a bench with a new cluster of 3 shards that begins with a backup, or imports from the server that is given. The API server
// gives UIDs and addresses, and asks before each request whether it is to fail.
func beginning(t *testing.T, strike func() error, server string) *bench {
	t.Helper()
	fails := lossy(strike)
	create := fails.Create
	fails.Create = func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		o.SetUID(types.UID(o.GetName()))
		if service, is := o.(*corev1.Service); is {
			service.Spec.ClusterIP = "10.96.0.7"
		}
		return create(ctx, c, o, options...)
	}
	b := newBench(t, fails)
	b.actor.BackupImage = "registry/operator:1"
	b.subject.Cluster.Spec.Storage = &v1alpha1.Storage{Retain: v1alpha1.RetainDelete}
	b.subject.Cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Location: &fromMonday}}
	if server != "" {
		b.subject.Cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: server}}
	}
	claims := []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data",
		Labels: map[string]string{v1alpha1.LabelCluster: "c"}}}}
	for shard := range 3 {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.StatefulSet{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("c-%d", shard)},
			Spec:       appsv1.StatefulSetSpec{VolumeClaimTemplates: claims}})
		if err != nil {
			t.Fatal(err)
		}
		b.subject.Children = append(b.subject.Children, &unstructured.Unstructured{Object: object})
	}
	return b
}

func unhurt() error { return nil }

// deleted is what an object is that is being deleted.
func deleted(o client.Object) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	o.SetFinalizers([]string{"test/stays"})
}

// Whichever request of a step that a cluster begins with is not answered, the step is not said to be done; and when it is done again, all
// is there.
func TestBeginningWithLostRequests(t *testing.T) {
	timeout := errors.New("timeout")
	restore := plan.RestoreShards{From: fromMonday, Shards: []int{0, 1, 2}}
	prepare := plan.PrepareImport{Instances: []int{0}, Relays: []plan.Relay{{Shard: 0}}}
	keep := plan.KeepRestored{Claims: []string{"data-c-0-0", "data-c-1-0", "data-c-2-0"}}
	for name, tt := range map[string]struct {
		server string
		steps  []plan.Step // the last one is struck
	}{
		"restore":           {steps: []plan.Step{restore}},
		"restore once more": {steps: []plan.Step{restore, restore}},
		"keep":              {steps: []plan.Step{restore, keep}},
		"delete the Jobs":   {steps: []plan.Step{restore, keep, plan.DeleteRestoreJobs{Shards: []int{0, 1, 2}}}},
		"let go":            {steps: []plan.Step{restore, keep, plan.AddFinalizer{}, plan.RemoveFinalizer{}}},
		"prepare":           {server: "redis:6379", steps: []plan.Step{prepare}},
		"prepare once more": {server: "redis:6379", steps: []plan.Step{prepare, prepare}},
		"end":               {server: "redis:6379", steps: []plan.Step{prepare, plan.EndImport{Shards: 1}}},
	} {
		for nth, reached := 1, true; reached; nth++ {
			var mu sync.Mutex // shards are restored side by side
			armed, seen := false, 0
			reached = false
			b := beginning(t, func() error {
				mu.Lock()
				defer mu.Unlock()
				if seen++; !armed || seen != nth {
					return nil
				}
				reached = true
				return timeout
			}, tt.server)
			last := len(tt.steps) - 1
			for _, step := range tt.steps[:last] {
				b.must(step)
			}
			armed, seen = true, 0
			if err := b.do(tt.steps[last]); reached && !errors.Is(err, timeout) || !reached && err != nil {
				t.Errorf("%s: request %d was lost: %t, and got %v", name, nth, reached, err)
			}
			armed = false
			b.must(tt.steps[last])
		}
	}
}

// What is in the way of a restore stays as it is, and what is to be done about it is said.
func TestRestoresOverNothing(t *testing.T) {
	owned := metav1.OwnerReference{APIVersion: "v1", Kind: "RedisCluster", Name: "c", UID: "uid", Controller: new(true)}
	for name, tt := range map[string]struct {
		job   func(*batchv1.Job)
		claim func(*corev1.PersistentVolumeClaim)
		gone  bool // the claim
		noJob bool
		cause string
		why   string
	}{
		"a claim of others": {claim: func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, cause: "CannotRestore",
			why: "claim data-c-1-0 exists, and nothing is restored over what may be in it: delete it to restore"},
		"a claim of a former cluster": {claim: func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[v1alpha1.AnnotationRestoredFor] = "former"
		}, cause: "CannotRestore", why: "delete it to restore"},
		"a claim that goes": {claim: func(c *corev1.PersistentVolumeClaim) { deleted(c) }, why: "claim data-c-1-0 is being deleted"},
		"a claim that goes with another": {claim: func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences[0].UID = "former" },
			why: "goes with a former Job"},
		"a Job that goes": {job: func(j *batchv1.Job) { deleted(j) }, why: "the former Job c-1-restore is being deleted"},
		"a Job of others": {job: func(j *batchv1.Job) { j.OwnerReferences = nil }, cause: "NameTaken",
			why: "Job c-1-restore exists and does not work for this cluster: delete it"},
		"a Job that does something else": {job: func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Args[0] = "follow" },
			cause: "NameTaken", why: "does not work for this cluster"},
		"a Job whose claim is gone": {job: func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}, gone: true, why: "the claim that Job c-1-restore filled is gone"},
		"a Job that runs, and its claim was not made": {gone: true},
		"a Job that has filled its claim": {job: func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}},
		"a claim whose Job is gone": {noJob: true, why: "goes with a former Job"},
		"both are there":            {},
	} {
		b := beginning(t, unhurt, "")
		b.must(plan.RestoreShards{From: fromMonday, Shards: []int{1}})
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-1-restore"}}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data-c-1-0"}}
		for _, object := range []client.Object{job, claim} {
			if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
		}
		if job.OwnerReferences[0].UID != owned.UID || goesWith(claim) != job.UID {
			t.Fatalf("made: %v, %v", job.OwnerReferences, claim.OwnerReferences)
		}
		again := beginning(t, unhurt, "")
		if tt.job != nil {
			tt.job(job)
		}
		if tt.claim != nil {
			tt.claim(claim)
		}
		objects := []client.Object{job, claim}
		if tt.gone {
			objects = objects[:1]
		}
		if tt.noJob {
			objects = objects[1:]
		}
		for _, object := range objects {
			object.SetResourceVersion("")
		}
		seeded := newBench(t, interceptor.Funcs{}, objects...)
		again.actor.Client = seeded.actor.Client
		err := again.do(plan.RestoreShards{From: fromMonday, Shards: []int{1}})
		var stall *StallError
		if stalled := errors.As(err, &stall); stalled != (tt.cause != "") || stalled && stall.Cause != tt.cause ||
			(err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v", name, err)
		}
		if err := again.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); tt.why == "" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A claim stays only if it is the one that was restored into, and goes on belonging to whoever else it belongs to.
func TestKeepsWhatWasRestored(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		why    string
		owners int
		writes int
	}{
		"it goes with its Job": {change: func(*corev1.PersistentVolumeClaim) {}, writes: 1},
		"it stays already":     {change: func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = nil }},
		"it belongs to somebody, too": {change: func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = append([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "a"}}, c.OwnerReferences...)
		}, owners: 1, writes: 1},
		"it is another": {change: func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, why: "is not the one", owners: 1},
		"it goes":       {change: func(c *corev1.PersistentVolumeClaim) { deleted(c) }, why: "is not the one", owners: 1},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data-c-0-0",
			Annotations:     map[string]string{v1alpha1.AnnotationRestoredFor: "uid"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "c-0-restore", UID: "job"}}}}
		tt.change(claim)
		writes := 0
		b := newBench(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch,
			options ...client.PatchOption) error {
			writes++
			return c.Patch(ctx, o, patch, options...)
		}}, claim)
		err := b.do(plan.KeepRestored{Claims: []string{"data-c-0-0"}})
		if writes != tt.writes || (err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v after %d writes", name, err, writes)
		}
		err = b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(claim), claim)
		if err != nil || len(claim.OwnerReferences) != tt.owners {
			t.Errorf("%s: %v, owners %v", name, err, claim.OwnerReferences)
		}
	}
	if err := newBench(t, interceptor.Funcs{}).do(plan.KeepRestored{Claims: []string{"data-c-0-0"}}); !apierrors.IsNotFound(err) {
		t.Errorf("it is gone: %v", err)
	}
}

// Jobs of others that have the name of one of a cluster stay, and one that is gone is no error.
func TestDeletesItsOwnJobs(t *testing.T) {
	theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-restore", UID: "theirs"}}
	b := newBench(t, interceptor.Funcs{}, theirs)
	b.must(plan.DeleteRestoreJobs{Shards: []int{0, 1}})
	if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil {
		t.Errorf("a Job of others: %v", err)
	}
	b = beginning(t, unhurt, "")
	other := b.subject.Children[1].DeepCopy() // of that name, and no StatefulSet
	other.SetKind("Service")
	unstructured.RemoveNestedField(other.Object, "spec")
	b.subject.Children = append([]*unstructured.Unstructured{other}, b.subject.Children...)
	b.must(plan.RestoreShards{From: fromMonday, Shards: []int{0, 1, 2}})
	b.must(plan.DeleteRestoreJobs{Shards: []int{0, 2}})
	var jobs batchv1.JobList
	if err := b.actor.Client.List(t.Context(), &jobs); err != nil || len(jobs.Items) != 1 || jobs.Items[0].Name != "c-1-restore" {
		t.Errorf("%+v: %v", jobs.Items, err)
	}
}

// Nothing is restored without a place to restore into.
func TestRestoresIntoOneClaim(t *testing.T) {
	b := beginning(t, unhurt, "")
	b.subject.Children = b.subject.Children[:1]
	err := b.do(plan.RestoreShards{From: fromMonday, Shards: []int{1}})
	if err == nil || !strings.Contains(err.Error(), "no StatefulSet is rendered for shard 1") {
		t.Errorf("no StatefulSet: %v", err)
	}
	unstructured.RemoveNestedField(b.subject.Children[0].Object, "spec", "volumeClaimTemplates")
	err = b.do(plan.RestoreShards{From: fromMonday, Shards: []int{0}})
	if err == nil || !strings.Contains(err.Error(), "0 claim templates") {
		t.Errorf("no claim template: %v", err)
	}
	b.subject.Children[0].Object["spec"] = "none"
	err = b.do(plan.RestoreShards{From: fromMonday, Shards: []int{0}})
	if err == nil || !strings.Contains(err.Error(), "read StatefulSet c-0 as rendered") {
		t.Errorf("a StatefulSet that is none: %v", err)
	}
	for _, step := range []plan.PrepareImport{{Instances: []int{1}}, {Relays: []plan.Relay{{Shard: 1}}}} {
		if err := b.do(step); err == nil || !strings.Contains(err.Error(), "no StatefulSet is rendered for shard 1") {
			t.Errorf("%+v: %v", step, err)
		}
	}
	var jobs batchv1.JobList
	if err := b.actor.Client.List(t.Context(), &jobs); err != nil || len(jobs.Items) > 0 {
		t.Errorf("%d Jobs: %v", len(jobs.Items), err)
	}
}

// The relay of an import is reached by a Service of the cluster's own, and by no other; a relay that is gone is made again whatever is in
// the way of the rest.
func TestRelayHasItsOwnService(t *testing.T) {
	mine := func() *corev1.Service {
		service := relayService(beginning(t, unhurt, "redis:6379").subject.Cluster, 0)
		service.Spec.ClusterIP = "10.96.0.9"
		return service
	}
	for name, tt := range map[string]struct {
		service    func(*corev1.Service)
		cause, why string
	}{
		"it is there": {service: func(*corev1.Service) {}},
		"it is somebody's": {service: func(s *corev1.Service) { s.OwnerReferences = nil }, cause: "NameTaken",
			why: "exists and was not made for this cluster: delete it"},
		"it has no address yet": {service: func(s *corev1.Service) { s.Spec.ClusterIP = "" }, why: "has no address"},
		"it has none":           {service: func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }, why: "has no address"},
		"it goes":               {service: func(s *corev1.Service) { deleted(s) }, why: "is being deleted"},
	} {
		service := mine()
		tt.service(service)
		theirs := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data-c-0-0"}}
		b := beginning(t, unhurt, "redis:6379")
		b.actor.Client = newBench(t, interceptor.Funcs{}, service, theirs).actor.Client
		err := b.do(plan.PrepareImport{Relays: []plan.Relay{{}}})
		var stall *StallError
		if stalled := errors.As(err, &stall); stalled != (tt.cause != "") || stalled && stall.Cause != tt.cause ||
			(err == nil) != (tt.why == "") || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v", name, err)
		}
		var jobs batchv1.JobList
		if err := b.actor.Client.List(t.Context(), &jobs); err != nil || len(jobs.Items) != map[bool]int{true: 1, false: 0}[tt.why == ""] {
			t.Errorf("%s: %d Jobs: %v", name, len(jobs.Items), err)
		}
		if err := b.do(plan.PrepareImport{Instances: []int{0}}); !errors.As(err, &stall) || stall.Cause != "CannotRestore" {
			t.Errorf("%s: over a claim of others: %v", name, err)
		}
		if err := b.do(plan.EndImport{Shards: 1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		err = b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(service), service)
		if stays := tt.cause == "NameTaken" || name == "it goes"; stays != (err == nil) {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
	theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-import"}}
	b := beginning(t, unhurt, "redis:6379")
	b.actor.Client = newBench(t, interceptor.Funcs{}, mine(), theirs).actor.Client
	var stall *StallError
	if err := b.do(plan.PrepareImport{Relays: []plan.Relay{{}}}); !errors.As(err, &stall) || stall.Cause != "NameTaken" {
		t.Errorf("a Job of others has the relay's name: %v", err)
	}
}

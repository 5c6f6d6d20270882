// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// What the author wrote is one argument each, a pod sees one key of each Secret, and Services of the cluster select neither pod. Only the
// pod that writes into the claim has it.
func TestImportJobs(t *testing.T) {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}, Spec: v1alpha1.RedisClusterSpec{
		Repository: "valkey/valkey", Version: "9.1.2-alpine", TLS: &v1alpha1.TLS{SecretName: "certificate"},
		Bootstrap: &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "redis.example.com:6379"}}}}
	from := snapshot.ImportFrom{Address: "redis.example.com:6379", User: "import", PasswordSecret: "login", PasswordKey: "password",
		TrustSecret: "authority", ServerName: "redis.example.net", ShownSecret: "shown"}
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](999)}}}}}
	source := []string{"--request=uid", "--from=redis.example.com:6379", "--user=import", "--password-file=/etc/import/source/password",
		"--ca-file=/etc/import/trust/ca.crt", "--server-name=redis.example.net",
		"--client-cert-file=/etc/backup/cert/tls.crt", "--client-key-file=/etc/backup/key/tls.key"}
	ask := []string{"login/password", "authority/ca.crt", "shown/tls.crt", "shown/tls.key"}
	for _, tt := range []struct {
		job     *batchv1.Job
		args    []string
		volumes []string
		command string
	}{
		{relayJob(cluster, set, from, plan.Relay{Shard: 2, Slots: slots.Range(5, 9)}, "image"),
			[]string{"--slots=5-9", "--accept-password-file=/etc/import/own/password", "--cert-file=/etc/import/cert/tls.crt",
				"--key-file=/etc/import/key/tls.key"},
			append(slices.Clip(ask), "c-auth/password", "certificate/tls.crt", "certificate/tls.key"), "relay"},
		{followJob(cluster, set, plan.PrepareImport{From: from, Shards: 3}, 2, "10.96.0.7", "image"),
			[]string{"--directory=/data", "--master-id=" + v1alpha1.ImportMasterID("uid", 2), "--master=10.96.0.7:6379", "--shard=2",
				"--shards=3", "--engine=valkey:9.1"},
			append([]string{"data-c-2-0"}, ask...), "follow"},
	} {
		pod := tt.job.Spec.Template
		c := backupjob.Of(pod.Spec)
		want := append(append([]string{tt.command}, source...), append(tt.args, "--report-file=/dev/termination-log")...)
		if differs := diff.Diff(want, c.Args); differs != "" || len(c.Env) > 0 {
			t.Errorf("%s: arguments (-want +got):\n%s", tt.command, differs)
		}
		var volumes []string
		for _, v := range pod.Spec.Volumes {
			if v.Secret == nil {
				volumes = append(volumes, v.PersistentVolumeClaim.ClaimName)
			} else if len(v.Secret.Items) == 1 {
				volumes = append(volumes, v.Secret.SecretName+"/"+v.Secret.Items[0].Key)
			}
		}
		if differs := diff.Diff(tt.volumes, volumes); differs != "" || len(c.VolumeMounts) != len(volumes) {
			t.Errorf("%s: volumes (-want +got):\n%s", tt.command, differs)
		}
		if pod.Labels[v1alpha1.LabelCluster] != "" || !backupjob.For(pod.Spec, "uid", tt.command) ||
			*pod.Spec.AutomountServiceAccountToken || *pod.Spec.SecurityContext.RunAsUser != 999 {
			t.Errorf("%s: %+v", tt.command, pod)
		}
		if source := tt.job.Annotations[v1alpha1.AnnotationImportedFrom]; source != cluster.Source() {
			t.Errorf("%s: it is of %q", tt.command, source)
		}
	}
	for masters, said := range []bool{false, true} { // 0: any number
		job := followJob(cluster, set, plan.PrepareImport{From: from, Shards: masters}, 2, "10.96.0.7", "image")
		if slices.Contains(backupjob.Of(job.Spec.Template.Spec).Args, fmt.Sprintf("--shards=%d", masters)) != said {
			t.Errorf("%d masters: %v", masters, backupjob.Of(job.Spec.Template.Spec).Args)
		}
	}
	service := relayService(cluster, 2)
	selects := func(shard int) bool {
		pod := relayJob(cluster, set, from, plan.Relay{Shard: shard}, "image").Spec.Template
		return labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.Labels))
	}
	if !selects(2) || selects(1) {
		t.Errorf("the Service does not select its relay, or another one: %v", service.Spec.Selector)
	}
	if service.Labels[v1alpha1.LabelCluster] != "" {
		t.Error("the Service would be taken for one that the chart has left")
	}
}

func setOf(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// Wherever the operator ends while it prepares and ends an import, it comes to the same, and touches nothing of others.
func TestImportAtEveryWrite(t *testing.T) {
	for ends := range 22 {
		var addresses atomic.Int64
		var writes atomic.Int64 // children of one step are written at once
		write := func() error {
			if writes.Add(1) == int64(ends)+1 {
				return errors.New("the operator ends")
			}
			return nil
		}
		b := newBench(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
				if service, is := object.(*corev1.Service); is {
					service.Spec.ClusterIP = cmp.Or(service.Spec.ClusterIP, fmt.Sprintf("10.96.0.%d", addresses.Add(1)))
				}
				object.SetUID(types.UID(object.GetName()))
				return cmp.Or(write(), c.Create(ctx, object, o...))
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.DeleteOption) error {
				return cmp.Or(write(), c.Delete(ctx, object, o...))
			},
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, p client.Patch, o ...client.PatchOption) error {
				return cmp.Or(write(), c.Patch(ctx, object, p, o...))
			},
		})
		b.subject.Cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "redis:6379"}}
		b.subject.Children = []*unstructured.Unstructured{setOf(t, "c-0"), setOf(t, "c-1")}
		carry := func(step plan.Step) {
			t.Helper()
			if _, err := b.actor.Do(t.Context(), b.subject, step); err != nil {
				if _, err = b.actor.Do(t.Context(), b.subject, step); err != nil {
					t.Fatalf("%s after an end at write %d: %v", step.Name(), ends, err)
				}
			}
		}
		count := func(want int, list client.ObjectList) {
			t.Helper()
			if err := b.actor.Client.List(t.Context(), list, client.InNamespace("n")); err != nil || meta.LenList(list) != want {
				t.Errorf("an end at write %d: %d of %T, want %d: %v", ends, meta.LenList(list), list, want, err)
			}
		}
		instances, relays := plan.PrepareImport{Instances: []int{0, 1}}, plan.PrepareImport{Relays: []plan.Relay{{Shard: 0}, {Shard: 1}}}
		carry(instances)
		carry(instances)
		carry(relays)
		carry(relays)
		count(2, &corev1.ServiceList{})
		count(4, &batchv1.JobList{})
		var claims corev1.PersistentVolumeClaimList
		count(2, &claims)
		if job := goesWith(&claims.Items[0]); job != "c-0-restore" {
			t.Errorf("the claim goes with %q", job)
		}
		// Somebody deletes a Service: it comes back at the address that the instance was told.
		told := service(t, b, "c-1-import")
		_ = b.actor.Client.Delete(t.Context(), told) // it may be the write at which the operator ends
		carry(relays)
		if again := service(t, b, "c-1-import"); again.Spec.ClusterIP != told.Spec.ClusterIP {
			t.Errorf("the relay is at %s, and was at %s", again.Spec.ClusterIP, told.Spec.ClusterIP)
		}
		carry(plan.KeepFollower{Claims: []string{"data-c-0-0", "data-c-1-0"}})
		count(2, &claims)
		if len(claims.Items[0].OwnerReferences) > 0 {
			t.Errorf("the claim goes with %v", claims.Items[0].OwnerReferences)
		}
		carry(plan.EndImport{Shards: 2})
		carry(plan.EndImport{Shards: 2})
		count(0, &corev1.ServiceList{})
		count(0, &batchv1.JobList{})
		count(2, &corev1.PersistentVolumeClaimList{})
	}
}

func service(t *testing.T, b *bench, name string) *corev1.Service {
	t.Helper()
	found := &corev1.Service{}
	if err := b.actor.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// A relay whose address is lost is not made at another one: no instance would find it. Only the Job that told the instance is believed, and
// a Service that cannot be made has lost nothing yet.
func TestRelayIsLost(t *testing.T) {
	for name, tt := range map[string]struct {
		taken, jobGone, moved bool
		job                   func(*batchv1.Job)
		says                  string
	}{
		"its address is taken":       {taken: true, says: "its address 10.96.0.7 is another's now"},
		"nobody knows it":            {jobGone: true, says: "so is Job c-0-restore, which knew its address"},
		"somebody made it elsewhere": {moved: true, says: "is at 10.96.0.8, and the instance was told 10.96.0.7"},
		"who says it is somebody's":  {job: func(j *batchv1.Job) { j.OwnerReferences = nil }, says: "which knew its address"},
		"who says it does something else": {job: func(j *batchv1.Job) { j.Spec.Template.Spec.Containers[0].Args[0] = "restore" },
			says: "which knew its address"},
	} {
		refuses := true
		b := newBench(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
				if service, is := object.(*corev1.Service); is {
					if refuses {
						return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, service.Name, nil)
					}
					service.Spec.ClusterIP = cmp.Or(service.Spec.ClusterIP, "10.96.0.7")
				}
				return c.Create(ctx, object, o...)
			},
		})
		b.subject.Cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "redis:6379"}}
		b.subject.Children = []*unstructured.Unstructured{setOf(t, "c-0")}
		do := func(step plan.Step) error {
			_, err := b.actor.Do(t.Context(), b.subject, step)
			return err
		}
		var stall *StallError
		if err := do(plan.PrepareImport{Instances: []int{0}}); err == nil || errors.As(err, &stall) {
			t.Errorf("%s, the first time: %v", name, err)
		}
		refuses = false
		if err := do(plan.PrepareImport{Instances: []int{0}}); err != nil {
			t.Fatal(err)
		}
		if err := b.actor.Client.Delete(t.Context(), service(t, b, "c-0-import")); err != nil {
			t.Fatal(err)
		}
		if tt.jobGone {
			if err := b.actor.deleteJob(t.Context(), b.subject.Cluster, "c-0-restore"); err != nil {
				t.Fatal(err)
			}
		}
		if tt.moved {
			elsewhere := relayService(b.subject.Cluster, 0)
			elsewhere.Spec.ClusterIP = "10.96.0.8"
			if err := b.actor.Client.Create(t.Context(), elsewhere); err != nil {
				t.Fatal(err)
			}
		}
		if tt.job != nil {
			var job batchv1.Job
			if err := b.actor.Client.Get(t.Context(), types.NamespacedName{Namespace: "n", Name: "c-0-restore"}, &job); err != nil {
				t.Fatal(err)
			}
			tt.job(&job)
			if err := b.actor.Client.Update(t.Context(), &job); err != nil {
				t.Fatal(err)
			}
		}
		refuses = tt.taken
		if err := do(plan.PrepareImport{Relays: []plan.Relay{{}}}); !errors.As(err, &stall) || stall.Cause != "CannotImport" ||
			!strings.Contains(stall.Message, tt.says) || !strings.Contains(stall.Message, "its claims, and import anew") {
			t.Errorf("%s: %v", name, err)
		}
		err := do(plan.PrepareImport{Instances: []int{0}}) // nothing has started
		if tt.taken && (err == nil || !strings.Contains(err.Error(), "delete Job c-0-restore to prepare")) {
			t.Errorf("%s, before it starts: %v", name, err)
		}
	}
}

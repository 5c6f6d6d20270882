// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// What the author wrote is one argument each, a pod sees one key of each Secret, and Services of the cluster select neither pod. Only the
// pod that writes into the claim has it.
func TestImportJobs(t *testing.T) {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}, Spec: v1alpha1.RedisClusterSpec{
		Repository: "valkey/valkey", Version: "9.1.2-alpine", TLS: &v1alpha1.TLS{SecretName: "certificate"},
		Bootstrap: &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "redis.example.com:6379", User: "import", CredentialsSecretName: "login",
			TLS: &v1alpha1.ImportTLS{CASecretName: "authority", ServerName: "redis.example.net"}}}}}
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](999)}}}}}
	source := []string{"--request=uid", "--from=redis.example.com:6379", "--user=import", "--password-file=/etc/import/source/password",
		"--ca-file=/etc/import/trust/ca.crt", "--server-name=redis.example.net"}
	ask := []string{"login/password", "authority/ca.crt"}
	for _, tt := range []struct {
		pod     corev1.PodTemplateSpec
		args    []string
		volumes []string
		command string
	}{
		{relayJob(cluster, set, "image").Spec.Template,
			[]string{"--accept-password-file=/etc/import/own/password", "--cert-file=/etc/import/cert/tls.crt",
				"--key-file=/etc/import/key/tls.key"},
			append(ask[:2:2], "c-auth/password", "certificate/tls.crt", "certificate/tls.key"), "relay"},
		{followJob(cluster, set, "10.96.0.7", "image").Spec.Template,
			[]string{"--directory=/data", "--master-id=" + cluster.ImportMasterID(), "--master=10.96.0.7:6379", "--engine=valkey:9.1"},
			append([]string{"data-c-0-0"}, ask...), "follow"},
	} {
		c := backupjob.Of(tt.pod.Spec)
		want := append(append([]string{tt.command}, source...), append(tt.args, "--report-file=/dev/termination-log")...)
		if differs := diff.Diff(want, c.Args); differs != "" || len(c.Env) > 0 {
			t.Errorf("%s: arguments (-want +got):\n%s", tt.command, differs)
		}
		var volumes []string
		for _, v := range tt.pod.Spec.Volumes {
			if v.Secret == nil {
				volumes = append(volumes, v.PersistentVolumeClaim.ClaimName)
			} else if len(v.Secret.Items) == 1 {
				volumes = append(volumes, v.Secret.SecretName+"/"+v.Secret.Items[0].Key)
			}
		}
		if differs := diff.Diff(tt.volumes, volumes); differs != "" || len(c.VolumeMounts) != len(volumes) {
			t.Errorf("%s: volumes (-want +got):\n%s", tt.command, differs)
		}
		if tt.pod.Labels[v1alpha1.LabelCluster] != "" || !backupjob.For(tt.pod.Spec, "uid", tt.command) ||
			*tt.pod.Spec.AutomountServiceAccountToken || *tt.pod.Spec.SecurityContext.RunAsUser != 999 {
			t.Errorf("%s: %+v", tt.command, tt.pod)
		}
	}
	service := relayService(cluster)
	for key, value := range service.Spec.Selector {
		if relayJob(cluster, set, "image").Spec.Template.Labels[key] != value {
			t.Errorf("the Service does not select the relay by %s=%s", key, value)
		}
	}
	if service.Labels[v1alpha1.LabelCluster] != "" {
		t.Error("the Service would be taken for one that the chart has left")
	}
}

// Wherever the operator ends while it prepares and ends an import, it comes to the same, and touches nothing of others.
func TestImportAtEveryWrite(t *testing.T) {
	set := func() *unstructured.Unstructured {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&appsv1.StatefulSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0"},
			Spec: appsv1.StatefulSetSpec{VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}}})
		if err != nil {
			t.Fatal(err)
		}
		return &unstructured.Unstructured{Object: object}
	}
	for ends := range 12 {
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
					service.Spec.ClusterIP = "10.96.0.7"
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
		b.subject.Children = []*unstructured.Unstructured{set()}
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
		carry(plan.PrepareImport{})
		carry(plan.PrepareImport{})
		carry(plan.PrepareImport{RelayOnly: true})
		count(1, &corev1.ServiceList{})
		count(2, &batchv1.JobList{})
		var claims corev1.PersistentVolumeClaimList
		count(1, &claims)
		if job := goesWith(&claims.Items[0]); job != "c-0-restore" {
			t.Errorf("the claim goes with %q", job)
		}
		carry(plan.KeepFollower{Claims: []string{"data-c-0-0"}})
		count(1, &claims)
		if len(claims.Items[0].OwnerReferences) > 0 {
			t.Errorf("the claim goes with %v", claims.Items[0].OwnerReferences)
		}
		carry(plan.EndImport{})
		carry(plan.EndImport{})
		count(0, &corev1.ServiceList{})
		count(0, &batchv1.JobList{})
		count(1, &corev1.PersistentVolumeClaimList{})
	}
}

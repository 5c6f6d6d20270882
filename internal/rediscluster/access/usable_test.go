// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// What bears the label may go into pods; no claim that instances use does, whatever somebody has written on it.
func TestUsable(t *testing.T) {
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	scheme := clientgoscheme.Scheme
	check(v1alpha1.AddToScheme(scheme))
	named := func(name string, labels ...string) metav1.ObjectMeta {
		all := map[string]string{}
		for _, label := range labels {
			key, value, _ := strings.Cut(label, "=")
			all[key] = value
		}
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: all}
	}
	const labelled = v1alpha1.LabelBackup + "=true"
	cluster := &v1alpha1.RedisCluster{ObjectMeta: named("cache"), Spec: v1alpha1.RedisClusterSpec{
		Pod: []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{PersistentVolumeClaimName: "shared"}}}}}
	going := &corev1.PersistentVolumeClaim{ObjectMeta: named("going", labelled)}
	going.DeletionTimestamp, going.Finalizers = ptr.To(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, going,
		&corev1.Secret{ObjectMeta: named("secret", labelled)}, &corev1.ServiceAccount{ObjectMeta: named("writer", labelled)},
		&corev1.ServiceAccount{ObjectMeta: named("default")},
		&corev1.ServiceAccount{ObjectMeta: named("restorer", v1alpha1.LabelRestore+"=true")},
		&corev1.PersistentVolumeClaim{ObjectMeta: named("backups", labelled)}, &corev1.PersistentVolumeClaim{ObjectMeta: named("other")},
		&corev1.PersistentVolumeClaim{ObjectMeta: named("former", labelled, v1alpha1.LabelCluster+"=gone")},
		&corev1.PersistentVolumeClaim{ObjectMeta: named("data-cache-2-0", labelled)},
		&corev1.PersistentVolumeClaim{ObjectMeta: named("data-else-2-0", labelled)},
		&corev1.PersistentVolumeClaim{ObjectMeta: named("shared", labelled)}).
		WithInterceptorFuncs(interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			if key.Name == "forbidden" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, key.Name, nil)
			}
			return c.Get(ctx, key, object, options...)
		}}).Build()
	reader := Reader{Client: kube, ServiceAccount: "ops:operator"}
	for _, tt := range []struct{ kind, name, want string }{
		{KindSecret, "secret", ""},
		{"", "none", "at: there is no Secret none in this namespace"},
		{"", "", ""},
		{KindServiceAccount, "writer", ""},
		{KindServiceAccount, "default", "at: ServiceAccount default lacks the label redis.middleware.hc.cn/backup: \"true\""},
		{KindServiceAccount, "restorer", "at: ServiceAccount restorer lacks the label"},
		{KindServiceAccount, "forbidden", "kubectl create rolebinding"},
		{KindClaim, "backups", ""},
		{KindClaim, "data-else-2-0", ""},
		{KindClaim, "none", "at: there is no PersistentVolumeClaim none in this namespace"},
		{KindClaim, "other", "at: PersistentVolumeClaim other lacks the label"},
		{KindClaim, "going", "at: claim going is being deleted, as soon as no pod uses it: name another one"},
		{KindClaim, "former", "at: claim former holds the data of instances of RedisCluster gone: name another one"},
		{KindClaim, "data-cache-2-0", "holds the data of instances of RedisCluster cache"},
		{KindClaim, "shared", "holds the data of instances of RedisCluster cache"},
	} {
		got, err := reader.Usable(t.Context(), "shop", Needed{Field: "at", Name: tt.name, Label: v1alpha1.LabelBackup, Kind: tt.kind})
		if check(err); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %q, want %q", tt.kind, tt.name, got, tt.want)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A claim that is being deleted is still there: a Renew that was interrupted goes on from it.
func TestTerminatingClaim(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: cluster().Namespace, Name: "data-c-0-0", UID: "claim",
		Labels: map[string]string{v1alpha1.LabelCluster: cluster().Name}, Finalizers: []string{"kubernetes.io/pvc-protection"}}}
	o, kube, _ := newObserver(t, interceptor.Funcs{}, claim)
	if err := kube.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	c := cluster()
	c.Spec.Storage = &v1alpha1.Storage{}
	s := &snapshot.Snapshot{}
	if err := o.claims(t.Context(), c, s); err != nil {
		t.Fatal(err)
	}
	want := []snapshot.Claim{{Name: "data-c-0-0", UID: "claim", Terminating: true}}
	if diff := cmp.Diff(want, s.Claims); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

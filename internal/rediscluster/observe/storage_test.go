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

// A claim that is being deleted is still there: a Recreate that was interrupted goes on from it.
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

// Whose claims are looked at: those of instances that have one each, whichever field says so.
func TestClaimsOfTheirOwn(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: cluster().Namespace, Name: "data-c-0-0", UID: "claim",
		Labels: map[string]string{v1alpha1.LabelCluster: cluster().Name}}}
	for name, tt := range map[string]struct {
		volumes *v1alpha1.Volumes
		want    int
	}{
		"storage":               {nil, 1},
		"type pvc":              {&v1alpha1.Volumes{Type: v1alpha1.VolumePVC}, 1},
		"an existing claim":     {&v1alpha1.Volumes{Type: v1alpha1.VolumePVC, PersistentVolumeClaimName: "data"}, 0},
		"a network file system": {&v1alpha1.Volumes{Type: v1alpha1.VolumeNFS, PersistentVolumeClaimName: "data"}, 0},
		"gone with the pod":     {&v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}, 0},
		"a directory":           {&v1alpha1.Volumes{Type: v1alpha1.VolumeHostPath}, 0},
	} {
		o, _, _ := newObserver(t, interceptor.Funcs{}, claim.DeepCopy())
		c, s := cluster(), &snapshot.Snapshot{}
		c.Spec.Pod = []v1alpha1.PodTemplate{{Volumes: tt.volumes}}
		if err := o.claims(t.Context(), c, s); err != nil || len(s.Claims) != tt.want {
			t.Errorf("%s: %d claims (%v), want %d", name, len(s.Claims), err, tt.want)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := Class
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "data", UID: "1",
			Annotations: map[string]string{annProvisioner: Provisioner, annSelectedNode: "node2"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			Resources:        corev1.VolumeResourceRequirements{Requests: storage("1Gi")},
		},
	}
	if change != nil {
		change(c)
	}
	return c
}

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func TestPlan(t *testing.T) {
	volume := func(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		pv := newVolume(claim(nil), "/volumes")
		pv.Status.Phase = corev1.VolumeBound
		if change != nil {
			change(pv)
		}
		return pv
	}
	bound := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Status.Phase, c.Status.Capacity = "pvc-1", corev1.ClaimBound, storage("1Gi")
	}
	tests := map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		want   string
	}{
		"new": {claim: claim(nil), want: "provision"},
		"no pod scheduled yet": {claim: claim(func(c *corev1.PersistentVolumeClaim) {
			delete(c.Annotations, annSelectedNode)
		})},
		"another provisioner's": {claim: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[annProvisioner] = "other"
		})},
		"provisioned, not bound yet": {claim: claim(nil), volume: volume(nil)},
		"bound":                      {claim: claim(bound), volume: volume(nil)},
		"grown": {claim: claim(func(c *corev1.PersistentVolumeClaim) {
			bound(c)
			c.Spec.Resources.Requests = storage("2Gi")
		}), volume: volume(nil), want: "expand"},
		"claim gone": {volume: volume(func(pv *corev1.PersistentVolume) {
			pv.Status.Phase = corev1.VolumeReleased
		}), want: "remove"},
		"claim gone, volume to be kept": {volume: volume(func(pv *corev1.PersistentVolume) {
			pv.Status.Phase = corev1.VolumeReleased
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		})},
		"a foreign volume, released": {volume: volume(func(pv *corev1.PersistentVolume) {
			pv.Status.Phase = corev1.VolumeReleased
			pv.Annotations = nil
		})},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var claims []*corev1.PersistentVolumeClaim
			var volumes []*corev1.PersistentVolume
			if test.claim != nil {
				claims = append(claims, test.claim)
			}
			if test.volume != nil {
				volumes = append(volumes, test.volume)
			}
			got := ""
			for _, s := range plan(claims, volumes, "/volumes") {
				switch {
				case s.provision != nil:
					got += "provision"
				case s.remove != nil:
					got += "remove"
				case s.expand != nil:
					got += "expand"
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVolumeStaysOnItsNode(t *testing.T) {
	pv := newVolume(claim(nil), "/volumes")
	if node, err := nodeOf(pv); err != nil || node != "node2" {
		t.Errorf("got %q, %v", node, err)
	}
	if got := pv.Spec.Local.Path; got != "/volumes/pvc-1" {
		t.Errorf("the folder is %s", got)
	}
}

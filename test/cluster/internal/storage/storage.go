// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storage provisions the volumes of the class "standard": folders on the
// node that the scheduler chose, as `local` persistent volumes. Everyone may write
// in them, so that claims of pods that run as any user work.
package storage

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Class is the storage class.
	Class = "standard"
	// Provisioner is its provisioner.
	Provisioner = "local.middleware.hc.cn/folder"

	// Annotations that Kubernetes' volume controllers share with provisioners.
	annProvisioner   = "volume.kubernetes.io/storage-provisioner"
	annSelectedNode  = "volume.kubernetes.io/selected-node"
	annProvisionedBy = "pv.kubernetes.io/provisioned-by"
)

// step is one thing to do.
type step struct {
	// provision: make folder and volume.
	provision *corev1.PersistentVolume
	// remove: delete folder and volume.
	remove *corev1.PersistentVolume
	// expand: grow volume to the request of claim.
	expand *corev1.PersistentVolume
	claim  *corev1.PersistentVolumeClaim
}

// plan decides what to do, from all claims and volumes. volumes is where nodes
// keep their volumes.
func plan(claims []*corev1.PersistentVolumeClaim, existing []*corev1.PersistentVolume, volumes string) []step {
	var steps []step
	byName := map[string]*corev1.PersistentVolume{}
	for _, pv := range existing {
		if pv.Annotations[annProvisionedBy] != Provisioner {
			continue
		}
		byName[pv.Name] = pv
		if pv.Status.Phase == corev1.VolumeReleased && pv.DeletionTimestamp == nil &&
			pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
			steps = append(steps, step{remove: pv})
		}
	}
	for _, claim := range claims {
		pv := byName[volumeName(claim)]
		switch {
		case pv == nil && wantsVolume(claim):
			steps = append(steps, step{provision: newVolume(claim, volumes), claim: claim})
		case pv != nil && claim.Status.Phase == corev1.ClaimBound && smaller(pv, claim):
			steps = append(steps, step{expand: pv, claim: claim})
		}
	}
	return steps
}

func wantsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[annProvisioner] == Provisioner &&
		claim.Annotations[annSelectedNode] != "" &&
		claim.Spec.VolumeName == "" &&
		claim.DeletionTimestamp == nil
}

func smaller(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	want := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	have := claim.Status.Capacity[corev1.ResourceStorage]
	volume := pv.Spec.Capacity[corev1.ResourceStorage]
	return want.Cmp(have) > 0 || want.Cmp(volume) > 0
}

func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }

func newVolume(claim *corev1.PersistentVolumeClaim, volumes string) *corev1.PersistentVolume {
	name, node := volumeName(claim), claim.Annotations[annSelectedNode]
	filesystem := corev1.PersistentVolumeFilesystem
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annProvisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              *claim.Spec.StorageClassName,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    &filesystem,
			Capacity: corev1.ResourceList{
				corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage],
			},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: fmt.Sprintf("%s/%s", volumes, name)},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
				}}}},
			}},
		},
	}
}

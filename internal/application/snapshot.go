// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
)

// Snapshot is what one reconciliation saw. It holds values only.
type Snapshot struct {
	// Generation of the Application.
	Generation int64
	// Deleting tells that the Application is being deleted.
	Deleting bool
	// Paused tells that a person asked to leave the Deployment as it is; PauseMessage is about that annotation.
	Paused       bool
	PauseMessage string
	// Status is what the last reconciliation wrote.
	Status applicationv1.ApplicationStatus
	// Refused says what is wrong with the Application. Nothing below is set then.
	Refused field.ErrorList
	// Desired is the Deployment that the template asks for.
	Desired *unstructured.Unstructured
	// Deployment is the one there is, nil when there is none of ours.
	Deployment *appsv1.Deployment
	// Differs tells that the Deployment is not as the template says: it is missing,
	// the template is new, or someone changed a field that the template sets.
	Differs bool
	// Lagging tells that the cache may not show yet what was applied last.
	Lagging bool
	// Behind reports whether Deployment is as it was before it was applied the last time.
	Behind bool
	// Foreign says who is in the way: a Deployment that matches the selector, or has
	// the name, and does not belong to the Application. Looked for only when there is
	// no Deployment of ours.
	Foreign string
}

// digest identifies what there was to look at: the generation of the Application,
// and of the Deployment what its controller reports. Two reconciliations that saw the same
// have the same digest.
func (s *Snapshot) digest() string {
	seen := struct {
		Generation           int64
		Deleting             bool
		Paused               bool `json:",omitempty"` // so that the digests of others are those of before
		Foreign              string
		UID                  types.UID
		DeploymentGeneration int64
		DeploymentStatus     appsv1.DeploymentStatus
	}{Generation: s.Generation, Deleting: s.Deleting, Paused: s.Paused, Foreign: s.Foreign}
	if s.Deployment != nil {
		seen.UID, seen.DeploymentGeneration = s.Deployment.UID, s.Deployment.Generation
		seen.DeploymentStatus = s.Deployment.Status
		seen.DeploymentStatus.Conditions = nil // their times move without anything new
	}
	encoded, err := json.Marshal(seen)
	if err != nil {
		return "" // cannot happen: plain values
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:8])
}

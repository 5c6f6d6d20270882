// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpgradeStatus is how a change that only the operator made (another version of it, another default image) reaches the cluster.
type UpgradeStatus struct {
	// applied identifies what the instances were made by: of the operator, its pod template, the spec and the ConfigMap. A change of the
	// first two alone waits for its turn.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=261,displayName="Applied",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Applied string `json:"applied,omitempty"`

	// target identifies the operator by which the cluster last had its turn. It is absent when it had none.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=262,displayName="Target",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Target string `json:"target,omitempty"`

	// wave is the number of the wave that the cluster went with: 1 are the canaries.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=263,displayName="Wave",xDescriptors={"urn:alm:descriptor:text"}
	Wave int32 `json:"wave,omitempty"`

	// turnTime is when the turn of the cluster came.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=264,displayName="Turn",xDescriptors={"urn:alm:descriptor:text"}
	TurnTime *metav1.Time `json:"turnTime,omitempty"`
}

// ConditionUpgraded is True when the instances are as this operator makes them. It is absent where clusters are not upgraded in waves.
const ConditionUpgraded = "Upgraded"

// The reasons of ConditionUpgraded.
const (
	// ReasonUpgradeWaits: other clusters are upgraded before.
	ReasonUpgradeWaits = "WaitsForTurn"
	// ReasonUpgradeStopped: one that was upgraded is not well, and no other is before it is.
	ReasonUpgradeStopped = "UpgradeStopped"
	// ReasonUpgradeUnderWay: the turn of the cluster has come.
	ReasonUpgradeUnderWay = "Upgrading"
	// ReasonUpgradeDone: it is True.
	ReasonUpgradeDone = "UpToDate"
)

// Applied is what UpgradeStatus.Applied says.
type Applied struct {
	// Revision identifies what of the operator the pod template depends on, Template that template; empty: not known.
	Revision, Template string
	// Generation is that of the object, Config identifies the user's ConfigMap; empty: there is none.
	Generation int64
	Config     string
}

func (a Applied) String() string {
	return fmt.Sprintf("%s.%s.%d.%s", a.Revision, a.Template, a.Generation, a.Config)
}

// Made is what the instances were made by; false: that is not known.
func (u *UpgradeStatus) Made() (Applied, bool) {
	if u == nil {
		return Applied{}, false
	}
	parts := strings.Split(u.Applied, ".")
	if len(parts) != 4 {
		return Applied{}, false
	}
	generation, err := strconv.ParseInt(parts[2], 10, 64)
	return Applied{Revision: parts[0], Template: parts[1], Generation: generation, Config: parts[3]}, err == nil
}

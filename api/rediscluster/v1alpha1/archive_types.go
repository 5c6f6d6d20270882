// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of Archive. The schema markers below repeat them.
const (
	DefaultArchiveInterval     = 5 * time.Second
	DefaultArchiveMarkInterval = time.Minute
	DefaultArchiveBaseInterval = 24 * time.Hour
	DefaultArchiveKeep         = 7 * 24 * time.Hour
	DefaultArchiveObjective    = time.Minute
)

// LabelArchive on a pod is the name of the RedisCluster whose archive it writes.
const LabelArchive = "redis.middleware.hc.cn/archive"

// ClusterBackup is what is kept of a RedisCluster in an object store.
//
// +kubebuilder:validation:XValidation:rule="has(self.archive)",message="say what is kept: set archive, or leave backup out",fieldPath=".archive"
type ClusterBackup struct {
	// store is where it is written. Secrets, a claim and a ServiceAccount that it names must carry the label
	// redis.middleware.hc.cn/backup: "true".
	//
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=161,displayName="Store"
	Store BackupStore `json:"store"`

	// recipients are age public keys (age1…). With any, what is written is encrypted for them before it leaves the
	// pod; whoever has one of their private keys can restore it.
	//
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Pattern=`^age1[02-9ac-hj-np-z]{58}$`
	// +listType=set
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=162,displayName="Recipients"
	Recipients []string `json:"recipients,omitempty"`

	// maxBytesPerSecond is how much is written to the store, and read back from it, in a second, of all shards together,
	// such as 50M. It must be more than what clients write. Default: no limit.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=164,displayName="Bytes Per Second",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	MaxBytesPerSecond ByteRate `json:"maxBytesPerSecond,omitempty"`

	// archive keeps all that is written, so that any moment can be restored. It begins when the cluster has formed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=163,displayName="Archive"
	Archive *Archive `json:"archive,omitempty"`
}

// Archive is how all that is written to a RedisCluster is kept.
//
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || !has(self.objective) || duration(self.objective) >= duration(self.interval) + duration(self.interval)",message="must be twice the interval at least: what is written waits for as long as that, and then for the store",fieldPath=".objective"
type Archive struct {
	// interval is how often what was written is put into the store. What came after is lost with the whole cluster.
	// Default: 5s.
	//
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('10m')",message="must be between 1s and 10m"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=164,displayName="Interval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Interval *metav1.Duration `json:"interval,omitempty"`

	// markInterval is how often writes are delayed for some milliseconds, so that a moment is one for all shards.
	// Default: 1m.
	//
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('24h')",message="must be between 5s and 24h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=165,displayName="Mark Interval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	MarkInterval *metav1.Duration `json:"markInterval,omitempty"`

	// baseInterval is how often all data is read anew. What was written since has to be carried out when a moment is
	// restored. Default: 24h.
	//
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m') && duration(self) <= duration('720h')",message="must be between 10m and 720h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=166,displayName="Base Interval",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	BaseInterval *metav1.Duration `json:"baseInterval,omitempty"`

	// keep is for how long a moment can be restored. What no later moment needs is deleted. Default: 168h, which is a week.
	//
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('87600h')",message="must be between 1h and 87600h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=167,displayName="Keep",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Keep *metav1.Duration `json:"keep,omitempty"`

	// objective is how much of what was written last may be lost with the whole cluster: the condition Archiving is
	// False while the archive is further behind. Default: 1m.
	//
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('24h')",message="must be between 5s and 24h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=168,displayName="Objective",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Objective *metav1.Duration `json:"objective,omitempty"`
}

// ArchiveStatus is the archive that is written of the cluster.
type ArchiveStatus struct {
	// name is that of the archive in the store, which no other RedisCluster shares, nor one that is made later under
	// the same name: what bootstrap.restore.location.name of another RedisCluster is, to restore it.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=211,displayName="Name",xDescriptors={"urn:alm:descriptor:text"}
	Name string `json:"name"`

	// location is where it lies in the store.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=212,displayName="Location",xDescriptors={"urn:alm:descriptor:text"}
	Location string `json:"location"`

	// firstMoment is the first moment that can be restored. It is absent until one can.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=213,displayName="First Moment",xDescriptors={"urn:alm:descriptor:text"}
	FirstMoment *metav1.Time `json:"firstMoment,omitempty"`

	// lastMoment is the last moment that is known to be restorable while the condition Archiving is not True. It is absent while that is
	// True: the last moment is then never older than the objective.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=214,displayName="Last Moment",xDescriptors={"urn:alm:descriptor:text"}
	LastMoment *metav1.Time `json:"lastMoment,omitempty"`
}

// Archive is how all that is written to the cluster is to be kept; nil: it is not.
func (c *RedisCluster) Archive() *Archive {
	if c.Spec.Backup == nil {
		return nil
	}
	return c.Spec.Backup.Archive
}

// ArchiveWorkload is the name of the Deployment that writes the archive.
func (c *RedisCluster) ArchiveWorkload() string { return c.Name + "-archive" }

// ArchiveLocation is where the archive lies. Its name is of this very RedisCluster, not of its name: one that is made again, or begins with
// what was archived, never writes there.
func (c *RedisCluster) ArchiveLocation() BackupLocation {
	const digits = 16
	sum := sha256.Sum256([]byte(c.UID))
	l := BackupLocation{Namespace: c.Namespace, Cluster: c.Name, Name: "archive-" + hex.EncodeToString(sum[:])[:digits]}
	if c.Spec.Backup != nil {
		l.Store = c.Spec.Backup.Store
	}
	return l
}

// ConditionArchiving is True while the archive of spec.backup is behind no further than its objective. It is absent when no archive is
// asked for.
const ConditionArchiving = "Archiving"

// Reasons of ConditionArchiving.
const (
	// ReasonArchiveWithin: it is True.
	ReasonArchiveWithin = "WithinObjective"
	// ReasonArchiveNotBegun: the cluster has not formed, or no moment can be restored yet.
	ReasonArchiveNotBegun = "NotBegun"
	// ReasonArchiveWithheld: the pod may not be given what it needs, such as a Secret.
	ReasonArchiveWithheld = "Withheld"
	// ReasonArchiveNotRunning: no pod writes it. The message says why.
	ReasonArchiveNotRunning = "NotRunning"
	// ReasonArchiveHibernated: no instance runs, and no pod writes it (spec.hibernate).
	ReasonArchiveHibernated = "Hibernated"
	// ReasonArchiveSlotsMove: while slots move there are no moments. The streams go on.
	ReasonArchiveSlotsMove = "SlotsMove"
	// ReasonArchiveBehind: the last moment is older than the objective. The message says what is waited for.
	ReasonArchiveBehind = "Behind"
)

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizerBackup is on a RedisBackup while its Job may run: slots stay until the last pod has ended. With the deletion policy Delete it
// stays on: what is in the store goes first.
const FinalizerBackup = "redis.middleware.hc.cn/backup"

// DefaultBackupTimeout is that of RedisBackupSpec. The schema marker below repeats it.
const DefaultBackupTimeout = 6 * time.Hour

// DefaultRegion is that of S3Store. The schema marker below repeats it.
const DefaultRegion = "us-east-1"

// BackupDeletionPolicy says what becomes of what is in the store when a RedisBackup is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type BackupDeletionPolicy string

// What becomes of what is in the store.
const (
	BackupRetain BackupDeletionPolicy = "Retain"
	BackupDelete BackupDeletionPolicy = "Delete"
)

// RedisBackupSpec is one backup of a RedisCluster. Only its deletionPolicy can be changed.
type RedisBackupSpec struct {
	// cluster is the name of the RedisCluster that is backed up, in the same namespace.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=10,displayName="Redis Cluster",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Cluster string `json:"cluster"`

	// store is where the backup is written.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=20,displayName="Store"
	Store BackupStore `json:"store"`

	// recipients are age public keys (age1…). With any, the backup is encrypted for them before it
	// leaves the pod that takes it; whoever has one of their private keys can restore it.
	//
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Pattern=`^age1[02-9ac-hj-np-z]{58}$`
	// +listType=set
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=30,displayName="Recipients"
	Recipients []string `json:"recipients,omitempty"`

	// timeout is how long after it was made the backup may be complete. Slots of the cluster do not
	// move while it is taken, so it has an end. Default: 6h.
	//
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be between 1m and 168h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=40,displayName="Timeout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// maxBytesPerSecond is how much is written to the store, and read back from it, in a second, of all shards together,
	// such as 50M. Default: no limit.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=45,displayName="Bytes Per Second",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	MaxBytesPerSecond ByteRate `json:"maxBytesPerSecond,omitempty"`

	// deletionPolicy is what becomes of what is in the store when this object is deleted: Retain leaves it there, Delete
	// deletes it first. It can be changed later. Default: Retain.
	//
	// +kubebuilder:default=Retain
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=50,displayName="Deletion Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete"}
	DeletionPolicy BackupDeletionPolicy `json:"deletionPolicy,omitempty"`
}

// BackupPhase is how far a backup has come.
//
// +kubebuilder:validation:Enum=Pending;Preparing;Running;Completed;Failed
type BackupPhase string

// The phases of a backup. The last two are final.
const (
	// BackupPending: something that the backup needs is not there, such as the cluster or a Secret.
	BackupPending BackupPhase = "Pending"
	// BackupPreparing: it waits for its turn, and for slots that move to have moved.
	BackupPreparing BackupPhase = "Preparing"
	BackupRunning   BackupPhase = "Running"
	BackupCompleted BackupPhase = "Completed"
	BackupFailed    BackupPhase = "Failed"
)

// Conditions of a backup.
const (
	// BackupConditionCompleted is True when all of the backup lies in the store and was read back from there.
	BackupConditionCompleted = "Completed"
	// BackupConditionFailed is True when the backup is not taken any more.
	BackupConditionFailed = "Failed"
)

// RedisBackupStatus is what became of a backup.
type RedisBackupStatus struct {
	// phase is how far the backup has come: Pending, Preparing, Running, Completed or Failed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=10,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase BackupPhase `json:"phase,omitempty"`

	// reason says why, or what is waited for.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=11,displayName="Reason",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase:reason"}
	Reason string `json:"reason,omitempty"`

	// location is where the backup lies in the store.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=12,displayName="Location",xDescriptors={"urn:alm:descriptor:text"}
	Location string `json:"location,omitempty"`

	// jobName is the Job that takes the backup; its pods' log has the details.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=13,displayName="Job",xDescriptors={"urn:alm:descriptor:io.kubernetes:Job"}
	JobName string `json:"jobName,omitempty"`

	// jobs is how many Jobs were made. One that has ended without a word is made again, twice at most.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=29,displayName="Jobs Made",xDescriptors={"urn:alm:descriptor:text"}
	Jobs int32 `json:"jobs,omitempty"`

	// progress is how far the backup is while it is being taken. It is absent otherwise, and while its pod cannot be asked.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=35,displayName="Progress"
	Progress *TransferProgress `json:"progress,omitempty"`

	// markedAt is the moment that the data is of.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=14,displayName="Data Of",xDescriptors={"urn:alm:descriptor:text"}
	MarkedAt *metav1.Time `json:"markedAt,omitempty"`

	// endedAt is when the backup was found complete, or failed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=15,displayName="Ended",xDescriptors={"urn:alm:descriptor:text"}
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// consistent reports whether the data of all shards is of one moment. Without, shards may differ by what
	// was written within skewMilliseconds.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=16,displayName="Consistent",xDescriptors={"urn:alm:descriptor:text"}
	Consistent *bool `json:"consistent,omitempty"`

	// pausedMilliseconds is for how long writes were delayed for that.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=17,displayName="Writes Delayed",xDescriptors={"urn:alm:descriptor:text"}
	PausedMilliseconds int64 `json:"pausedMilliseconds,omitempty"`

	// skewMilliseconds is how far the shards' moments are apart at most.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=18,displayName="Skew",xDescriptors={"urn:alm:descriptor:text"}
	SkewMilliseconds int64 `json:"skewMilliseconds,omitempty"`

	// engine is redis or valkey.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=19,displayName="Engine",xDescriptors={"urn:alm:descriptor:text"}
	Engine string `json:"engine,omitempty"`
	// version is the version of the engine.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=20,displayName="Version",xDescriptors={"urn:alm:descriptor:text"}
	Version string `json:"version,omitempty"`

	// bytes is the size of the data.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=21,displayName="Bytes of Data",xDescriptors={"urn:alm:descriptor:text"}
	Bytes int64 `json:"bytes,omitempty"`
	// storedBytes is what the backup takes in the store.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=22,displayName="Bytes Stored",xDescriptors={"urn:alm:descriptor:text"}
	StoredBytes int64 `json:"storedBytes,omitempty"`

	// keys are those of all shards at that moment. It is absent when they were not counted.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=31,displayName="Keys"
	Keys *KeyCount `json:"keys,omitempty"`

	// manifestChecksum is the checksum of manifest.json, in hex digits. The manifest has the checksums of all
	// else.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=23,displayName="Checksum",xDescriptors={"urn:alm:descriptor:text"}
	ManifestChecksum string `json:"manifestChecksum,omitempty"`

	// shardCount is the number of shards.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=24,displayName="Shards",xDescriptors={"urn:alm:descriptor:text"}
	ShardCount int32 `json:"shardCount,omitempty"`

	// shards are the parts of the backup, one of each master. They are left out where there are too many to be
	// told by a pod; the manifest has them all.
	//
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=25,displayName="Parts"
	Shards []BackupShard `json:"shards,omitempty"`

	// conditions: Completed, Failed.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=30,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// KeyCount is how many keys there are, and how many of them may go by themselves.
type KeyCount struct {
	// total is the number of keys.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=32,displayName="Keys",xDescriptors={"urn:alm:descriptor:text"}
	Total int64 `json:"total"`
	// withTTL is how many of them have a time to live.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=33,displayName="Keys That Expire",xDescriptors={"urn:alm:descriptor:text"}
	WithTTL int64 `json:"withTTL"`
	// withFieldTTL is how many of them are hashes with fields that have a time to live. A hash goes with the last of its fields.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=34,displayName="Hashes Whose Fields Expire",xDescriptors={"urn:alm:descriptor:text"}
	WithFieldTTL int64 `json:"withFieldTTL,omitempty"`
}

// BackupShard is one master's part of a backup.
type BackupShard struct {
	// slots that it owned, as ranges: 0-5460,6000.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=26,displayName="Slots",xDescriptors={"urn:alm:descriptor:text"}
	Slots string `json:"slots"`
	// bytes is the size of the data.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=27,displayName="Bytes of Data",xDescriptors={"urn:alm:descriptor:text"}
	Bytes int64 `json:"bytes"`
	// storedBytes is what the part takes in the store.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=28,displayName="Bytes Stored",xDescriptors={"urn:alm:descriptor:text"}
	StoredBytes int64 `json:"storedBytes"`
}

// RedisBackup is a backup of all shards of a RedisCluster, taken once, into an object store. Deleting it stops one that
// is being taken, and leaves in the store what is complete, unless spec.deletionPolicy is Delete.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=redisbackups,singular=redisbackup,shortName=reb,categories={middleware}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Percent",type=integer,JSONPath=`.status.progress.percent`
// +kubebuilder:printcolumn:name="Data Of",type=date,JSONPath=`.status.markedAt`
// +kubebuilder:printcolumn:name="Bytes",type=integer,JSONPath=`.status.bytes`
// +kubebuilder:printcolumn:name="Consistent",type=boolean,JSONPath=`.status.consistent`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`,priority=1
// +kubebuilder:printcolumn:name="Location",type=string,JSONPath=`.status.location`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 52",message="metadata.name must have at most 52 characters: it is part of the name of a Job"
// +operator-sdk:csv:customresourcedefinitions:order=6,displayName="Redis Backup",resources={{Job,v1},{Pod,v1},{Secret,v1},{Event,v1}}
type RedisBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the backup asked for. Only its deletionPolicy can be changed.
	//
	// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster && self.store == oldSelf.store && has(self.recipients) == has(oldSelf.recipients) && (!has(self.recipients) || self.recipients == oldSelf.recipients) && has(self.timeout) == has(oldSelf.timeout) && (!has(self.timeout) || duration(self.timeout) == duration(oldSelf.timeout)) && has(self.maxBytesPerSecond) == has(oldSelf.maxBytesPerSecond) && (!has(self.maxBytesPerSecond) || self.maxBytesPerSecond == oldSelf.maxBytesPerSecond)",message="a backup is taken once, and only deletionPolicy can be changed: make another RedisBackup"
	Spec RedisBackupSpec `json:"spec"`

	// status is what became of it.
	//
	// +optional
	Status RedisBackupStatus `json:"status,omitempty"`
}

// RedisBackupList is a list of RedisBackups.
//
// +kubebuilder:object:root=true
type RedisBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RedisBackup `json:"items"`
}

// JobName is the name of the Job that takes the backup.
func (b *RedisBackup) JobName() string { return b.Name + "-backup" }

// DeletionJobName is the name of the Job that deletes the backup from the store.
func (b *RedisBackup) DeletionJobName() string { return b.Name + "-delete" }

// Deletes reports whether what is in the store goes with the object.
func (b *RedisBackup) Deletes() bool { return b.Spec.DeletionPolicy == BackupDelete }

// Active reports whether slots of the cluster are to stay where they are for the backup, also while it is being deleted and its pod ends.
func (b *RedisBackup) Active() bool {
	gone := b.DeletionTimestamp != nil && !slices.Contains(b.Finalizers, FinalizerBackup)
	return !gone && (b.Status.Phase == BackupPreparing || b.Status.Phase == BackupRunning)
}

// Ended reports whether the backup is complete, or never will be.
func (b *RedisBackup) Ended() bool {
	return b.Status.Phase == BackupCompleted || b.Status.Phase == BackupFailed
}

// Deadline is when the backup has to be complete.
func (b *RedisBackup) Deadline() time.Time {
	timeout := DefaultBackupTimeout
	if b.Spec.Timeout != nil {
		timeout = b.Spec.Timeout.Duration
	}
	return b.CreationTimestamp.Add(timeout)
}

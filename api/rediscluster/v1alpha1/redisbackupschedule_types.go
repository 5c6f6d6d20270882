// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of the RedisBackups that a schedule makes. The second one counts: a schedule that is made again under the name of one that is gone
// is another one.
const (
	LabelSchedule    = "redis.middleware.hc.cn/schedule"
	LabelScheduleUID = "redis.middleware.hc.cn/schedule-uid"
)

// RedisBackupScheduleSpec says when backups of a RedisCluster are taken, where they are written and which of them are kept.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retention) || has(self.retention.keepLast) || has(self.retention.keepFor)",message="say which backups are kept: set keepLast, keepFor or both",fieldPath=".retention"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || (has(self.recipients) && size(self.recipients) > 0) == has(self.verify.identitySecretName)",message="with recipients, set verify.identitySecretName, which decrypts the backups; without, leave it out",fieldPath=".verify"
type RedisBackupScheduleSpec struct {
	// schedule is when backups are taken: five cron fields (minute, hour, day of month, month, day of week), or one of
	// @hourly, @daily, @weekly, @monthly.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(@(hourly|daily|weekly|monthly)|[0-9A-Za-z*/,?-]+( +[0-9A-Za-z*/,?-]+){4})$')`,message="must have five fields (minute hour day-of-month month day-of-week), such as \"30 2 * * *\", or be one of @hourly, @daily, @weekly, @monthly"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=10,displayName="Schedule",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Schedule string `json:"schedule"`

	// timeZone is the IANA name of the time zone of the schedule, such as Asia/Shanghai. Default: Etc/UTC.
	//
	// +kubebuilder:default=Etc/UTC
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`
	// +kubebuilder:validation:XValidation:rule="self != 'Local'",message="is not a time zone: write an IANA name, such as Asia/Shanghai or Etc/UTC"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=11,displayName="Time Zone",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	TimeZone string `json:"timeZone,omitempty"`

	// suspend stops further backups while it is true. One that is being taken goes on. What would have been taken meanwhile is
	// not made up for. Default: false.
	//
	// +kubebuilder:default=false
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=12,displayName="Suspend",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Suspend bool `json:"suspend,omitempty"`

	// jitter is how much later than the schedule says a backup may begin: by a share of it that differs from schedule to
	// schedule and from time to time. Never so late that the next one is due. Default: 0s.
	//
	// +kubebuilder:default="0s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be between 0s and 1h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=13,displayName="Jitter",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Jitter *metav1.Duration `json:"jitter,omitempty"`

	// cluster is the name of the RedisCluster that is backed up, in the same namespace.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=14,displayName="Redis Cluster",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Cluster string `json:"cluster"`

	// store is where backups are written.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=20,displayName="Store"
	Store BackupStore `json:"store"`

	// recipients are age public keys (age1…) that backups are encrypted for.
	//
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Pattern=`^age1[02-9ac-hj-np-z]{58}$`
	// +listType=set
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=30,displayName="Recipients"
	Recipients []string `json:"recipients,omitempty"`

	// timeout is how long after it was made a backup may be complete. Default: 6h.
	//
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be between 1m and 168h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=40,displayName="Timeout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// maxBytesPerSecond is how much a backup writes to the store, and reads back from it, in a second, of all shards
	// together, such as 50M. Restoring one to verify it keeps to the same. Default: no limit.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=45,displayName="Bytes Per Second",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	MaxBytesPerSecond ByteRate `json:"maxBytesPerSecond,omitempty"`

	// retention says which backups are kept. Those that are not are deleted, with what is in the store. Without it, all are
	// kept.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=50,displayName="Retention"
	Retention *BackupRetention `json:"retention,omitempty"`

	// verify has the newest complete backup restored every so often, into a RedisCluster that is made for that and deleted
	// afterwards. The condition Verified says what became of it.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=60,displayName="Verification"
	Verify *BackupVerification `json:"verify,omitempty"`
}

// BackupRetention says which of the complete backups of a schedule are kept: those that any of its fields keeps, and always the newest.
type BackupRetention struct {
	// keepLast is how many are kept, counted from the newest.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=51,displayName="Keep Last",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	KeepLast *int32 `json:"keepLast,omitempty"`

	// keepFor keeps those that are older than the newest by no more than this.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('87600h')",message="must be between 1m and 87600h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=52,displayName="Keep For",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	KeepFor *metav1.Duration `json:"keepFor,omitempty"`
}

// Conditions of a schedule.
const (
	// ScheduleConditionScheduled is True when backups are made as the spec says.
	ScheduleConditionScheduled = "Scheduled"
	// ScheduleConditionBackedUp is True when the latest backup that came to an end is complete, and Unknown when there is none.
	ScheduleConditionBackedUp = "BackedUp"
	// ScheduleConditionVerified is True when the backup that was restored last has all of its keys, False when it could not be restored
	// or lacks some, and Unknown when that could not be found out. It is absent without spec.verify.
	ScheduleConditionVerified = "Verified"
)

// Reasons of Scheduled. With the latter two the condition is True: one time was left out.
const (
	ScheduleFollowed        = "Followed"
	ScheduleSuspended       = "Suspended"
	ScheduleInvalid         = "InvalidSchedule"
	ScheduleInvalidTimeZone = "InvalidTimeZone"
	ScheduleNoCluster       = "ClusterNotFound"
	ScheduleNotMade         = "BackupNotMade"
	ScheduleSkippedActive   = "FormerStillTaken"
	ScheduleSkippedTaken    = "NameTaken"
	ScheduleSkippedAsleep   = "ClusterHibernated"
)

// Reasons of BackedUp.
const (
	ScheduleNoBackup       = "NoBackup"
	ScheduleBackupComplete = "BackupComplete"
	ScheduleBackupFailed   = "BackupFailed"
)

// RedisBackupScheduleStatus is what became of a schedule.
type RedisBackupScheduleStatus struct {
	// lastScheduleTime is the latest time of the schedule for which a backup was made, or left out.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=10,displayName="Last Time",xDescriptors={"urn:alm:descriptor:text"}
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`

	// nextScheduleTime is when the next backup begins, jitter included.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=11,displayName="Next Time",xDescriptors={"urn:alm:descriptor:text"}
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`

	// lastSuccessfulBackup is the newest complete backup that there is.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=12,displayName="Newest Backup"
	LastSuccessfulBackup *ScheduledBackup `json:"lastSuccessfulBackup,omitempty"`

	// active is the RedisBackup that is being taken.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=13,displayName="Being Taken",xDescriptors={"urn:alm:descriptor:text"}
	Active string `json:"active,omitempty"`

	// backups is how many complete backups there are.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=14,displayName="Backups",xDescriptors={"urn:alm:descriptor:text"}
	Backups int32 `json:"backups,omitempty"`

	// lastVerificationTime is until when the times of spec.verify.schedule are dealt with.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=30,displayName="Last Verification Time",xDescriptors={"urn:alm:descriptor:text"}
	LastVerificationTime *metav1.Time `json:"lastVerificationTime,omitempty"`

	// nextVerificationTime is when a backup is verified next.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=31,displayName="Next Verification",xDescriptors={"urn:alm:descriptor:text"}
	NextVerificationTime *metav1.Time `json:"nextVerificationTime,omitempty"`

	// verification is the one that is under way. It is absent when none is.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=32,displayName="Verification"
	Verification *VerificationStatus `json:"verification,omitempty"`

	// lastVerified is the backup that was verified last.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=37,displayName="Last Verified"
	LastVerified *VerifiedBackup `json:"lastVerified,omitempty"`

	// conditions: Scheduled, BackedUp, Verified.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=20,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ScheduledBackup is a backup and the moment that it is of.
type ScheduledBackup struct {
	// name of the RedisBackup.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=15,displayName="Name",xDescriptors={"urn:alm:descriptor:text"}
	Name string `json:"name"`
	// time is the moment that the data is of.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=16,displayName="Data Of",xDescriptors={"urn:alm:descriptor:text"}
	Time metav1.Time `json:"time"`
}

// RedisBackupSchedule makes RedisBackups of a RedisCluster at given times, one at a time, and deletes those that are not to be
// kept. Deleting it leaves its backups alone.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=redisbackupschedules,singular=redisbackupschedule,shortName=rebs,categories={middleware}
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Last Success",type=date,JSONPath=`.status.lastSuccessfulBackup.time`
// +kubebuilder:printcolumn:name="Verified",type=date,JSONPath=`.status.lastVerified.time`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="Scheduled")].message`,priority=1
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 39",message="metadata.name must have at most 39 characters: with a time it is the name of a RedisBackup"
// +operator-sdk:csv:customresourcedefinitions:order=7,displayName="Redis Backup Schedule",resources={{RedisBackup,v1alpha1},{RedisCluster,v1alpha1},{Event,v1}}
type RedisBackupSchedule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is when backups are taken, of what and where to, which are kept, and when one is restored to see that it can be.
	Spec RedisBackupScheduleSpec `json:"spec"`

	// status is what became of it.
	//
	// +optional
	Status RedisBackupScheduleStatus `json:"status,omitempty"`
}

// RedisBackupScheduleList is a list of RedisBackupSchedules.
//
// +kubebuilder:object:root=true
type RedisBackupScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RedisBackupSchedule `json:"items"`
}

// BackupName is the name of the RedisBackup of a time of the schedule. It is made once for each.
func (s *RedisBackupSchedule) BackupName(at time.Time) string {
	return s.Name + "-" + at.UTC().Format("200601021504")
}

// Made reports whether the schedule made a RedisBackup, by its labels.
func (s *RedisBackupSchedule) Made(b *RedisBackup) bool {
	return b.Namespace == s.Namespace && s.UID != "" && b.Labels[LabelScheduleUID] == string(s.UID)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupVerification says when a backup is restored to see that it can be.
type BackupVerification struct {
	// schedule is when: five cron fields (minute, hour, day of month, month, day of week) in spec.timeZone, or one of
	// @hourly, @daily, @weekly, @monthly.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(@(hourly|daily|weekly|monthly)|[0-9A-Za-z*/,?-]+( +[0-9A-Za-z*/,?-]+){4})$')`,message="must have five fields (minute hour day-of-month month day-of-week), such as \"0 4 * * 0\", or be one of @hourly, @daily, @weekly, @monthly"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=61,displayName="Schedule",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Schedule string `json:"schedule"`

	// identitySecretName is a Secret of the namespace with the age private keys (AGE-SECRET-KEY-1…) that decrypt
	// the backups, a line each, under the key identity. It must carry the label
	// redis.middleware.hc.cn/restore: "true". Required with recipients, and refused without.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=62,displayName="Private Key",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	IdentitySecretName string `json:"identitySecretName,omitempty"`

	// timeout is how long a verification may take. Default: 6h.
	//
	// +kubebuilder:default="6h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be between 1m and 168h"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=63,displayName="Timeout",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// Reasons of Verified. With the first the condition is True, with the next three False, with the others Unknown.
const (
	ScheduleVerified           = "BackupVerified"
	ScheduleKeysDiffer         = "KeysDiffer"
	ScheduleCannotRestore      = "CannotRestore"
	ScheduleVerifyTimedOut     = "TimedOut"
	ScheduleNotVerified        = "NotVerified"
	ScheduleNotCounted         = "NotCounted"
	ScheduleNoTemplate         = "NoTemplate"
	ScheduleVerifyInterrupted  = "Interrupted"
	ScheduleVerifyInvalid      = ScheduleInvalid
	ScheduleVerifyNoBackup     = ScheduleNoBackup
	ScheduleVerifyNoCluster    = ScheduleNoCluster
	ScheduleVerifySkippedTaken = ScheduleSkippedTaken
)

// VerificationStatus is how far a verification has come.
type VerificationStatus struct {
	// backup is the RedisBackup that is restored.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=33,displayName="Backup",xDescriptors={"urn:alm:descriptor:text"}
	Backup string `json:"backup"`
	// cluster is the RedisCluster that it is restored into, and that is deleted afterwards.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=34,displayName="Redis Cluster",xDescriptors={"urn:alm:descriptor:text"}
	Cluster string `json:"cluster"`
	// startedAt is when it began.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=35,displayName="Started",xDescriptors={"urn:alm:descriptor:text"}
	StartedAt metav1.Time `json:"startedAt"`
	// message says what the RedisCluster says of itself.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=36,displayName="Message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message,omitempty"`
}

// VerifiedBackup is a backup that was restored, and had all of its keys.
type VerifiedBackup struct {
	// backup is the name of the RedisBackup.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=38,displayName="Backup",xDescriptors={"urn:alm:descriptor:text"}
	Backup string `json:"backup"`
	// time is when that was found.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=39,displayName="Verified At",xDescriptors={"urn:alm:descriptor:text"}
	Time metav1.Time `json:"time"`
	// keys is how many there were once it was restored.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=40,displayName="Keys",xDescriptors={"urn:alm:descriptor:text"}
	Keys int64 `json:"keys"`
}

// DefaultVerificationTimeout is that of BackupVerification. The schema marker above repeats it.
const DefaultVerificationTimeout = 6 * time.Hour

// The rules of the API server for names of RedisClusters.
const longestClusterName = 40

var clusterNameForm = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// ThrowawayName is the name of the RedisCluster that backups are restored into to verify them: NAME-verify, or one that follows from the
// name where that is no name of a RedisCluster.
func (s *RedisBackupSchedule) ThrowawayName() string {
	const digest = 8
	if name := s.Name + "-verify"; len(name) <= longestClusterName && clusterNameForm.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(s.Name))
	return "verify-" + hex.EncodeToString(sum[:digest])
}

// Throwaway reports whether a RedisCluster was made to verify backups of the schedule: its labels say so, and the schedule controls it.
func (s *RedisBackupSchedule) Throwaway(c *RedisCluster) bool {
	return c != nil && c.Namespace == s.Namespace && s.UID != "" && c.Labels[LabelScheduleUID] == string(s.UID) && metav1.IsControlledBy(c, s)
}

// VerificationDeadline is when a verification that is under way has to be over; zero: none is.
func (s *RedisBackupSchedule) VerificationDeadline() time.Time {
	if s.Spec.Verify == nil || s.Status.Verification == nil {
		return time.Time{}
	}
	timeout := DefaultVerificationTimeout
	if s.Spec.Verify.Timeout != nil {
		timeout = s.Spec.Verify.Timeout.Duration
	}
	return s.Status.Verification.StartedAt.Add(timeout)
}

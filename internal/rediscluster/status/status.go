// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status computes the status of a RedisCluster from what a reconciliation saw, decided and
// came to. It is pure.
package status

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/anomaly"
	"middleware.hc.cn/operator/internal/rediscluster/balance"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Reconciliation is what one reconciliation came to.
type Reconciliation struct {
	Snapshot *snapshot.Snapshot
	Decision plan.Decision
	// Err is why the step could not be carried out; nil when it was.
	Err error
	// KeysMoved is how many keys went from one master to another in this reconciliation.
	KeysMoved int64
	// ClusterDomain is the DNS domain of the Kubernetes cluster; empty when it is not known.
	ClusterDomain string
	// Refusals are settings that instances refused in this reconciliation.
	Refusals []snapshot.Refusal
	// ArchiveWithheld says why the Deployment that writes the archive stays as it is; empty: it is not held back.
	ArchiveWithheld string
	// KeepsCertificate reports whether there is a Certificate of cert-manager, or is to be.
	KeepsCertificate bool
	// CertificateUnread says why it is not known whether the Certificate is as it is to be; empty: it is.
	CertificateUnread string
	// Outside is what is known of what clients outside are led by.
	Outside Outside
	// Anomalies are what is not healthy, FewLooks that too little was seen yet to say that there are no others.
	Anomalies []anomaly.Anomaly
	FewLooks  bool
	// Autoscaling is how the number of shards follows the load; nil: it does not, or what the spec says of it is not valid.
	Autoscaling *Autoscaling
	// Upgrade is what this operator makes the instances by; nil: clusters are not upgraded in waves, or that is not known.
	Upgrade *Upgrade
	// Balancing is how evenly shards bear the load; nil without spec.balance.
	Balancing *balance.Outcome
}

// Outside is what clients outside are led by.
type Outside struct {
	// Known reports whether the rest is: nothing is rendered while the spec is not valid.
	Known bool
	// Address is what they are given, Map identifies whom they are led to; empty: it is not known.
	Address, Map string
	// Refused says why what is made for clients outside is not as it is rendered; empty: it is, or was not tried.
	Refused string
	// Withheld says why the Deployment of gateways stays as it is; empty: it is not held back.
	Withheld string
}

// timeUnit is how exact the API's times are.
const timeUnit = time.Second

// Compute returns the status of the cluster after a reconciliation.
func Compute(cluster *v1alpha1.RedisCluster, p Reconciliation, now time.Time) v1alpha1.RedisClusterStatus {
	s, d := p.Snapshot, p.Decision
	status := *cluster.Status.DeepCopy()
	status.ObservedGeneration = cluster.Generation
	status.Replicas = int32(len(s.Instances)) //nolint:gosec // at most 1000 instances
	status.Selector = labels.Set{v1alpha1.LabelCluster: cluster.Name}.String()
	status.Shards = int32(len(s.Masters())) //nolint:gosec // at most 500 shards
	status.Slots = int32(s.Owned().Len())   //nolint:gosec // at most 16384
	status.Instances = fmt.Sprintf("%d/%d", ReadyInstances(s), d.Topology.Instances())
	status.Phase = phase(p)
	status.Reason = reason(p)
	status.Plan = planStatus(p)
	status.Rollout = rollout(cluster, d.Rollout, now)
	status.Migration = migration(cluster.Status.Migration, p, now)
	status.Settings, status.RefusedSettings = settingsOf(d), refusals(p)
	status.DataVolumes, status.PlacedOn, status.SlotsAssigned = d.DataVolumes, d.PlacedOn, d.SlotsAssigned
	status.Restored = restored(p)
	status.Restoring = restoring(p)
	status.Import = importing(cluster, p, now)
	status.HeldForBackup = heldForBackup(cluster.Status.HeldForBackup, s)
	status.Nodes = nodes(cluster.Status.Nodes, p, now)
	status.TargetVersion = targetVersion(cluster, s)
	status.CurrentVersion, status.Engine = oldestVersion(s)
	status.SecretName = ""
	if cluster.AuthEnabled() {
		status.SecretName = cluster.AuthSecretName()
	}
	status.PasswordChange = passwordChange(s, d, cluster.PreviousPasswordFor())
	status.CertificateNotAfter = notAfter(s)
	if status.Certificate = ""; p.KeepsCertificate {
		status.Certificate = cluster.CertificateName()
	}
	status.TLS = tlsInForce(cluster.Status.TLS, p)
	status.Conditions =
		conditions.Set(status.Conditions, now, cluster.Generation, append(conditionsOf(p),
			mastersSpread(cluster.Status.Conditions, d), anomalous(cluster.Status.Conditions, p))...)
	archive(cluster, &status, p, now)
	external(cluster, &status, p, now)
	hibernated(cluster, &status, p, now)
	fenced(cluster, &status, p, now)
	autoscaled(cluster, &status, p, now)
	upgraded(cluster, &status, p, now)
	status.Balance = balanced(cluster, p, now)
	return status
}

// heldForBackup is the backup that may begin: slots have one owner, none of them moves, and no scaling has begun. None begins as long as
// the snapshot has the backup (plan.NoBackup), and so its turn lasts until it has ended.
func heldForBackup(held types.UID, s *snapshot.Snapshot) types.UID {
	if held != "" && held == types.UID(s.Backup.UID) {
		return held
	}
	if s.Goal != nil || s.Owned().Len() != slots.Count {
		return ""
	}
	for _, pod := range s.Reachable() {
		if len(pod.Redis.Migrating)+len(pod.Redis.Importing)+len(pod.Redis.Jobs) > 0 {
			return ""
		}
	}
	return types.UID(s.Backup.UID)
}

// restored is what the cluster began with, from when its claims stay, and how many keys that was once they are counted.
func restored(p Reconciliation) *v1alpha1.RestoredData {
	if step, keeps := p.Decision.Step.(plan.KeepRestored); keeps && p.Err == nil {
		return step.Restored.DeepCopy()
	}
	if step, counted := p.Decision.Step.(plan.RecordKeys); counted {
		is := p.Snapshot.Restored.DeepCopy()
		is.Keys = step.Keys.DeepCopy()
		return is
	}
	return p.Snapshot.Restored
}

func phase(p Reconciliation) v1alpha1.Phase {
	switch p.Decision.Situation {
	case plan.Absent:
		if _, making := needed(p.Decision.Step).(plan.ApplyChildren); !making {
			return v1alpha1.PhaseNone
		}
		return v1alpha1.PhaseCreating
	case plan.Forming:
		return v1alpha1.PhaseCreating
	case plan.Steady:
		return v1alpha1.PhaseRunning
	case plan.Healing:
		if covered(p.Snapshot) {
			return v1alpha1.PhaseRunning
		}
		return v1alpha1.PhaseFailed
	case plan.ScalingOut, plan.ScalingIn:
		return v1alpha1.PhaseScaling
	case plan.RollingOut:
		return v1alpha1.PhaseUpgrading
	case plan.Hibernating:
		return v1alpha1.PhaseHibernating
	case plan.Hibernated:
		return v1alpha1.PhaseHibernated
	case plan.Waking:
		return v1alpha1.PhaseWaking
	case plan.Paused:
		return v1alpha1.PhasePaused
	case plan.Deleting:
		return v1alpha1.PhaseDeleting
	case plan.Failed:
		return v1alpha1.PhaseFailed
	}
	return v1alpha1.PhaseNone
}

// reason is what the status, its conditions and the events say.
func reason(p Reconciliation) string { return cut(why(p)) }

func why(p Reconciliation) string {
	switch {
	case p.Err != nil:
		return p.Err.Error()
	case p.Decision.Stalled != nil:
		return p.Decision.Stalled.Why()
	}
	if _, steady := p.Decision.Step.(plan.None); steady {
		return settingProblems(p.Decision)
	}
	if p.Decision.Overdue != "" {
		return p.Decision.Overdue + ": " + p.Decision.Step.Why()
	}
	return p.Decision.Step.Why()
}

func planStatus(p Reconciliation) *v1alpha1.PlanStatus {
	step := needed(p.Decision.Step)
	status := &v1alpha1.PlanStatus{Step: step.Name(), Reason: cut(step.Why()), Moves: moves(p.Decision.Moves),
		Settings: settingChanges(p.Decision)}
	wait, waits := step.(plan.Wait)
	stall, stalls := step.(plan.Stall)
	switch {
	case waits:
		status.BlockedBy = string(wait.BlockedBy)
	case stalls:
		status.BlockedBy = string(stall.BlockedBy)
	case p.Decision.Stalled != nil:
		status.BlockedBy = string(p.Decision.Stalled.BlockedBy) // the step is about something else
	}
	return status
}

// needed is the step that the cluster needs, also while it is paused, or refused.
func needed(step plan.Step) plan.Step {
	if hold, paused := step.(plan.Hold); paused {
		step = hold.Next
	}
	if stall, stalls := step.(plan.Stall); stalls && stall.Refused != nil {
		return stall.Refused
	}
	return step
}

func conditionsOf(p Reconciliation) []metav1.Condition {
	s, d := p.Snapshot, p.Decision
	step := needed(d.Step)
	why := reason(p)
	steady := plan.Is[plan.None](step) && p.Err == nil
	stalled, stallCause := stall(p)
	rolling := d.Situation == plan.RollingOut
	serving := steady && d.Situation != plan.ScalingOut ||
		d.Healthy && plan.IsByLoad(d.Goal) ||
		d.Healthy && !scaling(d) && (d.Rollout != nil || plan.Is[plan.ExpandPVCs](step) || outdated(step))
	if serving {
		why = "every instance serves, every slot is covered and every replica is in sync"
	}
	degraded := s.Formed && !serving && !d.Healthy && !scaling(d) && !rolling && !dormant(p)
	isCovered := covered(s)
	formed := s.Formed || steady
	set := []metav1.Condition{
		conditions.Condition(v1alpha1.ConditionReady, conditions.Status(serving), readyReason(p, serving), why),
		conditions.Condition(v1alpha1.ConditionSlotsCovered, conditions.Status(isCovered), pick(isCovered, "AllCovered", "NotCovered"),
			fmt.Sprintf("%d of %d slots are owned by masters that answer", s.Owned().Len(), slots.Count)),
		conditions.Condition(v1alpha1.ConditionFormed, conditions.Status(formed), pick(formed, "Formed", "NotFormed"), ""),
		conditions.Condition(v1alpha1.ConditionStalled, conditions.Status(stalled), stallCause, pick(stalled, reason(p), "")),
		conditions.Condition(v1alpha1.ConditionDegraded, conditions.Status(degraded), pick(degraded, "Unhealthy", "Healthy"),
			pick(degraded, why, "")),
		progressing(p, steady || plan.Is[plan.Sleep](step) || plan.Is[plan.TakeTurn](step) || stalled && atRest(p)),
		accessApplied(s),
		configured(p),
	}
	if s.TLS.Enabled {
		set = append(set, certificateInUse(s, p.CertificateUnread))
	}
	if d.TLS.Mode != "" {
		set = append(set, tlsModeInForce(d))
	}
	return set
}

// atRest reports whether what stalls is all that there is to do.
func atRest(p Reconciliation) bool {
	_, waits := p.Decision.Step.(plan.Stall)
	return waits
}

func progressing(p Reconciliation, atRest bool) metav1.Condition {
	switch {
	case p.Decision.Situation == plan.Paused:
		return conditions.Condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Paused", cut(p.Decision.Step.Why()))
	case atRest:
		return conditions.Condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, "AtRest", "")
	case p.Decision.Overdue != "":
		return conditions.Condition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonTimedOut, reason(p))
	}
	name := p.Decision.Step.Name()
	if p.Decision.Situation == plan.RollingOut {
		name = v1alpha1.ReasonRollout
	}
	return conditions.Condition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, name, cut(p.Decision.Step.Why()))
}

// outdated reports whether nothing is wrong but that instances run an older template, or let in
// whom they were told before, or that what an import left or a request is there, or that something
// waits for an instance that a person fenced, and that changing that is somebody's, the operator's
// or the user's, next step.
func outdated(step plan.Step) bool {
	if wait, waits := step.(plan.Wait); waits &&
		(wait.BlockedBy == plan.PortsKnown || wait.BlockedBy == plan.NotFenced || wait.Requested) {
		return true
	}
	return plan.Is[plan.SetTLS](step) || plan.Is[plan.RolloutWait](step) || plan.Is[plan.Restart](step) || plan.Is[plan.SetAccess](step) ||
		plan.Is[plan.ChangePassword](step) || plan.Is[plan.SetConfig](step) || plan.Is[plan.EndImport](step) ||
		plan.Is[plan.EndSwitchover](step) || plan.Is[plan.SetShards](step) || plan.Is[plan.TakeTurn](step) ||
		plan.Is[plan.RecordCertificate](step) || plan.Is[plan.ApplyCertificate](step)
}

func stall(p Reconciliation) (bool, string) {
	if s := p.Decision.Stalled; s != nil {
		return true, s.Cause
	}
	if _, atRest := p.Decision.Step.(plan.None); atRest && len(p.Decision.SettingProblems) > 0 {
		return true, "SettingRefused"
	}
	return false, "NotStalled"
}

func readyReason(p Reconciliation, serving bool) string {
	if serving {
		return "Serving"
	}
	if stalled, cause := stall(p); stalled && p.Decision.Situation != plan.Hibernated {
		return cause
	}
	return string(p.Decision.Situation)
}

func covered(s *snapshot.Snapshot) bool { return s.Owned().Len() == slots.Count }

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

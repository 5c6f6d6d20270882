// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// archived is a cluster of which an archive is asked for.
func archived() *v1alpha1.RedisCluster {
	c := cluster()
	c.Spec.Backup = &v1alpha1.ClusterBackup{Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "b"}}, Archive: &v1alpha1.Archive{}}
	return c
}

func TestArchiving(t *testing.T) {
	at := now.Add(-time.Hour)
	said := func(behind time.Duration, waits report.Wait) *report.Archive {
		return &report.Archive{First: at.Add(time.Millisecond), Last: now.Add(-behind - time.Millisecond), Behind: behind.Seconds(),
			Objective: 60, Waits: waits}
	}
	const last = "; the last moment that is known to be restorable is "
	since := func(behind time.Duration) string {
		return last + now.Add(-behind-time.Second).UTC().Format(time.RFC3339)
	}
	moving := healthy()
	moving.Instances[0].Redis.Jobs = []snapshot.Job{{}}
	forming := healthy()
	forming.Formed = false
	for name, tt := range map[string]struct {
		archive  snapshot.Archive
		on       *snapshot.Snapshot
		withheld string
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		"its kubelet finds it ready": {archive: snapshot.Archive{Pod: "p", Ready: true}, status: "True", reason: "WithinObjective"},
		"it says so": {archive: snapshot.Archive{Pod: "p", Said: said(10*time.Second, ""), SaidAt: now}, status: "True",
			reason: "WithinObjective"},
		"its pod is being replaced": {archive: snapshot.Archive{Pod: "p", Waiting: "starting", Said: said(0, ""), SaidAt: now.Add(-time.Minute)},
			status: "True", reason: "WithinObjective"},
		"a change of it is withheld": {archive: snapshot.Archive{Pod: "p", Ready: true}, withheld: "no label", status: "True",
			reason: "WithinObjective", message: "it goes on as it was: no label"},
		"it is silent": {archive: snapshot.Archive{Pod: "p", Waiting: "starting", Said: said(2*time.Second, ""), SaidAt: now.Add(-time.Minute)},
			status: "False", reason: "NotRunning", message: "pod p: starting" + since(2*time.Second)},
		"the cluster forms": {on: forming, status: "False", reason: "NotBegun", message: "the archive begins when the cluster has formed"},
		"withheld":          {withheld: "no label", status: "False", reason: "Withheld", message: "no label"},
		"no pod":            {status: "False", reason: "NotRunning", message: "no pod writes the archive"},
		"it crashes": {archive: snapshot.Archive{Pod: "p", Waiting: "container backup: CrashLoopBackOff", Ended: "Error: another's"},
			status: "False", reason: "NotRunning", message: "pod p: container backup: CrashLoopBackOff: Error: another's"},
		"it says nothing": {archive: snapshot.Archive{Pod: "p"}, status: "False", reason: "NotBegun",
			message: "pod p reads all data before there is a first moment, and waits: it does not say what for"},
		"it has not begun": {
			archive: snapshot.Archive{Pod: "p", Said: &report.Archive{Behind: -1, Objective: 60, Waits: report.WaitBases}, SaidAt: now},
			status:  "False", reason: "NotBegun", message: "pod p reads all data before there is a first moment, and waits: for data that is being read, and its log says more"},
		"slots move": {on: moving, archive: snapshot.Archive{Pod: "p", Said: said(2*time.Minute, report.WaitInstances), SaidAt: now},
			status: "False", reason: "SlotsMove",
			message: "there is no moment while slots move; what is written meanwhile is kept, and is in the first one after that" + since(2*time.Minute)},
		"the store is away": {archive: snapshot.Archive{Pod: "p", Said: said(2*time.Minute, report.WaitStore), SaidAt: now},
			status: "False", reason: "Behind",
			message: "it is further behind than the objective, 1m0s: pod p waits: for the store, and its log says more" + since(2*time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.on
			if s == nil {
				s = healthy()
			}
			s.Archive = &tt.archive
			is := Compute(archived(), Reconciliation{Snapshot: s, Decision: plan.Decision{Step: plan.None{}}, ArchiveWithheld: tt.withheld}, now)
			got := meta.FindStatusCondition(is.Conditions, v1alpha1.ConditionArchiving)
			if got == nil || got.Status != tt.status || got.Reason != tt.reason || got.Message != tt.message {
				t.Errorf("Archiving is %+v\nwant %s, %s: %s", got, tt.status, tt.reason, tt.message)
			}
			if a := is.Archive; a == nil || a.Location != "s3://b/"+archived().Namespace+"/"+archived().Name+"/"+a.Name ||
				(a.LastMoment != nil) != (tt.status == "False" && tt.archive.Said != nil && !tt.archive.Said.Last.IsZero()) {
				t.Errorf("archive %+v", a)
			}
			if !meta.IsStatusConditionTrue(is.Conditions, v1alpha1.ConditionReady) && tt.on == nil {
				t.Error("an archive makes the cluster not Ready")
			}
		})
	}
}

// What is said of an archive that is well does not change from one reconciliation to the next, and what was said stays until its pod has
// been asked; what is said of another archive does not.
func TestArchiveStatusIsQuiet(t *testing.T) {
	c, s := archived(), healthy()
	first := now.Add(-time.Hour)
	s.Archive = &snapshot.Archive{Pod: "p", Ready: true,
		Said: &report.Archive{First: first.Add(time.Millisecond), Last: now, Objective: 60}, SaidAt: now}
	c.Status = Compute(c, Reconciliation{Snapshot: s, Decision: plan.Decision{Step: plan.None{}}}, now)
	want := &v1alpha1.ArchiveStatus{Name: c.ArchiveLocation().Name, Location: c.ArchiveLocation().String(),
		FirstMoment: &metav1.Time{Time: first.UTC().Add(time.Second)}}
	if diff := cmp.Diff(want, c.Status.Archive); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, said := range []*report.Archive{nil, {First: first.Add(time.Millisecond), Last: now.Add(time.Minute), Behind: 3, Objective: 60}} {
		s.Archive.Said = said
		is := Compute(c, Reconciliation{Snapshot: s, Decision: plan.Decision{Step: plan.None{}}}, now.Add(time.Minute))
		if diff := cmp.Diff(c.Status, is); diff != "" {
			t.Errorf("the status changes (-before +after):\n%s", diff)
		}
	}
	s.Archive.Said, c.Spec.Backup.Store.S3.Bucket = nil, "other"
	if is := Compute(c, Reconciliation{Snapshot: s, Decision: plan.Decision{Step: plan.None{}}}, now); is.Archive.FirstMoment != nil {
		t.Errorf("of an archive elsewhere it is said that it begins at %s", is.Archive.FirstMoment)
	}
	c.Spec.Backup, s.Archive = nil, nil
	is := Compute(c, Reconciliation{Snapshot: s, Decision: plan.Decision{Step: plan.None{}}}, now)
	if is.Archive != nil || meta.FindStatusCondition(is.Conditions, v1alpha1.ConditionArchiving) != nil {
		t.Errorf("what is not asked for any more is told of: %+v", is.Archive)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

const checksum = "the manifest's"

// toVerify is what is seen of a schedule whose latest backup is to be verified, changed.
func toVerify(changes ...func(*Snapshot)) *Snapshot {
	return snapshotOf(func(s *Snapshot) {
		s.Schedule.Spec.Verify = &v1alpha1.BackupVerification{Schedule: "0 9 * * *", Timeout: &metav1.Duration{Duration: time.Hour}}
		s.Schedule.Status.LastScheduleTime = stamp(now.Truncate(time.Hour))
		s.Schedule.Status.LastVerificationTime = stamp(now.AddDate(0, 0, -1))
		s.Cluster = &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"},
			Spec: v1alpha1.RedisClusterSpec{Version: "8.0.6"}}
		s.Backups = []v1alpha1.RedisBackup{backup("nightly-1", 2*time.Hour, v1alpha1.BackupCompleted),
			backup("nightly-0", 26*time.Hour, v1alpha1.BackupCompleted)}
		s.Backups[0].Status.ShardCount, s.Backups[0].Status.ManifestChecksum = 3, checksum
		s.Backups[0].Status.Keys = &v1alpha1.KeyCount{Total: 100, WithTTL: 10}
		for _, change := range changes {
			change(s)
		}
	})
}

// begun is a verification that was begun ten minutes ago.
func begun(s *Snapshot) {
	s.Schedule.Status.Verification = &v1alpha1.VerificationStatus{Backup: "nightly-1", Cluster: "nightly-verify",
		StartedAt: *stamp(now.Add(-10 * time.Minute)), Message: "shard 1: access denied"}
}

// made is its throw-away cluster, which has nothing yet.
func made(s *Snapshot) {
	begun(s)
	s.Throwaway = throwawayOf(s.Schedule, s.Cluster, &s.Backups[0])
	s.Throwaway.Generation, s.Throwaway.Status.Reason = 1, "1 of 3 shards are restored"
}

func condition(c *v1alpha1.RedisCluster, kind, message string, ago time.Duration) {
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Message: message,
		LastTransitionTime: *stamp(now.Add(-ago))})
}

// restored is the throw-away cluster once it is Ready.
func restored(s *Snapshot) {
	made(s)
	condition(s.Throwaway, v1alpha1.ConditionReady, "", time.Minute)
	s.Throwaway.Status.Restored = &v1alpha1.RestoredData{ManifestChecksum: checksum, Keys: &v1alpha1.KeyCount{Total: 95, WithTTL: 5}}
}

// told is a step in a few words.
func told(step Step) string {
	switch step := step.(type) {
	case BeginVerification:
		return "begin " + step.Backup
	case SkipVerification:
		return "skip " + step.Reason
	case MakeThrowaway:
		return "make for " + step.Backup.Name
	case EndVerification:
		return fmt.Sprintf("%s %s %s", step.Status, step.Reason, step.Message)
	case DeleteThrowaway:
		return "delete " + step.Cluster.Name
	case Rest:
		return "rest"
	case Make, Note, Pass, Skip, Prune, Relabel:
	}
	return fmt.Sprintf("%T", step)
}

var beginsOrNot = map[string]struct {
	change func(*Snapshot)
	want   string
}{
	"due":                   {func(*Snapshot) {}, "begin nightly-1"},
	"not due":               {func(s *Snapshot) { s.Schedule.Status.LastVerificationTime = stamp(now) }, "rest"},
	"first seen":            {func(s *Snapshot) { s.Schedule.Status.LastVerificationTime = nil }, "rest"},
	"several were missed":   {func(s *Snapshot) { s.Schedule.Status.LastVerificationTime = stamp(now.AddDate(0, 0, -9)) }, "begin nightly-1"},
	"not asked for":         {func(s *Snapshot) { s.Schedule.Spec.Verify = nil }, "rest"},
	"in another time zone":  {func(s *Snapshot) { s.Schedule.Spec.TimeZone = "Asia/Shanghai" }, "begin nightly-1"},
	"a time zone unknown":   {func(s *Snapshot) { s.Schedule.Spec.TimeZone = "Local" }, "rest"},
	"no schedule":           {func(s *Snapshot) { s.Schedule.Spec.Verify.Schedule = "30 2 31 2 *" }, "rest"},
	"suspended":             {func(s *Snapshot) { s.Schedule.Spec.Suspend = true }, "rest"},
	"the schedule is going": {func(s *Snapshot) { s.Schedule.DeletionTimestamp = stamp(now) }, "rest"},
	"it was suspended": {func(s *Snapshot) {
		s.Schedule.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ScheduleConditionScheduled, Reason: v1alpha1.ScheduleSuspended}}
	}, "rest"},
	"a backup is due as well":            {func(s *Snapshot) { s.Schedule.Status.LastScheduleTime = stamp(now.AddDate(0, 0, -1)) }, "schedule.Make"},
	"the cluster is gone":                {func(s *Snapshot) { s.Cluster = nil }, "rest"},
	"there is no backup":                 {func(s *Snapshot) { s.Backups = nil }, "skip NoBackup"},
	"the newest backup is of a stranger": {func(s *Snapshot) { s.Backups[0].Labels = nil }, "begin nightly-0"},
	"the newest backup failed":           {func(s *Snapshot) { s.Backups[0].Status.Phase = v1alpha1.BackupFailed }, "begin nightly-0"},
	"the newest backup is being deleted": {func(s *Snapshot) { s.Backups[0].DeletionTimestamp = stamp(now) }, "begin nightly-0"},
	"the cluster has no claims": {func(s *Snapshot) {
		s.Cluster.Spec.Pod = []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}}}
	}, "skip NoTemplate"},
	"the cluster has claims, said otherwise": {func(s *Snapshot) {
		s.Cluster.Spec.Pod = []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumePVC}}}
	}, "begin nightly-1"},
	"the cluster shares a claim": {func(s *Snapshot) {
		s.Cluster.Spec.Pod = []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumePVC, PersistentVolumeClaimName: "all"}}}
	}, "skip NoTemplate"},
	"somebody's has the name": {func(s *Snapshot) { s.Throwaway = &v1alpha1.RedisCluster{} }, "skip NameTaken"},
	"somebody's is going": {func(s *Snapshot) {
		s.Throwaway = &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: stamp(now)}}
	}, "rest"},
	"somebody's says it is ours": {func(s *Snapshot) {
		made(s)
		s.Schedule.Status.Verification, s.Throwaway.OwnerReferences = nil, nil
	}, "skip NameTaken"},
	"one of a former schedule": {func(s *Snapshot) {
		made(s)
		s.Schedule.Status.Verification, s.Schedule.UID = nil, "another"
		for i := range s.Backups {
			s.Backups[i].Labels[v1alpha1.LabelScheduleUID] = "another"
		}
	}, "skip NameTaken"},
	"it was unlabelled to keep it": {func(s *Snapshot) {
		made(s)
		s.Schedule.Status.Verification, s.Throwaway.Labels = nil, nil
	}, "skip NameTaken"},
	"one was left": {func(s *Snapshot) { made(s); s.Schedule.Status.Verification = nil }, "delete nightly-verify"},
	"one was left, and goes": {func(s *Snapshot) {
		made(s)
		s.Schedule.Status.Verification, s.Throwaway.DeletionTimestamp = nil, stamp(now)
	}, "rest"},
	"spec.verify was removed":             {func(s *Snapshot) { restored(s); s.Schedule.Spec.Verify = nil }, "delete nightly-verify"},
	"one was left, and the schedule goes": {func(s *Snapshot) { made(s); s.Schedule.DeletionTimestamp = stamp(now) }, "rest"},
}

var underWay = map[string]struct {
	change func(*Snapshot)
	want   string
}{
	"begun":                           {begun, "make for nightly-1"},
	"begun, and suspended since":      {func(s *Snapshot) { begun(s); s.Schedule.Spec.Suspend = true }, "make for nightly-1"},
	"begun, and the cluster is gone":  {func(s *Snapshot) { begun(s); s.Cluster = nil }, "Unknown ClusterNotFound"},
	"made, and the cluster is gone":   {func(s *Snapshot) { made(s); s.Cluster = nil }, "rest"},
	"begun, and the name is taken":    {func(s *Snapshot) { begun(s); s.Throwaway = &v1alpha1.RedisCluster{} }, "Unknown NameTaken"},
	"made":                            {made, "rest"},
	"made, and its owner was removed": {func(s *Snapshot) { made(s); s.Throwaway.OwnerReferences = nil }, "Unknown NameTaken"},
	"made, and somebody deletes it": {func(s *Snapshot) { // which is a generation of its own
		made(s)
		s.Throwaway.DeletionTimestamp, s.Throwaway.Generation = stamp(now), 2
	}, "rest"},
	"made, and changed": {func(s *Snapshot) { restored(s); s.Throwaway.Generation = 2 }, "Unknown Interrupted"},
	"made of another backup": {func(s *Snapshot) { restored(s); s.Throwaway.Spec.Bootstrap.Restore.RedisBackup = "nightly-0" },
		"Unknown Interrupted"},
	"made, and begins with nothing": {func(s *Snapshot) { restored(s); s.Throwaway.Spec.Bootstrap = nil }, "Unknown Interrupted"},
	"made, and spec.cluster is another": {func(s *Snapshot) {
		restored(s)
		s.Schedule.Spec.Cluster = "other"
	}, "Unknown Interrupted"},
	"the backup is gone":          {func(s *Snapshot) { restored(s); s.Backups = nil }, "Unknown Interrupted"},
	"the backup is being deleted": {func(s *Snapshot) { restored(s); s.Backups[0].DeletionTimestamp = stamp(now) }, "Unknown Interrupted"},
	"there is a newer backup by now": {func(s *Snapshot) {
		restored(s)
		s.Backups = append([]v1alpha1.RedisBackup{backup("nightly-2", time.Hour, v1alpha1.BackupCompleted)}, s.Backups...)
	}, "True BackupVerified RedisBackup nightly-1"},
	"the backup is another's": {func(s *Snapshot) { restored(s); s.Backups[0].Labels = nil }, "Unknown Interrupted"},
	"another key is asked for": {func(s *Snapshot) {
		s.Backups[0].Spec.Recipients, s.Schedule.Spec.Verify.IdentitySecretName = []string{"age1x"}, "key"
		made(s)
		s.Schedule.Spec.Verify.IdentitySecretName = "other"
	}, "Unknown Interrupted"},
	"just in time": {func(s *Snapshot) { made(s); s.Now = now.Add(50*time.Minute - time.Second) }, "rest"},
	"too late": {func(s *Snapshot) { made(s); s.Now = now.Add(50 * time.Minute) },
		"False TimedOut RedisBackup nightly-1: it was not restored in time (spec.verify.timeout): shard 1: access denied"},
	"too late by default": {func(s *Snapshot) {
		made(s)
		s.Schedule.Spec.Verify.Timeout, s.Now = nil, now.Add(6*time.Hour-10*time.Minute)
	}, "False TimedOut"},
	"too late, and not even made": {func(s *Snapshot) { begun(s); s.Now = now.Add(50 * time.Minute) }, "False TimedOut"},
	"too late, and being deleted": {func(s *Snapshot) {
		made(s)
		s.Now, s.Throwaway.DeletionTimestamp = now.Add(50*time.Minute), stamp(now)
	}, "False TimedOut"},
	"the clock was a year ahead": {func(s *Snapshot) { made(s); s.Schedule.Status.Verification.StartedAt = *stamp(now.AddDate(1, 0, 0)) },
		"Unknown Interrupted"},
	"it waits for a person": {func(s *Snapshot) {
		made(s)
		condition(s.Throwaway, v1alpha1.ConditionStalled, "no label", stalledFor-time.Second)
	},
		"rest"},
	"it has waited for a person": {func(s *Snapshot) { made(s); condition(s.Throwaway, v1alpha1.ConditionStalled, "no label", stalledFor) },
		"False CannotRestore RedisBackup nightly-1: no label"},
	"it had waited for a person": {func(s *Snapshot) {
		made(s)
		condition(s.Throwaway, v1alpha1.ConditionStalled, "no label", stalledFor)
		s.Throwaway.Status.Conditions[0].Status = metav1.ConditionFalse
	}, "rest"},
	"Ready": {restored, "True BackupVerified RedisBackup nightly-1: it was restored with 95 keys, 5 of them with a time to live; " +
		"it was taken of 100, 10 of them with one"},
	"all but Ready":     {func(s *Snapshot) { restored(s); s.Throwaway.Status.Conditions = nil }, "rest"},
	"Ready, of nothing": {func(s *Snapshot) { restored(s); s.Throwaway.Status.Restored = nil }, "rest"},
	"of another manifest": {func(s *Snapshot) { restored(s); s.Throwaway.Status.Restored.ManifestChecksum = "x" },
		"False CannotRestore"},
	"the backup is not counted": {func(s *Snapshot) { restored(s); s.Backups[0].Status.Keys = nil }, "Unknown NotCounted"},
	"its keys were not counted": {func(s *Snapshot) { restored(s); s.Throwaway.Status.Restored.Keys = nil }, "Unknown NotCounted"},
}

func TestVerify(t *testing.T) {
	for _, table := range []map[string]struct {
		change func(*Snapshot)
		want   string
	}{beginsOrNot, underWay} {
		for what, tt := range table {
			s := toVerify(tt.change)
			step := Plan(s)
			if got := told(step); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: %s, want %s", what, got, tt.want)
			}
			if _, rests := step.(Rest); rests {
				continue
			}
			s.Schedule.Status = ComputeStatus(s, step, nil)
			switch step := step.(type) {
			case BeginVerification, SkipVerification, EndVerification:
				if again := Plan(s); told(again) == told(step) {
					t.Errorf("%s: it does so again: %s", what, told(again))
				}
			case Rest, Make, Note, Pass, Skip, Prune, MakeThrowaway, DeleteThrowaway:
			}
		}
	}
}

// What a verification holds is given back, also when a backup is due that cannot be made.
func TestVerificationEndsWhateverIsDue(t *testing.T) {
	due := func(s *Snapshot) { s.Schedule.Status.LastScheduleTime = stamp(now.AddDate(0, 0, -1)) }
	if step := Plan(toVerify(due)); told(step) == told(Plan(toVerify())) {
		t.Fatalf("no backup is due: %T", step)
	}
	for name, s := range map[string]*Snapshot{
		"Ready":                  toVerify(restored, due),
		"over":                   toVerify(made, due, func(s *Snapshot) { s.Schedule.Status.Verification = nil }),
		"not asked for any more": toVerify(made, due, func(s *Snapshot) { s.Schedule.Spec.Verify = nil }),
	} {
		step := Plan(s)
		_, ends := step.(EndVerification)
		if _, deletes := step.(DeleteThrowaway); !ends && !deletes {
			t.Errorf("%s: %T", name, step)
		}
	}
}

// Keys without a time to live must all be there, and no others; of those with one, some have gone.
func TestKeysAreCompared(t *testing.T) {
	type keys = v1alpha1.KeyCount
	of := func(total, withTTL, withFieldTTL int64) keys {
		return keys{Total: total, WithTTL: withTTL, WithFieldTTL: withFieldTTL}
	}
	for what, tt := range map[string]struct {
		has, found keys
		same       bool
	}{
		"all":                       {of(100, 10, 0), of(100, 10, 0), true},
		"none, of none":             {of(0, 0, 0), of(0, 0, 0), true},
		"some have expired":         {of(100, 10, 0), of(91, 1, 0), true},
		"all that may have expired": {of(100, 10, 0), of(90, 0, 0), true},
		"one is missing":            {of(100, 10, 0), of(99, 10, 0), false},
		"one is missing of those that stay, and some have expired": {of(100, 10, 0), of(89, 0, 0), false},
		"one does not expire any more":                             {of(100, 10, 0), of(100, 9, 0), false},
		"one expires that did not":                                 {of(100, 10, 0), of(100, 11, 0), false},
		"one more":                                                 {of(100, 10, 0), of(101, 10, 0), false},
		"one more, which expires":                                  {of(100, 10, 0), of(101, 11, 0), false},
		"nothing is there":                                         {of(100, 10, 0), of(0, 0, 0), false},
		"nothing is there, and all expired":                        {of(100, 100, 0), of(0, 0, 0), true},
		"hashes are gone":                                          {of(100, 10, 5), of(95, 10, 0), true},
		"more than the hashes are gone":                            {of(100, 10, 5), of(94, 10, 0), false},
		"more than there were, of hashes":                          {of(100, 10, 5), of(101, 10, 5), false},
		"one hash is gone":                                         {of(100, 10, 1), of(99, 10, 0), true},
		"all are hashes that may go":                               {of(100, 10, 100), of(3, 3, 3), true},
	} {
		s := toVerify(restored, func(s *Snapshot) { s.Backups[0].Status.Keys, s.Throwaway.Status.Restored.Keys = &tt.has, &tt.found })
		end, _ := Plan(s).(EndVerification)
		if (end.Status == metav1.ConditionTrue) != tt.same || (end.Reason == v1alpha1.ScheduleKeysDiffer) == tt.same {
			t.Errorf("%s: %+v", what, end)
		}
		if strings.Contains(end.Message, "hashes whose fields expire") != (tt.has.WithFieldTTL > 0) {
			t.Errorf("%s: it says %s", what, end.Message)
		}
	}
}

// The throw-away cluster has what the data needs, and nothing by which others could take it for the one that was backed up.
func TestThrowaway(t *testing.T) {
	s := toVerify(func(s *Snapshot) {
		s.Cluster.Labels = map[string]string{"app": "cache"}
		s.Cluster.Spec = v1alpha1.RedisClusterSpec{
			Replicas: ptr.To[int32](10), Shards: ptr.To[int32](5), Repository: "r", Version: "v", Pause: true,
			Finalizers: v1alpha1.DeletionOrphan, Storage: &v1alpha1.Storage{Size: resource.MustParse("5Gi"), StorageClassName: ptr.To("fast"),
				Retain: v1alpha1.Retain},
			Config:  map[string]string{"maxmemory-policy": "allkeys-lru", "appendonly": "no", "hz": "20"},
			Modules: []v1alpha1.Module{{}}, Auth: v1alpha1.Auth{Enabled: ptr.To(false), ACLSecretName: "users"},
			TLS:           &v1alpha1.TLS{SecretName: "tls"},
			NetworkPolicy: v1alpha1.Toggle{Enabled: ptr.To(false)}, AntiAffinity: v1alpha1.AntiAffinityRequired,
			Bootstrap: &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: "other"}},
			Pod: []v1alpha1.PodTemplate{{Labels: map[string]string{"app": "cache"}, Annotations: map[string]string{"a": "b"},
				MonitorImage: "exporter", Monitor: &v1alpha1.MonitorContainer{}, InitImage: "init", Init: &v1alpha1.InitContainer{},
				PriorityClassName: "high", Configmap: "settings", MiddlewareImage: "m", NodeSelector: map[string]string{"disk": "ssd"},
				Tolerations: []corev1.Toleration{{Key: "k"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
				Env:       []corev1.EnvVar{{Name: "MAXMEMORY", Value: "1gb"}},
				Volumes:   &v1alpha1.Volumes{Type: v1alpha1.VolumePVC},
				Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}},
		}
		s.Backups[0].Spec.Recipients = []string{"age1x"}
		s.Schedule.Spec.Verify.IdentitySecretName = "key"
	})
	was := s.Cluster.DeepCopy()
	got := throwawayOf(s.Schedule, s.Cluster, &s.Backups[0])
	want := v1alpha1.RedisClusterSpec{
		Replicas: ptr.To[int32](3), Shards: ptr.To[int32](3), Repository: "r", Version: "v", Finalizers: v1alpha1.DeletionForeground,
		Storage: &v1alpha1.Storage{Size: resource.MustParse("5Gi"), StorageClassName: ptr.To("fast"), Retain: v1alpha1.RetainDelete},
		Config:  map[string]string{"maxmemory-policy": "noeviction", "appendonly": "yes", "hz": "20"},
		Modules: []v1alpha1.Module{{}}, NetworkPolicy: v1alpha1.Toggle{Enabled: ptr.To(false)},
		PodDisruptionBudget: v1alpha1.Toggle{Enabled: ptr.To(false)},
		Bootstrap:           &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: "nightly-1", IdentitySecretName: "key"}},
		Pod: []v1alpha1.PodTemplate{{Configmap: "settings", MiddlewareImage: "m", NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations: []corev1.Toleration{{Key: "k"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
			Env:       []corev1.EnvVar{{Name: "MAXMEMORY", Value: "1gb"}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if !s.Schedule.Throwaway(got) || got.Namespace != "shop" || got.Name != "nightly-verify" || len(got.Labels) != 2 {
		t.Errorf("it is %+v", got.ObjectMeta)
	}
	if diff := cmp.Diff(was, s.Cluster); diff != "" {
		t.Errorf("the cluster that was backed up is changed (-was +is):\n%s", diff)
	}
	s.Backups[0].Spec.Recipients = nil
	if key := throwawayOf(s.Schedule, s.Cluster, &s.Backups[0]).Restore().IdentitySecretName; key != "" {
		t.Errorf("a backup that is not encrypted is decrypted with %s", key)
	}
}

func TestThrowawayName(t *testing.T) {
	seen := map[string]string{}
	for name, want := range map[string]string{"nightly": "nightly-verify", strings.Repeat("a", 33): strings.Repeat("a", 33) + "-verify",
		strings.Repeat("a", 34): "verify-", strings.Repeat("a", 39): "verify-", "a.b": "verify-", "a.c": "verify-", "0a": "verify-"} {
		s := &v1alpha1.RedisBackupSchedule{ObjectMeta: metav1.ObjectMeta{Name: name}}
		got := s.ThrowawayName()
		if !strings.HasPrefix(got, want) || len(got) > 40 || strings.Contains(got, ".") || seen[got] != "" {
			t.Errorf("%s: %s, as %q", name, got, seen[got])
		}
		seen[got] = name
	}
}

// What is being verified stays until that is over.
func TestRetentionKeepsWhatIsVerified(t *testing.T) {
	s := toVerify(begun, func(s *Snapshot) {
		s.Schedule.Spec.Retention = retention(1, 0)
		for _, name := range []string{"nightly-3", "nightly-2"} {
			s.Backups = append(s.Backups, backup(name, time.Hour, v1alpha1.BackupCompleted))
		}
	})
	if gone := pruned(t, s); !cmp.Equal(gone, []string{"nightly-0", "nightly-2"}) {
		t.Errorf("%v go", gone)
	}
	s.Schedule.Spec.Verify = nil
	if gone := pruned(t, s); !cmp.Equal(gone, []string{"nightly-1"}) {
		t.Errorf("when nothing is verified, %v go", gone)
	}
}

func TestVerificationStatus(t *testing.T) {
	verified := Finding{Status: metav1.ConditionTrue, Reason: v1alpha1.ScheduleVerified, Message: "all", Keys: 95}
	was := func(status metav1.ConditionStatus, reason string) func(*Snapshot) {
		return func(s *Snapshot) {
			s.Schedule.Status.Conditions = append(s.Schedule.Status.Conditions,
				metav1.Condition{Type: v1alpha1.ScheduleConditionVerified, Status: status, Reason: reason, Message: "before"})
		}
	}
	last, tomorrow := stamp(now.AddDate(0, 0, -1)), stamp(now.Truncate(time.Hour).AddDate(0, 0, 1).Add(-time.Hour))
	for what, tt := range map[string]struct {
		changes       []func(*Snapshot)
		step          Step
		err           error
		verified      string
		last, next    *metav1.Time
		message, keys string
	}{
		"first seen": {[]func(*Snapshot){func(s *Snapshot) { s.Schedule.Status.LastVerificationTime = nil }}, Rest{}, nil, "Unknown NotVerified",
			stamp(now), tomorrow, "", ""},
		"a clock was a year ahead": {[]func(*Snapshot){func(s *Snapshot) {
			s.Schedule.Status.LastVerificationTime = stamp(now.AddDate(1, 0, 0))
		}}, Rest{}, nil, "Unknown NotVerified", stamp(now), tomorrow, "", ""},
		"begun": {nil, BeginVerification{"nightly-1"}, nil, "Unknown NotVerified", last, tomorrow, "", ""},
		"begun again": {[]func(*Snapshot){was("True", v1alpha1.ScheduleVerified)}, BeginVerification{"nightly-1"}, nil,
			"True BackupVerified before", last, tomorrow, "", ""},
		"not made": {[]func(*Snapshot){begun}, MakeThrowaway{}, errors.New("quota"), "Unknown NotVerified", last, tomorrow,
			"it is tried again: quota", ""},
		"just made": {[]func(*Snapshot){begun}, MakeThrowaway{}, nil, "Unknown NotVerified", last, tomorrow, "the RedisCluster is made", ""},
		"made":      {[]func(*Snapshot){made}, Rest{}, nil, "Unknown NotVerified", last, tomorrow, "1 of 3 shards are restored", ""},
		"made, and a former one goes": {[]func(*Snapshot){made, func(s *Snapshot) { s.Throwaway.DeletionTimestamp = stamp(now) }}, Rest{}, nil,
			"Unknown NotVerified", last, tomorrow, "a former RedisCluster of the name is being deleted", ""},
		"verified": {[]func(*Snapshot){restored}, EndVerification{verified}, nil, "True BackupVerified all", stamp(now), tomorrow, "", "95"},
		"not verified": {[]func(*Snapshot){restored, was("True", v1alpha1.ScheduleVerified), func(s *Snapshot) {
			s.Schedule.Status.LastVerified = &v1alpha1.VerifiedBackup{Backup: "nightly-0", Keys: 7}
		}}, EndVerification{Finding{Status: "False", Reason: v1alpha1.ScheduleKeysDiffer}}, nil, "False KeysDiffer", stamp(now), tomorrow,
			"", "7"},
		"left out": {[]func(*Snapshot){was("True", v1alpha1.ScheduleVerified)}, SkipVerification{v1alpha1.ScheduleNoTemplate, "no"}, nil,
			"Unknown NoTemplate no", stamp(now), tomorrow, "", ""},
		"no cluster": {[]func(*Snapshot){func(s *Snapshot) { s.Cluster = nil }}, Rest{}, nil, "Unknown ClusterNotFound spec.cluster: ", last,
			tomorrow, "", ""},
		"no cluster, and none is needed yet": {[]func(*Snapshot){was("True", v1alpha1.ScheduleVerified), func(s *Snapshot) {
			s.Cluster, s.Schedule.Status.LastVerificationTime = nil, stamp(now)
		}}, Rest{}, nil, "True BackupVerified before", stamp(now), tomorrow, "", ""},
		"a cluster again": {[]func(*Snapshot){was("Unknown", v1alpha1.ScheduleVerifyNoCluster)}, BeginVerification{"nightly-1"}, nil,
			"Unknown NotVerified", last, tomorrow, "", ""},
		"no schedule": {[]func(*Snapshot){func(s *Snapshot) { s.Schedule.Spec.Verify.Schedule = "99 * * * *" }}, Rest{}, nil,
			"Unknown InvalidSchedule spec.verify.schedule: ", last, nil, "", ""},
		"a schedule again": {[]func(*Snapshot){was("Unknown", v1alpha1.ScheduleInvalid)}, Rest{}, nil, "Unknown NotVerified", last, tomorrow,
			"", ""},
		"suspended": {[]func(*Snapshot){func(s *Snapshot) { s.Schedule.Spec.Suspend = true }, was("True", v1alpha1.ScheduleVerified)}, Rest{},
			nil, "True BackupVerified before", last, nil, "", ""},
		"suspended still": {[]func(*Snapshot){func(s *Snapshot) {
			s.Schedule.Spec.Suspend, s.Schedule.Status.NextVerificationTime = true, stamp(now)
			s.Schedule.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ScheduleConditionScheduled, Reason: v1alpha1.ScheduleSuspended}}
		}}, Rest{}, nil, "Unknown NotVerified", last, nil, "", ""},
		"no cluster any more, and another one is due": {[]func(*Snapshot){made, func(s *Snapshot) { s.Cluster = nil }}, Rest{}, nil,
			"Unknown NotVerified", last, tomorrow, "1 of 3 shards are restored", ""},
		"it was suspended": {[]func(*Snapshot){func(s *Snapshot) {
			s.Schedule.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ScheduleConditionScheduled, Reason: v1alpha1.ScheduleSuspended}}
		}}, Rest{}, nil, "Unknown NotVerified", stamp(now), tomorrow, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			s := toVerify(tt.changes...)
			status := ComputeStatus(s, tt.step, tt.err)
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ScheduleConditionVerified)
			if got := fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message); !strings.HasPrefix(got, tt.verified) {
				t.Errorf("it is %q, want %q", got, tt.verified)
			}
			if !status.LastVerificationTime.Equal(second(tt.last.Time)) || !status.NextVerificationTime.Equal(tt.next) {
				t.Errorf("last %s, next %s; want %s, %s", status.LastVerificationTime, status.NextVerificationTime, tt.last, tt.next)
			}
			message, keys := "", ""
			if status.Verification != nil {
				message = status.Verification.Message
			}
			if status.LastVerified != nil {
				keys = fmt.Sprint(status.LastVerified.Keys)
			}
			if message != tt.message || keys != tt.keys {
				t.Errorf("message %q, keys %q; want %q, %q", message, keys, tt.message, tt.keys)
			}
		})
	}
	s := toVerify(restored, was("True", v1alpha1.ScheduleVerified), func(s *Snapshot) { s.Schedule.Spec.Verify = nil })
	s.Schedule.Status.LastVerified = &v1alpha1.VerifiedBackup{}
	is := ComputeStatus(s, Rest{}, nil)
	if is.Verification != nil || is.LastVerified != nil || is.LastVerificationTime != nil || is.NextVerificationTime != nil ||
		meta.FindStatusCondition(is.Conditions, v1alpha1.ScheduleConditionVerified) != nil {
		t.Errorf("without spec.verify it says %+v", is)
	}
}

// Nothing tells when a time has come: it is looked again by then.
func TestWake(t *testing.T) {
	for what, tt := range map[string]struct {
		changes []func(*Snapshot)
		want    time.Time
	}{
		"the next verification": {nil, now.Truncate(time.Hour).AddDate(0, 0, 1).Add(-time.Hour)},
		"the next backup": {[]func(*Snapshot){func(s *Snapshot) { s.Schedule.Spec.Verify = nil }},
			now.Truncate(time.Hour).AddDate(0, 0, 1)},
		"the next verification, today": {[]func(*Snapshot){func(s *Snapshot) { s.Schedule.Spec.Verify.Schedule = "0 11 * * *" }},
			now.Truncate(time.Hour).Add(time.Hour)},
		"the next backup, before the next verification": {[]func(*Snapshot){func(s *Snapshot) {
			s.Schedule.Spec.Verify.Schedule = "0 12 1 1 *"
		}}, now.Truncate(time.Hour).AddDate(0, 0, 1)},
		"the end of its time, while it is restored": {[]func(*Snapshot){made}, now.Add(50 * time.Minute)},
		"the end of its time, when it has stalled no more": {[]func(*Snapshot){made, func(s *Snapshot) {
			condition(s.Throwaway, v1alpha1.ConditionStalled, "", time.Minute)
			s.Throwaway.Status.Conditions[0].Status = metav1.ConditionFalse
		}}, now.Add(50 * time.Minute)},
		"the end of its time": {[]func(*Snapshot){begun}, now.Add(50 * time.Minute)},
		"the end of its stall": {[]func(*Snapshot){made, func(s *Snapshot) {
			condition(s.Throwaway, v1alpha1.ConditionStalled, "", time.Minute)
		}}, now.Add(9 * time.Minute)},
		"never": {[]func(*Snapshot){func(s *Snapshot) { s.Schedule.Spec.Suspend = true }}, time.Time{}},
	} {
		s := toVerify(tt.changes...)
		status := ComputeStatus(s, Rest{}, nil)
		if at := wake(s, &status); !at.Equal(tt.want) {
			t.Errorf("%s: %s, want %s", what, at, tt.want)
		}
	}
}

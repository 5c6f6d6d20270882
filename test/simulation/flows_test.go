// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// flow is something that the operator does in many writes.
type flow struct {
	name   string
	valkey bool
	// begin makes the cluster that it begins with, whose operator is not watched yet; nil: one that has formed.
	begin func(t *testing.T, valkey bool) *simulation
	// change asks for what is to be done.
	change func(s *simulation)
	// undo takes back what change asked for; nil: it is not tried.
	undo func(s *simulation)
	// shared: slots without an owner are shared out. Whoever goes on shares out what is left, so that bounds may be a slot further.
	shared bool
	// timed: something is done once a minute, so that how many writes there are depends on when the first of them came.
	timed bool
}

func formedOne(t *testing.T, valkey bool) *simulation {
	t.Helper()
	s := newSimulationOf(t, 1, 2, valkey)
	s.converge()
	return s
}

// fullDisks fills all disks of a shard for a while.
func fullDisks(s *simulation) {
	for _, in := range s.instances {
		if strings.HasPrefix(in.pod.Name, s.cluster.ShardName(1)+"-") {
			in.node.SetDiskFull(true)
			in.node.SetDiskFull(false)
		}
	}
}

var flows = []flow{
	{name: "create", shared: true, begin: func(t *testing.T, valkey bool) *simulation { return newSimulationOf(t, 1, 2, valkey) },
		change: func(*simulation) {}},
	{name: "scale out, key by key", change: func(s *simulation) { s.give(8) },
		undo: func(s *simulation) { s.takeBack() }},
	{name: "scale out, atomically", valkey: true, change: func(s *simulation) { s.scale(4, 2) },
		undo: func(s *simulation) { s.scale(3, 2) }},
	{name: "scale in", valkey: true, begin: func(t *testing.T, valkey bool) *simulation {
		s := formedOne(t, valkey)
		s.scale(4, 2)
		s.converge()
		return s
	}, change: func(s *simulation) { s.scale(3, 2) }, undo: func(s *simulation) { s.scale(4, 2) }},
	{name: "more instances", change: func(s *simulation) { s.scale(3, 3) },
		undo: func(s *simulation) { s.scale(3, 2) }},
	{name: "fewer instances", change: func(s *simulation) { s.scale(3, 1) },
		undo: func(s *simulation) { s.scale(3, 2) }},
	{name: "rollout", change: func(s *simulation) { s.retemplate("v2") },
		undo: func(s *simulation) { s.retemplate("v1") }},
	{name: "a switchover that a person asks for", change: askForSwitchover},
	{name: "a master that is to be left alone", change: func(s *simulation) { s.fence("c-0-0") },
		undo: func(s *simulation) { s.fence("") }},
	{name: "settings", change: func(s *simulation) {
		s.cluster.Spec.Config = map[string]string{"maxmemory-policy": "allkeys-lru", "cluster-node-timeout": "5000", "hz": "20"}
	}, undo: func(s *simulation) {
		s.cluster.Spec.Config = map[string]string{"maxmemory-policy": "volatile-lru", "cluster-node-timeout": "5000", "hz": "50"}
	}},
	{name: "a master without its data", change: func(s *simulation) { s.restart(s.named(s.master(1)), false) }},
	{name: "new addresses", change: func(s *simulation) {
		for _, in := range s.instances {
			s.restart(in, true)
		}
	}},
	{name: "slots that nobody claims", begin: disowned, change: func(*simulation) {}, undo: func(s *simulation) { s.give(8) }},
	{name: "disks that were full", change: fullDisks},
	{name: "disks that were full, of Valkey", valkey: true, change: fullDisks},
	{name: "create with one shard", shared: true, begin: func(t *testing.T, valkey bool) *simulation { return newSmall(t, 1, 1, 2, valkey) },
		change: func(*simulation) {}},
	{name: "a crash of the only master", begin: formedSmall(1), change: func(s *simulation) { s.crashMaster(0) }},
	{name: "a crash of one of two masters", valkey: true, begin: formedSmall(2), change: func(s *simulation) { s.crashMaster(0) }},
	{name: "the only master without its data", begin: formedSmall(1), change: func(s *simulation) { s.restart(s.named(s.master(0)), false) }},
	{name: "rollout of one shard", begin: formedSmall(1), change: func(s *simulation) { s.retemplate("v2") }},
	{name: "one shard becomes three", begin: formedSmall(1), change: becomesThree, undo: becomesOne},
	{name: "three shards become one, atomically", valkey: true, begin: func(t *testing.T, valkey bool) *simulation {
		s := formedSmall(1)(t, valkey)
		becomesThree(s)
		s.converge()
		return s
	}, change: becomesOne},
	{name: "autoscale, atomically", valkey: true, begin: formedOne, change: autoscaled(4, 3500)},
	{name: "a window of autoscale, atomically", valkey: true, begin: formedOne, change: windowed},
	{name: "autoscale in, atomically", valkey: true, begin: func(t *testing.T, valkey bool) *simulation {
		s := formedOne(t, valkey)
		s.scale(4, 2)
		s.converge()
		return s
	}, change: autoscaled(3, 100)},
	{name: "balance, key by key", change: balanced},
	{name: "balance, atomically", valkey: true, change: balanced},
	{name: "hibernate and wake", begin: newWithClaims, change: hibernateAndWake,
		undo: func(s *simulation) { s.cluster.Spec.Hibernate, s.cluster.Generation = false, 3 }},
	{name: "hibernate and wake, atomically", valkey: true, begin: newWithClaims, change: hibernateAndWake},
	{name: "password", begin: func(t *testing.T, valkey bool) *simulation { return newGuarded(t, 1, valkey).simulation },
		change: func(s *simulation) { s.cluster.Spec.Auth.Rotate, s.cluster.Generation = "again", 2 }},
	{name: "a right for an archive", valkey: true,
		begin:  func(t *testing.T, valkey bool) *simulation { return newGuarded(t, 1, valkey).simulation },
		change: archived, undo: func(s *simulation) { s.cluster.Spec.Backup = nil }},
	{name: "an archive given up", valkey: true, begin: func(t *testing.T, valkey bool) *simulation {
		s := newGuarded(t, 1, valkey).simulation
		archived(s)
		s.converge()
		return s
	}, change: func(s *simulation) { s.cluster.Spec.Backup, s.cluster.Generation = nil, 3 }, undo: archived},
	{name: "restored data", begin: newRestored, change: func(*simulation) {}},
	{name: "restored data, moving whole slots", valkey: true, begin: newRestored, change: func(*simulation) {}},
	{name: "import of a server", valkey: true, begin: imported(1, false), change: func(*simulation) {}},
	{name: "import of a cluster", begin: imported(3, false), change: func(*simulation) {}},
	{name: "clone", valkey: true, begin: imported(3, true), change: func(*simulation) {}},
	{name: "a renewed certificate", begin: func(t *testing.T, valkey bool) *simulation { return newEncrypted(t, 1, valkey) },
		change: func(s *simulation) { s.renew() }},
	{name: "a certificate more to trust", begin: func(t *testing.T, valkey bool) *simulation { return newEncrypted(t, 1, valkey) },
		change: func(s *simulation) { s.trustAlso(true) }, undo: func(s *simulation) { s.trustAlso(false) }, timed: true},
	{name: "TLS, both ways", begin: withTLS(v1alpha1.TLSDisabled), change: switched(v1alpha1.TLSBoth), undo: switched(v1alpha1.TLSDisabled)},
	{name: "TLS required", valkey: true, begin: withTLS(v1alpha1.TLSBoth), change: switched(v1alpha1.TLSRequired),
		undo: switched(v1alpha1.TLSBoth)},
	{name: "TLS, both ways again", begin: withTLS(v1alpha1.TLSRequired), change: switched(v1alpha1.TLSBoth),
		undo: switched(v1alpha1.TLSRequired)},
	{name: "certificates of clients", begin: withTLS(v1alpha1.TLSRequired), change: wanting(v1alpha1.ClientCertificatesRequired),
		undo: wanting(v1alpha1.ClientCertificatesNone)},
	{name: "no certificates of clients", valkey: true, begin: func(t *testing.T, valkey bool) *simulation {
		s := newWithTLS(t, 1, valkey, v1alpha1.TLSBoth)
		wanting(v1alpha1.ClientCertificatesRequired)(s)
		s.converge()
		return s
	}, change: wanting(v1alpha1.ClientCertificatesOptional), undo: wanting(v1alpha1.ClientCertificatesRequired)},
	{name: "TLS off", valkey: true, begin: withTLS(v1alpha1.TLSBoth), change: switched(v1alpha1.TLSDisabled),
		undo: switched(v1alpha1.TLSBoth)},
}

// disowned is a cluster of which a master takes another one, that knows better, for the owner of slots of its own.
func disowned(t *testing.T, valkey bool) *simulation {
	t.Helper()
	s := formedOne(t, valkey)
	owner, other := s.named("c-1-0").node, s.named("c-2-0").node
	if s.master(1) == "c-1-1" {
		owner = s.named("c-1-1").node
	}
	var commands [][]string
	for slot := range slots.Range(10915, 10922).Slots() {
		commands = append(commands, []string{"CLUSTER", "SETSLOT", fmt.Sprint(slot), "NODE", other.ID()})
	}
	s.sendLate(owner, commands)
	return s
}

func withTLS(mode v1alpha1.TLSMode) func(t *testing.T, valkey bool) *simulation {
	return func(t *testing.T, valkey bool) *simulation {
		t.Helper()
		return newWithTLS(t, 1, valkey, mode)
	}
}

func switched(mode v1alpha1.TLSMode) func(s *simulation) {
	return func(s *simulation) { s.switchTLS(mode) }
}

// wanting has instances want that of clients.
func wanting(certificates v1alpha1.ClientCertificates) func(s *simulation) {
	return func(s *simulation) {
		s.cluster.Spec.TLS.ClientCertificates = certificates
		s.cluster.Generation++
		s.awaits = func() bool {
			for _, in := range s.instances {
				if in.node.Setting(redisconf.AuthClients) != redisconf.AuthClientsOf(certificates) {
					return false
				}
			}
			return s.file[redisconf.AuthClients] == redisconf.AuthClientsOf(certificates) && s.cluster.Status.TLS != nil &&
				s.cluster.Status.TLS.ClientCertificates == certificates &&
				meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionTLSModeInForce)
		}
	}
}

// newWithClaims is a cluster that has formed, and whose instances have claims.
func newWithClaims(t *testing.T, valkey bool) *simulation {
	t.Helper()
	s := prepared(t, 1, 2, valkey)
	s.cluster.Spec.Pod, s.cluster.Spec.Storage = nil, &v1alpha1.Storage{Size: resource.MustParse("1Gi")}
	s.populate()
	for _, in := range s.instances {
		s.create(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: in.pod.Namespace, Name: "data-" + in.pod.Name, UID: types.UID("claim-" + in.pod.Name),
				Labels: in.pod.Labels},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}})
	}
	s.converge()
	return s
}

// askForSwitchover asks for the replica of a shard to take over, and awaits that it is the master and the request is taken away.
func askForSwitchover(s *simulation) {
	asked := "c-0-1"
	if s.master(0) == asked {
		asked = "c-0-0"
	}
	s.cluster.Annotations = map[string]string{v1alpha1.AnnotationSwitchover: asked, "example.com/theirs": "stays"}
	stored := s.cluster.DeepCopy()
	s.create(stored)
	s.cluster.ResourceVersion = stored.ResourceVersion
	s.awaits = func() bool {
		return s.master(0) == asked && len(s.cluster.Annotations) == 1
	}
}

// hibernateAndWake asks for a cluster to be hibernated, and wakes it when it is.
func hibernateAndWake(s *simulation) {
	s.cluster.Spec.Hibernate, s.cluster.Generation = true, 2
	s.awaits = func() bool {
		if s.cluster.Spec.Hibernate && s.cluster.Status.Phase == v1alpha1.PhaseHibernated {
			if len(s.instances) > 0 {
				s.fail("it is hibernated, and has %d instances", len(s.instances))
			}
			s.cluster.Spec.Hibernate, s.cluster.Generation = false, 3
		}
		return !s.cluster.Spec.Hibernate
	}
}

// archived asks for an archive.
func archived(s *simulation) {
	s.cluster.Spec.Backup = &v1alpha1.ClusterBackup{Archive: &v1alpha1.Archive{},
		Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "s3"}}}
	s.cluster.Generation++
}

// newRestored makes a cluster that has begun with a backup: the first instance of each shard has its data, and nobody knows anybody.
// How the data got into the claims is tried with an API server (test/apiserver/rediscluster).
func newRestored(t *testing.T, valkey bool) *simulation {
	t.Helper()
	s := prepared(t, 1, 2, valkey)
	s.cluster.Spec.Pod, s.cluster.Spec.Storage = nil, &v1alpha1.Storage{Size: resource.MustParse("1Gi")}
	s.cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: "monday"}}
	s.populate()
	s.cluster.Status.Restored = &v1alpha1.RestoredData{Location: "s3://backups/sim/c/monday"}
	for shard, part := range slots.All().Split(3) {
		s.cluster.Status.Restored.Slots = append(s.cluster.Status.Restored.Slots, part.String())
		in := s.named(fmt.Sprintf("c-%d-0", shard))
		s.world.Kill(in.node)
		in.node = s.world.AddNode(redistest.NodeOptions{IP: in.pod.Status.PodIP, Valkey: valkey, Settings: s.file, Slots: part,
			Epoch: uint64(1025 + shard), Keys: map[string]string{restoredKey(part): "restored"}})
	}
	return s
}

// restoredKey is a key of one of the slots.
func restoredKey(of slots.Set) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key:", i); of.Contains(slots.KeySlot(key)) {
			return key
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Options are the operator's own: the same for all clusters.
type Options struct {
	// CreateTimeout is how long forming may take before the phase says Failed, UpgradeTimeout how
	// long a rollout may make no progress; 0: for ever.
	CreateTimeout, UpgradeTimeout time.Duration
	// AllowHostPath admits volumes of type hostPath.
	AllowHostPath bool
	// ServiceAnnotations are the domains of annotations that Services of clients may have; nil: the default ones.
	ServiceAnnotations []string
	// ClusterIssuers are the names of those that certificates may be asked of.
	ClusterIssuers []string
	// CertificateDir is where running instances have the files of their certificate; empty: where the chart mounts them.
	CertificateDir string
}

// Desired is what the RedisCluster asks for.
type Desired struct {
	Topology v1alpha1.Topology
	// FileShards is how many shards a new cluster begins with that begins with files of servers; 0: it does not.
	FileShards int
	Policy     v1alpha1.DeletionPolicy
	Paused     bool
	// Hibernate asks for no instance to run, and for all data to be kept.
	Hibernate bool
	Deleting  bool
	// ClaimBytes is the storage that each claim is to request, at the least; 0 without claims. MostClaimBytes is the most when claims grow
	// with the data; 0: they do not.
	ClaimBytes, MostClaimBytes int64
	// NodeTimeout is the cluster-node-timeout asked for; 0 when it is not known.
	NodeTimeout  time.Duration
	HasFinalizer bool
	// Problems are why the spec cannot be followed, as sentences with field paths. What heals the
	// cluster as it is goes on; NodeTimeout and Settings are not known then.
	Problems []string
	// CreateTimeout is how long forming may take before the phase says Failed; 0 means
	// for ever. The operator goes on trying all the same.
	CreateTimeout time.Duration
	// AssignReceive reports whether shards receive the SlotAssignments; otherwise all masters are to own the
	// same number of slots.
	AssignReceive   bool
	SlotAssignments []SlotAssignment
	// KeysPerSecond limits how fast keys move; 0 is no limit.
	KeysPerSecond int
	// OverCapacity allows a scale-in although the data may not fit.
	OverCapacity bool
	// GiveUp is which loss of data a person has given up; empty when none.
	GiveUp string
	// GiveUpSource is which source that is gone a person has given up; empty when none.
	GiveUpSource string
	// Switchover names the instance that a person asks to be the master of its shard; empty when none.
	Switchover string
	// Fenced are the names of instances that a person asks to have left alone, each once, FenceProblem says what of that is not followed.
	Fenced       []string
	FenceProblem string
	// PreviousPasswordFor is how long a password is accepted after clients were told the next.
	PreviousPasswordFor time.Duration
	// UpgradeTimeout is how long a rollout may make no progress before the phase says
	// Failed; 0 means for ever. The operator goes on trying all the same.
	UpgradeTimeout time.Duration
	// TLS is which connections instances are to take; empty: nothing is said of TLS.
	TLS v1alpha1.TLSMode
	// ClientCertificates is what they are to want of clients by TLS.
	ClientCertificates v1alpha1.ClientCertificates
	// CertificateDir is where they have the files of their certificate.
	CertificateDir string
	// OnDelete leaves the restarting of instances to the user.
	OnDelete bool
	// Apart reports whether instances of a shard may never share a node.
	Apart bool
	// SpreadMasters asks for masters on different nodes and in different zones.
	SpreadMasters bool
	// Ephemeral reports whether an instance's data goes with its pod, OnNode that it is in a directory of
	// the pod's node. GiveUpNode is a node that is gone for good; empty when none is.
	Ephemeral, OnNode bool
	GiveUpNode        string
	// Modules identifies those that instances are to load; empty without any.
	Modules string
	// ScaleTo is how many shards the load asks for, and ScaleWhy says why; 0: it asks for none but those of Topology.
	ScaleTo  int
	ScaleWhy string
	// ScaleMost is how many shards there may be at most where the load decides on that; 0: it does not.
	ScaleMost int
	// Held reports whether the pod template is another one only because of the operator, and the cluster's turn has not come.
	Held bool
	// FollowsLoad reports whether slots are to be where the load asks for them, and ByLoad is where that is, if they are to move; nil: they
	// stay.
	FollowsLoad bool
	ByLoad      *ByLoad
	// Restore reports whether a new cluster is to begin with a backup.
	Restore bool
	// Import is the server outside that a new cluster takes its data from; nil without one. UID is that of the RedisCluster: the node IDs
	// that instances know such servers by follow from it.
	Import *DesiredImport
	UID    types.UID
	// External reports whether clients outside are let in.
	External bool
	// Settings are those of redis.conf that are asked for, by name; nil when they are not
	// known.
	Settings []redisconf.Setting
}

// DesiredFor is what a cluster, with its defaults, asks for.
func DesiredFor(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, o Options) Desired {
	spec, template := &cluster.Spec, cluster.Spec.Template()
	d := Desired{
		Topology: spec.Topology(), FileShards: fileShards(cluster), Policy: cluster.DeletionPolicy(), Paused: spec.Pause,
		Hibernate: spec.Hibernate, Deleting: cluster.DeletionTimestamp != nil, HasFinalizer: hasFinalizer(cluster),
		CreateTimeout: o.CreateTimeout, UpgradeTimeout: o.UpgradeTimeout,
		AssignReceive: spec.UpdateStrategy.Type == v1alpha1.AssignReceive, KeysPerSecond: int(spec.UpdateStrategy.KeysPerSecond),
		Apart: spec.AntiAffinity == v1alpha1.AntiAffinityRequired, SpreadMasters: ptr.Deref(spec.SpreadMasters, true),
		OnDelete: template.UpdateStrategy.Type == v1alpha1.OnDelete, Modules: redisconf.ModulesDigest(spec),
		OverCapacity: cluster.Annotations[v1alpha1.AnnotationOverCapacity] == "true",
		GiveUp:       cluster.Annotations[v1alpha1.AnnotationGiveUpData], GiveUpNode: cluster.Annotations[v1alpha1.AnnotationGiveUpNode],
		GiveUpSource:        cluster.Annotations[v1alpha1.AnnotationGiveUpSource],
		Switchover:          cluster.Annotations[v1alpha1.AnnotationSwitchover],
		PreviousPasswordFor: cluster.PreviousPasswordFor(), Restore: cluster.Restore() != nil,
		Import: importFor(cluster), UID: cluster.UID, External: cluster.Spec.External != nil,
		FollowsLoad: spec.Balance != nil && spec.Balance.Mode == v1alpha1.BalanceMove,
	}
	d.Fenced, d.FenceProblem = cluster.Fenced()
	for _, entry := range spec.UpdateStrategy.AssignStrategies {
		d.SlotAssignments = append(d.SlotAssignments, SlotAssignment{Slots: int(entry.Slots), From: entry.From(), To: entry.To()})
	}
	if spec.TLS != nil {
		d.TLS, d.CertificateDir = cluster.TLSMode(), cmp.Or(o.CertificateDir, redisconf.TLSDir)
		d.ClientCertificates = cluster.ClientCertificates()
	}
	if volumes := template.Volumes; volumes != nil {
		d.Ephemeral, d.OnNode = volumes.Type == v1alpha1.VolumeEmptyDir, volumes.Type == v1alpha1.VolumeHostPath
	}
	if claim := spec.Claim(); claim != nil {
		d.ClaimBytes = claim.Size.Value()
		if claim.MaxSize != nil {
			d.MostClaimBytes = claim.MaxSize.Value()
		}
	}
	allows := admission.Options{AllowHostPath: o.AllowHostPath, ServiceAnnotationDomains: o.ServiceAnnotations,
		ClusterIssuers: o.ClusterIssuers}
	for _, problem := range admission.Validate(cluster, allows) {
		d.Problems = append(d.Problems, problem.Error())
	}
	if s.Config.Problem != "" {
		d.Problems = append(d.Problems, s.Config.Problem)
	}
	if problem := toRestore(cluster, s); problem != "" {
		d.Problems = append(d.Problems, problem)
	}
	if problem := toHibernate(cluster, s); problem != "" {
		d.Problems = append(d.Problems, problem)
	}
	if problem := admission.AfterAutoscale(cluster); problem != nil {
		d.Problems = append(d.Problems, problem.Error())
	}
	if len(d.Problems) == 0 {
		d.Settings = redisconf.AskedFor(cluster, s.Config.Settings)
		d.NodeTimeout = nodeTimeout(d.Settings)
	}
	return d
}

// fileShards is Desired.FileShards of a cluster.
func fileShards(cluster *v1alpha1.RedisCluster) int {
	if files := cluster.BeginsFromFiles(); files != nil {
		return len(files.Shards)
	}
	return 0
}

// toRestore says why a new cluster cannot begin with a backup; empty: it can, or has begun.
func toRestore(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) string {
	if cluster.Restore() == nil || s.Formed {
		return ""
	}
	for _, setting := range redisconf.AskedFor(cluster, s.Config.Settings) {
		if setting.Name == "appendonly" && setting.Value() != "yes" {
			return "spec.config[appendonly]: a backup is restored as an append-only file: leave appendonly at yes until the cluster runs"
		}
	}
	return ""
}

// toHibernate says why the user's ConfigMap does not let a cluster be hibernated; empty: it does, or is not asked for. Admission knows
// of spec.config.
func toHibernate(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) string {
	for _, setting := range redisconf.AskedFor(cluster, s.Config.Settings) {
		if cluster.Spec.Hibernate && setting.Source == redisconf.FromConfigMap && setting.Name == "appendonly" && setting.Value() != "yes" {
			return "spec.hibernate: " + setting.Field() + " keeps data out of files, and it would be lost: set it to yes, or set hibernate to false"
		}
	}
	return ""
}

func hasFinalizer(cluster *v1alpha1.RedisCluster) bool {
	return slices.Contains(cluster.Finalizers, v1alpha1.Finalizer)
}

// nodeTimeout is cluster-node-timeout of the settings; 0 when it is not a number.
func nodeTimeout(settings []redisconf.Setting) time.Duration {
	for _, setting := range settings {
		if setting.Name == "cluster-node-timeout" {
			milliseconds, err := strconv.Atoi(setting.Value())
			if err == nil {
				return time.Duration(milliseconds) * time.Millisecond
			}
		}
	}
	return 0
}

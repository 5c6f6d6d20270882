// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot is what one reconciliation saw of a RedisCluster: plain values that deciding
// and reporting are computed from. What could not be read is Unknown, never absent.
package snapshot

import (
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Snapshot is what one reconciliation saw.
type Snapshot struct {
	// Shards are the StatefulSets that exist, by shard number.
	Shards []Shard
	// Instances are the pods that exist, by shard and ordinal.
	Instances []Instance
	// Taken are the pods of others that have the names of instances, so that those cannot
	// start. Only Name, Shard and Ordinal are set.
	Taken []Instance
	// Claims are the instances' persistent volume claims, by name.
	Claims []Claim
	// Auth is what is known of the password.
	Auth Auth
	// TLS is what is known of the instances' certificate.
	TLS TLS
	// TLSStage is the stage of TLS that redis.conf had after the last reconciliation, TLSMode what clients could rely on; unknown and
	// empty when there was none.
	TLSStage redisconf.TLSStage
	TLSMode  v1alpha1.TLSMode
	// ClientCertificates is what was last said that clients can rely on; empty: nothing was. LoadedAuthorities identifies what is trusted
	// that all instances were told to load, or is AuthoritiesChanging; empty: not known.
	ClientCertificates v1alpha1.ClientCertificates
	LoadedAuthorities  string
	// Config is what the user's ConfigMap sets.
	Config UserConfig
	// HasOwnedChildren reports whether some child still names the RedisCluster as its owner.
	HasOwnedChildren bool
	// RolledAt is when the rollout that is under way last made progress; zero when none is.
	RolledAt time.Time
	// Formed reports whether the cluster has been healthy once before.
	Formed bool
	// Scaling reports whether the cluster was on its way to another topology in the last reconciliation.
	Scaling bool
	// Rolling reports whether instances were to be restarted in the last reconciliation, or had just been.
	Rolling bool
	// Stalled is the cause of the stall that the last reconciliation told; empty when it told none.
	Stalled string
	// DataVolumes are, by pod, the volumes that data was last seen in: the UID of the claim,
	// node/NAME for a directory of a node, or shared; empty when the data was given up.
	DataVolumes map[string]string
	// PlacedOn are, by pod, the nodes that instances that are OnNode last ran on.
	PlacedOn map[string]string
	// Seen are node IDs that instances of this cluster have answered to before.
	Seen map[string]bool
	// SlotsAssigned reports whether the slots were last distributed by AssignReceive.
	SlotsAssigned bool
	// Answered are nodes that answered this process of the operator before and do not now, by node ID. One that nobody follows is forgotten
	// after an hour.
	Answered map[string]Answered
	// Disowned are slots that FindDisowned has found at every look since DisownedSince.
	Disowned      slots.Set
	DisownedSince time.Time
	// Goal is which shard is to own which slots, as recorded when a scaling began; nil
	// when no slots are to move.
	Goal *Goal
	// Hibernated are how many instances each shard had, by shard, as written down before they were stopped; nil: the cluster is awake.
	Hibernated v1alpha1.Topology
	// Settings are those that redis.conf held after the last reconciliation, and those that running
	// instances may still have from it: name to value.
	Settings map[string]string
	// Refusals are the settings that engines refused.
	Refusals []Refusal
	// Backup is the one that is being taken or is next; without a UID there is none.
	Backup Backup
	// Restore is what is known of the backup that the cluster is to begin with, Restored what it began with; nil
	// without one.
	Restore  *Restore
	Restored *v1alpha1.RestoredData
	// Archive is what is known of the archive that is written of the cluster; nil: none is asked for.
	Archive *Archive
	// Import is what is known of the server outside that a cluster which has not formed takes its data from; nil without one.
	Import *Import
	// External is what is known of how clients outside reach the cluster; nil: none are let in.
	External *External
	// Weights are what slots bear; nil: that is not known, or not asked for.
	Weights *SlotWeights

	// Certificate is the Certificate that was written down to be made, or that is there; empty: none is.
	Certificate string

	index *index
}

// SlotWeights are what slots bear, by their numbers: the bytes of their keys, estimated, and how many processors they keep busy, nil where
// engines do not count that.
type SlotWeights struct{ Bytes, Processor []float64 }

// Backup is a RedisBackup that is being taken, or is to be taken as soon as no slots move.
type Backup struct{ Name, UID string }

// Restore is what is known of restoring a new cluster.
type Restore struct {
	// From is where the backup lies. Withheld says, with a field path and a remedy, why it cannot be restored; then From is not
	// known.
	From     v1alpha1.BackupLocation
	Withheld string
	// Jobs are those that restore the shards, by shard.
	Jobs map[int]RestoreJob
}

// RestoreJob is the Job that restores a shard.
type RestoreJob struct {
	Name, UID string
	// Done and Failed report how it ended, Terminating that it is being deleted.
	Done, Failed, Terminating bool
	// Message is why it failed, what the last of its pods that failed said, or what keeps one from running.
	Message string
	// From is where the backup lies, for people.
	From string
	// Report is what it restored; nil: not known. Heard is how far its pod is that runs; nil: not known.
	Report *report.Report
	Heard  *report.Heard
}

// Archive is what is known of the archive that is written of a cluster.
type Archive struct {
	// Pod is the one that writes it; empty: there is none. Ready reports whether its kubelet finds it behind no further than it may be;
	// Waiting says why it does not run, empty when it does; Ended is what it said when it last ended badly.
	Pod            string
	Ready          bool
	Waiting, Ended string
	// Said is what it said last, at SaidAt; nil: nothing that could be read.
	Said   *report.Archive
	SaidAt time.Time
}

// Import is what is known of an import, or of a clone.
type Import struct {
	// From is what leads to the server. Withheld says, with a field path and a remedy, why it cannot begin; then From may not be known.
	From     ImportFrom
	Withheld string
	// Following reports whether the first instances are known to be prepared, CutOver whether the cluster is known to have taken over,
	// at CutOverAt.
	Following, CutOver bool
	CutOverAt          time.Time
	// Other is what the import began with, if that is not what the spec says now; empty: it is, or nothing has begun.
	Other string
	// Slots are those that each shard begins with, by shard; nil: that is not known yet.
	Slots []slots.Set
	// Shards are what each shard needs for it, by shard: as many as there are Slots, or as the first one's Job says, but one at least.
	// Beyond is a Job that prepared a further one; empty: there is none.
	Shards []ImportShard
	Beyond string
}

// Begins are the slots that a shard begins with, as it was written down or, before, as its Job says; false: that is not known.
func (i *Import) Begins(shard int) (slots.Set, bool) {
	if shard < len(i.Slots) {
		return i.Slots[shard], true
	}
	if len(i.Slots) > 0 || shard >= len(i.Shards) || i.Shards[shard].Said == nil {
		return slots.Set{}, false
	}
	set, err := slots.Parse(i.Shards[shard].Said.Slots)
	return set, err == nil
}

// ImportFrom is what leads to a server outside, or to a RedisCluster that is cloned: where it is, who logs in with the password under which
// key of a Secret (empty: none is asked for), the Secret of the certificates to trust (empty: connections are not encrypted), and that of
// the certificate to show (empty: none).
type ImportFrom struct {
	Address, User, PasswordSecret, PasswordKey, TrustSecret, ServerName, ShownSecret string
}

// ImportShard is what a shard needs to follow a server outside.
type ImportShard struct {
	// Relay is the Job of the relay; nil without one. Its Message is what keeps a pod of it from running, or what it said in the end.
	Relay *RestoreJob
	// Service reports whether the relay's Service exists, and stays.
	Service bool
	// Prepared is the Job that prepares the first instance; nil without one. Said is what it did; nil: not known.
	Prepared *RestoreJob
	Said     *report.Following
	// Told is the address that the first instance was prepared to follow, At the one that the relay's Service has: that is looked at when
	// all is prepared and the shard has not started; empty: it has none that lasts.
	Told, At string
	// RelayIP is where the relay answers; empty while it does not run.
	RelayIP string
	// Source is what the server says, by the relay; nil: not known, and Error says why.
	Source *Source
	Error  string
}

// Source is a server outside.
type Source struct {
	Engine, Version string
	Master          bool
	// History names the history of its data, Offset is where it is in that.
	History string
	Offset  int64
	// Others reports whether there are keys in other databases than 0.
	Others bool
	// Slots are those that it owns, all if it is in no cluster; Open is how many of them, or of others', move.
	Slots slots.Set
	Open  int
	// Held is why the relay does not let it be followed at the moment; empty: it does.
	Held string
}

// Answered is what is remembered of a node that does not answer.
type Answered struct {
	// At is when it last answered.
	At time.Time
	// Master reports whether it owned slots then, and nobody else of its shard was seen to become a master since.
	Master bool
}

// Goal is which shard is to own which slots.
type Goal struct {
	// For is what the goal was computed for: another desire makes another goal.
	For string
	// From is how many shards owned slots when the scaling began.
	From int
	// Shards are the slots that each shard is to own, by shard number. Together they are
	// all slots, each once.
	Shards []slots.Set
}

// Shard is one StatefulSet.
type Shard struct {
	Index int
	Name  string
	// UID and Version are those of the object that was seen: nothing is done to another.
	UID, Version string
	Replicas     int32
	// Hibernated is how many instances are to start again, as it says since it was told to ask for none; 0: it was not, or has been woken.
	Hibernated int32
	CreatedAt  time.Time
	// Terminating reports whether the StatefulSet is being deleted.
	Terminating bool
	// UpdateRevision is the revision of the template that new pods get.
	UpdateRevision string
	// Unobserved reports whether the StatefulSet's controller has not seen the template of now: which
	// pods are older is not known yet.
	Unobserved bool
	// ClaimSize is what the claim template requests, such as 1Gi; empty without one.
	ClaimSize string
}

// Claim is a persistent volume claim.
type Claim struct {
	Name, UID string
	// Shard and Ordinal are those of the instance that the claim is of.
	Shard, Ordinal int
	// Requested is the storage asked for, in bytes.
	Requested int64
	// Terminating reports whether the claim is being deleted: it goes when no pod uses it any more.
	Terminating bool
	// Pending reports whether the claim has no volume yet: only then it cannot request more.
	Pending bool
	// ToRestore reports whether the claim was made for this cluster to be restored into; Job is the UID of the Job that it goes
	// with, empty as soon as it stays.
	ToRestore bool
	Job       string
}

// Pod is the name of the pod that the claim was made for: a StatefulSet's claim template
// named data makes data-POD.
func (c Claim) Pod() string { return strings.TrimPrefix(c.Name, "data-") }

// ClaimOf is the claim of an instance; nil: it has none. Claims are in the order of their names.
func (s *Snapshot) ClaimOf(in *Instance) *Claim {
	i, found := slices.BinarySearchFunc(s.Claims, "data-"+in.Name, func(c Claim, name string) int { return strings.Compare(c.Name, name) })
	if !found {
		return nil
	}
	return &s.Claims[i]
}

// Auth is what is known of the password.
type Auth struct {
	// Known reports whether the password is known, or that none is needed.
	Known bool
	// Absent reports whether the operator's Secret was seen not to exist.
	Absent bool
	// Problem says why the password is not known, with a remedy.
	Problem string
	// Wanted is what every instance is to accept; nil when nobody is asked for a
	// password.
	Wanted *Access
	// Due reports whether the operator's Secret does not hold the password that is asked for,
	// UsersDue that it does not hold the users. AskedProblem says which Secret of the user's
	// cannot be used, with a remedy; then what was asked before stays.
	Due, UsersDue bool
	AskedProblem  string
	// Changing is how far a change of the password has come, ChangedAt when that stage began.
	Changing  PasswordStage
	ChangedAt time.Time
}

// TLS is what is known of the instances' certificate.
type TLS struct {
	Enabled bool
	// Known reports whether instances can be reached: their certificate is known, or there is none.
	Known bool
	// Problem says why what the Secrets hold now cannot be used, with a remedy. Waits: cert-manager is about to make what is missing.
	Problem string
	Waits   bool
	// NotAfter is when the first certificate expires: of the one that was last found in order
	// in the Secret, and of those that instances show.
	NotAfter time.Time
	// Authorities identifies the certificates that instances are to trust, also if they cannot be used; AuthoritiesSince is since when they
	// are those, as far as was seen.
	Authorities      string
	AuthoritiesSince time.Time
}

// AuthoritiesChanging is in the place of what identifies trusted certificates while instances are told to load others: some may trust what
// was there meanwhile, also if it is as before again.
const AuthoritiesChanging = "Changing"

// AuthoritiesChange reports whether instances were not all told to load the certificates that they are to trust.
func (s *Snapshot) AuthoritiesChange() bool {
	return s.LoadedAuthorities == AuthoritiesChanging ||
		s.LoadedAuthorities != "" && s.TLS.Authorities != "" && s.LoadedAuthorities != s.TLS.Authorities
}

// UserConfig is what the user's ConfigMap (spec.pod[0].configmap) sets.
type UserConfig struct {
	// Settings are by name; Problem says, with a field path and a remedy, why there are none.
	Settings map[string]string
	Problem  string
}

// Withheld is why no StatefulSet may be written: a Secret that one would name is not meant for
// the cluster, or cannot be read.
type Withheld struct {
	// Cause is the reason of the condition Stalled; Message says what to do.
	Cause, Message string
}

// PasswordStage is how far a change of the password has come; empty when none is under way.
type PasswordStage string

// The stages of a change of the password.
const (
	// PasswordAccepting: the next one is made known to every instance.
	PasswordAccepting PasswordStage = "Accepting"
	// PasswordRetiring: clients are told the new one, the previous one is still accepted.
	PasswordRetiring PasswordStage = "Retiring"
)

// Access is which passwords and users an instance accepts, and how it logs in to its master; passwords are digests.
type Access struct {
	// Passwords are those of the user default, sorted.
	Passwords []string
	// Link is what the instance logs in to its master with.
	Link string
	// Users identifies the other users; empty when it is not known which those are.
	Users string
	// Live are rights that the user of backups is to have on this instance besides.
	Live []string
}

// Instance is one pod and the Redis in it.
type Instance struct {
	Name    string
	UID     string
	Shard   int
	Ordinal int
	IP      string
	// IPSince is since when the operator has seen it at that address; zero while nobody outside is let in.
	IPSince time.Time
	// Way is how the operator reaches its Redis.
	Way        Way
	DomainName string
	NodeName   string
	// Zone is that of the node, empty when Kubernetes does not tell pods of it.
	Zone   string
	HostIP string
	// OnNode reports whether the pod keeps its data in a directory of its node.
	OnNode bool
	// Unplaced reports whether the pod waits to be told which node its data is on.
	Unplaced bool
	// Ready is the pod's own readiness.
	Ready bool
	// HasReadinessGate reports whether the pod is ready only while it is InEndpoints: then the Service leads
	// clients to it. RemovedFromEndpointsAt is when that ended.
	HasReadinessGate, InEndpoints bool
	RemovedFromEndpointsAt        time.Time
	// Restarts is how often the kubelet has started the Redis container of the pod again; LastEnd says how it ended last, such as
	// "OOMKilled, exit code 137", and is empty if that is not known.
	Restarts int32
	LastEnd  string
	// Fenced reports whether the instance is left alone, as a person asks; only planning says so.
	Fenced bool
	// Terminating reports whether the pod is being deleted; StopBy is when its grace period ends.
	Terminating bool
	StopBy      time.Time
	// Waiting says why the pod does not run, empty when it does. Failing reports whether something
	// keeps it from running, rather than that it is still on its way.
	Waiting string
	Failing bool
	// Initializing names the init container that runs while Redis has not run in the pod yet; empty: none does.
	Initializing string
	// SidecarFailure says why another container of the pod than that of Redis does not run or is not ready, empty when
	// they are: the pod is not ready then, and its Redis is all the same.
	SidecarFailure string
	// Stopped reports whether the container of Redis does not run, as Kubernetes says, and that the
	// pod is not being deleted; StoppedAt since when, by the clock of its node, zero when it never
	// ran.
	Stopped   bool
	StoppedAt time.Time
	// Ended reports whether the pod has come to its end, as Kubernetes says: nothing of it runs again. Refuses reports whether
	// nobody listens at the address of one that is Stopped, which was tried when slots had no owner: its kubelet may have started
	// the container again, and be unable to say so.
	Ended, Refuses bool
	// Accepts reports whether somebody accepted a connection there then.
	Accepts bool
	// Revision is the revision of the template that the pod was made from.
	Revision string
	// Modules identifies the modules that the pod was made with; empty without any.
	Modules string
	// HasCertificate reports whether the pod has the files of the certificate, TwoPorts whether it is one that takes plain connections
	// and TLS.
	HasCertificate, TwoPorts bool
	// OtherAuthorities reports whether the pod has what it trusts from another Secret than the one that is asked for, until it is replaced.
	OtherAuthorities bool
	// ExporterShowsNone reports whether the pod has an exporter that Redis would refuse if it wanted a certificate.
	ExporterShowsNone bool
	// TLSError is why TLS failed of an instance that was reached plainly then; empty: it did not, or was not tried.
	TLSError string
	// TerminationMessage is what the container of Redis said when it last ended badly; empty when it
	// did not.
	TerminationMessage string
	// Redis is nil when Redis could not be asked; Error says why.
	Redis *Redis
	Error string
	// Redirections is how many commands the instance has answered with MOVED.
	Redirections int64
	// Refused reports whether Redis refused the password.
	Refused bool
	// MemoryLimit is what the Redis container may use, in bytes; 0 without a limit.
	MemoryLimit int64
	// Image is that of the Redis container.
	Image string
}

// Address is where clients and the operator reach the instance's Redis.
func (in *Instance) Address() string { return in.Way.Address(in.IP) }

// RemovedFromEndpoints reports whether the Service was told to lead no client to the instance any more.
func (in *Instance) RemovedFromEndpoints() bool {
	return in.HasReadinessGate && !in.InEndpoints && !in.RemovedFromEndpointsAt.IsZero()
}

// Refusal is a setting that a running instance refused.
type Refusal struct {
	Name, Value string
	// Engine is who refused, such as redis 7.0.15.
	Engine string
	// Message is what it said.
	Message string
	// Immutable reports whether only an instance that starts takes the setting.
	Immutable bool
	At        time.Time
}

// Room is what the data of an instance that answers may take, in bytes; 0 when nothing limits it.
func (in *Instance) Room() int64 {
	if in.Redis.MaxMemory > 0 {
		return in.Redis.MaxMemory
	}
	return redisconf.MaxMemory(in.MemoryLimit)
}

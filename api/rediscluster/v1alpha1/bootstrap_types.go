// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bootstrap is what a new cluster begins with.
//
// +kubebuilder:validation:XValidation:rule="(has(self.restore) ? 1 : 0) + (has(self.__import__) ? 1 : 0) + (has(self.clone) ? 1 : 0) == 1",message="say what the cluster begins with: set one of restore, import and clone, or leave bootstrap out",fieldPath=".restore"
type Bootstrap struct {
	// restore makes the cluster begin with the data of a backup. What leads to it (Secrets, those of its store among them, a
	// claim, a ServiceAccount) must carry the label redis.middleware.hc.cn/restore: "true".
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=146,displayName="Restore"
	Restore *Restore `json:"restore,omitempty"`

	// import makes the cluster take the data of a Redis or Valkey server outside, or of a cluster of them, which it follows until
	// cutOver. The Secrets that lead to it must carry the label redis.middleware.hc.cn/restore: "true".
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=160,displayName="Import"
	Import *Import `json:"import,omitempty"`

	// clone makes the cluster take the data of another RedisCluster of the namespace, all shards as they are at one moment. That one
	// goes on.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=168,displayName="Clone"
	Clone *Clone `json:"clone,omitempty"`
}

// Restore names the backup that a new cluster begins with.
//
// +kubebuilder:validation:XValidation:rule="(has(self.redisBackup) ? 1 : 0) + (has(self.location) ? 1 : 0) + (has(self.files) ? 1 : 0) == 1",message="say which data: set one of redisBackup, location and files",fieldPath=".redisBackup"
type Restore struct {
	// redisBackup is the name of a RedisBackup in the namespace of the RedisCluster, of whichever cluster. It is
	// waited for until it is Completed.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=52
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=147,displayName="Redis Backup",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	RedisBackup string `json:"redisBackup,omitempty"`

	// location is where a backup lies that no RedisBackup of the namespace speaks of, such as one of another
	// Kubernetes cluster.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=148,displayName="Location"
	Location *BackupLocation `json:"location,omitempty"`

	// files are files of Redis or Valkey servers in a store, which are no backup: an RDB of one server, or that of each master of a cluster.
	// The cluster begins with a shard for each entry, and is then scaled to what the spec asks for.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=170,displayName="Files"
	Files *RestoreFiles `json:"files,omitempty"`

	// identitySecretName is a Secret of the namespace with the age private keys (AGE-SECRET-KEY-1…) that
	// decrypt the backup, a line each, under the key identity. It must carry the label
	// redis.middleware.hc.cn/restore: "true". With it a backup that is not encrypted is refused.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=149,displayName="Private Key",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	IdentitySecretName string `json:"identitySecretName,omitempty"`

	// maxBytesPerSecond is how much is read from the store in a second, by all shards together: from 100k to 999G.
	// Default: no limit.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=150,displayName="Bytes Per Second",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	MaxBytesPerSecond ByteRate `json:"maxBytesPerSecond,omitempty"`
}

// RestoreFiles are files that servers wrote.
type RestoreFiles struct {
	// store is where they lie.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=171,displayName="Store"
	Store BackupStore `json:"store"`

	// shards are the shards that the cluster begins with, each with the data of one server: 1 to 500.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=500
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=172,displayName="Shards"
	Shards []RestoreFileShard `json:"shards"`
}

// RestoreFileShard is the data of one server.
type RestoreFileShard struct {
	// objects are the names of objects below the store's prefix, which are read one after the other: an RDB, or an append-only file, in
	// up to 8 parts. They are neither compressed nor encrypted.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9._=@+-]+(/[A-Za-z0-9._=@+-]+)*$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=173,displayName="Objects"
	Objects []string `json:"objects"`

	// slots are those that the server owned, as ranges: 0-5460,6000. Default, of one shard: all.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=174,displayName="Slots",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Slots string `json:"slots,omitempty"`
}

// BackupLocation is where a backup lies.
type BackupLocation struct {
	// store is what the backup was written to.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=151,displayName="Store"
	Store BackupStore `json:"store"`

	// namespace is that of the RedisCluster that was backed up.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=152,displayName="Namespace",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Namespace string `json:"namespace"`

	// cluster is the name of the RedisCluster that was backed up.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=153,displayName="Redis Cluster",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Cluster string `json:"cluster"`

	// name is that of the backup.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=154,displayName="Backup",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name"`

	// manifestChecksum is the SHA-256 of the backup's manifest.json, in hex digits, as status.manifestChecksum of its
	// RedisBackup had it. A backup that somebody has replaced since is refused. Default: any.
	//
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=155,displayName="Checksum",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	ManifestChecksum string `json:"manifestChecksum,omitempty"`

	// moment is for an archive: which of its moments. Default: it is a backup, which has one.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=156,displayName="Moment"
	Moment *ArchiveMoment `json:"moment,omitempty"`
}

// ArchiveMoment is a moment of an archive: the last one that it asks for.
type ArchiveMoment struct {
	// notAfter is the latest time that it may be of. Default, and at the latest: when the RedisCluster was made.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=157,displayName="Not After",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	NotAfter *metav1.Time `json:"notAfter,omitempty"`

	// consistent asks for a moment that is one for all shards, which an archive has once a minute. Without, shards may differ by some
	// milliseconds, and it has one every few seconds. Default: true.
	//
	// +kubebuilder:default=true
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=158,displayName="Consistent",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Consistent *bool `json:"consistent,omitempty"`
}

// RestoredData is the backup that a cluster began with.
type RestoredData struct {
	// location is where it lies in the store.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=201,displayName="Location",xDescriptors={"urn:alm:descriptor:text"}
	Location string `json:"location"`

	// manifestChecksum is the SHA-256 of its manifest, in hex digits.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=202,displayName="Checksum",xDescriptors={"urn:alm:descriptor:text"}
	ManifestChecksum string `json:"manifestChecksum"`

	// markedAt is the moment that the data was of.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=203,displayName="Data Of",xDescriptors={"urn:alm:descriptor:text"}
	MarkedAt metav1.Time `json:"markedAt"`

	// consistent reports whether the data of all shards was of that moment.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=204,displayName="Consistent",xDescriptors={"urn:alm:descriptor:text"}
	Consistent bool `json:"consistent"`

	// bytes is the size of the data.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=205,displayName="Bytes of Data",xDescriptors={"urn:alm:descriptor:text"}
	Bytes int64 `json:"bytes"`

	// keys are those that all masters held when they had loaded the data, before clients could write. It is absent until they are
	// counted.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=207,displayName="Keys"
	Keys *KeyCount `json:"keys,omitempty"`

	// slots are those that each shard began with, as ranges: 0-5460,6000.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=206,displayName="Slots",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Slots []string `json:"slots"`
}

// Restore is the backup that the cluster is to begin with; nil without one.
func (c *RedisCluster) Restore() *Restore {
	if c.Spec.Bootstrap == nil {
		return nil
	}
	return c.Spec.Bootstrap.Restore
}

// BeginsFromFiles are the files that the cluster is to begin with; nil without any.
func (c *RedisCluster) BeginsFromFiles() *RestoreFiles {
	if restore := c.Restore(); restore != nil {
		return restore.Files
	}
	return nil
}

// Location is where the files lie, named by the first of them.
func (f *RestoreFiles) Location() BackupLocation {
	l := BackupLocation{Store: f.Store}
	if len(f.Shards) > 0 && len(f.Shards[0].Objects) > 0 {
		l.Name = f.Shards[0].Objects[0]
	}
	return l
}

// RestoreJobName is the name of the Job that restores a shard.
func (c *RedisCluster) RestoreJobName(shard int) string {
	return fmt.Sprintf("%s-%d-restore", c.Name, shard)
}

// RestoredBy is the shard whose Job has a name; false when no Job of the cluster can have it.
func (c *RedisCluster) RestoredBy(job string) (shard int, ok bool) {
	set, ok := strings.CutSuffix(job, "-restore")
	if !ok {
		return 0, false
	}
	return c.ShardOf(set)
}

// ClaimName is the name of an instance's persistent volume claim.
func (c *RedisCluster) ClaimName(shard, ordinal int) string {
	return fmt.Sprintf("data-%s-%d", c.ShardName(shard), ordinal)
}

// Location is where the backup lies, or will lie.
func (b *RedisBackup) Location() BackupLocation {
	return BackupLocation{Store: b.Spec.Store, Namespace: b.Namespace, Cluster: b.Spec.Cluster, Name: b.Name,
		ManifestChecksum: b.Status.ManifestChecksum}
}

// Folder is where the backups of the cluster lie in the store, with a slash at its end: no two clusters share one. Of files, which are of
// none, it is the store's prefix; empty: it has none.
func (l BackupLocation) Folder() string {
	if l.Cluster == "" {
		return strings.TrimPrefix(path.Join(l.Store.Prefix())+"/", "/")
	}
	return path.Join(l.Store.Prefix(), l.Namespace, l.Cluster) + "/"
}

// String is where the backup lies, for people.
func (l BackupLocation) String() string {
	place := l.Store.place() + "/" + l.Folder() + l.Name
	if l.Moment != nil {
		place += "@" + l.Moment.To()
	}
	return place
}

// Before is the moment with a time that it is not after: an archive goes on, and all who look for the last moment are to find the same.
func (m *ArchiveMoment) Before(at metav1.Time) *ArchiveMoment {
	is := m.DeepCopy()
	if is.NotAfter == nil || at.Before(is.NotAfter) {
		is.NotAfter = &at
	}
	return is
}

// To is the time that the moment may not be after, in UTC, or latest.
func (m *ArchiveMoment) To() string {
	if m.NotAfter == nil {
		return "latest"
	}
	return m.NotAfter.UTC().Format(time.RFC3339)
}

// AnnotationRestoredFor on a claim is the UID of the RedisCluster that it was made for, to be restored into.
const AnnotationRestoredFor = "redis.middleware.hc.cn/restored-for"

// AnnotationRestoredFrom on a Job is where the backup lies that it restores, for people.
const AnnotationRestoredFrom = "redis.middleware.hc.cn/restored-from"

// LabelClone with the value true on the Secret with a RedisCluster's passwords lets who may make RedisClusters in its namespace clone that
// one, which is to read all its data. It is not LabelRestore: an import could be had send the Secret's first password to any server.
const LabelClone = "redis.middleware.hc.cn/clone"

// LabelRestore with the value true is what a Secret, a claim or a ServiceAccount must carry to be used for restoring a backup: who may make
// RedisClusters gets the data of every backup that they lead to.
const LabelRestore = "redis.middleware.hc.cn/restore"

// SecretKeyIdentity is the key of the Secret of spec.bootstrap.restore.identitySecretName.
const SecretKeyIdentity = "identity"

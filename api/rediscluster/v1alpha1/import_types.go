// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Import names the server, or the cluster, whose data a new cluster takes. Its data are followed as replicas do, and nothing is
// ever written to it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.user) || has(self.credentialsSecretName)",message="a user logs in with a password: set credentialsSecretName as well",fieldPath=".credentialsSecretName"
type Import struct {
	// address is where the server is reached, HOST:PORT. Of a server in cluster mode it is the address of any node, or of what leads
	// to one; the others are reached where the nodes announce them, by the host name if one is announced.
	//
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=261
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=161,displayName="Address",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Address string `json:"address"`

	// user is who logs in to the server. Default: the server's default user.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=162,displayName="User",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	User string `json:"user,omitempty"`

	// credentialsSecretName is a Secret of the namespace with the server's password, under the key password. It must carry
	// the label redis.middleware.hc.cn/restore: "true". Default: the server asks for no password.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=163,displayName="Password",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`

	// tls encrypts the connections to the server. Default: they are not encrypted. It has nothing to do with spec.tls.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=164,displayName="TLS"
	TLS *ImportTLS `json:"tls,omitempty"`

	// cutOver makes the cluster take the server's place: writes are paused at the server, or at all masters of its cluster, the
	// cluster gets the last of them, and takes over. Set it when status.import says how little is missing, and when clients are
	// ready to be led to the cluster. Default: false, the cluster follows.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=165,displayName="Cut Over",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	CutOver bool `json:"cutOver,omitempty"`

	// pauseSeconds is for how long writes are paused at the server from the cut-over on. The pause is not ended when the cluster
	// has taken over: until it ends by itself, what clients still write there waits. What they write there afterwards is not in
	// the cluster. Default: 30.
	//
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=166,displayName="Pause",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	PauseSeconds *int32 `json:"pauseSeconds,omitempty"`
}

// DefaultPauseSeconds is spec.bootstrap.import.pauseSeconds where it is not set.
const DefaultPauseSeconds = 30

// ImportTLS is how connections to the server are encrypted.
type ImportTLS struct {
	// caSecretName is a Secret of the namespace with the certificates to trust, in PEM, under the key ca.crt. It must carry the label
	// redis.middleware.hc.cn/restore: "true".
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=167,displayName="CA",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CASecretName string `json:"caSecretName"`

	// serverName is the name that the server's certificate is for, and that of each node of its cluster. Default: the host of
	// address, and for other nodes the host that they announce.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=168,displayName="Server Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	ServerName string `json:"serverName,omitempty"`
}

// Clone names the RedisCluster whose data a new cluster takes.
type Clone struct {
	// name is that of a RedisCluster of the namespace. Its Secret NAME-auth must carry the label
	// redis.middleware.hc.cn/clone: "true", unless it asks for no password.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=169,displayName="Redis Cluster",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Name string `json:"name"`
}

// ImportPhase is how far an import has come.
type ImportPhase string

// The phases of an import.
const (
	// ImportPreparing: the server is asked, and the first instance of each shard is prepared.
	ImportPreparing ImportPhase = "Preparing"
	// ImportFollowing: the first instances follow the server, or are about to.
	ImportFollowing ImportPhase = "Following"
	// ImportCutOver: the cluster has taken over, and does not follow the server any more.
	ImportCutOver ImportPhase = "CutOver"
)

// ImportStatus is how far an import has come.
type ImportStatus struct {
	// phase is Preparing, Following or CutOver.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=210,displayName="Phase",xDescriptors={"urn:alm:descriptor:text"}
	Phase ImportPhase `json:"phase"`

	// address is that of the server, or of the Service of the RedisCluster that is cloned.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=211,displayName="Address",xDescriptors={"urn:alm:descriptor:text"}
	Address string `json:"address"`

	// version is the engine that the server runs, and its version; of a cluster, those of its first shard.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=212,displayName="Version",xDescriptors={"urn:alm:descriptor:text"}
	Version string `json:"version,omitempty"`

	// lagBytes is how much of what was written to the server the cluster does not have, by all shards together. It is absent while
	// that is not known of one of them.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=213,displayName="Bytes Behind",xDescriptors={"urn:alm:descriptor:text"}
	LagBytes *int64 `json:"lagBytes,omitempty"`

	// cutOverAt is when the cluster was first seen to have taken over.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=214,displayName="Cut Over",xDescriptors={"urn:alm:descriptor:text"}
	CutOverAt *metav1.Time `json:"cutOverAt,omitempty"`

	// missedBytes is what came into the server's replication stream after the last that the cluster took over, by all shards together,
	// until the pause of writes was over: 0 if nobody wrote there. Each ping of another replica of the server has 14. It is absent if
	// the server did not say, or if the RedisCluster is a clone.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=215,displayName="Bytes Missed",xDescriptors={"urn:alm:descriptor:text"}
	MissedBytes *int64 `json:"missedBytes,omitempty"`

	// slots are those that each shard begins with, as ranges: 0-5460,6000.
	//
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=500
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=216,displayName="Slots",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Slots []string `json:"slots,omitempty"`
}

// Pause is for how long writes are paused.
func (i *Import) Pause() time.Duration {
	if i.PauseSeconds == nil {
		return DefaultPauseSeconds * time.Second
	}
	return time.Duration(*i.PauseSeconds) * time.Second
}

// Import is the server that the cluster takes its data from; nil without one.
func (c *RedisCluster) Import() *Import {
	if c.Spec.Bootstrap == nil {
		return nil
	}
	return c.Spec.Bootstrap.Import
}

// CloneOf is the name of the RedisCluster that the cluster takes its data from; empty without one.
func (c *RedisCluster) CloneOf() string {
	if c.Spec.Bootstrap == nil || c.Spec.Bootstrap.Clone == nil {
		return ""
	}
	return c.Spec.Bootstrap.Clone.Name
}

// Follows reports whether the cluster begins with the data of a server outside, or of another RedisCluster, that it follows.
func (c *RedisCluster) Follows() bool { return c.Import() != nil || c.CloneOf() != "" }

// SourceAddress is where the server answers that the cluster follows, or any instance of the RedisCluster that it clones; empty
// without one.
func (c *RedisCluster) SourceAddress() string {
	if from := c.Import(); from != nil {
		return from.Address
	}
	if of := c.CloneOf(); of != "" {
		return fmt.Sprintf("%s.%s.svc:%d", of, c.Namespace, PortRedis)
	}
	return ""
}

// Source is what the cluster takes its data from, as the field of spec.bootstrap that says so; empty without one.
func (c *RedisCluster) Source() string {
	if from := c.Import(); from != nil {
		return "import.address " + from.Address
	}
	if of := c.CloneOf(); of != "" {
		return "clone.name " + of
	}
	return ""
}

// AnnotationImportedFrom is on the Jobs of an import: the Source that it began with.
const AnnotationImportedFrom = "redis.middleware.hc.cn/imported-from"

// AnnotationGiveUpSource gives up a source that is gone for good, with what the instances lack of it, or lets a clone be of two
// moments. Its value is the one that the message names: another import has another one.
const AnnotationGiveUpSource = "redis.middleware.hc.cn/give-up-source"

const relaySuffix = "-import"

// RelayName is the name of the Job and of the Service of the relay through which a shard follows a server outside.
func (c *RedisCluster) RelayName(shard int) string { return c.ShardName(shard) + relaySuffix }

// RelayedBy is the shard whose relay's Job has a name; false when no Job of the cluster can have it.
func (c *RedisCluster) RelayedBy(job string) (shard int, ok bool) {
	set, ok := strings.CutSuffix(job, relaySuffix)
	if !ok {
		return 0, false
	}
	return c.ShardOf(set)
}

// importedMaster is what the node IDs begin with that instances know servers outside by, whichever RedisCluster imports them: no node has
// such a one, since engines draw theirs at random.
const importedMaster = "696d706f72740000"

// ImportMasterID is the node ID that the instances of a shard know the server outside by that they follow. It follows from the UID of the
// RedisCluster, so that it is known whatever became of the status.
func ImportMasterID(uid types.UID, shard int) string {
	const idBytes, shardBytes, digits = 20, 2, 2
	sum := sha256.Sum256([]byte("import " + string(uid)))
	return fmt.Sprintf("%s%x%04x", importedMaster, sum[:idBytes-shardBytes-len(importedMaster)/digits], shard)
}

// IsImportMasterID reports whether a node ID is one that instances know a server outside by, of whichever RedisCluster.
func IsImportMasterID(id string) bool { return strings.HasPrefix(id, importedMaster) }

// LabelRelay with the value true is on the pod of a relay: the operator asks it for what the server outside says.
const LabelRelay = "redis.middleware.hc.cn/relay"

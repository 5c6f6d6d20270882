// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Import names the server whose data a new cluster takes. The server is in no cluster; its data are followed as a replica does, and nothing
// is ever written to it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.user) || has(self.credentialsSecretName)",message="a user logs in with a password: set credentialsSecretName as well",fieldPath=".credentialsSecretName"
type Import struct {
	// address is where the server is reached, HOST:PORT.
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

	// cutOver makes the cluster take the server's place: writes are paused at the server, the cluster gets the last of them, and
	// takes over. Set it when status.import says how little is missing, and when clients are ready to be led to the cluster.
	// Default: false, the cluster follows.
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

	// serverName is the name that the server's certificate is for. Default: the host of address.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=168,displayName="Server Name",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	ServerName string `json:"serverName,omitempty"`
}

// ImportPhase is how far an import has come.
type ImportPhase string

// The phases of an import.
const (
	// ImportPreparing: the server is asked, and the first instance is prepared.
	ImportPreparing ImportPhase = "Preparing"
	// ImportFollowing: the first instance follows the server, or is about to.
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

	// address is that of the server.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=211,displayName="Address",xDescriptors={"urn:alm:descriptor:text"}
	Address string `json:"address"`

	// version is the engine that the server runs, and its version.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=212,displayName="Version",xDescriptors={"urn:alm:descriptor:text"}
	Version string `json:"version,omitempty"`

	// lagBytes is how much of what was written to the server the cluster does not have. It is absent while that is not known.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=213,displayName="Bytes Behind",xDescriptors={"urn:alm:descriptor:text"}
	LagBytes *int64 `json:"lagBytes,omitempty"`

	// cutOverAt is when the cluster was first seen to have taken over.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=214,displayName="Cut Over",xDescriptors={"urn:alm:descriptor:text"}
	CutOverAt *metav1.Time `json:"cutOverAt,omitempty"`

	// missedBytes is what came into the server's replication stream, by cutOverAt, after the last that the cluster took over: 0 if nobody
	// wrote there. Each ping of another replica of the server has 14. It is absent if the server did not say.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=215,displayName="Bytes Missed",xDescriptors={"urn:alm:descriptor:text"}
	MissedBytes *int64 `json:"missedBytes,omitempty"`
}

// Import is the server that the cluster takes its data from; nil without one.
func (c *RedisCluster) Import() *Import {
	if c.Spec.Bootstrap == nil {
		return nil
	}
	return c.Spec.Bootstrap.Import
}

// ImportName is the name of the Job and of the Service of the relay through which the cluster follows a server outside.
func (c *RedisCluster) ImportName() string { return c.Name + "-import" }

// importedMaster is what the node IDs begin with that instances know servers outside by, whichever RedisCluster imports them: no node has
// such a one, since engines draw theirs at random.
const importedMaster = "696d706f72740000"

// ImportMasterID is the node ID that instances of the cluster know a server outside by. It follows from the UID, so that it is known
// whatever became of the status.
func (c *RedisCluster) ImportMasterID() string {
	const idBytes, digits = 20, 2
	sum := sha256.Sum256([]byte("import " + string(c.UID)))
	return importedMaster + hex.EncodeToString(sum[:idBytes-len(importedMaster)/digits])
}

// IsImportMasterID reports whether a node ID is one that instances know a server outside by, of whichever RedisCluster.
func IsImportMasterID(id string) bool { return strings.HasPrefix(id, importedMaster) }

// LabelRelay with the value true is on the pod of a relay: the operator asks it for what the server outside says.
const LabelRelay = "redis.middleware.hc.cn/relay"

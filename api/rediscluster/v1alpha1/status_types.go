// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RedisClusterStatus is the cluster seen.
type RedisClusterStatus struct {
	// replicas is the number of instances that exist (scale subresource).
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=40,displayName="Instances",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas int32 `json:"replicas,omitempty"`

	// selector selects the pods of the cluster (scale subresource).
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=170,displayName="Pod Selector",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	Selector string `json:"selector,omitempty"`

	// shards is the number of masters that own slots.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=50,displayName="Shards",xDescriptors={"urn:alm:descriptor:text"}
	Shards int32 `json:"shards,omitempty"`

	// slots is how many of the 16384 slots are served by a reachable master.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=60,displayName="Covered Slots",xDescriptors={"urn:alm:descriptor:text"}
	Slots int32 `json:"slots,omitempty"`

	// instances is the number of ready instances and of all that are asked for, such
	// as 6/6.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=30,displayName="Ready Instances",xDescriptors={"urn:alm:descriptor:text"}
	Instances string `json:"instances,omitempty"`

	// phase is the situation in one word.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=10,displayName="Phase",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase"}
	Phase Phase `json:"phase,omitempty"`

	// reason explains the phase in a sentence.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=20,displayName="Reason",xDescriptors={"urn:alm:descriptor:io.kubernetes.phase:reason"}
	Reason string `json:"reason,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=180,displayName="Observed Generation",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions: Ready, Progressing, Degraded, SlotsCovered, Formed, Stalled,
	// Configured, AccessApplied, CertificateInUse, TLSModeInForce, MastersSpread, Anomalous, Archiving,
	// ExternalAccess, Hibernated, AutoscalingLimited, Upgraded.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=110,displayName="Conditions",xDescriptors={"urn:alm:descriptor:io.kubernetes.conditions"}
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// nodes are the instances: where each runs, what it owns and how it does.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=120,displayName="Instance Details"
	Nodes []NodeStatus `json:"nodes,omitempty"`

	// plan is what the operator does next.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=140,displayName="Plan"
	Plan *PlanStatus `json:"plan,omitempty"`

	// migration is the progress of moving slots between shards. It is absent when no
	// slots are to move.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=150,displayName="Slot Migration"
	Migration *MigrationStatus `json:"migration,omitempty"`

	// rollout is how far a new pod template has come. It is absent when no instance is to be
	// restarted.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=165,displayName="Rollout"
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// settings are those that redis.conf holds, apart from the operator's own, and those
	// that running instances may still have from it.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=190,displayName="Settings"
	Settings []SettingStatus `json:"settings,omitempty"`

	// refusedSettings are the settings that an engine refused.
	//
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=193,displayName="Refused Settings"
	RefusedSettings []RefusedSetting `json:"refusedSettings,omitempty"`

	// dataVolumes are, by pod, the volumes that data was last seen in: the UID of the claim,
	// node/NAME for a directory of a node, or shared when the instance has none of its own; empty when the data was given up. It is
	// absent when data goes with the pod (emptyDir).
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=195,displayName="Data Volumes",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	DataVolumes map[string]string `json:"dataVolumes,omitempty"`

	// placedOn are, by pod, the nodes that instances with volumes of type hostPath last ran on, written before they are
	// given data. Pods that are made anew start there.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=197,displayName="Placed On",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	PlacedOn map[string]string `json:"placedOn,omitempty"`

	// hibernatedInstances are how many instances each shard had, by shard, when they were stopped for spec.hibernate: as many start again.
	// It is absent while the cluster is awake.
	//
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=199,displayName="Hibernated Instances",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	HibernatedInstances []int32 `json:"hibernatedInstances,omitempty"`

	// slotsAssigned reports whether the slots are distributed by AssignReceive. When the type is set back
	// to AutoReceive, they are balanced.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=196,displayName="Slots Assigned",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	SlotsAssigned bool `json:"slotsAssigned,omitempty"`

	// heldForBackup is the UID of the RedisBackup for which slots stay where they are until it has ended.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=198,displayName="Held For Backup",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:hidden"}
	HeldForBackup types.UID `json:"heldForBackup,omitempty"`

	// restored is the backup that the cluster began with. It is absent until all of it lies in the claims.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=200,displayName="Restored"
	Restored *RestoredData `json:"restored,omitempty"`

	// restoring is how far the restore of the backup is that the cluster begins with. It is absent before and afterwards.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=219,displayName="Restoring"
	Restoring *TransferProgress `json:"restoring,omitempty"`

	// archive is what is written of the cluster. It is absent when spec.backup asks for none.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=210,displayName="Archive"
	Archive *ArchiveStatus `json:"archive,omitempty"`

	// external is how clients outside reach the cluster. It is absent without spec.external.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=221,displayName="External Access"
	External *ExternalStatus `json:"external,omitempty"`

	// import is how far the import of a server's data has come, or of those of the RedisCluster that is cloned. It is absent without
	// spec.bootstrap.import and spec.bootstrap.clone.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=209,displayName="Import"
	Import *ImportStatus `json:"import,omitempty"`

	// currentVersion is the oldest version that an instance runs.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=70,displayName="Current Version",xDescriptors={"urn:alm:descriptor:text"}
	CurrentVersion string `json:"currentVersion,omitempty"`

	// targetVersion is the version asked for: spec.version, or what instances of
	// pod[0].middlewareImage say that it is, once one has answered.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=80,displayName="Target Version",xDescriptors={"urn:alm:descriptor:text"}
	TargetVersion string `json:"targetVersion,omitempty"`

	// engine is what the instances run: redis or valkey.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=90,displayName="Engine",xDescriptors={"urn:alm:descriptor:text"}
	Engine string `json:"engine,omitempty"`

	// secretName is the Secret that holds the password under the key password.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=100,displayName="Password Secret",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	SecretName string `json:"secretName,omitempty"`

	// passwordChange is how far a change of the password has come. It is absent when none
	// is under way.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=101,displayName="Password Change"
	PasswordChange *PasswordChange `json:"passwordChange,omitempty"`

	// certificateNotAfter is when the certificate of the instances expires: the first of those
	// that they show and of the one in the Secret.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=106,displayName="Certificate Expiry",xDescriptors={"urn:alm:descriptor:text"}
	CertificateNotAfter *metav1.Time `json:"certificateNotAfter,omitempty"`

	// certificate is the Certificate of cert-manager that the operator makes for spec.tls.issuerRef, from before it is made until it is gone.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=229,displayName="Certificate",xDescriptors={"urn:alm:descriptor:text"}
	Certificate string `json:"certificate,omitempty"`

	// tls is which connections instances take. It is absent when they take plain ones only, and nothing of TLS is left.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=107,displayName="TLS"
	TLS *TLSStatus `json:"tls,omitempty"`

	// autoscale is how many shards the load asks for, and how many there are to be. It is absent without spec.autoscale, once
	// spec.shards is set.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=240,displayName="Autoscaling"
	Autoscale *AutoscaleStatus `json:"autoscale,omitempty"`

	// upgrade is how a change that only the operator made reaches the cluster. It is absent where clusters are not upgraded in waves.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=260,displayName="Upgrade"
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`
	// balance is how evenly shards bear the load. It is absent without spec.balance.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=303,displayName="Balance"
	Balance *BalanceStatus `json:"balance,omitempty"`
}

// TLSStatus is which connections instances take.
type TLSStatus struct {
	// mode is what clients can rely on: with Disabled plain connections, with Both either, with Required TLS. On the way
	// to spec.tls.mode the condition TLSModeInForce is False and says what that waits for. Required: no instance takes plain connections.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=108,displayName="TLS Mode",xDescriptors={"urn:alm:descriptor:text"}
	Mode TLSMode `json:"mode"`

	// stage is what an instance that starts takes: Plain (plain connections only), Bus (encrypted between instances), Both,
	// Second (TLS, at the port that Both has for it) or Required.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=109,displayName="TLS Stage",xDescriptors={"urn:alm:descriptor:text"}
	Stage string `json:"stage,omitempty"`

	// clientCertificates is what clients can rely on: with Required they have to show a certificate, because instances want one, or might.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=111,displayName="Client Certificates",xDescriptors={"urn:alm:descriptor:text"}
	ClientCertificates ClientCertificates `json:"clientCertificates,omitempty"`

	// authorities identifies the certificates that all instances were told to trust, or is Changing while they are told to trust others.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=112,displayName="Trusted Certificates",xDescriptors={"urn:alm:descriptor:text"}
	Authorities string `json:"authorities,omitempty"`
}

// PasswordChange is how far a change of the password has come.
type PasswordChange struct {
	// stage is Accepting (the next password is made known to every instance, clients use the
	// present one) or Retiring (clients are told the new password, instances accept the
	// previous one too).
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=102,displayName="Stage",xDescriptors={"urn:alm:descriptor:text"}
	Stage string `json:"stage"`

	// since is when the stage began.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=103,displayName="Since",xDescriptors={"urn:alm:descriptor:text"}
	Since metav1.Time `json:"since,omitempty"`

	// until is when the stage ends at the earliest.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=104,displayName="Until",xDescriptors={"urn:alm:descriptor:text"}
	Until metav1.Time `json:"until,omitempty"`

	// message says what the stage waits for.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=105,displayName="Message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message,omitempty"`
}

// RolloutStatus is how far a new pod template has come.
type RolloutStatus struct {
	// updated is the number of instances that are not of an older template any more,
	// whether they serve or not.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=166,displayName="Updated Instances",xDescriptors={"urn:alm:descriptor:text"}
	Updated int32 `json:"updated"`

	// total is the number of instances.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=167,displayName="Instances",xDescriptors={"urn:alm:descriptor:text"}
	Total int32 `json:"total"`

	// lastProgressTime is when updated last grew, the spec last changed, or the rollout
	// began. The operator's flag --cluster-upgrade-timeout counts from here.
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=168,displayName="Last Progress",xDescriptors={"urn:alm:descriptor:text"}
	LastProgressTime metav1.Time `json:"lastProgressTime"`
}

// Phase is the situation of a cluster in one word. None, or none at all, is that of one which
// has just been created: nothing has been made for it yet.
//
// +kubebuilder:validation:Enum=None;Creating;Running;Failed;Scaling;Upgrading;Hibernating;Hibernated;Waking;Paused;Deleting
type Phase string

// The phases.
const (
	PhaseNone        Phase = "None"
	PhaseCreating    Phase = "Creating"
	PhaseRunning     Phase = "Running"
	PhaseFailed      Phase = "Failed"
	PhaseScaling     Phase = "Scaling"
	PhaseUpgrading   Phase = "Upgrading"
	PhasePaused      Phase = "Paused"
	PhaseHibernating Phase = "Hibernating"
	PhaseHibernated  Phase = "Hibernated"
	PhaseWaking      Phase = "Waking"
	PhaseDeleting    Phase = "Deleting"
)

// Condition types of RedisCluster.
const (
	// ConditionReady is True when every instance asked for serves, every slot is
	// covered and every replica is in sync.
	ConditionReady = "Ready"
	// ConditionProgressing is True while the operator works towards the spec.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when a cluster that was formed lacks something:
	// an instance, a replica in sync, a slot.
	ConditionDegraded = "Degraded"
	// ConditionSlotsCovered is True when all 16384 slots are owned by reachable masters.
	ConditionSlotsCovered = "SlotsCovered"
	// ConditionFormed is True once the cluster was healthy for the first time.
	ConditionFormed = "Formed"
	// ConditionStalled is True when the operator cannot go on until someone changes
	// something. Its message says what.
	ConditionStalled = "Stalled"
	// ConditionAccessApplied is True when running instances accept the passwords and users
	// that the spec and its Secrets ask for, and nobody else.
	ConditionAccessApplied = "AccessApplied"
	// ConditionCertificateInUse is True when every instance shows the certificate that the
	// Secret of spec.tls holds. It is absent without TLS.
	ConditionCertificateInUse = "CertificateInUse"
	// ConditionTLSModeInForce is True when every instance takes the connections that spec.tls.mode
	// asks for. False says what that waits for. It is absent without TLS.
	ConditionTLSModeInForce = "TLSModeInForce"
)

// ConditionHibernated is True when spec.hibernate has stopped all instances. False says what that, or starting them again, waits for. It
// is absent when the cluster is awake and asked to be.
const ConditionHibernated = "Hibernated"

// ConditionConfigured is True when the settings asked for are in force on every instance.
// Its message names those that are not, each with its field and the engine's own words.
const ConditionConfigured = "Configured"

// ConditionMastersSpread is True when no node and no zone has so many masters that the others
// could not elect without them. Its message names the one that has, and what helps.
const ConditionMastersSpread = "MastersSpread"

// ConditionAnomalous is True when instances serve, and something is not healthy, such as a replica that falls behind. Its message
// names the instance and what helps.
const ConditionAnomalous = "Anomalous"

// ReasonRollout is the reason of Progressing while instances run an older template.
const ReasonRollout = "Rollout"

// ReasonTimedOut is the reason of Progressing when forming or a rollout took longer than the
// operator's flags allow.
const ReasonTimedOut = "TimedOut"

// ReasonCannotExpand is the reason of Stalled while claims cannot be expanded to spec.storage.size.
const ReasonCannotExpand = "CannotExpand"

// NodeStatus is one instance.
type NodeStatus struct {
	// name is the instance's pod.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=121,displayName="Pod",xDescriptors={"urn:alm:descriptor:io.kubernetes:Pod"}
	Name string `json:"name"`

	// instance is the address that clients use, ip:port.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=128,displayName="Address",xDescriptors={"urn:alm:descriptor:text"}
	Instance string `json:"instance,omitempty"`

	// type is master or slave (a replica, in the words of the Redis protocol).
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=122,displayName="Role",xDescriptors={"urn:alm:descriptor:text"}
	Type string `json:"type,omitempty"`

	// masterNodeId is the node ID of the master that this instance replicates; a
	// master's own node ID.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=131,displayName="Master Node ID",xDescriptors={"urn:alm:descriptor:text"}
	MasterNodeID string `json:"masterNodeId,omitempty"`

	// nodeId is the instance's own node ID, 40 hex digits.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=130,displayName="Node ID",xDescriptors={"urn:alm:descriptor:text"}
	NodeID string `json:"nodeId,omitempty"`

	// shard is the number of the shard, from 0.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=123,displayName="Shard",xDescriptors={"urn:alm:descriptor:text"}
	Shard int32 `json:"shard"`

	// domainName is the instance's stable DNS name, in full where the operator knows the
	// DNS domain of the Kubernetes cluster.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=129,displayName="DNS Name",xDescriptors={"urn:alm:descriptor:text"}
	DomainName string `json:"domainName,omitempty"`

	// slots that the instance owns, as ranges: 0-5460,6000.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=124,displayName="Slots",xDescriptors={"urn:alm:descriptor:text"}
	Slots string `json:"slots,omitempty"`

	// hostname is the Kubernetes node that the instance runs on.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=132,displayName="Kubernetes Node",xDescriptors={"urn:alm:descriptor:io.kubernetes:Node"}
	Hostname string `json:"hostname,omitempty"`

	// hostIP is the address of that Kubernetes node.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=133,displayName="Node IP",xDescriptors={"urn:alm:descriptor:text"}
	HostIP string `json:"hostIP,omitempty"`

	// status is True when the instance serves, False when it does not, Unknown when it
	// could not be asked.
	//
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=125,displayName="Serving",xDescriptors={"urn:alm:descriptor:text"}
	Status metav1.ConditionStatus `json:"status"`

	// reason is why, in one CamelCase word.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=126,displayName="Reason",xDescriptors={"urn:alm:descriptor:text"}
	Reason string `json:"reason,omitempty"`

	// message is why, in a sentence.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=127,displayName="Message",xDescriptors={"urn:alm:descriptor:text"}
	Message string `json:"message,omitempty"`

	// lastTransitionTime is when status last changed.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=134,displayName="Last Transition",xDescriptors={"urn:alm:descriptor:text"}
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty"`
}

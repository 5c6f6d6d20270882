// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of RedisClusterSpec. The schema markers below repeat them but for the image, which
// the operator's Deployment may set; a test fails when the two disagree.
const (
	DefaultReplicas int32 = 6
	// MinShards is how many shards a cluster has whose spec does not say how many: as many as can elect. It may ask for fewer.
	MinShards          int32 = 3
	DefaultRepository        = "docker.io/library/redis"
	DefaultVersion           = "8.0.6"
	DefaultPipeline          = "100"
	DefaultStorageSize       = "1Gi"

	DefaultPreviousPasswordFor = time.Hour
)

// RedisClusterSpec is the Redis Cluster a user asks for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.shards) || !has(self.replicas) || self.shards <= self.replicas",message="shards must not be larger than replicas: every shard needs at least one instance",fieldPath=".shards"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || !has(self.pod) || self.pod.all(p, !has(p.volumes))",message="storage and pod[0].volumes both say where data is kept: set one of them",fieldPath=".storage"
type RedisClusterSpec struct {
	// replicas is the number of instances, masters and replicas together. It is
	// spread over the shards as evenly as possible: 7 instances in 3 shards are
	// shards of 3, 2 and 2. The scale subresource (kubectl scale) sets this field.
	//
	// +kubebuilder:default=6
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=10,displayName="Replicas",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// shards is the number of masters, each of which owns an equal part of the 16384
	// slots. Default: half of replicas, rounded down, and at least 3. One or two have to
	// be asked for: they cannot elect a successor, so that the operator has to appoint it.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=20,displayName="Shards",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	Shards *int32 `json:"shards,omitempty"`

	// autoscale has the number of shards follow the load, between bounds, in place of shards and replicas. The operator never writes
	// the number into the spec: status.autoscale.shards has it. Default: nothing. It can be set, changed and removed at any time; with its
	// removal, shards has to be set.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=280,displayName="Autoscaling"
	Autoscale *Autoscale `json:"autoscale,omitempty"`

	// balance has slots follow the load: a shard that bears much more than the others, of memory or processor time, gives slots away, a few
	// at a time. Default: nothing, and every shard keeps its slots whatever they bear. It can be set, changed and removed at any time; with
	// its removal slots stay where they are.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=300,displayName="Balance"
	Balance *Balance `json:"balance,omitempty"`

	// pause puts the cluster under maintenance: the operator goes on observing and
	// reporting, status.plan says what it would do next, and nothing is changed.
	//
	// +kubebuilder:default=false
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=150,displayName="Pause",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Pause bool `json:"pause,omitempty"`

	// hibernate stops all instances and keeps their data: once nothing is under way, replicas stop first and masters last, until no pod
	// is left. Claims, Secrets and Services stay. Set back to false, the cluster starts as it was, with its data, and is changed to
	// what the spec asks for by then afterwards. Instances need volumes of their own that outlive pods, and their append-only files.
	//
	// +kubebuilder:default=false
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=152,displayName="Hibernate",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Hibernate bool `json:"hibernate,omitempty"`

	// finalizers says how deleting the RedisCluster treats what it owns. foreground
	// waits until everything is gone, background removes the RedisCluster at once and
	// the rest soon after, orphan leaves the running cluster behind without an owner.
	// Claims follow storage.retain.
	//
	// +kubebuilder:default=foreground
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=140,displayName="Deletion Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:foreground","urn:alm:descriptor:com.tectonic.ui:select:background","urn:alm:descriptor:com.tectonic.ui:select:orphan","urn:alm:descriptor:com.tectonic.ui:advanced"}
	Finalizers DeletionPolicy `json:"finalizers,omitempty"`

	// repository is the image without its tag. Redis 7.0 and later and Valkey 8 and
	// later are known to work. Default: docker.io/library/redis, or what the operator's
	// RELATED_IMAGE_REDIS says; it is written here when the object is made.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=40,displayName="Image Repository",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Repository string `json:"repository,omitempty"`

	// version is the image's tag, which begins with the version of the engine
	// (8.0.6, 9.1.2-alpine), a digest (sha256:…), or both (8.0.6@sha256:…). Default:
	// 8.0.6, or what the operator's RELATED_IMAGE_REDIS says; it is written here when
	// the object is made, so a newer operator does not change it.
	//
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|sha256:[0-9a-f]{64})$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=30,displayName="Version",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Version string `json:"version,omitempty"`

	// updateStrategy says how slots are given to new masters.
	//
	// +kubebuilder:default={type: "AutoReceive", pipeline: "100"}
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=110,displayName="Slot Distribution",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	UpdateStrategy SlotStrategy `json:"updateStrategy,omitempty"`

	// pod is the template of every instance. Exactly one entry is supported today.
	//
	// +kubebuilder:validation:MaxItems=1
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=80,displayName="Pod Template"
	Pod []PodTemplate `json:"pod,omitempty"`

	// storage asks for one persistent volume claim an instance. It is the default way
	// to keep data: a cluster that sets neither storage nor pod[0].volumes gets claims
	// of 1Gi of the default storage class. pod[0].volumes of type pvc without
	// persistentVolumeClaimName says the same, and is removed where storage says how.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=50,displayName="Storage"
	Storage *Storage `json:"storage,omitempty"`

	// config holds redis.conf settings, such as maxmemory-policy: allkeys-lru. What
	// the operator must own (port, cluster-*, dir, requirepass, …) is refused by name.
	// It wins over the ConfigMap of pod[0].configmap.
	//
	// +kubebuilder:validation:MaxProperties=200
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=70,displayName="Redis Configuration"
	Config map[string]string `json:"config,omitempty"`

	// modules are loaded by every instance when it starts, in their order. A change
	// restarts the instances one after the other; slots begin to move only when all of
	// them have the modules asked for.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=75,displayName="Modules"
	Modules []Module `json:"modules,omitempty"`

	// auth is the password of the default user.
	//
	// +kubebuilder:default={}
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=60,displayName="Authentication"
	Auth Auth `json:"auth,omitempty"`

	// tls encrypts everything: clients, replication and the cluster bus. There is no port
	// without it then, unless its mode says so.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=66,displayName="TLS"
	TLS *TLS `json:"tls,omitempty"`

	// networkPolicy limits who reaches the instances, and whom they reach: clients reach the
	// Redis port, only instances of this cluster reach the cluster bus; instances reach each
	// other and DNS. Another NetworkPolicy for the same pods allows more.
	//
	// +kubebuilder:default={}
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=120,displayName="Network Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	NetworkPolicy Toggle `json:"networkPolicy,omitempty"`

	// podDisruptionBudget keeps evictions from taking more than one instance at a time.
	//
	// +kubebuilder:default={}
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=130,displayName="Pod Disruption Budget",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	PodDisruptionBudget Toggle `json:"podDisruptionBudget,omitempty"`

	// antiAffinity keeps the instances of a shard on different Kubernetes nodes. Preferred
	// does so, and prefers different zones, as long as there are enough of them. Required
	// lets no two share a node, whatever happens: a shard of three instances then needs
	// three nodes, and an instance that finds none stays Pending.
	//
	// +kubebuilder:default=Preferred
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=133,displayName="Shard Separation",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Preferred","urn:alm:descriptor:com.tectonic.ui:select:Required","urn:alm:descriptor:com.tectonic.ui:advanced"}
	AntiAffinity AntiAffinity `json:"antiAffinity,omitempty"`

	// spreadMasters makes masters run on different nodes and in different zones again
	// after failovers have concentrated them, by switching over to replicas elsewhere. No write is
	// lost and no ordinary command fails. The condition MastersSpread says when it cannot.
	//
	// +kubebuilder:default=true
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=135,displayName="Spread Masters",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch","urn:alm:descriptor:com.tectonic.ui:advanced"}
	SpreadMasters *bool `json:"spreadMasters,omitempty"`

	// bootstrap is what a new cluster begins with. Default: nothing. It can be neither set, changed nor removed
	// later, but for import.cutOver and import.pauseSeconds.
	//
	// +kubebuilder:validation:XValidation:rule="has(self.restore) == has(oldSelf.restore) && (!has(self.restore) || self.restore == oldSelf.restore)",message="bootstrap is what a new cluster begins with, and cannot be changed: make another RedisCluster"
	// +kubebuilder:validation:XValidation:rule="has(self.__import__) == has(oldSelf.__import__) && (!has(self.__import__) || self.__import__.address == oldSelf.__import__.address)",message="bootstrap is what a new cluster begins with, and cannot be changed: make another RedisCluster"
	// +kubebuilder:validation:XValidation:rule="has(self.clone) == has(oldSelf.clone) && (!has(self.clone) || self.clone == oldSelf.clone)",message="bootstrap is what a new cluster begins with, and cannot be changed: make another RedisCluster"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=145,displayName="Bootstrap",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Bootstrap *Bootstrap `json:"bootstrap,omitempty"`

	// backup keeps the data in an object store, beside the RedisBackups that are made of it. Default: nothing. It can be
	// set, changed and removed at any time, and restarts no instance.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=160,displayName="Backup"
	Backup *ClusterBackup `json:"backup,omitempty"`

	// external lets clients outside of Kubernetes in. Default: nobody is. It can be set, changed and removed at any time, and restarts
	// no instance. With it, a cluster has at most 100 instances, and a shard at most 10.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=250,displayName="External Access"
	External *External `json:"external,omitempty"`

	// service is about the Service of clients. A change of it restarts no instance.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=270,displayName="Service",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Service *ClientService `json:"service,omitempty"`
}

// DeletionPolicy says how deletion treats what the cluster owns.
//
// +kubebuilder:validation:Enum=foreground;background;orphan
type DeletionPolicy string

// The deletion policies.
const (
	DeletionForeground DeletionPolicy = "foreground"
	DeletionBackground DeletionPolicy = "background"
	DeletionOrphan     DeletionPolicy = "orphan"
)

// AntiAffinity says how strictly the instances of a shard are kept apart.
//
// +kubebuilder:validation:Enum=Preferred;Required
type AntiAffinity string

// The ways to keep the instances of a shard apart.
const (
	AntiAffinityPreferred AntiAffinity = "Preferred"
	AntiAffinityRequired  AntiAffinity = "Required"
)

// SlotStrategy says how slots are given to new masters.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'AssignReceive' || !has(self.assignStrategies) || size(self.assignStrategies) == 0",message="assignStrategies belong to type AssignReceive: remove them, or set type to AssignReceive",fieldPath=".assignStrategies"
// +kubebuilder:validation:XValidation:rule="self.type != 'AssignReceive' || (has(self.assignStrategies) && size(self.assignStrategies) > 0)",message="type AssignReceive needs assignStrategies, one entry for each new master",fieldPath=".assignStrategies"
type SlotStrategy struct {
	// type is AutoReceive (every new master receives an equal share) or AssignReceive
	// (assignStrategies says which master gives how many slots).
	//
	// +kubebuilder:default=AutoReceive
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=111,displayName="Distribution Type",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:AutoReceive","urn:alm:descriptor:com.tectonic.ui:select:AssignReceive"}
	Type SlotStrategyType `json:"type,omitempty"`

	// pipeline is the number of keys that one MIGRATE command carries, as a string of
	// digits, 1 to 10000.
	//
	// +kubebuilder:default="100"
	// +kubebuilder:validation:Pattern=`^([1-9][0-9]{0,3}|10000)$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=115,displayName="Keys per MIGRATE",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Pipeline string `json:"pipeline,omitempty"`

	// keysPerSecond limits how many keys move in a second, for clusters whose clients
	// need every bit of speed. 0 is no limit. A limit makes the operator move keys itself
	// (MIGRATE) also where the engine can move whole slots, which nothing can slow down.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=116,displayName="Keys per Second",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	KeysPerSecond int32 `json:"keysPerSecond,omitempty"`

	// assignStrategies feed the new masters: entry i is for new master i.
	//
	// +kubebuilder:validation:MaxItems=500
	// +listType=atomic
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=112,displayName="Assignments",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:fieldDependency:updateStrategy.type:AssignReceive"}
	AssignStrategies []AssignStrategy `json:"assignStrategies,omitempty"`
}

// SlotStrategyType names a way to give slots to new masters.
//
// +kubebuilder:validation:Enum=AutoReceive;AssignReceive
type SlotStrategyType string

// The slot strategies.
const (
	AutoReceive   SlotStrategyType = "AutoReceive"
	AssignReceive SlotStrategyType = "AssignReceive"
)

// AssignStrategy is what one shard receives.
type AssignStrategy struct {
	// slots is how many slots the shard owns then. Required.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16384
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=113,displayName="Slots",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	Slots int32 `json:"slots"`

	// fromReplicas lists the node IDs of the masters that give the slots, separated by
	// commas. Each gives in proportion to what it owns. Required.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=114,displayName="Source Node IDs",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	FromReplicas string `json:"fromReplicas"`

	// toShard is the number of a shard that exists, which receives what it lacks of slots. Without
	// it, the entry is for a new master: the first such entry for the first that joins, and so on.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=499
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=115,displayName="Receiving Shard",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number"}
	ToShard *int32 `json:"toShard,omitempty"`
}

// Storage asks for one persistent volume claim an instance.
type Storage struct {
	// size of each claim. It can be expanded, never shrink.
	//
	// +kubebuilder:default="1Gi"
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=51,displayName="Size",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Size resource.Quantity `json:"size,omitempty"`

	// maxSize has the claims grow with the data, from size up to maxSize: when the files of an instance might take more than 80 % of its
	// claim, all claims grow to twice what they might take. What they might take is the append-only file as it is, and twice what Redis
	// has allocated, without buffers of clients: it may be written anew beside the old one while a snapshot is there. Unset: claims grow
	// only when size does.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=54,displayName="Largest Size",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`

	// storageClassName of each claim. Default: the cluster's default storage class. It
	// cannot change.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=52,displayName="Storage Class",xDescriptors={"urn:alm:descriptor:io.kubernetes:StorageClass"}
	StorageClassName *string `json:"storageClassName,omitempty"`

	// retain reports whether claims outlive the instance they were made for, when the
	// RedisCluster is deleted or scaled in.
	//
	// +kubebuilder:default=Retain
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=53,displayName="Claim Retention",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Retain","urn:alm:descriptor:com.tectonic.ui:select:Delete"}
	Retain RetainPolicy `json:"retain,omitempty"`
}

// RetainPolicy says that claims outlive their instance.
//
// +kubebuilder:validation:Enum=Retain;Delete
type RetainPolicy string

// The retain policies.
const (
	Retain       RetainPolicy = "Retain"
	RetainDelete RetainPolicy = "Delete"
)

// Toggle turns something on or off.
type Toggle struct {
	// enabled turns it on. It is on by default.
	//
	// +kubebuilder:default=true
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=131,displayName="Enabled",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Enabled *bool `json:"enabled,omitempty"`
}

// RedisCluster is a Redis Cluster: shards of a master and its replicas, which
// together own 16384 slots.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:path=redisclusters,singular=rediscluster,shortName=rec,categories={middleware}
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name must be at most 40 characters: names of StatefulSets and of their pods are made of it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must begin with a letter and hold only lower-case letters, digits and hyphens: names of Services are made of it"
// +kubebuilder:printcolumn:name="Shards",type=integer,JSONPath=`.status.shards`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.instances`
// +kubebuilder:printcolumn:name="Slots",type=integer,JSONPath=`.status.slots`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.currentVersion`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Plan",type=string,priority=1,JSONPath=`.status.plan.step`
// +kubebuilder:printcolumn:name="Restored Percent",type=integer,priority=1,JSONPath=`.status.restoring.percent`
// +operator-sdk:csv:customresourcedefinitions:order=1,displayName="Redis Cluster",resources={{StatefulSet,v1},{Deployment,v1},{Pod,v1},{Service,v1},{ConfigMap,v1},{Secret,v1},{PersistentVolumeClaim,v1},{PodDisruptionBudget,v1},{NetworkPolicy,v1},{Event,v1}}
type RedisCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the cluster asked for.
	//
	// +kubebuilder:default={}
	// +optional
	Spec RedisClusterSpec `json:"spec,omitempty"`

	// status is the cluster seen.
	//
	// +optional
	Status RedisClusterStatus `json:"status,omitempty"`
}

// RedisClusterList is a list of RedisClusters.
//
// +kubebuilder:object:root=true
type RedisClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RedisCluster `json:"items"`
}

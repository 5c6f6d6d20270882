// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Limits of RedisClusterSpec; its markers say the same.
const (
	MaxReplicas int32 = 1000
	MaxShards   int32 = 500
)

// Topology is how many instances each shard has: entry i is for shard i.
//
// +kubebuilder:object:generate=false
type Topology []int32

// Topology spreads spec.replicas over spec.shards as evenly as possible; the first
// shards get one instance more. Unset fields count as their defaults.
func (s *RedisClusterSpec) Topology() Topology {
	instances, shards := s.InstanceCount(), min(s.ShardCount(), MaxShards)
	if shards < 1 {
		return nil
	}
	t := make(Topology, shards)
	for i := range t {
		t[i] = instances / shards
		if int32(i) < instances%shards {
			t[i]++
		}
	}
	return t
}

// InstanceCount is spec.replicas, or its default.
func (s *RedisClusterSpec) InstanceCount() int32 {
	if s.Replicas == nil {
		return DefaultReplicas
	}
	return *s.Replicas
}

// Elects reports whether so many masters can replace one of them that is lost: the others are most of them.
func Elects(masters int) bool { return masters >= int(MinShards) }

// ShardCount is spec.shards, or half of the instances and at least MinShards.
func (s *RedisClusterSpec) ShardCount() int32 {
	if s.Shards != nil {
		return *s.Shards
	}
	return max(s.InstanceCount()/2, MinShards)
}

// From are the node IDs of fromReplicas.
func (a AssignStrategy) From() []string {
	var ids []string
	for id := range strings.SplitSeq(a.FromReplicas, ",") {
		ids = append(ids, strings.TrimSpace(id))
	}
	return ids
}

// To is the number of the shard that receives; nil for a new master.
func (a AssignStrategy) To() *int {
	if a.ToShard == nil {
		return nil
	}
	return new(int(*a.ToShard))
}

// Instances is the number of instances in all shards.
func (t Topology) Instances() int32 {
	var n int32
	for _, i := range t {
		n += i
	}
	return n
}

// ShardName is the name of the StatefulSet of a shard.
func (c *RedisCluster) ShardName(shard int) string { return fmt.Sprintf("%s-%d", c.Name, shard) }

// ShardOf is the shard whose StatefulSet has a name; false when the operator gives no
// StatefulSet of the cluster that name.
func (c *RedisCluster) ShardOf(set string) (shard int, ok bool) {
	text, ok := strings.CutPrefix(set, c.Name+"-")
	if !ok {
		return 0, false
	}
	return number(text, MaxShards)
}

// InstanceOf is the shard and the ordinal of the instance whose pod has a name; false when
// no pod of the cluster can have it.
func (c *RedisCluster) InstanceOf(pod string) (shard, ordinal int, ok bool) {
	at := strings.LastIndexByte(pod, '-')
	if at < 0 {
		return 0, 0, false
	}
	if shard, ok = c.ShardOf(pod[:at]); !ok {
		return 0, 0, false
	}
	ordinal, ok = number(pod[at+1:], MaxReplicas)
	return shard, ordinal, ok
}

// number reads a number below a limit in the one spelling that names are made with.
func number(text string, limit int32) (int, bool) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n >= int(limit) || strconv.Itoa(n) != text {
		return 0, false
	}
	return n, true
}

// Fenced are the names in AnnotationFenced that are of instances the cluster can have, each once and as it stands there first, and what of
// the annotation is not followed. A name that no pod of the cluster can have is not repeated: it may be anything.
func (c *RedisCluster) Fenced() (names []string, problem string) {
	value := c.Annotations[AnnotationFenced]
	if len(value) > LongestFenced {
		return nil, fmt.Sprintf("the annotation %s has more than %d characters, and nothing of it is followed", AnnotationFenced, LongestFenced)
	}
	unknown := 0
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if _, _, ours := c.InstanceOf(name); ours && !slices.Contains(names, name) {
			names = append(names, name)
		} else if !ours && name != "" {
			unknown++
		}
	}
	if unknown > 0 {
		problem = fmt.Sprintf("%d names of the annotation %s are of no instance of this cluster, which are called such as %s-0", unknown,
			AnnotationFenced, c.ShardName(0))
	}
	return names, problem
}

// DeletionPolicy is spec.finalizers, unless who deletes the object asks to leave its
// children behind (kubectl delete --cascade=orphan): then it is orphan.
func (c *RedisCluster) DeletionPolicy() DeletionPolicy {
	if slices.Contains(c.Finalizers, metav1.FinalizerOrphanDependents) {
		return DeletionOrphan
	}
	return c.Spec.Finalizers
}

// HeadlessServiceName is the Service that gives instances their DNS names.
func (c *RedisCluster) HeadlessServiceName() string { return c.Name + "-nodes" }

// PrimaryServiceName is the Service that leads to the only master; there is none with several shards.
func (c *RedisCluster) PrimaryServiceName() string { return c.Name + "-primary" }

// AuthSecretName is the Secret that the operator keeps the password in.
func (c *RedisCluster) AuthSecretName() string { return c.Name + "-auth" }

// AuthEnabled reports whether clients need a password.
func (c *RedisCluster) AuthEnabled() bool {
	return c.Spec.Auth.Enabled == nil || *c.Spec.Auth.Enabled
}

// PreviousPasswordFor is spec.auth.previousPasswordFor, or its default.
func (c *RedisCluster) PreviousPasswordFor() time.Duration {
	if c.Spec.Auth.PreviousPasswordFor == nil {
		return DefaultPreviousPasswordFor
	}
	return c.Spec.Auth.PreviousPasswordFor.Duration
}

// TLSMode is which connections the spec asks for.
func (c *RedisCluster) TLSMode() TLSMode {
	switch {
	case c.Spec.TLS == nil:
		return TLSDisabled
	case c.Spec.TLS.Mode == "":
		return TLSRequired // objects of before there were modes
	}
	return c.Spec.TLS.Mode
}

// UsesTLS reports whether something of TLS is asked for, or left from when it was: then the Secrets of spec.tls are needed.
func (c *RedisCluster) UsesTLS() bool {
	return c.Spec.TLS != nil && (c.TLSMode() != TLSDisabled || c.Status.TLS != nil)
}

// ClientTLS reports whether clients of the operator's, such as backups, are to connect by TLS, and to which port of the Service. What
// leads to TLS at port 6379 does so when every instance has it there.
func (c *RedisCluster) ClientTLS() (port int32, secured bool) {
	is := c.TLSMode()
	if c.Status.TLS != nil {
		is = c.Status.TLS.Mode
	}
	switch {
	case is == TLSRequired && c.TLSMode() == TLSRequired:
		return PortRedis, true
	case is == TLSRequired, is == TLSBoth && c.TLSMode() != TLSDisabled:
		return PortRedisTLS, true
	}
	return PortRedis, false
}

// ServiceAddress is where clients of the operator's find any instance, see ClientTLS.
func (c *RedisCluster) ServiceAddress() string {
	port, _ := c.ClientTLS()
	return fmt.Sprintf("%s.%s.svc:%d", c.Name, c.Namespace, port)
}

// TLSServerName is a name that the certificates of all instances are valid for.
func (c *RedisCluster) TLSServerName() string {
	return "any." + c.HeadlessServiceName() + "." + c.Namespace + ".svc"
}

// CertificateName is that of the Certificate that the operator has cert-manager make, and of its Secret.
func (c *RedisCluster) CertificateName() string { return c.Name + "-tls" }

// Issuer is who signs the certificate that the operator has cert-manager make, with its kind and group; nil: a Secret has one.
func (c *RedisCluster) Issuer() *IssuerRef {
	if c.Spec.TLS == nil || c.Spec.TLS.IssuerRef == nil {
		return nil
	}
	is := *c.Spec.TLS.IssuerRef
	is.Kind, is.Group = cmp.Or(is.Kind, IssuerKindIssuer), cmp.Or(is.Group, IssuerGroup)
	return &is
}

// TLSSecretName is the Secret with the certificate of the instances and its key; empty without TLS.
func (c *RedisCluster) TLSSecretName() string {
	switch {
	case c.Spec.TLS == nil:
		return ""
	case c.Spec.TLS.IssuerRef != nil:
		return c.CertificateName()
	}
	return c.Spec.TLS.SecretName
}

// TLSTrustSecretName is the Secret with the certificates that are trusted; empty without TLS.
func (c *RedisCluster) TLSTrustSecretName() string {
	switch {
	case c.Spec.TLS == nil:
		return ""
	case c.Spec.TLS.CASecretName != "":
		return c.Spec.TLS.CASecretName
	}
	return c.TLSSecretName()
}

// TLSClientTrustSecretName is the Secret with the certificates that instances trust; empty without TLS.
func (c *RedisCluster) TLSClientTrustSecretName() string {
	if c.Spec.TLS != nil && c.Spec.TLS.ClientCASecretName != "" {
		return c.Spec.TLS.ClientCASecretName
	}
	return c.TLSTrustSecretName()
}

// ClientCertificates is what instances are to want of clients.
func (c *RedisCluster) ClientCertificates() ClientCertificates {
	if c.Spec.TLS == nil || c.Spec.TLS.ClientCertificates == "" {
		return ClientCertificatesOptional
	}
	return c.Spec.TLS.ClientCertificates
}

// ShowsCertificate reports whether clients of the operator's, such as backups and gateways, are to show the certificate of the instances:
// from before instances want one until none does any more.
func (c *RedisCluster) ShowsCertificate() bool {
	return c.Spec.TLS != nil && (c.ClientCertificates() == ClientCertificatesRequired ||
		c.Status.TLS != nil && c.Status.TLS.ClientCertificates == ClientCertificatesRequired)
}

// Template is the pod template, or an empty one when none is given.
func (s *RedisClusterSpec) Template() PodTemplate {
	if len(s.Pod) == 0 {
		return PodTemplate{}
	}
	return s.Pod[0]
}

// Image is the image of the Redis container.
func (s *RedisClusterSpec) Image() string {
	if image := s.Template().MiddlewareImage; image != "" {
		return image
	}
	repository, version := s.Repository, s.Version
	if repository == "" {
		repository = DefaultRepository
	}
	if version == "" {
		version = DefaultVersion
	}
	if strings.HasPrefix(version, digestPrefix) {
		return repository + "@" + version
	}
	return repository + ":" + version
}

const digestPrefix = "sha256:"

var versionForm = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|sha256:[0-9a-f]{64})$`)

// ValidVersion reports whether spec.version may be this: the pattern of the schema.
func ValidVersion(version string) bool { return versionForm.MatchString(version) }

// Tag is the tag in spec.version; empty when it is a digest alone.
func (s *RedisClusterSpec) Tag() string {
	tag, _, _ := strings.Cut(s.Version, "@")
	if strings.HasPrefix(tag, digestPrefix) {
		return ""
	}
	return tag
}

// Labels on the children of a RedisCluster.
const (
	// LabelCluster names the RedisCluster.
	LabelCluster = "redis.middleware.hc.cn/cluster"
	// LabelAuth with the value true is what a Secret must carry to be named in
	// spec.auth.secretName: who may write RedisClusters may not read every Secret.
	LabelAuth = "redis.middleware.hc.cn/auth"
	// LabelTLS with the value true is what a Secret must carry to be named in spec.tls.
	LabelTLS = "redis.middleware.hc.cn/tls"
	// LabelShard is the number of the shard.
	LabelShard = "redis.middleware.hc.cn/shard"
)

// AnnotationOverCapacity with the value true allows a scale-in although the data may not
// fit into the shards that stay.
const AnnotationOverCapacity = "redis.middleware.hc.cn/allow-scale-in-over-capacity"

// AnnotationGiveUpData gives up data whose volumes have come back empty. Its value is the one
// that the message of the condition Stalled names with the reason DataLost: another loss has
// another one.
const AnnotationGiveUpData = "redis.middleware.hc.cn/give-up-data"

// AnnotationGiveUpNode names a node that is gone for good: instances whose data is in a directory
// of it (hostPath) start elsewhere, without that data.
const AnnotationGiveUpNode = "redis.middleware.hc.cn/give-up-node"

// AnnotationSwitchover names an instance that is to become the master of its shard, once, without a write being lost. The operator
// takes the annotation away when it is, and when it cannot be; the Event EndSwitchover says which.
const AnnotationSwitchover = "redis.middleware.hc.cn/switchover"

// AnnotationFenced names instances of the cluster, separated by commas, that the operator is to leave alone until their names are taken
// out: somebody looks at them. The condition Fenced says what became of it. LongestFenced is how many characters it may have.
const (
	AnnotationFenced = "redis.middleware.hc.cn/fenced"
	LongestFenced    = 4096
)

// ConditionFenced is True while an instance that the annotation AnnotationFenced names is left alone. False says what that waits for. It is
// absent without the annotation.
const ConditionFenced = "Fenced"

// The reasons of ConditionFenced.
const (
	// ReasonFenced: the message names the instances, and says why others that are named are not.
	ReasonFenced = "Fenced"
	// ReasonFenceWaits: none is yet; the message says why.
	ReasonFenceWaits = "FenceWaits"
	// ReasonFenceUnknown: nothing that the annotation names is an instance of the cluster.
	ReasonFenceUnknown = "UnknownInstance"
)

// SchedulingGateNode keeps an instance whose data is in a directory of a node from starting on
// another one: the operator binds the pod to the node, and takes the gate away.
const SchedulingGateNode = "redis.middleware.hc.cn/node"

// PodConditionServing is a readiness gate of every instance: the operator sets it to True
// once the instance knows the whole cluster, and to False before the instance leaves, so
// that the Service never leads a client to an instance with a partial view.
const PodConditionServing = "redis.middleware.hc.cn/serving"

// Finalizer lets deletion follow spec.finalizers.
const Finalizer = "redis.middleware.hc.cn/cleanup"

// Ports of an instance.
const (
	PortRedis int32 = 6379
	PortBus   int32 = 16379
	// PortRedisTLS is where clients connect by TLS while PortRedis takes plain connections.
	PortRedisTLS int32 = 6380
	PortMetrics  int32 = 9121
)

// Keys of the Secret AuthSecretName.
const (
	// SecretKeyPassword holds the password as it is.
	SecretKeyPassword = "password"
	// SecretKeyConfig holds the password as redis.conf lines.
	SecretKeyConfig = "auth.conf" //nolint:gosec // the name of a key, not what it holds
)

// Claim is what each instance claims, defaults filled in; nil when data is kept elsewhere. It
// is spec.storage, also where pod[0].volumes of type pvc without a claim's name asks for it.
func (s *RedisClusterSpec) Claim() *Storage {
	volumes := s.Template().Volumes
	if volumes != nil && (volumes.Type == VolumeEmptyDir || volumes.Type == VolumeHostPath || volumes.PersistentVolumeClaimName != "") {
		return nil
	}
	claim := Storage{}
	if s.Storage != nil {
		claim = *s.Storage.DeepCopy()
	}
	if claim.Size.IsZero() {
		claim.Size = resource.MustParse(DefaultStorageSize)
	}
	if claim.Retain == "" {
		claim.Retain = Retain
	}
	return &claim
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/s2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/status"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// optional are the kinds of children that an earlier rendering may have made and the
// present one may not hold. StatefulSets are not among them: those go by steps.
var optional = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	corev1.SchemeGroupVersion.WithKind("Service"),
	appsv1.SchemeGroupVersion.WithKind(deployment),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
}

// The kinds of children that name Secrets.
const statefulSet, deployment = "StatefulSet", "Deployment"

// children renders the chart of a cluster and compares it with what exists.
type children struct {
	chart    *chart.Chart
	applier  *apply.Applier
	cache    client.Reader
	observer *observe.Observer
	mapper   meta.RESTMapper
	// domain is the DNS domain of the Kubernetes cluster; empty when it is not known.
	domain string
}

// rendering is the last one of a cluster, kept because most reconciliations ask for the same.
type rendering struct {
	digest  string
	objects []*unstructured.Unstructured
	// template identifies the pod template among them.
	template string
	// namesOnly reports whether no more is left of the objects than which they are. Whether they are as rendered is known by their
	// being the same ones; whoever wants to write them has them unpacked.
	namesOnly bool
	// packed are the objects as compressed JSON, in which they take an eighth of what they do as trees of maps; nil: nobody knows them.
	packed []byte
}

// pack leaves the names of the objects, and what unpack needs: a thousand clusters that wait for their next step would take as much
// memory as all else.
func (r *rendering) pack() {
	if r.namesOnly {
		return
	}
	if r.packed == nil {
		contents := make([]map[string]any, len(r.objects))
		for i, o := range r.objects {
			contents[i] = o.Object
		}
		encoded, err := json.Marshal(contents)
		if err != nil { // they came from JSON
			return
		}
		r.packed = slices.Clone(s2.Encode(nil, encoded))
	}
	r.nameOnly()
}

// reduce leaves no more of the objects than which they are: most of what is kept of a cluster at rest would be these.
func (r *rendering) reduce() {
	r.nameOnly()
	r.packed = nil
}

func (r *rendering) nameOnly() {
	if r.namesOnly {
		return
	}
	for _, o := range r.objects {
		is := &unstructured.Unstructured{}
		is.SetGroupVersionKind(o.GroupVersionKind())
		is.SetNamespace(o.GetNamespace())
		is.SetName(o.GetName())
		o.Object = is.Object
	}
	r.namesOnly = true
}

// unpack has the objects be whole again, the same ones; where nobody knows them any more, they are rendered anew when they are asked for.
func (r *rendering) unpack() {
	var contents []map[string]any
	encoded, err := s2.Decode(nil, r.packed)
	if err == nil {
		err = utiljson.Unmarshal(encoded, &contents)
	}
	if err != nil || len(contents) != len(r.objects) {
		*r = rendering{}
		return
	}
	for i, o := range r.objects {
		o.Object = contents[i]
	}
	r.namesOnly = false
}

// Compare implements Children.
func (c *children) Compare(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, shape plan.Shape,
	m *Memory) (Comparison, error) {
	refuse := func(cause string, why error) (Comparison, error) {
		return Comparison{Pending: plan.Pending{Refused: &plan.Refused{Cause: cause, Message: why.Error()}}}, nil
	}
	if refused := admission.CheckTemplate(cluster, len(shape.Topology)); len(refused) > 0 { // it may have more shards than the spec asks for
		return refuse("InvalidSpec", refused[0])
	}
	v, outside := c.values(cluster, s, shape)
	objects, err := c.render(cluster, v, m)
	if err != nil {
		return refuse("RenderFailed", err)
	}
	objects, certificate := parted(objects)
	pending, taken, err := c.pending(ctx, cluster, objects)
	if m.rendered.namesOnly && len(pending) > 0 && err == nil { // they are to be looked at
		m.rendered.unpack()
		return c.Compare(ctx, cluster, s, shape, m)
	}
	var notOurs *apply.NotOursError
	if errors.As(err, &notOurs) {
		return refuse("NameTaken", notOurs)
	}
	if err != nil {
		return Comparison{}, err
	}
	if isPending(pending, statefulSet, "") {
		if why, err := c.otherUser(ctx, cluster, objects); why != nil || err != nil {
			if err != nil {
				return Comparison{}, err
			}
			return refuse("CannotChange", why)
		}
	}
	if cluster.Spec.Pause {
		if pending, err = c.missing(ctx, cluster, pending); err != nil {
			return Comparison{}, err
		}
	}
	compared := Comparison{Objects: objects, NamesOnly: m.rendered.namesOnly, Template: m.rendered.template,
		Outside: status.Outside{Known: true, Address: outside.Address, Map: outside.Map}}
	compared.Pending.Map = outside.Map
	if err := c.certificate(ctx, cluster, certificate, m, &compared); errors.As(err, &notOurs) {
		return refuse("NameTaken", notOurs)
	} else if err != nil {
		return Comparison{}, err
	}
	withhold := func(kind, name string) { // all of the kind if there is no name
		pending = slices.DeleteFunc(pending, func(ref apply.Ref) bool { return ref.Kind == kind && (name == "" || ref.Name == name) })
		compared.Objects = slices.DeleteFunc(slices.Clone(compared.Objects), func(o *unstructured.Unstructured) bool {
			return o.GetKind() == kind && (name == "" || o.GetName() == name)
		})
	}
	compared.Pending.Held = holding(cluster, s, shape, m.rendered.template, pending, objects)
	for _, name := range compared.Pending.Held {
		withhold(statefulSet, name)
	}
	if isPending(pending, statefulSet, "") || cluster.Spec.Hibernate && !shape.Dormant { // what they are to be stopped by is known before
		if compared.Pending.Withheld = c.observer.Withheld(ctx, cluster, &m.Memory,
			values.MountTLS(cluster, shape.TLS.Stage)); compared.Pending.Withheld != nil {
			withhold(statefulSet, "")
		}
	}
	if c.archives(cluster, s) && (c.observer.BackupImage == "" || isPending(pending, deployment, cluster.ArchiveWorkload())) {
		if compared.ArchiveWithheld = c.observer.ArchiveWithheld(ctx, cluster, &m.Memory); compared.ArchiveWithheld != "" {
			withhold(deployment, cluster.ArchiveWorkload())
		}
	}
	if cluster.Spec.External != nil && !shape.Dormant &&
		(c.observer.BackupImage == "" || isPending(pending, deployment, cluster.GatewayName())) {
		if compared.Outside.Withheld = c.observer.GatewaysWithheld(ctx, cluster, &m.Memory); compared.Outside.Withheld != "" {
			withhold(deployment, cluster.GatewayName())
		}
	}
	if compared.Obsolete, err = c.obsolete(ctx, cluster, s, shape.Dormant, objects); err != nil {
		return Comparison{}, err
	}
	for _, ref := range slices.Concat(pending, compared.Obsolete) {
		compared.Pending.Children = append(compared.Pending.Children, ref.Kind+" "+ref.Name)
	}
	if taken != "" {
		compared.Outside.Refused, compared.Pending.Outside = taken, taken
		compared.withoutOutside(cluster)
	}
	return compared, nil
}

// pending are the objects that are not as rendered. taken says that another has a name of those that are for clients outside, of which
// nothing is known then; empty when not.
func (c *children) pending(ctx context.Context, cluster *v1alpha1.RedisCluster, objects []*unstructured.Unstructured) (
	pending []apply.Ref, taken string, _ error) {
	isOutside := func(o *unstructured.Unstructured) bool { return act.Outside(cluster, o.GetName()) }
	inside := slices.DeleteFunc(slices.Clone(objects), isOutside)
	pending, err := c.applier.Pending(ctx, cluster, inside)
	if err != nil || len(inside) == len(objects) {
		return pending, "", err
	}
	outside, err := c.applier.Pending(ctx, cluster, slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return !isOutside(o)
	}))
	var notOurs *apply.NotOursError
	if errors.As(err, &notOurs) {
		return pending, notOurs.Error(), nil
	}
	return append(pending, outside...), "", err
}

// parted takes the Certificate out of the rendered objects; nil: it is not among them.
func parted(objects []*unstructured.Unstructured) (rest []*unstructured.Unstructured, certificate *unstructured.Unstructured) {
	for _, object := range objects {
		if object.GroupVersionKind() == values.Certificate {
			certificate = object
		} else {
			rest = append(rest, object)
		}
	}
	return rest, certificate
}

// serves reports whether the cluster is known to serve a kind.
func (c *children) serves(kind schema.GroupVersionKind) bool {
	_, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil
}

const (
	// certificateWithin is how long the cache of Certificates may take: without the right to list them, or without their kind, it never fills.
	certificateWithin = time.Second
	// certificateAgain is for how long a Certificate that could not be read is not looked for.
	certificateAgain = time.Minute
)

// certificate compares the Certificate with what exists; nil: there is to be none. One that is to go is asked for at the API server: that
// happens once. What cannot be read is left as it is, and told: a cluster that has its certificate needs nothing else of it.
func (c *children) certificate(ctx context.Context, cluster *v1alpha1.RedisCluster, rendered *unstructured.Unstructured, m *Memory,
	compared *Comparison) error {
	compared.Certificate, compared.KeepsCertificate = rendered, cluster.Issuer() != nil
	if rendered != nil {
		if time.Now().Before(m.unread.until) {
			compared.CertificateUnread = m.unread.why
			return nil
		}
		m.unread = unread{}
		ctx, cancel := context.WithTimeout(ctx, certificateWithin)
		defer cancel()
		pending, err := c.applier.Pending(ctx, cluster, []*unstructured.Unstructured{rendered})
		var notOurs *apply.NotOursError
		switch {
		case errors.As(err, &notOurs):
			return err
		case err != nil:
			m.unread = unread{why: fmt.Sprintf("what spec.tls asks for of Certificate %s may not be in force: it cannot be read: %v",
				rendered.GetName(), err), until: time.Now().Add(certificateAgain)}
			compared.CertificateUnread = m.unread.why
		case len(pending) > 0:
			compared.Pending.Certificate = rendered.GetName()
		}
		return nil
	}
	if compared.KeepsCertificate || cluster.Status.Certificate == "" {
		return nil
	}
	left := &metav1.PartialObjectMetadata{}
	left.SetGroupVersionKind(values.Certificate)
	err := c.observer.Secrets.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.CertificateName()}, left)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err), err == nil && !metav1.IsControlledBy(left, cluster),
		err == nil && left.DeletionTimestamp != nil:
		return nil
	case err != nil:
		compared.KeepsCertificate = true // it is written down still
		log.FromContext(ctx).V(1).Info("Cannot look for the Certificate that is to go", "error", err.Error())
		return nil
	}
	compared.KeepsCertificate = true
	compared.NoCertificate = &apply.Ref{GroupVersionKind: values.Certificate, Namespace: left.Namespace, Name: left.Name, UID: left.UID}
	compared.Pending.Certificate = left.Name
	return nil
}

// archives reports whether an archive is to be written: it begins when the cluster has formed.
func (c *children) archives(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) bool {
	return cluster.Archive() != nil && s.Formed
}

// primaryOf is the instance that owns all slots of a cluster that is to have one shard, and has no more; empty while that is not known.
func primaryOf(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, shape plan.Shape) string {
	if cluster.Spec.ShardCount() != 1 || len(shape.Topology) != 1 || !s.Formed {
		return ""
	}
	var owners []*snapshot.Instance
	for _, in := range s.Reachable() {
		if !in.Redis.Slots.IsEmpty() {
			owners = append(owners, in)
		}
	}
	if len(owners) != 1 || owners[0].Redis.Slots.Len() != slots.Count {
		return ""
	}
	return owners[0].Name
}

// values are those that the chart is rendered with, and what is made for clients outside.
func (c *children) values(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, shape plan.Shape) (v map[string]any, _ values.External) {
	v = values.Build(asTemplated(cluster, s), shape.Topology, shape.Settings, shape.TLS)
	v["hibernated"] = shape.Dormant
	if certificate := values.CertificateOf(cluster, c.domain); certificate != nil && c.serves(values.Certificate) {
		v["certificate"] = certificate
	}
	if primary := primaryOf(cluster, s, shape); primary != "" {
		v["primary"] = primary
	}
	if c.archives(cluster, s) && c.observer.BackupImage != "" {
		v["archive"] = values.Archive(cluster, c.observer.BackupImage, max(len(shape.Topology), int(cluster.Spec.ShardCount())))
	}
	if cluster.Spec.External == nil || shape.Outside == nil {
		return v, values.External{}
	}
	var service *snapshot.ExternalService
	if s.External != nil {
		service = s.External.Service
	}
	outside := values.ExternalOf(cluster, *shape.Outside, service, c.domain)
	if s.Formed && c.observer.BackupImage != "" && outside.Map != "" {
		outside.Values["pod"] = values.Gateway(cluster, c.observer.BackupImage)
	}
	v["external"] = outside.Values
	return v, outside
}

func isPending(pending []apply.Ref, kind, name string) bool {
	return slices.ContainsFunc(pending, func(ref apply.Ref) bool { return ref.Kind == kind && (name == "" || ref.Name == name) })
}

// missing keeps of the pending children those that do not exist, when nothing is known of
// the others: after a restart of the operator only an apply would tell whether they are as
// rendered, and a paused cluster is not applied.
func (c *children) missing(ctx context.Context, cluster *v1alpha1.RedisCluster, pending []apply.Ref) ([]apply.Ref, error) {
	if drift, err := c.applier.Drifted(ctx, cluster); drift.Known || err != nil {
		return pending, err
	}
	var missing []apply.Ref
	for _, ref := range pending {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(ref.GroupVersionKind)
		err := c.cache.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, object)
		if apierrors.IsNotFound(err) {
			missing = append(missing, ref)
		} else if err != nil {
			return nil, fmt.Errorf("read %s from the cache: %w", ref, err)
		}
	}
	return missing, nil
}

// asTemplated is the cluster with the storage that the StatefulSets' claim template asks
// for: the template cannot change, and claims are expanded by a step of their own.
func asTemplated(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) *v1alpha1.RedisCluster {
	claim := cluster.Spec.Claim()
	if claim == nil || len(s.Shards) == 0 || s.Shards[0].ClaimSize == "" {
		return cluster
	}
	size, err := resource.ParseQuantity(s.Shards[0].ClaimSize)
	if err != nil {
		return cluster
	}
	templated := cluster.DeepCopy()
	claim.Size = size
	templated.Spec.Storage = claim
	return templated
}

func (c *children) render(cluster *v1alpha1.RedisCluster, v map[string]any, m *Memory) ([]*unstructured.Unstructured, error) {
	release := chart.Release{Name: cluster.Name, Namespace: cluster.Namespace, Revision: 1, IsInstall: true}
	digest, err := c.chart.DigestFor(v, release, chart.Capabilities{})
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	if m.rendered.digest == digest {
		return m.rendered.objects, nil
	}
	// What strings make of the objects is checked with one shard: they are the same in all, and
	// the check renders twice more.
	one, err := c.chart.Render(values.OneShard(v), release, chart.Capabilities{})
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	if err := restricted(one.Objects); err != nil {
		return nil, fmt.Errorf("the rendered chart: %w", err)
	}
	rendered, err := c.chart.AllowStructuredValues().Render(v, release, chart.Capabilities{})
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	allowed := chart.Allowed{Namespace: cluster.Namespace, Kinds: c.chart.Kinds(),
		Namespaced: func(kind schema.GroupVersionKind) (bool, error) {
			mapping, err := c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
			return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace, err
		}}
	if err := chart.Check(rendered, allowed); err != nil {
		return nil, fmt.Errorf("the rendered chart: %w", err)
	}
	m.rendered = rendering{digest: digest, objects: rendered.Objects, template: templateOf(rendered.Objects)}
	return rendered.Objects, nil
}

// obsolete finds children of ours that are not rendered any more.
func (c *children) obsolete(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, dormant bool,
	objects []*unstructured.Unstructured) ([]apply.Ref, error) {
	var obsolete []apply.Ref
	for _, kind := range optional {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.cache.List(ctx, list, client.InNamespace(cluster.Namespace),
			client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}, client.UnsafeDisableDeepCopy); err != nil { // they are only read
			return nil, fmt.Errorf("list children of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			ref := apply.Ref{GroupVersionKind: kind, Namespace: item.Namespace, Name: item.Name, UID: item.UID}
			owner := metav1.GetControllerOf(item)
			rendered := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
				return o.GroupVersionKind().GroupKind() == kind.GroupKind() && o.GetName() == item.Name
			})
			if owner != nil && owner.UID == cluster.UID && !rendered && item.DeletionTimestamp == nil && !c.keeps(cluster, s, dormant, ref) {
				obsolete = append(obsolete, ref)
			}
		}
	}
	return obsolete, nil
}

// keeps reports whether a child stays that is asked for, if perhaps by an operator that does not know its image, or while it is not known
// what is to be in it. Gateways do not stay that nobody knows how to stop while the cluster is hibernated.
func (c *children) keeps(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, dormant bool, ref apply.Ref) bool {
	switch ref.Kind {
	case deployment:
		return ref.Name == cluster.ArchiveWorkload() && c.archives(cluster, s) ||
			ref.Name == cluster.GatewayName() && cluster.Spec.External != nil && !dormant
	case "Service":
		return ref.Name == cluster.PrimaryServiceName() && cluster.Spec.ShardCount() == 1
	case "ConfigMap":
		return cluster.Spec.External != nil && (ref.Name == cluster.GatewayName() || ref.Name == cluster.ExternalConfigMap())
	}
	return false
}

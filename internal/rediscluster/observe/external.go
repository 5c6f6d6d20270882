// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// externalMemory is what the Service of gateways said, in which version, what gateways said last by the UIDs of their pods, and what is
// known of the Secrets.
type externalMemory struct {
	service *snapshot.ExternalService
	uid     types.UID
	version string

	said        map[types.UID]servedMap
	asked       time.Time
	replicaSets replicaSets
	// addresses are those of instances, by the UIDs of their pods.
	addresses map[string]address
	// told are the instances that gateways are told of, since is since when not all of them are served.
	told  v1alpha1.Topology
	since time.Time

	withheld withheld
}

// address is where an instance is, and since when it was seen there.
type address struct {
	ip    string
	since time.Time
}

// withheld is what was found about Secrets, and when.
type withheld struct {
	why        string
	read       byname.Reading
	generation int64
}

// external reads how clients outside reach the cluster; nil when none are let in. held is how long gateways kept the operator waiting.
func (o *Observer) external(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, m *Memory) (_ *snapshot.External,
	held time.Duration, _ error) {
	if cluster.Spec.External == nil {
		m.external = externalMemory{}
		return nil, 0, nil
	}
	e := &snapshot.External{}
	e.Outside, e.Served = writtenDown(cluster)
	var err error
	if e.Service, err = o.externalService(ctx, cluster, &m.external); err != nil {
		return nil, 0, err
	}
	m.external.noteAddresses(s.Instances, o.now())
	held, err = o.gateways(ctx, cluster, s.Instances, e, &m.external)
	return e, held, err
}

// noteAddresses fills in IPSince.
func (m *externalMemory) noteAddresses(instances []snapshot.Instance, now time.Time) {
	before := m.addresses
	m.addresses = map[string]address{}
	for i := range instances {
		in := &instances[i]
		at, known := before[in.UID]
		if !known || at.ip != in.IP {
			at = address{ip: in.IP, since: now}
		}
		m.addresses[in.UID], in.IPSince = at, at.since
	}
}

// writtenDown is what the status says of whom gateways were told of. It is not the operator's alone to write.
func writtenDown(cluster *v1alpha1.RedisCluster) (out snapshot.Outside, served v1alpha1.Topology) {
	is := cluster.Status.External
	if is == nil {
		return snapshot.Outside{}, nil
	}
	topology := func(list []int32) v1alpha1.Topology {
		var t v1alpha1.Topology
		for _, n := range list[:min(len(list), int(v1alpha1.MaxExternalInstances))] {
			t = append(t, min(max(n, 0), v1alpha1.MaxExternalPerShard))
		}
		return t
	}
	out.Instances, served = topology(is.Instances), topology(is.Served)
	for _, l := range is.Leaving {
		if shard, ordinal, named := cluster.InstanceOf(l.Name); named {
			out.Leaving = append(out.Leaving, snapshot.Leaving{Shard: shard, Ordinal: ordinal, Until: l.Until.Time})
		}
	}
	return out, served
}

// externalService reads where the Service is reached, past the cache, which does not keep that; but only when the cache says that it has
// changed.
func (o *Observer) externalService(ctx context.Context, cluster *v1alpha1.RedisCluster, m *externalMemory) (*snapshot.ExternalService,
	error) {
	key := client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.GatewayName()}
	known := &metav1.PartialObjectMetadata{}
	known.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err := o.Children.Get(ctx, key, known)
	switch {
	case apierrors.IsNotFound(err), err == nil && (!metav1.IsControlledBy(known, cluster) || known.DeletionTimestamp != nil):
		m.service, m.version = nil, ""
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Service %s from the cache: %w", key.Name, err)
	case m.version != "" && m.version == known.ResourceVersion && m.uid == known.UID:
		return m.service, nil
	}
	service := &corev1.Service{}
	if err := o.Secrets.Get(ctx, key, service); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read Service %s: %w", key.Name, err)
	}
	if !metav1.IsControlledBy(service, cluster) || string(service.Spec.Type) != string(cluster.Spec.External.Type) {
		return nil, nil
	}
	is := &snapshot.ExternalService{Host: balancer(service), NodePorts: map[int32]int32{}}
	for _, port := range service.Spec.Ports {
		is.NodePorts[port.Port] = port.NodePort
	}
	m.service, m.uid, m.version = is, known.UID, known.ResourceVersion
	return is, nil
}

// balancer is where a load balancer says that it is reached; empty: at nothing that clients can be told.
func balancer(service *corev1.Service) string {
	for _, at := range service.Status.LoadBalancer.Ingress {
		if ip, err := netip.ParseAddr(at.IP); err == nil && ip.Zone() == "" {
			return ip.String()
		}
		if at.Hostname != "" && len(validation.IsDNS1123Subdomain(at.Hostname)) == 0 {
			return at.Hostname
		}
	}
	return ""
}

// GatewaysWithheld says, with a field path and a remedy, why the Deployment of gateways may not be written now; empty when it may. What was
// found is believed until that changes, or for a minute where nobody tells.
func (o *Observer) GatewaysWithheld(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) string {
	if is := cluster.Status.TLS; is != nil && is.Mode != cluster.TLSMode() {
		return fmt.Sprintf("TLS is being switched, and gateways know one kind of connections to instances: they are made when status.tls.mode is %s",
			cluster.TLSMode())
	}
	w := &m.external.withheld
	if w.generation == cluster.Generation && o.fresh(w.read) {
		return w.why
	}
	if o.BackupImage == "" {
		return "the operator does not know its own image, which gateways run: run it in a pod, or name the image with --backup-image"
	}
	var needed []access.Needed
	if cluster.TLSMode() == v1alpha1.TLSRequired {
		needed = backupjob.NeedsOfTLS(cluster, "spec.tls")
		if own := cluster.Spec.TLS.ClientCASecretName; own != "" {
			needed = append(needed, access.Needed{Field: "spec.tls.clientCASecretName", Name: own, Label: v1alpha1.LabelTLS})
		}
	}
	if tls := cluster.Spec.External.TLS; tls != nil {
		needed = append(needed, access.Needed{Field: "spec.external.tls.secretName", Name: tls.SecretName, Label: v1alpha1.LabelExternalTLS})
	}
	reads := &byname.Reads{Reader: o.Secrets}
	why, err := o.readerFrom(reads).Usable(ctx, cluster.Namespace, needed...)
	if err != nil {
		return fmt.Sprintf("the Secrets of gateways cannot be read now: %v", err)
	}
	*w = withheld{why: why, read: reads.At(o.now()), generation: cluster.Generation}
	return why
}

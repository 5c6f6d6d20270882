// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	// gatewaysEvery is how often gateways are asked at most, gatewaysWithin how long all of them may take.
	gatewaysEvery, gatewaysWithin = 2 * time.Second, time.Second
	// startsWithin is for how long a gateway is waited for that does not run yet: by then its kubelet has read the map again.
	startsWithin = 5 * time.Minute
	// mostGateways is how many pods are looked at: twice as many as there may be, while they are replaced.
	mostGateways = 2 * int(v1alpha1.MaxGateways)
)

// externalMemory is what the Service of gateways said, in which version, what gateways said last by the UIDs of their pods, and what is
// known of the Secrets.
type externalMemory struct {
	service *snapshot.ExternalService
	uid     types.UID
	version string

	said  map[types.UID]servedMap
	asked time.Time
	// told are the instances that gateways are told of, since is since when not all of them are served.
	told  v1alpha1.Topology
	since time.Time

	withheld withheld
}

// servedMap is what a gateway said: which map it serves, and of which instances of it it knows no address.
type servedMap struct {
	Map     string   `json:"map"`
	Unknown []string `json:"unknown"`
}

// withheld is what was found about Secrets, and when.
type withheld struct {
	why        string
	lookedAt   time.Time
	generation int64
}

// external reads how clients outside reach the cluster; nil when none are let in. held is how long gateways kept the operator waiting.
func (o *Observer) external(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) (_ *snapshot.External, held time.Duration,
	_ error) {
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
	held, err = o.gateways(ctx, cluster, e, &m.external)
	return e, held, err
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

// gateways reads the pods of gateways, and asks them whom they lead clients to as long as there is somebody of whom that is not known.
func (o *Observer) gateways(ctx context.Context, cluster *v1alpha1.RedisCluster, e *snapshot.External, m *externalMemory) (
	held time.Duration, _ error) {
	var list corev1.PodList
	err := o.Children.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelGateway: cluster.Name})
	if err != nil {
		return 0, fmt.Errorf("list the gateways: %w", err)
	}
	ours := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !isGateway(cluster, &pod) })
	slices.SortFunc(ours, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	e.TooMany = len(ours) > mostGateways
	ours = ours[:min(len(ours), mostGateways)]
	e.Since = m.unserved(e, o.now())
	if asks := o.Ask != nil && !slices.Equal(e.Served, e.Instances); !asks {
		m.said = nil
	} else if began := o.now(); began.Sub(m.asked) >= gatewaysEvery {
		m.asked = began
		m.said = o.askGateways(ctx, ours)
		held = o.now().Sub(began)
	}
	for i := range ours {
		pod := &ours[i]
		why := pods.Why(pod)
		starting := why == pods.Starting && o.now().Sub(pod.CreationTimestamp.Time) < startsWithin
		g := snapshot.Gateway{Pod: pod.Name, Ready: pods.Ready(pod), Starting: starting, Waiting: why, Map: m.said[pod.UID].Map}
		for _, name := range m.said[pod.UID].Unknown {
			if shard, ordinal, named := cluster.InstanceOf(name); named {
				g.Unknown = append(g.Unknown, snapshot.Numbered{Shard: shard, Ordinal: ordinal})
			}
		}
		g.ShowsNone = cluster.ShowsCertificate() && !backupjob.Shows(pod.Spec)
		if pod.DeletionTimestamp != nil {
			g.Ready, g.Starting, g.EndsBy = false, false, pod.DeletionTimestamp.Time
		}
		e.Gateways = append(e.Gateways, g)
	}
	return held, nil
}

// unserved is since when there are the same instances that are not all served.
func (m *externalMemory) unserved(e *snapshot.External, now time.Time) time.Time {
	switch {
	case slices.Equal(e.Served, e.Instances):
		m.since = time.Time{}
	case m.since.IsZero() || !slices.Equal(m.told, e.Instances):
		m.since = now
	}
	m.told = e.Instances
	return m.since
}

// isGateway reports whether a pod leads clients to the cluster, by its owner's name and what it runs: labels are anybody's to write.
func isGateway(cluster *v1alpha1.RedisCluster, pod *corev1.Pod) bool {
	owner, c := metav1.GetControllerOf(pod), backupjob.Of(pod.Spec)
	return owner != nil && owner.Kind == "ReplicaSet" && strings.HasPrefix(owner.Name, cluster.GatewayName()+"-") && !pod.Spec.HostNetwork &&
		c != nil && slices.Equal(c.Command, []string{backupjob.Program}) && len(c.Args) > 0 && c.Args[0] == backupjob.Gateway &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// askGateways asks those that run at once.
func (o *Observer) askGateways(ctx context.Context, list []corev1.Pod) map[types.UID]servedMap {
	ctx, cancel := context.WithTimeout(ctx, gatewaysWithin)
	defer cancel()
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		said  = map[types.UID]servedMap{}
	)
	for i := range list {
		if list[i].Status.PodIP == "" {
			continue
		}
		group.Go(func() {
			text, err := o.Ask(ctx, net.JoinHostPort(list[i].Status.PodIP, strconv.Itoa(backupjob.StatusPort)))
			if err != nil {
				return
			}
			is, err := parseServed(text)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				said[list[i].UID] = is
			}
		})
	}
	group.Wait()
	return said
}

// MostSaid is how many bytes of what a pod says are read: the names of all instances that a cluster with gateways may have.
const MostSaid = 16 << 10

// parseServed reads what a gateway says.
func parseServed(text []byte) (servedMap, error) {
	const digits = 64
	var said servedMap
	if len(text) > MostSaid {
		return servedMap{}, errors.New("it is too long")
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return servedMap{}, err
	}
	if len(said.Map) != digits {
		return servedMap{}, errors.New("it serves no map")
	}
	return said, nil
}

// GatewaysWithheld says, with a field path and a remedy, why the Deployment of gateways may not be written now; empty when it may. What was
// found is believed for a minute.
func (o *Observer) GatewaysWithheld(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) string {
	if is := cluster.Status.TLS; is != nil && is.Mode != cluster.TLSMode() {
		return fmt.Sprintf("TLS is being switched, and gateways know one kind of connections to instances: they are made when status.tls.mode is %s",
			cluster.TLSMode())
	}
	w := &m.external.withheld
	if w.generation == cluster.Generation && !w.lookedAt.IsZero() && o.now().Sub(w.lookedAt) < secretsAge {
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
	why, err := o.reader().Usable(ctx, cluster.Namespace, needed...)
	if err != nil {
		return fmt.Sprintf("the Secrets of gateways cannot be read now: %v", err)
	}
	*w = withheld{why: why, lookedAt: o.now(), generation: cluster.Generation}
	return why
}

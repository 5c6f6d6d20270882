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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/pods"
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

// servedMap is what a gateway said: which map it serves, of which instances of it it knows no address, and at which addresses, IP:PORT, it
// connects to the others.
type servedMap struct {
	Map       string              `json:"map"`
	Unknown   []string            `json:"unknown"`
	Addresses map[string][]string `json:"addresses"`
}

// gateways reads the pods of gateways, and asks them whom they lead clients to as long as there is somebody of whom that is not known.
func (o *Observer) gateways(ctx context.Context, cluster *v1alpha1.RedisCluster, instances []snapshot.Instance, e *snapshot.External,
	m *externalMemory) (held time.Duration, _ error) {
	var list corev1.PodList
	err := o.Children.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelGateway: cluster.Name})
	if err != nil {
		return 0, fmt.Errorf("list the gateways: %w", err)
	}
	ours := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !isGateway(cluster, &pod) })
	slices.SortFunc(ours, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	ours, all := o.deployed(ctx, cluster, cluster.GatewayName(), ours, &m.replicaSets)
	e.TooMany = !all || len(ours) > mostGateways
	ours = ours[:min(len(ours), mostGateways)]
	e.Since = m.unserved(e, o.now())
	began := o.now()
	asks := !slices.Equal(e.Served, e.Instances) || unreached(cluster, ours, instances, m.said, began)
	if o.Ask != nil && asks && began.Sub(m.asked) >= gatewaysEvery {
		m.asked = began
		m.said = o.askGateways(ctx, ours)
		held = o.now().Sub(began)
	}
	for i := range ours {
		pod := &ours[i]
		why, said := pods.Why(pod), m.said[pod.UID]
		starting := why == pods.Starting && o.now().Sub(pod.CreationTimestamp.Time) < startsWithin
		g := snapshot.Gateway{Pod: pod.Name, Ready: pods.Ready(pod), Starting: starting, Waiting: why, Map: said.Map,
			Unknown: said.unknown(cluster), Addresses: said.connects(cluster),
			ShowsNone: cluster.ShowsCertificate() && !backupjob.Shows(pod.Spec)}
		if pod.DeletionTimestamp != nil {
			g.Ready, g.Starting, g.EndsBy = false, false, pod.DeletionTimestamp.Time
		}
		e.Gateways = append(e.Gateways, g)
	}
	return held, nil
}

// unreached reports whether there is an instance of which no gateway was waited for long enough, and one has not said that it knows its
// address.
func unreached(cluster *v1alpha1.RedisCluster, gateways []corev1.Pod, instances []snapshot.Instance, said map[types.UID]servedMap,
	now time.Time) bool {
	for i := range gateways {
		g := snapshot.Gateway{Addresses: said[gateways[i].UID].connects(cluster)}
		if slices.ContainsFunc(instances, func(in snapshot.Instance) bool {
			return in.IP != "" && now.Sub(in.IPSince) < snapshot.KnownWithin && !g.Knows(&in)
		}) {
			return true
		}
	}
	return false
}

// unknown are the instances that a gateway knows no address of.
func (s servedMap) unknown(cluster *v1alpha1.RedisCluster) []snapshot.Numbered {
	var list []snapshot.Numbered
	for _, name := range s.Unknown {
		if shard, ordinal, named := cluster.InstanceOf(name); named {
			list = append(list, snapshot.Numbered{Shard: shard, Ordinal: ordinal})
		}
	}
	return list
}

// connects are the IP addresses at which a gateway connects to instances.
func (s servedMap) connects(cluster *v1alpha1.RedisCluster) map[snapshot.Numbered][]string {
	var all map[snapshot.Numbered][]string
	for name, at := range s.Addresses {
		shard, ordinal, named := cluster.InstanceOf(name)
		if !named {
			continue
		}
		for _, text := range at {
			if address, err := netip.ParseAddrPort(text); err == nil {
				if all == nil {
					all = map[snapshot.Numbered][]string{}
				}
				instance := snapshot.Numbered{Shard: shard, Ordinal: ordinal}
				all[instance] = append(all[instance], address.Addr().Unmap().String())
			}
		}
	}
	return all
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

// isGateway reports whether a pod may be one that leads clients to the cluster, by its owner's name and what it runs: labels are anybody's
// to write.
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

// MostSaid is how many bytes of what a pod says are read: the names and addresses of all instances that a cluster with gateways may have.
const MostSaid = 64 << 10

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

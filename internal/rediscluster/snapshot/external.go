// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// KnownWithin is for how long what is inside waits for gateways to know the address that an instance has got.
const KnownWithin = 10 * time.Minute

// External is what is known of how clients outside reach a cluster.
type External struct {
	// Outside is whom gateways were told of, as it was written down.
	Outside
	// Served are the instances that every gateway is known to have led clients to, as it was written down; nil: none ever did.
	Served v1alpha1.Topology
	// Service is what the Service of the gateways says; nil: there is none, or it cannot be read.
	Service *ExternalService
	// Since is since when there are instances, always the same, of which it is not known that every gateway leads to them; zero: there are
	// none, or that is not known.
	Since time.Time
	// Gateways are the pods that exist, TooMany reports that there are more.
	Gateways []Gateway
	TooMany  bool
}

// ServedOf is how many instances of a shard are served.
func (e *External) ServedOf(shard int) int {
	if shard >= len(e.Served) {
		return 0
	}
	return int(e.Served[shard])
}

// Outside is whom gateways are to lead clients to: so many instances of each shard, and those that have left a moment ago.
type Outside struct {
	Instances v1alpha1.Topology
	Leaving   []Leaving
}

// Leaving is an instance that is gone, of which gateways are told until a time.
type Leaving struct {
	Shard, Ordinal int
	Until          time.Time
}

// ExternalService is what a Service says.
type ExternalService struct {
	// Host is what the load balancer says that it is reached at; empty: nothing that can be told to clients.
	Host string
	// NodePorts are by the ports of the Service.
	NodePorts map[int32]int32
}

// Gateway is a pod that leads clients outside to instances.
type Gateway struct {
	Pod string
	// Ready reports whether clients are led to it, Starting that it is on its way to be, and not for long.
	Ready, Starting bool
	// EndsBy is when its grace period is over; zero: it is not being deleted.
	EndsBy time.Time
	// Waiting says why it does not run; empty when it does.
	Waiting string
	// ShowsNone reports whether instances would refuse it if they wanted a certificate.
	ShowsNone bool
	// Map identifies the map that it said last that it serves; empty: not known.
	Map string
	// Unknown are the instances of that map that it knows no address of, and so leads nobody to.
	Unknown []Numbered
	// Addresses are the IP addresses at which it connects to instances, as it said last.
	Addresses map[Numbered][]string
}

// Numbered is an instance by its shard and its number there.
type Numbered struct{ Shard, Ordinal int }

// Serves reports whether it said that it leads clients to an instance by a map.
func (g Gateway) Serves(is string, instance Numbered) bool {
	return is != "" && g.Map == is && !slices.Contains(g.Unknown, instance)
}

// Knows reports whether it said that it connects to an instance at the address that this one has now.
func (g Gateway) Knows(in *Instance) bool {
	return slices.Contains(g.Addresses[Numbered{Shard: in.Shard, Ordinal: in.Ordinal}], in.IP)
}

// Leads reports whether clients may be led by it, now or soon: one that does not run leads nobody, and begins with the map of then.
func (g Gateway) Leads(now time.Time) bool {
	return g.Ready || g.Starting || g.Map != "" || now.Before(g.EndsBy)
}

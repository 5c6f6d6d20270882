// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// External is what is known of how clients outside reach a cluster.
type External struct {
	// Outside is whom gateways were told of, as it was written down.
	Outside
	// Served are the instances that every gateway is known to have led clients to, as it was written down; nil: none ever did.
	Served v1alpha1.Topology
	// Service is what the Service of the gateways says; nil: there is none, or it cannot be read.
	Service *ExternalService
	// Gateways are the pods that exist.
	Gateways []Gateway
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
	// Map identifies the map that it said last that it serves; empty: not known.
	Map string
}

// Leads reports whether clients may be led by it, now or soon: one that does not run leads nobody, and begins with the map of then.
func (g Gateway) Leads(now time.Time) bool {
	return g.Ready || g.Starting || g.Map != "" || now.Before(g.EndsBy)
}

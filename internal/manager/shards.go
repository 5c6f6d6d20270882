// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/shards"
)

// validateShards wants a number of shards that replicas can divide, and what they need to agree.
func validateShards(o Options) []error {
	if o.Shards == 0 {
		return nil
	}
	var errs []error
	if o.Shards < shards.Fewest || o.Shards > shards.Most {
		errs = append(errs, fmt.Errorf("--shards: %d is not between %d and %d; 0 means that one replica works on everything",
			o.Shards, shards.Fewest, shards.Most))
	}
	if !o.LeaderElection.Enabled {
		errs = append(errs, fmt.Errorf("--shards: replicas share by Leases; without --leader-elect give 0"))
	}
	if longest := shards.MemberLease(o.leaseName(), shards.Most); len(validation.IsDNS1123Subdomain(longest)) > 0 {
		errs = append(errs, fmt.Errorf("--leader-election-id: %q cannot name a Lease; give a shorter one", longest))
	}
	return errs
}

// The Leases of shards are, unless --leader-election-id names others, middleware-operator-shard-0 and so on; those of replicas that work
// middleware-operator-member-0 and so on; and that of turns is middleware-operator-turns.

// addShards has this replica take part in dividing the shards. What only one may do waits for the election of the leader all the same.
func addShards(w wiring, lost func()) error {
	if w.shards == nil {
		return nil
	}
	election, name := w.options.LeaderElection, w.options.leaseName()
	return w.mgr.Add(shards.NewReplica(shards.Options{
		Gate: w.shards, Name: name, Lock: w.leases.quiet, Identity: w.leases.identity, Leader: name,
		Alike:         func(holder string) bool { return strings.HasSuffix(holder, divides(w.options.Shards)) },
		LeaseDuration: election.LeaseDuration, RenewDeadline: election.RenewDeadline, RetryPeriod: election.RetryPeriod,
		DrainWithin: w.options.GracefulShutdownTimeout, Lost: lost, Told: metrics.Shards, Log: w.mgr.GetLogger().WithName("shards"),
	}))
}

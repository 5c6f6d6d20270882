// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// external says where clients outside reach the cluster, and writes down whom gateways were told of.
func external(cluster *v1alpha1.RedisCluster, status *v1alpha1.RedisClusterStatus, p Reconciliation, now time.Time) {
	out := p.Decision.Outside
	switch {
	case cluster.Spec.External == nil:
		status.External = nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionExternalAccess)
		return
	case out == nil || !p.Outside.Known:
		return // what is known of before stays
	}
	is := &v1alpha1.ExternalStatus{Instances: slices.Clone(out.Instances),
		Served: plan.ServedAfter(p.Snapshot.External, out, p.Outside.Map, now)}
	if p.Outside.Address != "" {
		is.Addresses = []string{p.Outside.Address}
	}
	for _, l := range out.Leaving {
		is.Leaving = append(is.Leaving, v1alpha1.ExternalLeaving{Name: fmt.Sprintf("%s-%d", cluster.ShardName(l.Shard), l.Ordinal),
			Until: metav1.NewTime(l.Until.UTC().Truncate(timeUnit))})
	}
	slices.SortFunc(is.Leaving, func(a, b v1alpha1.ExternalLeaving) int { return strings.Compare(a.Name, b.Name) })
	status.External = is
	status.Conditions = conditions.Set(status.Conditions, now, cluster.Generation, externalAccess(cluster, p, is, now))
}

// externalAccess reports whether clients outside reach the cluster.
func externalAccess(cluster *v1alpha1.RedisCluster, p Reconciliation, is *v1alpha1.ExternalStatus, now time.Time) metav1.Condition {
	no := func(reason, format string, args ...any) metav1.Condition {
		return conditions.Condition(v1alpha1.ConditionExternalAccess, metav1.ConditionFalse, reason, cut(fmt.Sprintf(format, args...)))
	}
	ready, waits, pending := 0, "the Deployment has no pod", p.Outside.Address == ""
	if e := p.Snapshot.External; e != nil {
		balanced := cluster.Spec.External.Type == v1alpha1.ExternalLoadBalancer
		pending = pending || e.Service == nil || balanced && e.Service.Host == "" // whatever name leads to it
		for _, g := range e.Gateways {
			if g.Ready {
				ready++
			} else if g.EndsBy.IsZero() {
				waits = strings.TrimSuffix(fmt.Sprintf("pod %s is not ready: %s", g.Pod, g.Waiting), ": ")
			}
		}
	}
	switch s := p.Decision.Situation; {
	case s == plan.Hibernating || s == plan.Hibernated || Asleep(p):
		return no(v1alpha1.ReasonExternalHibernated, "no gateway is to run while the cluster is hibernated: set spec.hibernate to false")
	case p.Outside.Refused != "":
		return no(v1alpha1.ReasonExternalRefused, "%s", p.Outside.Refused)
	case pending:
		return no(v1alpha1.ReasonExternalAddressPending, "%s", addressPending(cluster))
	case !p.Snapshot.Formed:
		return no(v1alpha1.ReasonExternalNotBegun, "gateways start when the cluster has formed")
	case behind(p, now) != "":
		return no(v1alpha1.ReasonExternalBehind, "for %s clients outside may not have been led to all instances: %s", plan.ServedWithin,
			behind(p, now))
	case ready > 0:
		message := fmt.Sprintf("clients outside connect to %s", strings.Join(is.Addresses, ", "))
		if p.Outside.Withheld != "" {
			message += "; gateways go on as they were: " + p.Outside.Withheld
		}
		return conditions.Condition(v1alpha1.ConditionExternalAccess, metav1.ConditionTrue, v1alpha1.ReasonExternalAvailable, cut(message))
	case p.Outside.Withheld != "":
		return no(v1alpha1.ReasonExternalWithheld, "%s", p.Outside.Withheld)
	}
	return no(v1alpha1.ReasonExternalNotRunning, "no gateway is ready: %s", waits)
}

// behind says which gateway has not led clients by the map of now for so long that the cluster does not wait for it any more; empty: none.
func behind(p Reconciliation, now time.Time) string {
	e := p.Snapshot.External
	if e == nil || e.Since.IsZero() || now.Sub(e.Since) < plan.ServedWithin {
		return ""
	}
	for _, g := range e.Gateways {
		if g.Leads(now) && g.Map != p.Outside.Map {
			return fmt.Sprintf("gateway %s: %s", g.Pod, plan.WhyBehind(g, p.Outside.Map))
		}
	}
	if e.TooMany {
		return "there are more gateways than can be asked: delete those that are not of the Deployment"
	}
	return ""
}

func addressPending(cluster *v1alpha1.RedisCluster) string {
	if cluster.Spec.External.Type == v1alpha1.ExternalLoadBalancer {
		return fmt.Sprintf("Service %s has no address: a controller of load balancers gives it one; without such, use type NodePort",
			cluster.GatewayName())
	}
	return fmt.Sprintf("Service %s has no node ports yet", cluster.GatewayName())
}

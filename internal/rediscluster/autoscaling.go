// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/rediscluster/autoscale"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// scalable is what a spec says of the number of shards, and the bounds in force, which do not change before a time; zero: they never do.
type scalable struct {
	*v1alpha1.Autoscale
	bounds autoscale.Bounds
	until  time.Time
}

// withShards has the spec say how many shards there are to be, in place of spec.autoscale, which is returned; nil: there is none, or what
// it says is not valid. Whatever follows reconciles a cluster of so many shards. That is not written.
func (l *Loop) withShards(ctx context.Context, cluster *v1alpha1.RedisCluster) (*scalable, error) {
	if cluster.Spec.Autoscale == nil || len(admission.CheckAutoscale(cluster)) > 0 {
		return nil, nil
	}
	asked := &scalable{Autoscale: cluster.Spec.Autoscale}
	asked.bounds, asked.until = autoscale.BoundsOf(asked.Autoscale, l.Now())
	var exist int32
	if cluster.Status.Autoscale == nil { // it is new, or the status is lost: then the cluster stays as it is
		var err error
		if exist, err = l.Observer.ExistingShards(ctx, cluster); err != nil {
			return nil, err
		}
	}
	*cluster = *cluster.WithShards(cluster.ShardsInForce(exist, asked.bounds.Least))
	return asked, nil
}

// autoscale has the desire follow the load, if the spec asks for that.
func (l *Loop) autoscale(asked *scalable, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, m *Memory,
	d *plan.Desired) *status.Autoscaling {
	if asked == nil {
		m.load = load{}
		return nil
	}
	shards := len(d.Topology)
	now, calm := l.Now(), !m.load.busy && s.Backup.UID == ""
	var outcome autoscale.Outcome
	config := autoscale.ConfigOf(asked.Autoscale, asked.bounds)
	m.load.track, outcome = m.load.track.Decide(now, config, m.load.meter.Read(s, now), shards, calm, past(cluster))
	is := tellScaling(&m.load.told, now, status.Autoscaling{Shards: shards, Bounds: asked.bounds, Outcome: outcome})
	if asked.Mode == v1alpha1.AutoscaleDryRun {
		return &is
	}
	d.ScaleMost = int(asked.LargestShards())
	if outcome.To != 0 {
		d.ScaleTo, d.ScaleWhy = outcome.To, fmt.Sprintf("%d shards become %d: %s", shards, outcome.To, outcome.Reason)
	}
	return &is
}

// load is what is remembered of the load of a cluster.
type load struct {
	meter autoscale.Meter
	track autoscale.Track
	told  told[status.Autoscaling]
	// busy reports whether the last reconciliation had something to do, so that what instances bear is not the load alone.
	busy bool
}

// note remembers whether there was something to do.
func (m *load) note(step plan.Step) {
	if hold, paused := step.(plan.Hold); paused {
		step = hold.Next
	}
	m.busy = !plan.Is[plan.None](step) && !plan.Is[plan.SetShards](step) && !plan.Is[plan.TakeTurn](step)
}

// past is what the status says of the scalings before.
func past(cluster *v1alpha1.RedisCluster) autoscale.Past {
	is := cluster.Status.Autoscale
	if is == nil {
		return autoscale.Past{}
	}
	p := autoscale.Past{}
	if is.ScaledAt != nil {
		p.ScaledAt = is.ScaledAt.UTC()
	}
	if o := is.Outgrown; o != nil && o.Shards > 0 && o.Percent > 0 {
		p.Outgrown = &autoscale.Outgrown{Shards: int(o.Shards), Measure: autoscale.Measure(o.Measure), Demand: float64(o.Percent) / 100}
	}
	return p
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the operator's own metrics; controller-runtime adds those of its queues, clients and webhooks. A series
// that belongs to an object lives and dies with that object.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const namespace = "middleware_operator"

var (
	build = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Always 1; the labels say which build is running, and with which --selector.",
	}, []string{"version", "commit", "go_version", "selector"})

	phase    = redisGauge("phase", "1 for the phase that the RedisCluster is in.", "phase")
	slots    = redisGauge("slots_covered", "Hash slots, of 16384, that a reachable master serves.")
	ready    = redisGauge("instances_ready", "Instances of the RedisCluster that are ready.")
	move     = redisGauge("slots_to_move", "Hash slots that are on their way to another shard.")
	total    = redisGauge("instances", "Instances that the RedisCluster asks for.")
	archived = redisGauge("archiving", "1 while the archive is behind no further than its objective, else 0; absent without an archive.")
	behind   = redisGauge("archive_behind_seconds",
		"For how long what was written is not known to be in the archive; absent where that is not known.")
	scaledTo = redisGauge("autoscale_shards", "Shards that the RedisCluster is to have by spec.autoscale; absent without it.")
	wanted   = redisGauge("autoscale_wanted_shards", "Shards that the load asks for, within the bounds; absent where that is not known.")
	blocked  = redisGauge("blocked", "1 while the next step is held back; the label names the safety predicate.", "predicate")

	steps = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: "rediscluster", Name: "step_duration_seconds",
		Help:    "How long steps of RedisClusters took that changed something, and whether they failed.",
		Buckets: []float64{.01, .1, 1, 10, 60},
	}, []string{"step", "outcome"})

	fleetOf = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Subsystem: "fleet", Name: "objects",
		Help: "Objects of a kind by how far they are with what is new in the operator: waiting, upgrading, done or failed; " +
			"absent until one waits for its turn.",
	}, []string{"kind", "state"})

	shardsHeld = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "shards_held",
		Help: "Shards that this replica works on; absent without --shards."}, nil)

	each  = newInstances()
	certs = redisGauge("certificate_expiry_timestamp_seconds", "When the certificate of the instances expires; absent without TLS.")
)

func redisGauge(name, help string, more ...string) *prometheus.GaugeVec {
	labels := append([]string{"namespace", "name"}, more...)
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Subsystem: "rediscluster", Name: name, Help: help}, labels)
}

var collectors = []prometheus.Collector{build, phase, slots, move, ready, total, certs, archived, behind, blocked, scaledTo, wanted,
	each, objects, steps, fleetOf, shardsHeld}

// Register adds the metrics to the registry that the manager serves. Calling it again changes nothing.
var Register = sync.OnceValue(func() error {
	for _, c := range collectors {
		if err := metrics.Registry.Register(c); err != nil {
			return err
		}
	}
	return nil
})

// Build says which build is running, and with which selector; empty: without one.
func Build(version, commit, goVersion, selector string) {
	build.WithLabelValues(version, commit, goVersion, selector).Set(1)
}

// RedisClusterValues is what is told about one RedisCluster.
type RedisClusterValues struct {
	// Phase is the phase of its status; series of other phases are removed.
	Phase string
	// SlotsCovered is between 0 and 16384.
	SlotsCovered int
	// SlotsToMove is how many slots are not where the goal of a scaling wants them.
	SlotsToMove int
	// InstancesReady of Instances are ready.
	InstancesReady, Instances int
	// CertificateNotAfter is zero without TLS.
	CertificateNotAfter time.Time
	// Archiving reports whether the archive is far enough; nil without one. ArchiveBehind is how far it is behind, negative if that is not
	// known.
	Archiving     *bool
	ArchiveBehind time.Duration
	// AutoscaleShards is how many shards there are to be by spec.autoscale, 0 without it; AutoscaleWanted how many the load asks for, 0 where
	// that is not known.
	AutoscaleShards, AutoscaleWanted int
	// BlockedBy is the safety predicate that holds the next step back; empty: none does.
	BlockedBy string
	// Each are its instances.
	Each []Instance
}

// RedisClusterSeries are the series of one RedisCluster.
type RedisClusterSeries struct{ namespace, name string }

// RedisCluster returns the series of one RedisCluster. None exists before Set.
func RedisCluster(namespace, name string) RedisClusterSeries {
	return RedisClusterSeries{namespace: namespace, name: name}
}

// Set replaces the values.
func (s RedisClusterSeries) Set(v RedisClusterValues) {
	each.set(s, v.Each)
	phase.DeletePartialMatch(s.labels())
	phase.WithLabelValues(s.namespace, s.name, v.Phase).Set(1)
	slots.WithLabelValues(s.namespace, s.name).Set(float64(v.SlotsCovered))
	move.WithLabelValues(s.namespace, s.name).Set(float64(v.SlotsToMove))
	ready.WithLabelValues(s.namespace, s.name).Set(float64(v.InstancesReady))
	total.WithLabelValues(s.namespace, s.name).Set(float64(v.Instances))
	certs.DeletePartialMatch(s.labels())
	if !v.CertificateNotAfter.IsZero() {
		certs.WithLabelValues(s.namespace, s.name).Set(float64(v.CertificateNotAfter.Unix()))
	}
	for gauge, n := range map[*prometheus.GaugeVec]int{scaledTo: v.AutoscaleShards, wanted: v.AutoscaleWanted} {
		if gauge.DeletePartialMatch(s.labels()); n > 0 {
			gauge.WithLabelValues(s.namespace, s.name).Set(float64(n))
		}
	}
	blocked.DeletePartialMatch(s.labels())
	if v.BlockedBy != "" {
		blocked.WithLabelValues(s.namespace, s.name, v.BlockedBy).Set(1)
	}
	archived.DeletePartialMatch(s.labels())
	behind.DeletePartialMatch(s.labels())
	if v.Archiving == nil {
		return
	}
	archived.WithLabelValues(s.namespace, s.name).Set(one(*v.Archiving))
	if v.ArchiveBehind >= 0 {
		behind.WithLabelValues(s.namespace, s.name).Set(v.ArchiveBehind.Seconds())
	}
}

// Delete removes every series of the RedisCluster; call it once the object is gone.
func (s RedisClusterSeries) Delete() {
	each.set(s, nil)
	for _, gauge := range []*prometheus.GaugeVec{phase, slots, move, ready, total, certs, archived, behind, blocked, scaledTo, wanted} {
		gauge.DeletePartialMatch(s.labels())
	}
}

func (s RedisClusterSeries) labels() prometheus.Labels {
	return prometheus.Labels{"namespace": s.namespace, "name": s.name}
}

// Step counts a step of a RedisCluster that took a while and may have failed.
func Step(name string, took time.Duration, err error) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	steps.WithLabelValues(name, outcome).Observe(took.Seconds())
}

// Fleet is how many objects of a kind (Kind.group) are how far with what is new in the operator.
type Fleet struct {
	Kind                             string
	Waiting, Upgrading, Done, Failed int
}

// Set replaces the values.
func (f Fleet) Set() {
	for state, n := range map[string]int{"waiting": f.Waiting, "upgrading": f.Upgrading, "done": f.Done, "failed": f.Failed} {
		fleetOf.WithLabelValues(f.Kind, state).Set(float64(n))
	}
}

// Shards is how many shards this replica holds.
func Shards(held int) { shardsHeld.WithLabelValues().Set(float64(held)) }

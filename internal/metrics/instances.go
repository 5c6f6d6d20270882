// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"middleware.hc.cn/operator/internal/redis/stats"
)

// Instance is what is told of one instance of a RedisCluster.
type Instance struct {
	Pod   string
	Shard int
	// Answers reports whether it could be asked; nothing of what follows is told otherwise.
	Answers bool
	Master  bool
	Slots   int
	Keys    int64
	// Linked reports whether a replica follows its master, and Behind is how many bytes of its stream it has not processed then; negative
	// where that is not known.
	Linked bool
	Behind int64
	Stats  stats.Values
}

// described is a metric of an instance.
type described struct {
	name, help string
	desc       *prometheus.Desc
	kind       prometheus.ValueType
	// value is negative for an instance that has none.
	value func(*Instance) float64
}

// instances gives a metric for each figure of each instance, as they were when their cluster was last looked at. They are made when they
// are asked for: a thousand clusters have 150,000 of them.
type instances struct {
	metrics []described
	mu      sync.Mutex
	known   map[RedisClusterSeries][]Instance
}

func newInstances() *instances {
	all := &instances{known: map[RedisClusterSeries][]Instance{}}
	gauge := func(name, help string, value func(*Instance) float64) {
		all.add(name, help, prometheus.GaugeValue, value)
	}
	gauge("up", "1 if the instance answered when the operator last asked it, else 0; everything else is absent then.", nil)
	gauge("master", "1 for a master, 0 for a replica.", func(i *Instance) float64 { return one(i.Master) })
	gauge("slots", "Hash slots that the instance owns.", func(i *Instance) float64 { return float64(i.Slots) })
	gauge("keys", "Keys that it holds.", func(i *Instance) float64 { return float64(i.Keys) })
	gauge("master_link_up", "1 if a replica follows its master, 0 while it is copying everything or does not reach it.",
		func(i *Instance) float64 {
			if i.Master {
				return stats.Unknown
			}
			return one(i.Linked)
		})
	gauge("replication_behind_bytes", "What a replica that follows its master has not processed yet of its stream.",
		func(i *Instance) float64 { return float64(i.Behind) })
	for n, stat := range stats.All {
		kind := prometheus.GaugeValue
		if stat.Counter {
			kind = prometheus.CounterValue
		}
		all.add(stat.Name, stat.Help, kind, func(i *Instance) float64 { return i.Stats[n] })
	}
	return all
}

func (all *instances) add(name, help string, kind prometheus.ValueType, value func(*Instance) float64) {
	name = prometheus.BuildFQName(namespace, "rediscluster_instance", name)
	all.metrics = append(all.metrics, described{name: name, help: help, kind: kind, value: value,
		desc: prometheus.NewDesc(name, help, []string{"namespace", "name", "shard", "pod"}, nil)})
}

func (all *instances) set(of RedisClusterSeries, to []Instance) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if len(to) == 0 {
		delete(all.known, of)
		return
	}
	all.known[of] = to
}

// Describe implements prometheus.Collector.
func (all *instances) Describe(to chan<- *prometheus.Desc) {
	for _, metric := range all.metrics {
		to <- metric.desc
	}
}

// Collect implements prometheus.Collector.
func (all *instances) Collect(to chan<- prometheus.Metric) {
	all.mu.Lock()
	known := maps.Clone(all.known) // lists do not change
	all.mu.Unlock()
	for _, of := range slices.SortedFunc(maps.Keys(known), inOrder) {
		list := known[of]
		for i := range list {
			all.collect(of, &list[i], to)
		}
	}
}

// inOrder is the order of answers, in which the library need not sort them first.
func inOrder(a, b RedisClusterSeries) int {
	return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.namespace, b.namespace))
}

func (all *instances) collect(of RedisClusterSeries, in *Instance, to chan<- prometheus.Metric) {
	labels := prometheus.MakeLabelPairs(all.metrics[0].desc, []string{of.namespace, of.name, strconv.Itoa(in.Shard), in.Pod})
	for n := range all.metrics {
		metric := &all.metrics[n]
		value := one(in.Answers)
		if metric.value != nil {
			if value = stats.Unknown; in.Answers {
				value = metric.value(in)
			}
		}
		if value >= 0 {
			to <- &sample{desc: metric.desc, kind: metric.kind, value: value, labels: labels}
		}
	}
}

// sample is one value of an instance or an object. All of one share their labels, which are in the order of their names: nobody changes
// them, and a scrape of tens of thousands takes a fraction of the memory.
type sample struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	value  float64
	labels []*dto.LabelPair
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write implements prometheus.Metric.
func (s *sample) Write(to *dto.Metric) error {
	to.Label = s.labels
	if s.kind == prometheus.CounterValue {
		to.Counter = &dto.Counter{Value: &s.value}
	} else {
		to.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

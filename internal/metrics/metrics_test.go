// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"middleware.hc.cn/operator/internal/redis/stats"
)

// series are the operator's own series, as name{label values} value.
func series(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if strings.HasPrefix(family.GetName(), namespace+"_rediscluster") {
				if counts := family.GetType() == dto.MetricType_COUNTER; counts != strings.HasSuffix(family.GetName(), "_total") {
					t.Errorf("%s is a counter: %v", family.GetName(), counts)
				}
				found[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return found
}

func TestSeriesLiveAndDieWithTheirObject(t *testing.T) {
	if err := Register(); err != nil {
		t.Fatal(err)
	}
	RedisCluster("shop", "cart").Set(RedisClusterValues{Phase: "Creating", SlotsCovered: 0, Instances: 6})
	RedisCluster("shop", "cart").Set(RedisClusterValues{Phase: "Running", SlotsCovered: 16384, SlotsToMove: 12, InstancesReady: 6,
		Instances: 6, CertificateNotAfter: time.Unix(1800000000, 0), Archiving: new(bool), ArchiveBehind: 90 * time.Second})
	RedisCluster("shop", "plain").Set(RedisClusterValues{Each: []Instance{{Pod: "plain-0-0"}}, ArchiveBehind: time.Second})
	RedisCluster("shop", "plain").Delete()
	RedisCluster("shop", "other").Set(RedisClusterValues{Phase: "Creating"})
	RedisCluster("shop", "other").Delete()

	want := map[string]float64{
		"middleware_operator_rediscluster_phase{cart,shop,Running}":   1,
		"middleware_operator_rediscluster_slots_covered{cart,shop}":   16384,
		"middleware_operator_rediscluster_slots_to_move{cart,shop}":   12,
		"middleware_operator_rediscluster_instances_ready{cart,shop}": 6,
		"middleware_operator_rediscluster_instances{cart,shop}":       6,

		"middleware_operator_rediscluster_archiving{cart,shop}":              0,
		"middleware_operator_rediscluster_archive_behind_seconds{cart,shop}": 90,

		"middleware_operator_rediscluster_certificate_expiry_timestamp_seconds{cart,shop}": 1800000000,
	}
	if diff := cmp.Diff(want, series(t)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	RedisCluster("shop", "cart").Delete()
	if left := series(t); len(left) > 0 {
		t.Errorf("series outlive their object: %v", left)
	}
}

// What is told of instances: all that they said, nothing of those that do not answer but that, and nothing of those that went.
func TestInstances(t *testing.T) {
	if err := Register(); err != nil {
		t.Fatal(err)
	}
	said := func(name string, value float64) (values stats.Values) {
		for i, stat := range stats.All {
			if values[i] = stats.Unknown; stat.Name == name {
				values[i] = value
			}
		}
		return values
	}
	cart := RedisCluster("shop", "cart")
	cart.Set(RedisClusterValues{Each: []Instance{{Pod: "cart-7-0"}}})
	cart.Set(RedisClusterValues{Each: []Instance{
		{Pod: "cart-0-0", Answers: true, Master: true, Slots: 5461, Keys: 12, Behind: -1, Stats: said("commands_total", 99)},
		{Pod: "cart-0-1", Answers: true, Linked: true, Behind: 14, Stats: said("memory_used_bytes", 1000)},
		{Pod: "cart-1-0", Shard: 1, Behind: -1},
	}})
	want := map[string]float64{
		"up{cart,shop,cart-0-0,0}": 1, "master{cart,shop,cart-0-0,0}": 1, "slots{cart,shop,cart-0-0,0}": 5461, "keys{cart,shop,cart-0-0,0}": 12,
		"commands_total{cart,shop,cart-0-0,0}": 99,
		"up{cart,shop,cart-0-1,0}":             1, "master{cart,shop,cart-0-1,0}": 0, "master_link_up{cart,shop,cart-0-1,0}": 1,
		"slots{cart,shop,cart-0-1,0}": 0, "keys{cart,shop,cart-0-1,0}": 0,
		"replication_behind_bytes{cart,shop,cart-0-1,0}": 14, "memory_used_bytes{cart,shop,cart-0-1,0}": 1000,
		"up{cart,shop,cart-1-0,1}": 0,
	}
	got := map[string]float64{}
	for name, value := range series(t) {
		if name, is := strings.CutPrefix(name, "middleware_operator_rediscluster_instance_"); is {
			got[name] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	cart.Delete()
	if left := series(t); len(left) > 0 {
		t.Errorf("series outlive their object: %v", left)
	}
}

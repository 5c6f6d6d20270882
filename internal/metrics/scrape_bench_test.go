// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/redis/stats"
)

// BenchmarkScrape answers a scrape of a hundred clusters of six instances, compressed, as Prometheus asks for it.
func BenchmarkScrape(b *testing.B) {
	all := newInstances()
	for cluster := range 100 {
		var list []Instance
		for n := range 6 {
			in := Instance{Pod: fmt.Sprintf("cache-%d-%d-%d", cluster, n/2, n%2), Shard: n / 2, Answers: true, Master: n%2 == 0, Slots: 5461}
			for i := range stats.All {
				in.Stats[i] = float64(cluster * n * i)
			}
			list = append(list, in)
		}
		all.set(RedisCluster(fmt.Sprintf("fleet-%d", cluster/25), fmt.Sprintf("cache-%d", cluster)), list)
	}
	scrape(b, all)
}

// BenchmarkScrapeObjects answers a scrape of a thousand objects with six conditions each.
func BenchmarkScrapeObjects(b *testing.B) {
	elected := make(chan struct{})
	close(elected)
	list := &corev1.ConfigMapList{}
	for n := range 1000 {
		list.Items = append(list.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: fmt.Sprintf("web-%d", n)}})
	}
	state := State{Conditions: []metav1.Condition{{Type: "Ready", LastTransitionTime: metav1.Now()}, {Type: "Deployed"}, {Type: "Progressing"},
		{Type: "Stalled"}, {Type: "Irreconcilable"}, {Type: "ReleaseFailed"}}}
	for i := range state.Conditions {
		state.Conditions[i].Status, state.Conditions[i].Reason = metav1.ConditionTrue, "UpgradeSuccessful"
	}
	all := newObjects()
	all.kinds[schema.GroupVersionKind{}] = Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"},
		List: &corev1.ConfigMapList{}, Elected: elected, State: func(client.Object) State { return state },
		Reader: listed{items: list.Items}}
	scrape(b, all)
}

// listed is a cache that gives what it has.
type listed struct {
	client.Reader
	items []corev1.ConfigMap
}

func (l listed) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*corev1.ConfigMapList).Items = l.items
	return nil
}

func scrape(b *testing.B, of prometheus.Collector) {
	b.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(of)
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run(encoding, func(b *testing.B) {
			request := httptest.NewRequest("GET", "/metrics", nil)
			request.Header.Set("Accept-Encoding", encoding)
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, request)
				b.ReportMetric(float64(answer.Body.Len()), "bytes")
			}
		})
	}
}

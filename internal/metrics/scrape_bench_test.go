// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

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
	registry := prometheus.NewRegistry()
	registry.MustRegister(all)
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

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/application"
	"middleware.hc.cn/operator/test/live"
)

// Kubernetes' own autoscaler sets the number of instances by the commands that masters carry out: shards come and go, and the application
// notices nothing.
func TestRedisClusterFollowsAHorizontalPodAutoscaler(t *testing.T) {
	if !live.Local() || os.Getenv("E2E") != "all" {
		t.Skip("takes minutes: with E2E=all; else TestScale")
	}
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		newest := engines[len(engines)-1]
		cluster.Spec.Repository, cluster.Spec.Version = newest.repository, newest.version
		live.Create(t, cluster)
		live.Ready(t, cluster)
		load := live.NewLoad(t, cluster)
		load.StartAt(100)
		serveOperations(t, cluster)
		live.Create(t, byOperations(cluster))

		sized := func(what string, instances, shards int32) {
			live.Eventually(t, what, func() error {
				if err := live.IsReady(t, cluster); err != nil {
					return err
				}
				if cluster.Status.Shards != shards || *cluster.Spec.Replicas != instances || cluster.Status.Migration != nil {
					return fmt.Errorf("%d shards, %d instances asked for", cluster.Status.Shards, *cluster.Spec.Replicas)
				}
				return nil
			})
			wantHealthy(t, cluster, shards, instances)
		}
		time.Sleep(time.Minute) // the autoscaler looks four times
		sized("few commands leave it as it is", 6, 3)
		quiet := load.Stop()
		load.StartAt(500)
		sized("many commands add a shard", 8, 4)
		busy := load.Stop()
		load.StartAt(100)
		sized("few take it away", 6, 3)
		for moved, result := range map[v1alpha1.MigrationMethod]application.LoadResult{live.NothingMoved: quiet, v1alpha1.MigrationAtomic: busy} {
			if failures, _ := result.Unnoticed(moved); len(failures) > 0 {
				t.Errorf("a load that has ended: %s", strings.Join(failures, "; "))
			}
		}
		run.WantUnnoticed(load, v1alpha1.MigrationAtomic)
	})
}

// byOperations has six instances, and eight when masters carry out more than 100 commands a second for each.
func byOperations(cluster *v1alpha1.RedisCluster) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisCluster", Name: cluster.Name},
			MinReplicas: ptr.To[int32](6), MaxReplicas: 8,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
				Metric: autoscalingv2.MetricIdentifier{Name: operationsMetric},
				Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: ptr.To(resource.MustParse("100"))},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](30)}},
		},
	}
}

const (
	operationsMetric = "redis_operations"
	metricsGroup     = "external.metrics.k8s.io"
	metricsVersion   = "v1beta1"
)

// serveOperations has the API server ask this program how many commands a second the masters of a cluster carry out, as it asks an adapter
// of Prometheus elsewhere.
func serveOperations(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	var operations, asked atomic.Int64
	end := make(chan struct{})
	go func() {
		for tick := time.NewTicker(5 * time.Second); ; {
			select {
			case <-end:
				tick.Stop()
				return
			case <-tick.C:
				if perSecond, err := operationsOf(t, cluster); err == nil { // an instance may come or go
					operations.Store(perSecond)
				}
			}
		}
	}()
	t.Cleanup(func() { close(end) })
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		const version = metricsGroup + "/" + metricsVersion
		var answer map[string]any
		switch {
		case strings.HasSuffix(r.URL.Path, "/"+version):
			answer = map[string]any{"apiVersion": "v1", "kind": "APIResourceList", "groupVersion": version, "resources": []any{}}
		case strings.HasSuffix(r.URL.Path, "/"+operationsMetric):
			asked.Add(1)
			value := map[string]any{"metricName": operationsMetric, "metricLabels": map[string]string{},
				"timestamp": time.Now().UTC().Format(time.RFC3339), "value": strconv.FormatInt(operations.Load(), 10)}
			answer = map[string]any{"apiVersion": version, "kind": "ExternalMetricValueList", "metadata": map[string]any{}, "items": []any{value}}
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	server.Listener = listenOutside(t)
	server.StartTLS()
	t.Cleanup(server.Close)
	at := server.Listener.Addr().(*net.TCPAddr)

	meta := metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "operations",
		Labels: map[string]string{discoveryv1.LabelServiceName: "operations"}}
	live.Create(t, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}})
	live.Create(t, &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.IP.String()}}},
		Ports:     []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(at.Port))}}})
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
		"metadata": map[string]any{"name": metricsVersion + "." + metricsGroup},
		"spec": map[string]any{"group": metricsGroup, "version": metricsVersion, "groupPriorityMinimum": int64(100),
			"versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": cluster.Namespace, "name": "operations", "port": int64(443)}},
	}}
	live.Create(t, service)
	t.Cleanup(func() { _ = live.Kube.Delete(context.Background(), service) }) // unserved, it keeps namespaces from being deleted
	t.Cleanup(func() {
		if asked.Load() == 0 {
			t.Error("nobody asked for the metric")
		}
	})
}

// operationsOf is how many commands a second the masters of a cluster carry out.
func operationsOf(t *testing.T, of *v1alpha1.RedisCluster) (int64, error) {
	t.Helper()
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	if err := live.Get(t, cluster); err != nil {
		return 0, err
	}
	answers, err := askAll(t, cluster, "info", "everything")
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, info := range answers {
		if strings.Contains(info, "role:master") {
			sum += number(info, "instantaneous_ops_per_sec:")
		}
	}
	return int64(math.Round(sum)), nil
}

// listenOutside listens beside the API server.
func listenOutside(t *testing.T) (listener net.Listener) {
	t.Helper()
	node := aNode(t)
	if err := inNetwork(networkOutside(t), func() error {
		conn, err := net.Dial("udp", net.JoinHostPort(node, "1")) // nothing is sent: it tells from which address nodes are reached
		if err != nil {
			return err
		}
		defer conn.Close()
		listener, err = net.Listen("tcp", net.JoinHostPort(conn.LocalAddr().(*net.UDPAddr).IP.String(), "0"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return listener
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
	"middleware.hc.cn/operator/test/measure"
	"middleware.hc.cn/operator/test/process"
)

// Nothing is written about RedisClusters at rest. What ten, twenty and thirty real ones cost the operator is printed, to be held against
// those that make bench-scale simulates.
func TestRedisClustersAtRest(t *testing.T) {
	if os.Getenv("E2E") != "all" || !process.Local() {
		t.Skip("takes half an hour, on the local cluster: with E2E=all; else make bench-scale with simulated instances")
	}
	const perMeasure, all, period = 10, 30, 3 * time.Minute
	namespace := live.NewNamespace(t)
	clusters := make([]*v1alpha1.RedisCluster, 0, all)
	for size := 0; size <= all; size += perMeasure {
		for len(clusters) < size {
			cluster := newCluster(namespace, fmt.Sprintf("rest-%02d", len(clusters)))
			cluster.Spec.Pod[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
			live.Create(t, cluster)
			clusters = append(clusters, cluster)
		}
		for _, cluster := range clusters {
			live.Ready(t, cluster)
		}
		time.Sleep(time.Minute) // the last of them come to rest
		versions := versionsOf(t, clusters)
		cpu, began := operatorUses(t)
		time.Sleep(period)
		cpuThen, memory := operatorUses(t)
		t.Logf("%2d RedisClusters of six instances: %.2f s of a processor a minute, %.0f MB, at most %.0f, of them not the program's file %.0f (before %.0f)",
			size, (cpuThen-cpu)/period.Minutes(), memory.Own+memory.File, memory.Peak, memory.Own, began.Own)
		for i, version := range versionsOf(t, clusters) {
			if version != versions[i] {
				t.Errorf("%s was written to while it was at rest", clusters[i].Name)
			}
		}
	}
}

// versionsOf are the resource versions of clusters.
func versionsOf(t *testing.T, clusters []*v1alpha1.RedisCluster) []string {
	t.Helper()
	versions := make([]string, 0, len(clusters))
	for _, cluster := range clusters {
		now := &v1alpha1.RedisCluster{}
		if err := live.Kube.Get(t.Context(), client.ObjectKeyFromObject(cluster), now); err != nil {
			t.Fatal(err)
		}
		versions = append(versions, now.ResourceVersion)
	}
	return versions
}

// operatorUses is the processor time that the operator has used, and the memory that it has.
func operatorUses(t *testing.T) (cpu float64, memory measure.Memory) {
	t.Helper()
	pods := operatorPods(t)
	if len(pods) != 1 {
		t.Fatalf("there are %d pods of the operator, want one", len(pods))
	}
	found, err := process.Find("manager", string(pods[0].UID))
	if err != nil || len(found) != 1 {
		t.Fatalf("the operator's processes are %v, %v", found, err)
	}
	if cpu, err = measure.CPUSeconds(found[0]); err == nil {
		memory, err = measure.MemoryOf(found[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	return cpu, memory
}

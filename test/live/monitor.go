// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/pods"
)

// alarm is something that must never be so.
type alarm struct {
	text string
	// planned reports whether it is one only as long as nothing but planned work goes on: a test that kills pods brings it about.
	planned bool
}

// monitor sees every change of every RedisCluster, its pods and its claims, and takes down what must never be so.
type monitor struct {
	mu       sync.Mutex
	clusters map[client.ObjectKey]*v1alpha1.RedisCluster
	pods     map[client.ObjectKey]*corev1.Pod
	claims   map[client.ObjectKey]bool // those that are being deleted
	alarms   map[string][]alarm        // by namespace
}

var watched = newMonitor()

func newMonitor() *monitor {
	return &monitor{clusters: map[client.ObjectKey]*v1alpha1.RedisCluster{}, pods: map[client.ObjectKey]*corev1.Pod{},
		claims: map[client.ObjectKey]bool{}, alarms: map[string][]alarm{}}
}

// Watch begins to look, until ctx ends. Connect has succeeded.
func Watch(ctx context.Context) error {
	ofClusters, err := labels.NewRequirement(v1alpha1.LabelCluster, selection.Exists, nil)
	if err != nil {
		return err
	}
	selected := cache.ByObject{Label: labels.NewSelector().Add(*ofClusters)}
	informers, err := cache.New(Config, cache.Options{Scheme: Kube.Scheme(), ByObject: map[client.Object]cache.ByObject{
		&corev1.Pod{}: selected, &corev1.PersistentVolumeClaim{}: selected}})
	if err != nil {
		return err
	}
	for _, object := range []client.Object{&v1alpha1.RedisCluster{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    watched.sees,
			UpdateFunc: func(_, object any) { watched.sees(object) },
			DeleteFunc: watched.forgets,
		})
		if err != nil {
			return err
		}
	}
	go func() { _ = informers.Start(ctx) }()
	if !informers.WaitForCacheSync(ctx) {
		return fmt.Errorf("watch RedisClusters, pods and claims: %w", ctx.Err())
	}
	return nil
}

// alarmsOf are those of a namespace; those of planned work among them only if nothing else went on there.
func (m *monitor) alarmsOf(namespace string, planned bool) (texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.alarms[namespace] {
		if planned || !a.planned {
			texts = append(texts, a.text)
		}
	}
	return texts
}

func (m *monitor) sees(object any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch o := object.(type) {
	case *v1alpha1.RedisCluster:
		m.clusters[client.ObjectKeyFromObject(o)] = o
		m.seesCluster(o)
	case *corev1.Pod:
		before := m.pods[client.ObjectKeyFromObject(o)]
		m.pods[client.ObjectKeyFromObject(o)] = o
		if o.DeletionTimestamp != nil && (before == nil || before.UID != o.UID || before.DeletionTimestamp == nil) {
			m.seesPodStop(o)
		}
	case *corev1.PersistentVolumeClaim:
		key := client.ObjectKeyFromObject(o)
		if o.DeletionTimestamp != nil && !m.claims[key] {
			m.claims[key] = true
			m.seesClaimGo(o)
		}
	}
}

func (m *monitor) forgets(object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch o := object.(type) {
	case *v1alpha1.RedisCluster:
		delete(m.clusters, client.ObjectKeyFromObject(o))
	case *corev1.Pod:
		delete(m.pods, client.ObjectKeyFromObject(o))
	case *corev1.PersistentVolumeClaim:
		delete(m.claims, client.ObjectKeyFromObject(o))
	}
}

func (m *monitor) alarm(namespace string, planned bool, format string, args ...any) {
	m.alarms[namespace] = append(m.alarms[namespace], alarm{fmt.Sprintf(format, args...), planned})
}

// seesCluster: what is Ready covers all slots.
func (m *monitor) seesCluster(cluster *v1alpha1.RedisCluster) {
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == cluster.Generation &&
		cluster.Status.Slots != 16384 {
		m.alarm(cluster.Namespace, false, "RedisCluster %s is Ready with %d slots", cluster.Name, cluster.Status.Slots)
	}
}

// seesPodStop: while nothing but planned work goes on, no pod of a shard is stopped while another one of it does not serve.
func (m *monitor) seesPodStop(pod *corev1.Pod) {
	cluster := m.clusters[client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[v1alpha1.LabelCluster]}]
	// Those that leave stop together: their slots are gone, or with instances that go, their shard is whole without them.
	if cluster == nil || cluster.DeletionTimestamp != nil || cluster.Status.Phase == v1alpha1.PhaseScaling {
		return
	}
	for key, other := range m.pods {
		if key.Namespace == pod.Namespace && key.Name != pod.Name && other.Labels[v1alpha1.LabelCluster] == cluster.Name &&
			other.Labels[v1alpha1.LabelShard] == pod.Labels[v1alpha1.LabelShard] && (!pods.Ready(other) || other.DeletionTimestamp != nil) {
			m.alarm(pod.Namespace, true, "pod %s was stopped while %s of its shard did not serve", pod.Name, other.Name)
		}
	}
}

// seesClaimGo: a claim that is to be kept is kept.
func (m *monitor) seesClaimGo(claim *corev1.PersistentVolumeClaim) {
	cluster := m.clusters[client.ObjectKey{Namespace: claim.Namespace, Name: claim.Labels[v1alpha1.LabelCluster]}]
	if cluster != nil && cluster.Spec.Storage != nil && cluster.Spec.Storage.Retain == v1alpha1.Retain {
		m.alarm(claim.Namespace, false, "claim %s of RedisCluster %s is deleted, and spec.storage.retain says Retain", claim.Name, cluster.Name)
	}
}

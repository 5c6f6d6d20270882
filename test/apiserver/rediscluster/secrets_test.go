// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
)

// mounts are the Secrets that StatefulSets of a namespace have named so far, in any of their revisions.
type mounts struct {
	mu    sync.Mutex
	named map[string]bool
	sets  map[string]bool
}

// watchMounts watches until the test ends.
func watchMounts(t *testing.T, namespace string) *mounts {
	t.Helper()
	watcher, err := client.NewWithWatch(admin, client.Options{Scheme: scheme})
	check(t, err)
	stream, err := watcher.Watch(context.Background(), &appsv1.StatefulSetList{}, client.InNamespace(namespace))
	check(t, err)
	m := &mounts{named: map[string]bool{}, sets: map[string]bool{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		for event := range stream.ResultChan() {
			if set, ok := event.Object.(*appsv1.StatefulSet); ok {
				m.note(set)
			}
		}
	})
	t.Cleanup(func() { stream.Stop(); ended.Wait() })
	return m
}

func (m *mounts) note(set *appsv1.StatefulSet) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets[set.Name] = true
	for _, volume := range set.Spec.Template.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.Secret != nil {
				m.named[source.Secret.Name] = true
			}
		}
	}
}

// are the names of Secrets, and of StatefulSets, so far.
func (m *mounts) are() (secrets, sets string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(m.named)), " "), strings.Join(slices.Sorted(maps.Keys(m.sets)), " ")
}

func (m *mounts) await(t *testing.T, secrets, sets string) {
	t.Helper()
	eventually(t, fmt.Sprintf("StatefulSets %s name the Secrets %s", sets, secrets), func() string {
		if named, made := m.are(); named != secrets || made != sets {
			return fmt.Sprintf("%s name %s", made, named)
		}
		return ""
	})
}

// certified makes a Secret with a certificate for the cluster cache.
func certified(t *testing.T, namespace, name, label string) *corev1.Secret {
	t.Helper()
	secret := labelled(namespace, name, label, nil)
	secret.Data = redistest.NewAuthority(time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)).
		Issue([]string{"*.cache-nodes." + namespace + ".svc"}, redistest.BothUsages()...)
	create(t, secret)
	return secret
}

func label(key string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Labels = map[string]string{key: "true"} }
}

// A Secret that nobody labelled for it gets into no pod, not even that of a cluster whose Secrets were in order before: whoever
// writes the RedisCluster chooses the images that would see it.
func TestNoStatefulSetNamesASecretOfOthers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	world := redistest.New(redistest.Options{Seed: 1})
	t.Cleanup(world.Close)
	startOperator(t, namespace, world)
	certified(t, namespace, "own", v1alpha1.LabelTLS)
	victim := certified(t, namespace, "victim", "app")
	all := watchMounts(t, namespace)

	cluster := newCluster(namespace, "cache")
	cluster.Spec.TLS = &v1alpha1.TLS{SecretName: "own"}
	create(t, cluster)
	all.await(t, "cache-auth own", "cache-0 cache-1 cache-2")

	// Everything of a StatefulSet changes with it: its template, its number, its existence.
	const remedy = "kubectl label secret victim --namespace "
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.TLS.SecretName, c.Spec.Pod = "victim", []v1alpha1.PodTemplate{{Labels: map[string]string{"a": "b"}}}
	})
	awaitStalled(t, cluster, "CertificateUnavailable", remedy)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretName: "own", CASecretName: "victim"} })
	awaitStalled(t, cluster, "CertificateUnavailable", "spec.tls.caSecretName")
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.TLS = &v1alpha1.TLS{SecretName: "own", ClientCASecretName: "victim"}
	})
	awaitStalled(t, cluster, "CertificateUnavailable", "spec.tls.clientCASecretName")
	remove(t, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache-1"}})
	awaitPasses(t, 5)
	all.await(t, "cache-auth own", "cache-0 cache-1 cache-2")
	if get(t, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache-1"}}) {
		t.Error("a StatefulSet came back that names a Secret of others")
	}

	change(t, victim, label(v1alpha1.LabelTLS))
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretName: "victim"} })
	all.await(t, "cache-auth own victim", "cache-0 cache-1 cache-2")
	eventually(t, "the StatefulSets mount what is allowed now", func() string {
		var sets appsv1.StatefulSetList
		check(t, api.List(context.Background(), &sets, client.InNamespace(namespace)))
		now := &mounts{named: map[string]bool{}, sets: map[string]bool{}}
		for i := range sets.Items {
			now.note(&sets.Items[i])
		}
		if named, made := now.are(); named != "cache-auth victim" || made != "cache-0 cache-1 cache-2" {
			return fmt.Sprintf("%s name %s", made, named)
		}
		return ""
	})
}

// Nor is one that a paused draft named after its first was read, nor the password's Secret when another has taken its name.
func TestNoStatefulSetIsMadeForASecretOfOthers(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	world := redistest.New(redistest.Options{Seed: 1})
	t.Cleanup(world.Close)
	op := startOperator(t, namespace, world)
	certified(t, namespace, "own", v1alpha1.LabelTLS)
	certified(t, namespace, "victim", "app")
	all := watchMounts(t, namespace)

	cluster := newCluster(namespace, "cache")
	cluster.Spec.Pause, cluster.Spec.TLS = true, &v1alpha1.TLS{SecretName: "own"}
	create(t, cluster)
	eventually(t, "the operator reads the first Secret", func() string {
		if !slices.Contains(op.asked(), "GET /api/v1/namespaces/"+namespace+"/secrets/own") {
			return "it has not"
		}
		return ""
	})
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause, c.Spec.TLS.SecretName = false, "victim" })
	awaitStalled(t, cluster, "CertificateUnavailable", "victim")

	// The Secret of the password is the operator's own, until somebody puts another into its place.
	change(t, ownSecret(t, cluster), func(s *corev1.Secret) { s.Labels = nil })
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.TLS.SecretName = "own" })
	awaitStalled(t, cluster, "PasswordUnavailable", "was not made for this cluster")
	awaitPasses(t, 5)
	all.await(t, "", "")
}

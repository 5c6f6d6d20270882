// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/application"
)

const (
	operatorNamespace = "middleware-operator-system"
	clusterName       = "bench"
	label             = "middleware.hc.cn/bench"
)

// kube is the cluster that the benchmark runs on.
type kube struct {
	client.WithWatch
	pods application.Kubernetes
}

func connect() (kube, error) {
	cfg, err := config.GetConfig()
	if err != nil {
		return kube{}, err
	}
	cfg.QPS = -1
	cfg.WarningHandler = rest.NoWarnings{}
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	k := kube{pods: application.Kubernetes{Config: cfg}}
	if k.WithWatch, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return kube{}, err
	}
	k.pods.Client, err = kubernetes.NewForConfig(cfg)
	return k, err
}

// newNamespace makes a namespace of its own, after it has removed what an earlier run left.
func (k kube) newNamespace(ctx context.Context) (string, error) {
	var old corev1.NamespaceList
	if err := k.List(ctx, &old, client.HasLabels{label}); err != nil {
		return "", err
	}
	for i := range old.Items {
		if err := k.removeNamespace(ctx, old.Items[i].Name); err != nil {
			return "", err
		}
	}
	return k.makeNamespace(ctx)
}

func (k kube) makeNamespace(ctx context.Context) (string, error) {
	ns := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "bench-", Labels: map[string]string{label: "redis", "pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := k.Create(ctx, ns); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	return ns.Name, k.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "middleware-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "middleware-operator-namespace"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: "middleware-operator"}},
	})
}

// removeNamespace deletes its clusters first, so that their finalizers find what they need, and
// waits until all is gone: the next measurement is to have the machine for itself.
func (k kube) removeNamespace(ctx context.Context, name string) error {
	var clusters v1alpha1.RedisClusterList
	if err := k.List(ctx, &clusters, client.InNamespace(name)); err != nil {
		return err
	}
	var objects []client.Object
	for i := range clusters.Items {
		objects = append(objects, &clusters.Items[i])
	}
	for _, object := range append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}) {
		if err := client.IgnoreNotFound(k.Delete(ctx, object)); err != nil {
			return err
		}
		for deadline := time.Now().Add(3 * time.Minute); ; {
			err := k.Get(ctx, client.ObjectKeyFromObject(object), object)
			if client.IgnoreNotFound(err) == nil && err != nil {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%T of %s is not gone after 3 minutes (%w)", object, name, err)
			}
			if err := pause(ctx, 200*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// newCluster makes a cluster of three shards and waits until it is ready.
func (k kube) newCluster(ctx context.Context, namespace string, e engine, replicas int, config map[string]string) (*v1alpha1.RedisCluster,
	error) {
	cluster := &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: clusterName},
		Spec: v1alpha1.RedisClusterSpec{
			Repository: e.Repository, Version: e.Version,
			Shards: ptr.To[int32](3), Replicas: ptr.To(instances(3, replicas)),
			Storage: &v1alpha1.Storage{Size: resource.MustParse("4Gi"), Retain: v1alpha1.RetainDelete},
			Config:  config,
		},
	}
	if err := k.Create(ctx, cluster); err != nil {
		return nil, err
	}
	_, err := k.ready(ctx, cluster)
	return cluster, err
}

func instances(shards int32, replicas int) int32 { return shards * int32(1+replicas) } //nolint:gosec // a handful

// change patches the spec.
func (k kube) change(ctx context.Context, cluster *v1alpha1.RedisCluster, mutate func(*v1alpha1.RedisClusterSpec)) error {
	before := cluster.DeepCopy()
	mutate(&cluster.Spec)
	return k.Patch(ctx, cluster, client.MergeFrom(before))
}

// scale asks for a number of shards and returns how long it took until the cluster was
// ready: from the answer to the patch to the event that tells so.
func (k kube) scale(ctx context.Context, cluster *v1alpha1.RedisCluster, shards int32, replicas int) (time.Duration, error) {
	started := time.Now()
	err := k.change(ctx, cluster, func(s *v1alpha1.RedisClusterSpec) {
		s.Shards, s.Replicas = ptr.To(shards), ptr.To(instances(shards, replicas))
	})
	if err != nil {
		return 0, err
	}
	at, err := k.ready(ctx, cluster)
	return at.Sub(started), err
}

// ready waits until the cluster is Ready as asked for, and returns when that was seen.
func (k kube) ready(ctx context.Context, cluster *v1alpha1.RedisCluster) (time.Time, error) {
	return k.until(ctx, cluster, "Ready", func(c *v1alpha1.RedisCluster) bool {
		condition := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		return condition != nil && condition.Status == metav1.ConditionTrue && condition.ObservedGeneration == cluster.Generation
	})
}

func (k kube) until(ctx context.Context, cluster *v1alpha1.RedisCluster, what string, holds func(*v1alpha1.RedisCluster) bool) (time.Time,
	error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		watcher, err := k.Watch(ctx, &v1alpha1.RedisClusterList{}, client.InNamespace(cluster.Namespace))
		if err != nil {
			return time.Time{}, fmt.Errorf("wait until the cluster is %s: %w", what, err)
		}
		for event := range watcher.ResultChan() {
			seen, ok := event.Object.(*v1alpha1.RedisCluster)
			if ok && seen.Generation >= cluster.Generation && holds(seen) {
				at := time.Now()
				watcher.Stop()
				*cluster = *seen
				return at, nil
			}
		}
		if ctx.Err() != nil {
			return time.Time{}, fmt.Errorf("the cluster is not %s after 10 minutes: %s", what, cluster.Status.Reason)
		}
	}
}

// setPause pauses or resumes the operator's work on the cluster.
func (k kube) setPause(ctx context.Context, cluster *v1alpha1.RedisCluster, paused bool) error {
	if err := k.change(ctx, cluster, func(s *v1alpha1.RedisClusterSpec) { s.Pause = paused }); err != nil {
		return err
	}
	var err error
	if paused {
		_, err = k.until(ctx, cluster, "paused", func(c *v1alpha1.RedisCluster) bool { return c.Status.Phase == v1alpha1.PhasePaused })
	} else {
		_, err = k.ready(ctx, cluster)
	}
	return err
}

// masters are the nodes that own slots, by shard.
func masters(cluster *v1alpha1.RedisCluster) []v1alpha1.NodeStatus {
	list := make([]v1alpha1.NodeStatus, cluster.Status.Shards)
	for _, node := range cluster.Status.Nodes {
		if node.Type == "master" && node.Slots != "" {
			list[node.Shard] = node
		}
	}
	return list
}

// cli runs the engine's own command line client in an instance, with the password that the
// instance itself uses.
func (k kube) cli(ctx context.Context, namespace, pod string, args ...string) (string, error) {
	const script = `export REDISCLI_AUTH="$(sed -n 's/^masterauth "\(.*\)"$/\1/p' /etc/redis/auth/auth.conf)"; exec redis-cli "$@"`
	out, err := k.pods.Execute(ctx, nil, namespace, pod, "redis", append([]string{"sh", "-c", script, "sh"}, args...)...)
	if err == nil && strings.HasPrefix(out, "ERR ") {
		err = fmt.Errorf("redis-cli %s: %s", strings.Join(args, " "), out)
	}
	return out, err
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/stats"
	"middleware.hc.cn/operator/test/standin"
)

// fleet stands in for the StatefulSet controller, kubelets and Redis: each RedisCluster has a simulated world, whose instances listen at
// addresses of 127.0.0.0/8. Time passes there as here.
type fleet struct {
	client client.Client
	cache  cache.Cache
	// commands that all instances were sent.
	commands atomic.Int64

	askedMu sync.Mutex
	asked   map[*redistest.Node]bool // since forget was called

	mu     sync.Mutex
	shards map[types.NamespacedName]*shard
	worlds map[types.NamespacedName]*redistest.World // by RedisCluster
	used   int                                       // addresses
}

// shard is what runs of a StatefulSet.
type shard struct {
	world *redistest.World
	nodes map[string]*redistest.Node // by pod name
	runs  map[string]types.UID
}

// startFleet runs the stand-in until the context ends.
func startFleet(ctx context.Context, s *server, scheme *runtime.Scheme) (*fleet, error) {
	mgr, err := ctrl.NewManager(s.Admin, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	f := &fleet{client: mgr.GetClient(), cache: mgr.GetCache(), shards: map[types.NamespacedName]*shard{},
		worlds: map[types.NamespacedName]*redistest.World{}, asked: map[*redistest.Node]bool{}}
	if err := ctrl.NewControllerManagedBy(mgr).For(&appsv1.StatefulSet{}).Owns(&corev1.Pod{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 8}).Complete(f); err != nil {
		return nil, err
	}
	if err := (deployments{mgr.GetClient()}).add(mgr); err != nil {
		return nil, err
	}
	go func() {
		if err := mgr.Start(ctx); err != nil {
			progress("the stand-in ended: %v", err)
		}
	}()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the caches of the stand-in did not start")
	}
	return f, nil
}

// Reconcile gives a StatefulSet its pods, and each pod its Redis.
func (f *fleet) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var set appsv1.StatefulSet
	if err := f.client.Get(ctx, request.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s := f.shardOf(&set)
	for ordinal := range int(ptr.Deref(set.Spec.Replicas, 1)) {
		name := fmt.Sprintf("%s-%d", set.Name, ordinal)
		var pod corev1.Pod
		err := f.client.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: name}, &pod)
		if apierrors.IsNotFound(err) {
			f.stop(s, name)
			err = client.IgnoreAlreadyExists(f.client.Create(ctx, standin.NewPod(&set, name, ordinal, "1")))
		} else if err == nil {
			err = f.tend(ctx, s, &pod)
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // a Secret that is to come, or news that are
			return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	if set.Status.ObservedGeneration == set.Generation {
		return ctrl.Result{}, nil
	}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: *set.Spec.Replicas, ReadyReplicas: *set.Spec.Replicas,
		UpdateRevision: "1", CurrentRevision: "1"}
	return ctrl.Result{}, f.client.Status().Update(ctx, &set)
}

// tend does for a pod what a kubelet does.
func (f *fleet) tend(ctx context.Context, s *shard, pod *corev1.Pod) error {
	f.mu.Lock()
	running := s.runs[pod.Name]
	f.mu.Unlock()
	switch {
	case pod.DeletionTimestamp != nil:
		return client.IgnoreNotFound(f.client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	case running != pod.UID:
		return f.start(ctx, s, pod)
	case pod.Status.PodIP != "" && standin.SetReady(pod):
		return f.client.Status().Update(ctx, pod)
	}
	return nil
}

func (f *fleet) shardOf(set *appsv1.StatefulSet) *shard {
	f.mu.Lock()
	defer f.mu.Unlock()
	key := client.ObjectKeyFromObject(set)
	if s := f.shards[key]; s != nil {
		return s
	}
	cluster := types.NamespacedName{Namespace: set.Namespace, Name: set.Labels[v1alpha1.LabelCluster]}
	world := f.worlds[cluster]
	if world == nil {
		world = redistest.New(redistest.Options{Seed: uint64(len(f.worlds) + 1), Clock: time.Now, Listens: true, Figures: stats.Fields()})
		world.OnCommand(func(node *redistest.Node, _ []string) {
			f.commands.Add(1)
			f.askedMu.Lock()
			defer f.askedMu.Unlock()
			f.asked[node] = true
		})
		f.worlds[cluster] = world
	}
	s := &shard{world: world, nodes: map[string]*redistest.Node{}, runs: map[string]types.UID{}}
	f.shards[key] = s
	return s
}

// forget has instances count as asked when they are sent a command from now on.
func (f *fleet) forget() {
	f.askedMu.Lock()
	defer f.askedMu.Unlock()
	clear(f.asked)
}

// instances is how many were sent a command since forget was called.
func (f *fleet) instances() int {
	f.askedMu.Lock()
	defer f.askedMu.Unlock()
	return len(f.asked)
}

// start runs the Redis of a pod, which keeps its data from one pod of the name to the next.
func (f *fleet) start(ctx context.Context, s *shard, pod *corev1.Pod) error {
	users, err := standin.Users(ctx, f.client, pod)
	if err != nil {
		return err
	}
	settings, err := standin.Settings(ctx, f.client, pod)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.used++
	address := fmt.Sprintf("127.%d.%d.%d", 1+f.used/62500, f.used/250%250, 1+f.used%250)
	if node := s.nodes[pod.Name]; node != nil {
		s.world.Kill(node)
		s.world.SetConfig(node, users)
		node.SetFile(settings)
		s.world.Restart(node, address, true)
	} else {
		s.nodes[pod.Name] = s.world.AddNode(redistest.NodeOptions{IP: address, Config: users, Settings: settings,
			Hostname: standin.Hostname(pod)})
	}
	s.runs[pod.Name] = pod.UID
	f.mu.Unlock()
	standin.Run(pod, address)
	return f.client.Status().Update(ctx, pod)
}

// stop ends the Redis of a pod that is gone.
func (f *fleet) stop(s *shard, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.runs[name] != "" {
		s.world.Kill(s.nodes[name])
		delete(s.runs, name)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/test/standin"
)

const (
	// tick is how often the stand-in looks, and worldTick how much time passes for Redis meanwhile: elections and
	// failure detection come to their end within a test.
	tick      = 20 * time.Millisecond
	worldTick = 500 * time.Millisecond
)

// kubelet stands in for the StatefulSet controller, the kubelets and the garbage collector of one namespace: StatefulSets
// get their pods, pods a simulated Redis that keeps its data as in a claim, and what is deleted in the foreground goes.
type kubelet struct {
	t         *testing.T
	namespace string
	world     *redistest.World

	mu        sync.Mutex
	nodes     map[string]*redistest.Node // by pod name; they outlive their pods, as claims do
	running   map[string]types.UID       // pods by name
	addresses map[string]string          // what the next pod of a name gets instead of a fresh address
	used      int                        // addresses
	refused   map[string]bool            // settings that servers do not start with
	crashed   map[types.UID]bool         // pods whose container waits to be tried again, longer than a test takes
	away      bool                       // the API server is: what runs goes on running
	faithful  bool                       // see faithful_test.go
	version   string                     // of the servers; empty: redistest's
	emptied   map[string]bool            // pods whose claims were deleted
	restored  map[string]restoredShard   // pods whose claims hold a shard of a backup
	restores  func(int, *report.Report)  // changes what is said of a shard that is restored; nil: nothing
}

// startKubelet runs the stand-in, and time in its world, until the test ends.
func startKubelet(t *testing.T, namespace string) *kubelet {
	t.Helper()
	return runKubelet(t, namespace, func(*kubelet) {})
}

func runKubelet(t *testing.T, namespace string, configure func(*kubelet)) *kubelet {
	t.Helper()
	k := &kubelet{t: t, namespace: namespace, world: redistest.New(redistest.Options{Seed: 1}),
		nodes: map[string]*redistest.Node{}, running: map[string]types.UID{}, addresses: map[string]string{}, refused: map[string]bool{},
		crashed: map[types.UID]bool{}, emptied: map[string]bool{}, restored: map[string]restoredShard{}}
	configure(k)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for ticks := 0; ; ticks++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if k.faithful && ticks%5 > 0 { // it looks at more
				k.world.Run(worldTick)
				continue
			}
			if err := k.work(ctx); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				t.Errorf("the stand-in for the kubelet: %v", err)
				return
			}
			k.world.Run(worldTick)
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait(); k.world.Close() })
	return k
}

// node is the Redis of a pod.
func (k *kubelet) node(pod string) *redistest.Node {
	k.t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.nodes[pod]
	if n == nil {
		k.t.Fatalf("pod %s never ran", pod)
	}
	return n
}

// kill deletes pods at once. Each comes back at the address given for it, or at a fresh one.
func (k *kubelet) kill(addresses map[string]string, pods ...string) {
	k.t.Helper()
	k.mu.Lock()
	for pod, address := range addresses {
		k.addresses[pod] = address
	}
	k.mu.Unlock()
	for _, pod := range pods {
		object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: pod}}
		check(k.t, api.Delete(context.Background(), object, client.GracePeriodSeconds(0)))
	}
}

// work is one look at everything.
func (k *kubelet) work(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.away {
		return nil
	}
	var sets appsv1.StatefulSetList
	if err := api.List(ctx, &sets, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := api.List(ctx, &pods, client.InNamespace(k.namespace)); err != nil {
		return err
	}
	k.stopGone(pods.Items)
	if err := k.restore(ctx); err != nil {
		return err
	}
	if err := k.tend(ctx, pods.Items); err != nil {
		return err
	}
	for i := range sets.Items {
		if err := k.workOn(ctx, &sets.Items[i], pods.Items); err != nil {
			return err
		}
	}
	return nil
}

// stopGone stops the Redis of every pod that does not exist any more.
func (k *kubelet) stopGone(pods []corev1.Pod) {
	for name, uid := range k.running {
		if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == uid }) {
			k.world.Kill(k.nodes[name])
			delete(k.running, name)
		}
	}
}

func (k *kubelet) workOn(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) error {
	if set.DeletionTimestamp != nil {
		return k.collect(ctx, set, pods)
	}
	for ordinal := range int(ptr.Deref(set.Spec.Replicas, 1)) {
		name := fmt.Sprintf("%s-%d", set.Name, ordinal)
		at := slices.IndexFunc(pods, func(p corev1.Pod) bool { return p.Name == name })
		if at < 0 {
			if err := k.makePod(ctx, set, name, ordinal); err != nil {
				return err
			}
			continue
		}
		pod := &pods[at]
		if pod.DeletionTimestamp != nil { // its time to stop is over at once
			if err := api.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
			continue
		}
		if k.running[name] != pod.UID && !k.crashed[pod.UID] {
			if err := k.start(ctx, pod); err != nil {
				return err
			}
		}
		if err := k.setReady(ctx, pod); err != nil {
			return err
		}
	}
	for i := range pods { // the set was made smaller
		ordinal, err := strconv.Atoi(strings.TrimPrefix(pods[i].Name, set.Name+"-"))
		if err != nil || ordinal < int(ptr.Deref(set.Spec.Replicas, 1)) {
			continue
		}
		if err := api.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := k.release(ctx, pods[i].Name, retention(set).WhenScaled); err != nil {
			return err
		}
	}
	if set.Status.ObservedGeneration == set.Generation {
		return nil
	}
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: *set.Spec.Replicas,
		UpdateRevision: k.revision(set), CurrentRevision: k.revision(set)}
	return api.Status().Update(ctx, set)
}

// collect deletes the pods of a StatefulSet that is being deleted, and then lets it go.
func (k *kubelet) collect(ctx context.Context, set *appsv1.StatefulSet, pods []corev1.Pod) error {
	left := 0
	for i := range pods {
		if owner := metav1.GetControllerOf(&pods[i]); owner != nil && owner.UID == set.UID {
			left++
			if err := api.Delete(ctx, &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
				return err
			}
			if err := k.release(ctx, pods[i].Name, retention(set).WhenDeleted); err != nil {
				return err
			}
		}
	}
	if left > 0 {
		return nil
	}
	return api.Patch(ctx, set, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
}

// start runs the Redis of a pod, unless its Secret is not there yet.
func (k *kubelet) start(ctx context.Context, pod *corev1.Pod) error {
	if unfit, err := k.unfit(ctx, pod); unfit || err != nil {
		return err
	}
	config, err := standin.Users(ctx, api, pod)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	file, err := standin.Settings(ctx, api, pod)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	for name := range k.refused {
		if value, set := file[name]; set {
			return k.crash(ctx, pod, name, value)
		}
	}
	address := k.addresses[pod.Name]
	delete(k.addresses, pod.Name)
	if address == "" {
		k.used++
		address = fmt.Sprintf("10.1.%d.%d", k.used/250, 1+k.used%250)
	}
	if node := k.nodes[pod.Name]; node != nil {
		k.world.SetConfig(node, config)
		node.SetFile(file)
		if k.faithful {
			valkey, version := k.engine(pod)
			k.world.Upgrade(node, valkey, version)
		}
		k.world.Restart(node, address, !k.emptied[pod.Name])
		delete(k.emptied, pod.Name)
	} else {
		valkey, version := k.engine(pod)
		options := redistest.NodeOptions{IP: address, Config: config, Settings: file, Hostname: standin.Hostname(pod), Valkey: valkey,
			Version: version}
		if is := k.restored[pod.Name]; !is.slots.IsEmpty() {
			options.Slots, options.Epoch = is.slots, uint64(1025+is.shard)
			options.Keys = map[string]string{keyOf(is.slots): "restored"}
		}
		k.nodes[pod.Name] = k.world.AddNode(options)
	}
	k.running[pod.Name] = pod.UID
	standin.Run(pod, address)
	return api.Status().Update(ctx, pod)
}

// setReady makes a pod ready as its readiness gates say.
func (k *kubelet) setReady(ctx context.Context, pod *corev1.Pod) error {
	if standin.SetReady(pod) {
		return client.IgnoreNotFound(api.Status().Update(ctx, pod))
	}
	return nil
}

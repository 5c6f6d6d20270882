// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/measure"
)

const (
	// perNamespace is how many RedisClusters a namespace has.
	perNamespace = 25
	// settleLimit is how long RedisClusters may take to become Ready.
	settleLimit = 30 * time.Minute
	// calm is how long the operator is left alone before it counts as at rest.
	calm = 30 * time.Second
)

// result is what was measured with one number of RedisClusters, at rest unless it says otherwise.
type result struct {
	Clusters int `json:"clusters"`
	// Apps are what there is besides, and Settled how long it took until they were Ready.
	Apps    int     `json:"apps,omitempty"`
	Settled float64 `json:"settledSeconds,omitempty"`
	// Formed is how long it took from the first creation until all were Ready, of those that were not before.
	Formed float64 `json:"formedSeconds"`
	// CPU is processor seconds a minute, Requests and Commands are those of a minute, to the API server and to Redis.
	CPU       float64          `json:"cpuSecondsAMinute"`
	Allocated float64          `json:"allocatedMBAMinute"`
	Requests  measure.Requests `json:"requests"`
	PerMinute float64          `json:"requestsAMinute"`
	Commands  float64          `json:"commandsAMinute"`
	// Memory is that of each replica.
	Memory []measure.Memory `json:"memory"`
	// Scraped is what scrapes cost; nil if that was left out.
	Scraped *scraped `json:"scraped,omitempty"`
	// Restarted is what the operator's restart took until it had asked every instance, in seconds of time and of the processor.
	Restarted    float64 `json:"restartedSeconds"`
	RestartedCPU float64 `json:"restartedCPUSeconds"`
	// Noticed are the seconds from the loss of a master's pod until its status told, while all else is at rest, and while one namespace
	// floods the operator.
	Noticed        []float64 `json:"noticedSeconds"`
	NoticedFlooded []float64 `json:"noticedWhileFloodedSeconds,omitempty"`
	// AppsChanged are the seconds from a change of an App until that was carried out, and it was Ready, likewise.
	AppsChanged        []float64 `json:"appsChangedSeconds,omitempty"`
	AppsChangedFlooded []float64 `json:"appsChangedWhileFloodedSeconds,omitempty"`
}

// run is a bench under way.
type run struct {
	*server
	options

	fleet     *fleet
	operators []*program // its replicas
	made      int
	settled   float64      // seconds that the Apps took
	images    atomic.Int64 // that Apps were given

	mu          sync.Mutex
	clusters    map[client.ObjectKey]*v1alpha1.RedisCluster // as the watch tells
	settledApps map[client.ObjectKey]int64                  // generations in which they were Ready
	changed     chan struct{}                               // closed when one of these changes
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	return scheme, v1alpha1.AddToScheme(scheme)
}

// watch follows all RedisClusters and Apps until the context of the fleet ends.
func (r *run) watch(ctx context.Context) error {
	r.clusters, r.settledApps, r.changed = map[client.ObjectKey]*v1alpha1.RedisCluster{}, map[client.ObjectKey]int64{}, make(chan struct{})
	for object, note := range map[client.Object]func(any){&v1alpha1.RedisCluster{}: r.note, newApp(client.ObjectKey{}): r.noteApp} {
		informer, err := r.fleet.cache.GetInformer(ctx, object)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: note,
			UpdateFunc: func(_, now any) { note(now) }}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) note(object any) {
	cluster, is := object.(*v1alpha1.RedisCluster)
	if !is {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clusters[client.ObjectKeyFromObject(cluster)] = cluster
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits until something holds of what the watch told.
func (r *run) await(ctx context.Context, limit time.Duration, holds func() bool) error {
	deadline := time.After(limit)
	for {
		r.mu.Lock()
		done, changed := holds(), r.changed
		r.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-deadline:
			return errors.New("it did not come to rest in time")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func isReady(cluster *v1alpha1.RedisCluster) bool {
	return cluster != nil && cluster.Status.ObservedGeneration == cluster.Generation &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady)
}

func key(i int) client.ObjectKey {
	return client.ObjectKey{Namespace: fmt.Sprintf("fleet-%d", i/perNamespace), Name: fmt.Sprintf("cache-%d", i)}
}

// measure makes RedisClusters until there is a number of them, and measures.
func (r *run) measure(ctx context.Context, size int) (m result, err error) {
	m = result{Clusters: size, Apps: r.apps, Settled: r.settled}
	progress("%d RedisClusters", size)
	began := time.Now()
	for ; r.made < size; r.made++ {
		if err := r.create(ctx, key(r.made)); err != nil {
			return m, err
		}
	}
	if err := r.await(ctx, settleLimit, r.allReady(size)); err != nil {
		return m, err
	}
	m.Formed = time.Since(began).Seconds()
	progress("all Ready after %.0f s", m.Formed)
	if err := r.idle(ctx); err != nil {
		return m, err
	}
	for _, step := range []func(context.Context, *result) error{r.atRest, r.scrape, r.restart, r.lose, r.flooded} {
		if err := step(ctx, &m); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (r *run) create(ctx context.Context, key client.ObjectKey) error {
	if r.made%perNamespace == 0 {
		if err := r.newNamespace(ctx, key.Namespace); err != nil {
			return err
		}
	}
	return r.client.Create(ctx, &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: v1alpha1.RedisClusterSpec{Replicas: ptr.To[int32](6), Version: "7.0.15"}})
}

func (r *run) allReady(size int) func() bool {
	return func() bool {
		ready := 0
		for _, cluster := range r.clusters {
			if isReady(cluster) {
				ready++
			}
		}
		return ready == size
	}
}

// atRest watches the operator do nothing.
func (r *run) atRest(ctx context.Context, m *result) error {
	progress("at rest")
	finish := func() error { return nil }
	if r.profiles != "" {
		finish = measure.Profile(ctx, r.operators[0].pprof, filepath.Join(r.profiles, fmt.Sprintf("rest-%d", m.Clusters)), r.rest)
	}
	allocated, err := r.allocated()
	if err != nil {
		return err
	}
	cpu, err := r.cpuSeconds() // after that scrape, which is not at rest
	if err != nil {
		return err
	}
	commands, began := r.fleet.commands.Load(), time.Now()
	select {
	case <-time.After(r.rest):
	case <-ctx.Done():
		return ctx.Err()
	}
	ended := time.Now()
	minutes := ended.Sub(began).Minutes()
	cpuThen, err := r.cpuSeconds()
	if err != nil {
		return err
	}
	allocatedThen, err := r.allocated()
	if err != nil {
		return err
	}
	events, err := r.Audit.Read()
	if err != nil {
		return err
	}
	m.CPU, m.Commands = (cpuThen-cpu)/minutes, float64(r.fleet.commands.Load()-commands)/minutes
	m.Allocated = (allocatedThen - allocated) / 1e6 / minutes
	m.Requests = measure.Count(events, user, began, ended)
	m.PerMinute = float64(m.Requests.Total) / minutes
	r.Audit.Forget()
	for _, p := range r.operators {
		memory, err := measure.MemoryOf(p.PID())
		if err != nil {
			return err
		}
		m.Memory = append(m.Memory, memory)
	}
	return finish()
}

// cpuSeconds is what all replicas have used since they started.
func (r *run) cpuSeconds() (sum float64, err error) {
	for _, p := range r.operators {
		seconds, err := measure.CPUSeconds(p.PID())
		if err != nil {
			return 0, err
		}
		sum += seconds
	}
	return sum, nil
}

// allocated is how many bytes all replicas have allocated since they started.
func (r *run) allocated() (sum float64, err error) {
	for _, p := range r.operators {
		allocated, err := measure.Allocated(p.metrics)
		if err != nil {
			return 0, err
		}
		sum += allocated.Bytes
	}
	return sum, nil
}

// kill ends all replicas as a crash would.
func (r *run) kill() {
	for _, p := range r.operators {
		p.Kill()
	}
}

// restart kills the operator and starts it again; it has looked at all RedisClusters when it has asked every instance something.
func (r *run) restart(ctx context.Context, m *result) error {
	progress("restart")
	r.kill()
	r.fleet.forget()
	began := time.Now()
	var err error
	if r.operators, err = r.startOperators(ctx, r.options); err != nil {
		return err
	}
	deadline := time.After(settleLimit)
	for r.fleet.instances() < 6*m.Clusters {
		select {
		case <-deadline:
			return fmt.Errorf("%d of %d instances were asked", r.fleet.instances(), 6*m.Clusters)
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.Restarted = time.Since(began).Seconds()
	if m.RestartedCPU, err = r.cpuSeconds(); err != nil {
		return err
	}
	progress("all instances were asked after %.1f s", m.Restarted)
	return r.idle(ctx)
}

// idle waits until the operator is left with nothing to do: until it used less than half a processor for a while. One that has too little
// memory collects garbage for ever.
func (r *run) idle(ctx context.Context) error {
	for range 20 {
		before, err := r.cpuSeconds()
		if err != nil {
			return err
		}
		select {
		case <-time.After(calm):
		case <-ctx.Done():
			return ctx.Err()
		}
		now, err := r.cpuSeconds()
		if err != nil || now-before < calm.Seconds()/2 {
			return err
		}
	}
	return errors.New("the operator does not come to rest")
}

// lose loses pods of masters, one after the other.
func (r *run) lose(ctx context.Context, m *result) (err error) {
	progress("%d masters are lost, one after the other", r.losses)
	if m.Noticed, err = r.noticed(ctx, 0, m.Clusters); err != nil {
		return err
	}
	m.AppsChanged, err = r.changeApps(ctx)
	return err
}

// noticed loses masters of RedisClusters from one number on, and returns how long it took until the status told of each.
func (r *run) noticed(ctx context.Context, from, size int) (seconds []float64, err error) {
	random := rand.New(rand.NewPCG(1, uint64(size))) //nolint:gosec // the same ones in each run are the purpose
	order := random.Perm(size - from)                // not one that is still being healed
	for i := range r.losses {
		which := key(from + order[i%len(order)])
		pod := ""
		r.mu.Lock()
		before := r.clusters[which].Status.DeepCopy()
		for _, instance := range before.Nodes {
			if instance.Type == "master" {
				pod = instance.Name
			}
		}
		r.mu.Unlock()
		if pod == "" {
			return seconds, fmt.Errorf("%s has no master in its status", which)
		}
		began := time.Now()
		if err := r.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: which.Namespace, Name: pod}},
			client.GracePeriodSeconds(0)); err != nil {
			return seconds, err
		}
		// A cluster that is healed at once may never be told not to be Ready; at rest nothing else changes its status.
		told := func() bool { return !equality.Semantic.DeepEqual(before, &r.clusters[which].Status) }
		if err := r.await(ctx, time.Minute, told); err != nil {
			return seconds, fmt.Errorf("the loss of %s of %s: %w", pod, which, err)
		}
		seconds = append(seconds, time.Since(began).Seconds())
		if err := r.await(ctx, 2*time.Minute, func() bool { return isReady(r.clusters[which]) }); err != nil {
			return seconds, fmt.Errorf("%s after the loss of %s: %w", which, pod, err)
		}
	}
	return seconds, nil
}

// flooded loses masters while a namespace of its own makes ten changes a second.
func (r *run) flooded(ctx context.Context, m *result) error {
	if r.flood == 0 || m.Clusters <= perNamespace { // none would be at rest
		return nil
	}
	progress("one namespace of each kind makes ten changes a second")
	flooding, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	go func() { ended <- r.tenASecond(flooding, r.changeCluster) }()
	go func() { ended <- r.tenASecond(flooding, r.changeAppOfTheFirst) }()
	var err error
	if m.NoticedFlooded, err = r.noticed(ctx, perNamespace, m.Clusters); err == nil {
		m.AppsChangedFlooded, err = r.changeApps(ctx)
	}
	stop()
	return errors.Join(err, client.IgnoreNotFound(<-ended), client.IgnoreNotFound(<-ended))
}

// tenASecond changes one after the other until the context ends; it is late if the API server is.
func (r *run) tenASecond(ctx context.Context, change func(context.Context, int) error) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := change(ctx, i); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// changeCluster changes a setting of a RedisCluster of the first namespace.
func (r *run) changeCluster(ctx context.Context, i int) error {
	which := key(i % min(perNamespace, r.made))
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: which.Namespace, Name: which.Name}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"config":{"slowlog-max-len":"%d"}}}`, 128+i))
	return r.client.Patch(ctx, cluster, patch)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/test/application"
	"middleware.hc.cn/operator/test/live"
	"middleware.hc.cn/operator/test/measure"
)

const (
	dayMaxMemory = 96 << 20
	dayKeys      = 192000
	dayKeyBytes  = 1000
	dayTarget    = 400 // operations a second of a master
)

// A day's load in twenty minutes: data grows, commands are many for a while, a few slots get most of the data, and all of it goes. The
// cluster has more shards, fewer, and slots that follow the load, and the application notices nothing. DAY names a file for a drawing of
// it; then a cluster of six shards has the same load at the same times, for comparison.
func TestRedisClusterFollowsTheLoad(t *testing.T) {
	if os.Getenv("E2E") != "all" {
		t.Skip("takes twenty minutes: with E2E=all; else TestDayOfLoad of the simulation")
	}
	var itself *day
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		itself = liveThrough(t, run, sizesItself(live.NewNamespace(t)), nil)
	})
	drawing := os.Getenv("DAY")
	if drawing == "" || t.Failed() {
		return
	}
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := sizesItself(live.NewNamespace(t))
		cluster.Spec.Shards, cluster.Spec.Replicas = ptr.To[int32](6), ptr.To[int32](12)
		cluster.Spec.Autoscale, cluster.Spec.Balance = nil, nil
		byHand := liveThrough(t, run, cluster, itself)
		if err := os.WriteFile(drawing, []byte(plotOf(itself, byHand).SVG()), 0o600); err != nil {
			t.Error(err)
		}
	})
}

// liveThrough has a cluster live through the day. Each part of it lasts until the cluster has followed the load, or as long as on another
// day.
func liveThrough(t *testing.T, run *live.Run, cluster *v1alpha1.RedisCluster, as *day) *day {
	t.Helper()
	live.Create(t, cluster)
	live.Ready(t, cluster)
	d := &day{t: t, cluster: cluster, load: live.NewLoad(t, cluster), began: time.Now(), as: as}
	d.load.StartAt(100)
	stop := d.watch()

	d.say("growth")
	for part := range 4 {
		d.fill(dayKeys/4*(part+1), dayKeyBytes)
		time.Sleep(20 * time.Second)
	}
	d.until("shards are added for the data", func(c *v1alpha1.RedisCluster) bool { return c.Status.Shards > 3 })

	d.say("spike")
	d.next(1200)
	shards := cluster.Status.Shards
	d.until("shards are added for the commands", func(c *v1alpha1.RedisCluster) bool { return c.Status.Shards > shards })
	d.next(100)

	d.say("hot slots")
	d.skew(1, 24) // a shard that bears 16 MiB more than the others is worth a move
	d.until("slots have moved", func(c *v1alpha1.RedisCluster) bool {
		return c.Status.Balance != nil && len(c.Status.Balance.Moved) > 0 && c.Status.Migration == nil
	})

	d.say("decline")
	d.fill(dayKeys, 1)
	d.until("there are three shards again", func(c *v1alpha1.RedisCluster) bool { return c.Status.Shards == 3 })
	stop()
	method := v1alpha1.MigrationAtomic
	if as != nil {
		method = live.NothingMoved
	}
	d.wantUnnoticed(method)
	run.WantUnnoticed(d.load, method)
	return d
}

// sizesItself is a cluster whose shards and slots follow the load.
func sizesItself(namespace string) *v1alpha1.RedisCluster {
	cluster := newCluster(namespace, "day")
	newest := engines[len(engines)-1]
	cluster.Spec.Repository, cluster.Spec.Version = newest.repository, newest.version
	cluster.Spec.Replicas = nil
	cluster.Spec.Storage.Size = resource.MustParse("1Gi")
	cluster.Spec.Config = map[string]string{"maxmemory": strconv.Itoa(dayMaxMemory), "repl-backlog-size": "1mb"} // which counts, too
	cluster.Spec.Pod[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	minute := &metav1.Duration{Duration: time.Minute}
	cluster.Spec.Autoscale = &v1alpha1.Autoscale{MinShards: 3, MaxShards: 6, InstancesPerShard: 2,
		Targets:  v1alpha1.AutoscaleTargets{MemoryPercent: ptr.To[int32](75), OperationsPerSecond: ptr.To[int64](dayTarget)},
		ScaleOut: v1alpha1.AutoscaleRule{Stabilization: minute},
		ScaleIn:  v1alpha1.AutoscaleRule{Stabilization: &metav1.Duration{Duration: 2 * time.Minute}},
		CoolDown: minute,
	}
	cluster.Spec.Balance = &v1alpha1.Balance{Mode: v1alpha1.BalanceMove, MegabytesPerHour: 1024}
	return cluster
}

// day is a load that changes, and the course of it.
type day struct {
	t       *testing.T
	cluster *v1alpha1.RedisCluster
	load    *live.Load
	began   time.Time
	results []application.LoadResult
	as      *day            // nil: the cluster says how long each part lasts
	parts   []measure.Mark  // when each began
	ends    []time.Duration // when each wait for the cluster was over

	mu                         sync.Mutex
	shards, memory, operations []measure.Point
}

// say takes a part of the day down.
func (d *day) say(what string) {
	at := time.Since(d.began).Seconds()
	d.t.Logf("%4.0f s  %s", at, what)
	d.parts = append(d.parts, measure.Mark{X: at, Text: what})
}

// next ends the load, and begins another one.
func (d *day) next(perSecond int) {
	d.t.Helper()
	d.results = append(d.results, d.load.Stop())
	d.load.StartAt(perSecond)
}

// fill puts so many keys in, or replaces them.
func (d *day) fill(keys, bytes int) {
	d.t.Helper()
	if out, err := d.load.Application.Do(d.t.Context(), "fill", "--keys", strconv.Itoa(keys), "--sizes", strconv.Itoa(bytes)); err != nil {
		d.t.Fatalf("fill: %v: %s", err, out)
	}
}

// skew puts so many values of a mebibyte into slots of a shard, one each.
func (d *day) skew(shard int32, values int) {
	d.t.Helper()
	if err := live.Get(d.t, d.cluster); err != nil {
		d.t.Fatal(err)
	}
	node := master(d.t, d.cluster, shard)
	owned, err := slots.Parse(node.Slots)
	if err != nil {
		d.t.Fatal(err)
	}
	var commands []string
	seen := map[uint16]bool{}
	for i := 0; len(commands) < values; i++ {
		key := fmt.Sprintf("hot:%d", i)
		if slot := slots.KeySlot(key); owned.Contains(slot) && !seen[slot] {
			seen[slot] = true
			commands = append(commands, fmt.Sprintf("SETRANGE %s %d x", key, 1<<20-1))
		}
	}
	if out, err := batch(d.t, d.cluster, node.Name, commands); err != nil {
		d.t.Fatalf("%v: %v", err, out)
	}
}

// until waits for something that takes minutes.
func (d *day) until(what string, is func(*v1alpha1.RedisCluster) bool) {
	d.t.Helper()
	defer func() { d.ends = append(d.ends, time.Since(d.began)) }()
	if d.as != nil {
		time.Sleep(d.as.ends[len(d.ends)] - time.Since(d.began))
		return
	}
	defer live.Ready(d.t, d.cluster)
	const within = 20 * time.Minute
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(time.Second) {
		if err := live.Get(d.t, d.cluster); err == nil && is(d.cluster) {
			d.t.Logf("%4.0f s  %s: %d shards", time.Since(d.began).Seconds(), what, d.cluster.Status.Shards)
			return
		}
	}
	d.t.Fatalf("%s: not within %s: %+v, %+v", what, within, d.cluster.Status.Autoscale, d.cluster.Status.Balance)
}

// watch takes down every ten seconds how many shards there are, and how much of its memory and how many commands the busiest master has.
func (d *day) watch() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				d.note()
			}
		}
	}()
	return func() {
		close(end)
		<-ended
		d.note()
	}
}

func (d *day) note() {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: d.cluster.Namespace, Name: d.cluster.Name}}
	if live.Get(d.t, cluster) != nil {
		return
	}
	answers, err := askAll(d.t, cluster, "info", "everything")
	if err != nil {
		return // an instance comes or goes
	}
	memory, operations := 0.0, 0.0
	for _, info := range answers {
		if strings.Contains(info, "role:master") {
			memory, operations = max(memory, number(info, "used_memory:")), max(operations, number(info, "instantaneous_ops_per_sec:"))
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	at := time.Since(d.began).Seconds()
	d.shards = append(d.shards, measure.Point{X: at, Value: float64(len(ownedByShard(cluster)))})
	d.memory = append(d.memory, measure.Point{X: at, Value: 100 * memory / dayMaxMemory})
	d.operations = append(d.operations, measure.Point{X: at, Value: operations})
}

// number is that of a line of INFO; 0 when there is none.
func number(info, name string) float64 {
	_, after, _ := strings.Cut(info, name)
	text, _, _ := strings.Cut(after, "\r")
	text, _, _ = strings.Cut(text, "\n")
	n, _ := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return n
}

// plotOf draws a day and another one beside it.
func plotOf(itself, byHand *day) measure.Plot {
	panel := func(title string, of func(*day) []measure.Point) measure.Panel {
		return measure.Panel{Title: title, Curves: []measure.Curve{
			{Name: "sizes itself", Points: of(itself)}, {Name: "six shards by hand", Points: of(byHand)}}}
	}
	commands := panel(fmt.Sprintf("commands a second of the busiest master (cut off at %d: data is put in and replaced)", 2*dayTarget),
		func(d *day) []measure.Point { return d.operations })
	commands.Most = 2 * dayTarget
	return measure.Plot{Axis: "minutes", Unit: 60, Marks: itself.parts, Panels: []measure.Panel{
		panel("shards", func(d *day) []measure.Point { return d.shards }),
		panel("memory of the fullest master, % of maxmemory", func(d *day) []measure.Point { return d.memory }),
		commands,
	}}
}

// wantUnnoticed judges the loads that have ended; the last one is judged by the scenario.
func (d *day) wantUnnoticed(moved v1alpha1.MigrationMethod) {
	d.t.Helper()
	for _, result := range d.results {
		if failures, _ := result.Unnoticed(moved); len(failures) > 0 {
			d.t.Errorf("a load that has ended: %s", strings.Join(failures, "; "))
		}
	}
}

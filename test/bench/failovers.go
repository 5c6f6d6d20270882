// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/test/application"
	"middleware.hc.cn/operator/test/process"
)

const (
	nodeTimeout = 2 * time.Second
	// A master is back or replaced by then; what still waits for the kubelet is made anew.
	restartedWithin = 4 * time.Second
	sixteenth       = 16384 / 16
)

// kill is one master that was killed.
type kill struct {
	At     time.Time `json:"at"`
	Pod    string    `json:"pod"`
	From   int       `json:"from"`   // the first slot of its shard
	To     int       `json:"to"`     // and the last one
	Shard  float64   `json:"shard"`  // seconds until an instance acknowledged a write into each sixteenth of the slots that is the shard's alone; 0 when the probe missed none
	Client float64   `json:"client"` // and until the ordinary client had one acknowledged in each
}

// killed are masters that were killed, and what two applications saw meanwhile: one takes the master's word for a write, the
// other waits for all replicas of the shard. Probe has the times in which no instance acknowledged writes.
type killed struct {
	Kills      []kill                 `json:"kills"`
	Probe      application.LoadResult `json:"probe"`
	Plain      application.LoadResult `json:"plain"`
	Replicated application.LoadResult `json:"replicated"`
}

// failovers kills masters at random, each when the cluster is healthy again after the one before.
func (s *subject) failovers(ctx context.Context, f *figures) error {
	if !process.Local() {
		return errors.New("only processes of the local cluster can be killed from here")
	}
	if err := s.fill(ctx, f); err != nil {
		return err
	}
	var err error
	f.Kills, err = s.killMasters(ctx)
	return err
}

// killMasters kills masters under load and tells what the applications saw.
func (s *subject) killMasters(ctx context.Context) (*killed, error) {
	k := &killed{}
	flags := []string{"--addr", s.app.Address(), "--writes", strconv.Itoa(s.writes / 4), "--reads", strconv.Itoa(s.reads / 4),
		"--dial-timeout", "300ms", "--refresh", "1s"} // what docs/reliability.md advises
	plain, err := s.app.Begin(ctx, "run", flags...)
	if err != nil {
		return nil, err
	}
	replicated, err := s.app.Begin(ctx, "run", append(flags, "--replicated", strconv.Itoa(s.replicas))...)
	if err != nil {
		return nil, err
	}
	probe, err := s.app.Begin(ctx, "probe", "--addr", s.app.Address())
	if err != nil {
		return nil, err
	}
	for len(k.Kills) < s.kills {
		if err := s.whole(ctx); err != nil {
			return nil, err
		}
		if err := pause(ctx, time.Duration(rand.Int64N(int64(time.Second)))); err != nil { //nolint:gosec // chooses a moment
			return nil, err
		}
		one, err := s.killOne(ctx)
		if err != nil {
			return nil, err
		}
		k.Kills = append(k.Kills, one)
		progress("killed %d of %d: %s, the master of slots %d-%d", len(k.Kills), s.kills, one.Pod, one.From, one.To)
	}
	if err := s.whole(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(plain.End(ctx, &k.Plain), replicated.End(ctx, &k.Replicated), probe.End(ctx, &k.Probe)); err != nil {
		return nil, err
	}
	k.match()
	return k, nil
}

// killOne sends SIGKILL to any master, and deletes its pod when the kubelet has left it some time: it would wait longer and longer
// before it starts a container that ends again and again.
func (s *subject) killOne(ctx context.Context) (kill, error) {
	if err := s.Get(ctx, client.ObjectKeyFromObject(s.cluster), s.cluster); err != nil {
		return kill{}, err
	}
	all := masters(s.cluster)
	node := all[rand.IntN(len(all))] //nolint:gosec // chooses a master
	k := kill{Pod: node.Name}
	if n, err := fmt.Sscanf(node.Slots, "%d-%d", &k.From, &k.To); n != 2 {
		return k, fmt.Errorf("slots %q of %s: %w", node.Slots, node.Name, err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: node.Name}}
	if err := s.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return k, err
	}
	k.At = time.Now()
	if n, err := process.Signal(syscall.SIGKILL, "redis-server", string(pod.UID)); n != 1 || err != nil {
		return k, fmt.Errorf("%d processes of %s were killed: %w", n, node.Name, err)
	}
	if err := pause(ctx, restartedWithin); err != nil {
		return k, err
	}
	if err := s.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || pods.Ready(pod) {
		return k, err
	}
	return k, client.IgnoreNotFound(s.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}, client.GracePeriodSeconds(0)))
}

// whole waits until every instance says that it is the master of a replica or a replica in sync, and the cluster is Ready.
func (s *subject) whole(ctx context.Context) error {
	for deadline := time.Now().Add(3 * time.Minute); ; {
		why := s.apart(ctx)
		if why == nil {
			_, err := s.ready(ctx, s.cluster)
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the cluster is not whole after 3 minutes: %w", why)
		}
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *subject) apart(ctx context.Context) error {
	var list corev1.PodList
	if err := s.List(ctx, &list, client.InNamespace(s.cluster.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: s.cluster.Name}); err !=
		nil {
		return err
	}
	masters := 0
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp != nil || !pods.Ready(pod) {
			return fmt.Errorf("%s is not ready", pod.Name)
		}
		info, err := s.cli(ctx, pod.Namespace, pod.Name, "info", "replication")
		if err != nil {
			return err
		}
		switch {
		case strings.Contains(info, "role:master") && strings.Count(info, "state=online") == s.replicas:
			masters++
		case strings.Contains(info, "master_link_status:up"):
		default:
			return fmt.Errorf("%s is not in sync", pod.Name)
		}
	}
	if len(list.Items) != 3*(1+s.replicas) || masters != 3 {
		return fmt.Errorf("%d pods, %d masters", len(list.Items), masters)
	}
	return nil
}

// match finds the outages that each kill was the cause of.
func (k *killed) match() {
	for i := range k.Kills {
		one := &k.Kills[i]
		for s := (one.From + sixteenth - 1) / sixteenth; (s+1)*sixteenth-1 <= one.To; s++ {
			one.Shard = max(one.Shard, outage(k.Probe.Outages, s, one.At))
			one.Client = max(one.Client, outage(k.Plain.Outages, s, one.At))
		}
	}
}

// outage is how many seconds after a moment the first write into a sixteenth of the slots was acknowledged; 0 when none was missed.
func outage(outages []application.Outage, sixteenth int, at time.Time) float64 {
	const written = 300 * time.Millisecond // an answer may be taken down a moment after the kill; no shorter time is an outage
	for _, o := range outages {
		if o.Sixteenth == sixteenth && o.From.Before(at.Add(written)) && o.To.After(at) {
			return o.To.Sub(at).Seconds()
		}
	}
	return 0
}

// times are those of the kills that made an outage, sorted.
func (k *killed) times(of func(kill) float64) []float64 {
	var list []float64
	for _, one := range k.Kills {
		if seconds := of(one); seconds > 0 {
			list = append(list, seconds)
		}
	}
	slices.Sort(list)
	return list
}

// count tells how many masters were killed, and of how many of them nobody noticed anything: they say nothing about how long one lasts.
func (k *killed) count() string {
	if unnoticed := len(k.Kills) - len(k.times(func(k kill) float64 { return k.Shard })); unnoticed > 0 {
		return fmt.Sprintf("%d (%d without an outage)", len(k.Kills), unnoticed)
	}
	return strconv.Itoa(len(k.Kills))
}

// killLines are the report's lines about killed masters.
func (f figures) killLines() string {
	if f.Kills == nil {
		return ""
	}
	shard := f.Kills.times(func(k kill) float64 { return k.Shard })
	client := f.Kills.times(func(k kill) float64 { return k.Client })
	line := func(what string, r application.LoadResult) string {
		return fmt.Sprintf("| %s %s | %s | %s | %s | %s | %d | %d | %d |\n", name(f.Engine), f.Engine.Version, f.Kills.count(),
			quantiles(shard, "%.2f s"), quantiles(client, "%.2f s"),
			what, r.Writes, r.Failed, r.Lost)
	}
	return line("the master", f.Kills.Plain) + line("all replicas (WAIT)", f.Kills.Replicated)
}

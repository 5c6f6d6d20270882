// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/application"
)

// moved is one measurement of slots that change their owners.
type moved struct {
	Way   string `json:"way"`   // operator, redis-cli, CLUSTER MIGRATESLOTS
	To    int    `json:"to"`    // shards that own slots afterwards
	Slots int    `json:"slots"` // that moved
	Keys  int64  `json:"keys"`  // that moved
	// Whole is how long it took in seconds: from the patch to Ready, or as long as the
	// command ran.
	Whole float64 `json:"whole"`
	// Migration is from the first slot on its way to the last at its new owner, in seconds.
	Migration float64                 `json:"migration"`
	Load      *application.LoadResult `json:"load,omitempty"`
}

// figures are all measurements of one engine.
type figures struct {
	Engine   engine    `json:"engine"`
	EmptyOut []float64 `json:"emptyOut"` // seconds from patch to Ready, 3 to 4 shards without data
	EmptyIn  []float64 `json:"emptyIn"`
	FillKeys int       `json:"fillKeys"`
	Bytes    int64     `json:"bytes"`
	Moves    []moved   `json:"moves,omitempty"`
	Rolls    []roll    `json:"rolls,omitempty"`
	Kills    *killed   `json:"kills,omitempty"`
	Harm     *harm     `json:"harm,omitempty"`
}

// subject is one cluster under measurement.
type subject struct {
	kube
	options
	cluster *v1alpha1.RedisCluster
	app     *application.Application
	data    []string
}

func measure(ctx context.Context, k kube, e engine, o options, what []string) (figures, error) {
	f := figures{Engine: e}
	for _, name := range what {
		if err := measureOne(ctx, k, e, o, name, &f); err != nil {
			return f, fmt.Errorf("%s: %w", name, err)
		}
	}
	return f, nil
}

// measureOne takes one measurement of a new cluster, in a namespace of its own.
func measureOne(ctx context.Context, k kube, e engine, o options, what string, f *figures) error {
	progress("%s, %s: a cluster of 3 shards with %d replicas each", e.Name, what, o.replicas)
	namespace, err := k.newNamespace(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err := k.removeNamespace(context.WithoutCancel(ctx), namespace); err != nil {
			progress("remove namespace %s: %v", namespace, err)
		}
	}()
	s := subject{kube: k, options: o, data: []string{"--keys", strconv.Itoa(o.keys)}}
	var config map[string]string
	if what == "failovers" || what == "neighbours" {
		config = map[string]string{"cluster-node-timeout": strconv.FormatInt(nodeTimeout.Milliseconds(), 10)}
	}
	if s.cluster, err = k.newCluster(ctx, namespace, e, o.replicas, config); err != nil {
		return err
	}
	if s.app, err = application.Start(ctx, k.pods, namespace, clusterName, s.cluster.AuthSecretName()); err != nil {
		return err
	}
	if err := measures[what](&s, ctx, f); err != nil {
		return err
	}
	_, err = s.app.Do(ctx, "verify", s.data...)
	return err
}

// scaling scales an empty cluster, then one with data, without load and under it.
func (s *subject) scaling(ctx context.Context, f *figures) error {
	if err := s.empty(ctx, f); err != nil {
		return err
	}
	if err := s.fill(ctx, f); err != nil {
		return err
	}
	for _, load := range []bool{false, true} {
		moves, err := s.cycle(ctx, load, strings.HasPrefix(f.Engine.Version, "9."))
		f.Moves = append(f.Moves, moves...)
		if err != nil {
			return err
		}
	}
	return nil
}

// empty scales without data.
func (s *subject) empty(ctx context.Context, f *figures) error {
	for range s.emptyRuns {
		out, err := s.scale(ctx, s.cluster, 4, s.replicas)
		if err != nil {
			return err
		}
		in, err := s.scale(ctx, s.cluster, 3, s.replicas)
		if err != nil {
			return err
		}
		progress("empty: 3 to 4 shards in %.1f s, back in %.1f s", out.Seconds(), in.Seconds())
		f.EmptyOut, f.EmptyIn = append(f.EmptyOut, out.Seconds()), append(f.EmptyIn, in.Seconds())
	}
	return nil
}

func (s *subject) fill(ctx context.Context, f *figures) error {
	progress("fill in %d keys", s.keys)
	out, err := s.app.Do(ctx, "fill", s.data...)
	if err != nil {
		return err
	}
	_, err = fmt.Sscanf(strings.Join(strings.Fields(out), " "), `{ "keys": %d, "bytes": %d`, &f.FillKeys, &f.Bytes)
	return err
}

// cycle goes from 3 to 4 shards, then lets the engine's own means move the same number of
// slots back and forth between the same masters, then goes to 3 shards again.
func (s *subject) cycle(ctx context.Context, load, raw bool) ([]moved, error) {
	var moves []moved
	add := func(m moved, err error) error {
		if err != nil {
			return err
		}
		progress("%s to %d shards: %d slots, %d keys in %.1f s (whole: %.1f s)%s", m.Way, m.To, m.Slots, m.Keys, m.Migration, m.Whole, stall(m))
		moves = append(moves, m)
		return nil
	}
	before := masters(s.cluster)
	if err := add(s.operator(ctx, 4, before, load)); err != nil {
		return moves, err
	}
	if err := s.setPause(ctx, s.cluster, true); err != nil {
		return moves, err
	}
	here := means(s.redisCLI)
	if raw {
		here = s.migrateSlots
	}
	all := masters(s.cluster)
	if len(all) != 4 {
		return moves, fmt.Errorf("%d masters own slots, want 4", len(all))
	}
	if err := add(s.byHand(ctx, here, 3, all, load)); err != nil {
		return moves, err
	}
	if err := add(s.byHand(ctx, here, 4, all, load)); err != nil {
		return moves, err
	}
	if err := s.setPause(ctx, s.cluster, false); err != nil {
		return moves, err
	}
	return moves, add(s.operator(ctx, 3, masters(s.cluster)[3:], load))
}

func stall(m moved) string {
	if m.Load == nil {
		return ""
	}
	return fmt.Sprintf("; load: %d commands, %d failed, %d lost, longest stall %.0f ms", m.Load.Writes+m.Load.Reads, m.Load.Failed,
		m.Load.Lost, m.Load.LongestStallMS)
}

// operator lets the operator scale, watching masters whose slots change.
func (s *subject) operator(ctx context.Context, shards int32, watched []v1alpha1.NodeStatus, load bool) (moved, error) {
	m := moved{Way: "operator", To: int(shards)}
	if shards < 4 {
		var err error
		if m.Keys, err = s.keysOf(ctx, watched[0]); err != nil {
			return m, err
		}
	}
	err := s.watched(ctx, &m, watched, load, func() error {
		whole, err := s.scale(ctx, s.cluster, shards, s.replicas)
		m.Whole = whole.Seconds()
		return err
	})
	if err == nil && shards == 4 {
		m.Keys, err = s.keysOf(ctx, masters(s.cluster)[3])
	}
	return m, err
}

// means moves slots by hand: to 3 shards from the last of all, or from the first three to
// the last.
type means func(ctx context.Context, all []v1alpha1.NodeStatus, to int) (way string, err error)

func (s *subject) byHand(ctx context.Context, do means, to int, all []v1alpha1.NodeStatus, load bool) (moved, error) {
	m := moved{To: to}
	var err error
	if to == 3 {
		if m.Keys, err = s.keysOf(ctx, all[3]); err != nil {
			return m, err
		}
	}
	err = s.watched(ctx, &m, all[:3], load, func() error {
		started := time.Now()
		way, err := do(ctx, all, to)
		m.Way, m.Whole = way, time.Since(started).Seconds()
		return err
	})
	if err == nil && to == 4 {
		m.Keys, err = s.keysOf(ctx, all[3])
	}
	return m, err
}

// watched measures what do does to the slots of masters, under load if asked to.
func (s *subject) watched(ctx context.Context, m *moved, list []v1alpha1.NodeStatus, load bool, do func() error) error {
	var addresses []string
	for _, node := range list {
		addresses = append(addresses, node.Instance)
	}
	watch, err := s.app.Begin(ctx, "watch", "--addr", strings.Join(addresses, ","))
	if err != nil {
		return err
	}
	var running *application.Running
	if load {
		running, err = s.app.Begin(ctx, "run", "--addr", s.app.Address(), "--writes", strconv.Itoa(s.writes), "--reads", strconv.Itoa(s.reads))
		if err != nil {
			return err
		}
		if err := pause(ctx, 2*time.Second); err != nil { // its connections are made by then
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if load {
		m.Load = &application.LoadResult{}
		if err := running.End(ctx, m.Load); err != nil {
			return err
		}
	}
	var seen struct {
		From, To int
		Seconds  float64
	}
	if err := watch.End(ctx, &seen); err != nil {
		return err
	}
	m.Slots, m.Migration = max(seen.From-seen.To, seen.To-seen.From), seen.Seconds
	if m.Slots == 0 {
		return errors.New("no slot has moved")
	}
	return nil
}

func (s *subject) keysOf(ctx context.Context, master v1alpha1.NodeStatus) (int64, error) {
	out, err := s.cli(ctx, s.cluster.Namespace, master.Name, "dbsize")
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(out, 10, 64)
}

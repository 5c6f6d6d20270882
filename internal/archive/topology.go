// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// topology is what the instances of a cluster say at one time.
type topology struct {
	engine  redis.Engine
	version string
	shards  []members
}

// members are the master of a shard, which owns its slots, and its replicas.
type members struct {
	slots    slots.Set
	master   member
	replicas []member
}

// same reports whether the same masters own the same slots.
func (t topology) same(other topology) bool {
	return slices.EqualFunc(t.shards, other.shards, func(a, b members) bool {
		return a.master.id() == b.master.id() && a.slots.Equal(b.slots)
	})
}

// member is an instance that answers.
type member struct {
	addr    string
	node    *redis.Node
	history redis.History
}

func (m member) id() string { return m.history.View.NodeID }

// look asks all instances. An obstacle is the error while slots move, or some slot has no master that answers.
func (t Taking) look(ctx context.Context) (topology, error) {
	all, err := t.ask(ctx)
	if err != nil {
		return topology{}, err
	}
	if err := unmoved(ctx, all, t.SlotsStay); err != nil {
		return topology{}, err
	}
	var now topology
	byMaster := map[string]int{}
	var covered slots.Set
	for _, m := range all {
		v := m.history.View
		if v.Role != redis.RoleMaster || v.Slots.IsEmpty() {
			continue
		}
		if m.history.Others {
			return topology{}, fmt.Errorf("%s has keys in other databases than 0, which backups have not", m.addr)
		}
		if !covered.Intersect(v.Slots).IsEmpty() {
			return topology{}, blocked(-1, "slots %.80s have two owners", covered.Intersect(v.Slots))
		}
		covered = covered.Union(v.Slots)
		byMaster[v.NodeID] = len(now.shards)
		now.shards = append(now.shards, members{slots: v.Slots, master: m})
	}
	if covered.Len() != slots.Count {
		return topology{}, blocked(-1, "%d of %d slots are owned by masters that answer", covered.Len(), slots.Count)
	}
	if len(now.shards) > mostShards {
		return topology{}, fmt.Errorf("the cluster has %d shards, and %d is the most", len(now.shards), mostShards)
	}
	for _, m := range all {
		if i, follows := byMaster[m.history.View.MasterID]; follows && m.history.View.MasterLinkUp {
			now.shards[i].replicas = append(now.shards[i].replicas, m)
		}
	}
	slices.SortFunc(now.shards, func(a, b members) int { return int(a.slots.Ranges()[0].First) - int(b.slots.Ranges()[0].First) })
	now.engine, now.version = now.shards[0].master.history.View.Engine, now.shards[0].master.history.View.Version
	return now, nil
}

// unmoved is an obstacle while a master says that slots move. Key by key, both ends have a part of them; while the engine moves them
// itself, the receiving end has what an instance that starts would take for its own; nobody is asked for that when slots are known to stay.
func unmoved(ctx context.Context, all []member, slotsStay bool) error {
	masters := slices.DeleteFunc(slices.Clone(all), func(m member) bool { return m.history.View.Role != redis.RoleMaster })
	for _, m := range masters {
		if open := max(len(m.history.View.Migrating), len(m.history.View.Importing)); open > 0 {
			return blocked(-1, "%d slots move", open)
		}
	}
	if slotsStay {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range masters {
		group.Go(func() error {
			moves, err := m.node.MovesSlots(ctx)
			if err == nil && moves != "" {
				return blocked(-1, "slots move: %.80s", moves)
			}
			if errors.Is(err, redis.ErrUnreachable) {
				return blocked(-1, "%v", err)
			}
			return err
		})
	}
	return group.Wait()
}

// ask asks every instance that the first seed which answers knows of. One that does not answer is left out.
func (t Taking) ask(ctx context.Context) ([]member, error) {
	var errs []error
	for i, seed := range t.known.list() {
		h, err := t.Pool.Node(seed, t.Credentials).History(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !t.belongs(h) || !t.known.recognise(h.View.Peers, i < len(t.Seeds)) {
			errs = append(errs, fmt.Errorf("%s is an instance of another cluster", seed))
			continue
		}
		all := t.askPeers(ctx, seed, h.View.Peers)
		t.known.learn(all)
		return all, nil
	}
	err := fmt.Errorf("no instance answers: %w", errors.Join(errs...))
	if errors.Is(err, redis.ErrAuth) {
		return nil, err
	}
	return nil, blocked(-1, "%v", err)
}

// belongs reports whether an instance is of the cluster that is asked for.
func (t Taking) belongs(h redis.History) bool {
	return len(t.Nodes) == 0 || slices.ContainsFunc(h.View.Peers, func(p redis.Peer) bool { return slices.Contains(t.Nodes, p.ID) })
}

// seeds are addresses to begin with: those that were given, then those that were learnt last.
type seeds struct {
	given  []string
	within time.Duration

	mu     sync.Mutex
	learnt []string
	// ids are the nodes that were found there, at a time. Others may have the addresses by now.
	ids map[string]bool
	at  time.Time
}

func (s *seeds) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.given, s.learnt)
}

func (s *seeds) learn(all []member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.learnt, s.ids, s.at = nil, map[string]bool{}, time.Now()
	for _, m := range all {
		s.learnt, s.ids[m.id()] = append(s.learnt, m.addr), true
	}
}

// expect says which nodes are to be found.
func (s *seeds) expect(ids map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids, s.at = ids, time.Now()
}

// recognise reports whether an instance knows one of those that were found before. When none of them was for a while, whoever answers where
// the cluster was said to be is the cluster.
func (s *seeds) recognise(peers []redis.Peer, given bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ids) == 0 || given && time.Since(s.at) > s.within ||
		slices.ContainsFunc(peers, func(p redis.Peer) bool { return s.ids[p.ID] })
}

// isName reports whether an address has a name in place of an IP: then it may lead to another instance each time.
func isName(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && net.ParseIP(host) == nil
}

func (t Taking) askPeers(ctx context.Context, seed string, peers []redis.Peer) []member {
	var (
		mu   sync.Mutex
		all  []member
		wait sync.WaitGroup
	)
	for _, p := range peers {
		addr := net.JoinHostPort(p.IP, strconv.Itoa(p.Port))
		switch {
		case p.Flags.Has(redis.FlagMyself) && (p.IP == "" || !isName(seed)):
			addr = seed
		case p.IP == "" || p.Flags.HasAny(redis.FlagHandshake|redis.FlagFailed):
			continue
		}
		wait.Go(func() {
			node := t.Pool.Node(addr, t.Credentials)
			h, err := node.History(ctx)
			if err != nil || h.View.NodeID != p.ID { // somebody else has the address by now
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, member{addr, node, h})
		})
	}
	wait.Wait()
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.id(), b.id()) })
	return all
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Source is a server outside, or the master of some slots of the cluster that it is in: who that is, is asked for anew each time. What
// they say is untrusted; where nodes are, they say themselves.
type Source struct {
	Pool *redis.Pool
	// Address is where the server is reached, or any node of its cluster.
	Address string
	// Login is how to log in at a host, whose certificate is to be for that name. It is asked each time, since passwords change.
	Login func(host string) redis.Credentials
	// Slots are those whose master is meant.
	Slots slots.Set

	mu sync.Mutex
	// known are nodes of the shard, as they were found last, and followed is the ID of the one that all connections since the last drop were
	// made to; empty: there are none.
	known    []place
	followed string
}

// place is a node and where it is.
type place struct{ id, addr string }

const (
	// mostKnown is how many nodes of the shard are asked beside the address.
	mostKnown = 8
	// lookEvery is how often it is looked whether the master is still the same.
	lookEvery = 3 * time.Second
	// askAtOnce is how many nodes are asked at the same time.
	askAtOnce = 16
)

// node is the node at an address.
func (s *Source) node(addr string) *redis.Node {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	return s.Pool.Node(addr, s.Login(host))
}

// announced is where a node says that it is; empty: it does not.
func announced(p redis.Peer) string {
	host := p.Hostname
	if host == "" {
		host = p.IP
	}
	if host == "" || p.Port == 0 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(p.Port))
}

// answer is what a node said of itself and of its cluster.
type answer struct {
	place
	is redis.Outside
}

// Look finds the server, or the master of the slots, and asks it.
func (s *Source) Look(ctx context.Context) (redis.Outside, error) {
	found, err := s.find(ctx)
	return found.is, err
}

// find asks the address and the nodes that are known, and believes the one that tells the highest epoch, as nodes do. A node of a cluster
// is reached where it announces that it is: the address may be that of a Service, behind which another node answers each time.
func (s *Source) find(ctx context.Context) (answer, error) {
	answers, err := s.ask(ctx)
	if len(answers) == 0 {
		return answer{}, err
	}
	if !answers[0].is.Cluster {
		return answers[0], nil
	}
	first := s.Slots.Take(1)
	var owner redis.Peer
	for _, told := range answers {
		for _, p := range told.is.Peers {
			if p.Slots.Intersect(first).IsEmpty() || owner.ID != "" && p.ConfigEpoch <= owner.ConfigEpoch {
				continue
			}
			owner = p
		}
	}
	if owner.ID == "" {
		return answer{}, fmt.Errorf("no node of the cluster at %s knows a master of slot %s", s.Address, first)
	}
	at := slices.IndexFunc(answers, func(told answer) bool { return told.id == owner.ID && told.addr != s.Address })
	var found answer
	if at >= 0 {
		found = answers[at]
	} else if found, err = s.visit(ctx, owner); err != nil {
		return answer{}, err
	}
	s.remember(found)
	return found, nil
}

// visit asks a node at the address that it announces.
func (s *Source) visit(ctx context.Context, p redis.Peer) (answer, error) {
	addr := announced(p)
	if addr == "" {
		return answer{}, fmt.Errorf("node %s, the master of slots %.80s, announces no address", p.ID, p.Slots)
	}
	is, err := s.node(addr).Outside(ctx)
	switch {
	case err != nil:
		return answer{}, fmt.Errorf(
			"the master of slots %.80s is not reached at %s, which it announces; let it announce an address that is reached from here (cluster-announce-hostname, cluster-announce-ip): %w",
			p.Slots, addr, err)
	case is.ID != p.ID:
		return answer{}, fmt.Errorf("at %s, which the master of slots %.80s announces, another server answers", addr, p.Slots)
	}
	return answer{place{p.ID, addr}, is}, nil
}

// ask asks the address and the nodes that are known. The first answer is that of the address, if it gave one.
func (s *Source) ask(ctx context.Context) ([]answer, error) {
	s.mu.Lock()
	places := append([]place{{"", s.Address}}, s.known...)
	s.mu.Unlock()
	all, errs := make([]answer, len(places)), make([]error, len(places))
	var wait sync.WaitGroup
	for i, at := range places {
		wait.Go(func() {
			is, err := s.node(at.addr).Outside(ctx)
			if err == nil && i > 0 && is.ID != at.id {
				err = fmt.Errorf("another server answers at %s", at.addr)
			}
			all[i], errs[i] = answer{place{is.ID, at.addr}, is}, err
		})
	}
	wait.Wait()
	var answers []answer
	for i := range all {
		if errs[i] == nil && (len(answers) == 0 || all[i].is.Cluster) {
			answers = append(answers, all[i])
		}
	}
	return answers, errors.Join(errs...)
}

// remember keeps where the nodes of the shard are.
func (s *Source) remember(master answer) {
	known := []place{master.place}
	for _, p := range master.is.Peers {
		if addr := announced(p); p.MasterID == master.id && addr != "" && len(known) < mostKnown {
			known = append(known, place{p.ID, addr})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = known
}

// Dial opens a connection to the server, or to the master of the slots, logged in.
func (s *Source) Dial(ctx context.Context) (net.Conn, error) {
	found, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.followed == "" {
		s.followed = found.id
	}
	same := s.followed == found.id
	s.mu.Unlock()
	if !same { // with connections to both, writes would be paused at the one and read at the other
		return nil, fmt.Errorf("the master of slot %s is another one now: connections to the former one are ended first", s.Slots.Take(1))
	}
	return s.node(found.addr).Connect(ctx)
}

// Watch calls moved whenever the master of the slots is another one than connections were made to, until the context ends.
func (s *Source) Watch(ctx context.Context, moved func()) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		found, err := s.find(ctx)
		s.mu.Lock()
		followed := s.followed
		s.mu.Unlock()
		if err == nil && followed != "" && found.id != followed {
			moved()
			s.mu.Lock()
			s.followed = ""
			s.mu.Unlock()
		}
	}
}

// Owns is an error unless the master owns the slots and no others, and all of them rest.
func (s *Source) Owns(is redis.Outside) error {
	switch {
	case is.Open > 0:
		return fmt.Errorf("%d slots move from or to the master of slot %s", is.Open, s.Slots.Take(1))
	case !is.Slots.Equal(s.Slots):
		return fmt.Errorf("the master of slot %s has slots %.200s now, and had %.200s when the import began", s.Slots.Take(1), is.Slots, s.Slots)
	}
	return nil
}

// Shards are what each shard of the source owns, by the lowest slot, and what their masters say; a server of its own is one. All masters
// are asked: who is not reached is an error, and so are slots that move.
func (s *Source) Shards(ctx context.Context) ([]redis.Outside, error) {
	is, err := s.node(s.Address).Outside(ctx)
	if err != nil {
		return nil, err
	}
	if !is.Cluster {
		return []redis.Outside{is}, nil
	}
	masters := slices.DeleteFunc(slices.Clone(is.Peers), func(p redis.Peer) bool { return p.Slots.IsEmpty() })
	slices.SortFunc(masters, func(a, b redis.Peer) int { return int(a.Slots.Ranges()[0].First) - int(b.Slots.Ranges()[0].First) })
	shards := make([]redis.Outside, len(masters))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(askAtOnce)
	for i, p := range masters {
		group.Go(func() error {
			if p.ID == is.ID {
				shards[i] = is
				return nil
			}
			found, err := s.visit(within, p)
			shards[i] = found.is
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var covered slots.Set
	for i, shard := range shards {
		switch {
		case shard.Open > 0:
			return nil, fmt.Errorf("%d slots move: wait until that is over", shard.Open)
		case !shard.Slots.Equal(masters[i].Slots):
			return nil, fmt.Errorf("nodes disagree about who owns slots %.200s: wait until they agree", masters[i].Slots)
		}
		covered = covered.Union(shard.Slots)
	}
	if missing := covered.Complement(); !missing.IsEmpty() {
		return nil, fmt.Errorf("slots %.200s have no master", missing)
	}
	return shards, nil
}

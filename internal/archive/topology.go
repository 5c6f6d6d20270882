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
	var now topology
	byMaster := map[string]int{}
	var covered slots.Set
	for _, m := range all {
		v := m.history.View
		if v.Role != redis.RoleMaster || v.Slots.IsEmpty() {
			continue
		}
		if len(v.Migrating)+len(v.Importing) > 0 {
			return topology{}, blocked(-1, "%d slots move", max(len(v.Migrating), len(v.Importing)))
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

// ask asks every instance that the first seed which answers knows of. One that does not answer is left out.
func (t Taking) ask(ctx context.Context) ([]member, error) {
	var errs []error
	for _, seed := range t.Seeds {
		h, err := t.Pool.Node(seed, t.Credentials).History(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return t.askPeers(ctx, seed, h.View.Peers), nil
	}
	return nil, blocked(-1, "no instance answers: %v", errors.Join(errs...))
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
		case p.Flags.Has(redis.FlagMyself):
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

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Rest is what tells at little cost whether anything happened to a healthy cluster: the health of each master, and the table of one of
// them, by which every instance is judged by another. A master knows which replicas are in sync with it. It is of one goroutine at a time.
type Rest struct {
	masters []snapshot.Instance
	health  []redis.Health  // of each
	teller  int             // of masters
	table   *snapshot.Redis // of which sameTable reads
}

// RestOf takes from a snapshot what Unchanged compares with; the table is of one of its masters, of each in turn. nil: an instance is
// unknown, or there is no master.
func RestOf(s *snapshot.Snapshot, turn int) *Rest {
	var r Rest
	var tellers []*snapshot.Redis
	for i := range s.Instances {
		in := s.Instances[i]
		switch told := in.Redis; {
		case told == nil:
			return nil
		case told.Master:
			in.Redis = nil
			r.masters, r.health, tellers = append(r.masters, in), append(r.health, healthOf(told)), append(tellers, told)
		}
	}
	if len(tellers) == 0 {
		return nil
	}
	r.teller = turn % len(tellers)
	told := tellers[r.teller]
	r.table = &snapshot.Redis{NodeID: told.NodeID, Master: true, Slots: told.Slots, Migrating: told.Migrating, Importing: told.Importing,
		Peers: told.Peers}
	return &r
}

func healthOf(master *snapshot.Redis) redis.Health {
	return redis.Health{Role: redis.RoleMaster, Replicas: master.Replicas, Loading: master.Loading,
		PersistenceError: master.PersistenceError}
}

// Due reports whether something has to be read again that is read by name.
func (o *Observer) Due(cluster *v1alpha1.RedisCluster, m *Memory) bool {
	_, known := m.access.Get()
	return known && cluster.AuthEnabled() && !o.fresh(m.access.Read()) ||
		m.certificate.tls != nil && m.usesTLS(cluster) && !o.freshCertificate(cluster, &m.certificate) ||
		m.config.name != "" && m.config.name == cluster.Spec.Template().Configmap && !o.fresh(m.config.read)
}

// inTurn is how many masters one goroutine asks, one after the other: those of a healthy cluster answer in no time.
const inTurn = 8

// Unchanged reports whether all masters of a cluster answer within a time, and say what they said; and how long they kept it waiting.
func (o *Observer) Unchanged(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, rest *Rest, timeout time.Duration) (
	unchanged bool, waited time.Duration) {
	began := o.now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	credentials := m.Credentials(cluster)
	ask := func(from, to int) error {
		for i := from; i < to; i++ {
			look := func() error { return o.look(ctx, rest, i, credentials) }
			if err := contain.Call(ctx, "look at "+rest.masters[i].Name, look); err != nil {
				return err
			}
		}
		return nil
	}
	masters := len(rest.masters)
	var others errgroup.Group
	others.SetLimit(describeAtOnce)
	for from := inTurn; from < masters; from += inTurn {
		others.Go(func() error { return ask(from, min(from+inTurn, masters)) })
	}
	err := ask(0, min(inTurn, masters))
	unchanged = others.Wait() == nil && err == nil
	return unchanged, held(o.now().Sub(began), masters)
}

// look asks a master for its health, and the one that is asked for its table for that; an error if either is not as it was.
func (o *Observer) look(ctx context.Context, rest *Rest, i int, credentials redis.Credentials) (err error) {
	in := &rest.masters[i]
	var said redis.Health
	var view redis.View
	if node := o.node(in, credentials); i == rest.teller {
		said, view, err = node.HealthAndTable(ctx)
	} else {
		said, err = node.Health(ctx)
	}
	switch {
	case err != nil:
		return err
	case said != rest.health[i],
		i == rest.teller && (announcedName(view) != in.DomainName || !sameTable(rest.table, fromView(view, &texts{}))):
		return fmt.Errorf("%s is not as it was", in.Name)
	}
	return nil
}

// sameTable reports whether two answers of an instance tell the same of the cluster; when it heard of whom last, they need not.
func sameTable(was, is *snapshot.Redis) bool {
	return was.NodeID == is.NodeID && was.Master == is.Master && was.Slots.Equal(is.Slots) &&
		maps.Equal(was.Migrating, is.Migrating) && maps.Equal(was.Importing, is.Importing) && maps.EqualFunc(was.Peers, is.Peers, samePeer)
}

func samePeer(a, b snapshot.Peer) bool {
	return a.ID == b.ID && a.IP == b.IP && a.Port == b.Port && a.Master == b.Master && a.MasterID == b.MasterID && a.Failed == b.Failed &&
		a.Suspected == b.Suspected && a.Handshake == b.Handshake && a.NoAddress == b.NoAddress && a.Connected == b.Connected &&
		a.Epoch == b.Epoch && a.Slots.Equal(b.Slots)
}

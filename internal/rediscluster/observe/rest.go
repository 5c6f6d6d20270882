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

// Rest is what tells at little cost whether anything happened to a healthy cluster: the health of each instance, and the table of one
// master, by which every instance is judged by another. All are asked at the first look. From then on masters are, who know which replicas
// are in sync with them, and one of the replicas, each in its turn. It is of one goroutine at a time.
type Rest struct {
	instances []snapshot.Instance
	health    map[string]redis.Health // by pod name
	replicas  map[string]int          // of each master those in sync at the first look
	master    int                     // of instances
	table     *snapshot.Redis         // of which sameTable reads
	turn      int
}

// RestOf takes from a snapshot what Unchanged compares with; the table is of one of its masters, of each in turn. nil: an instance is
// unknown, or there is no master.
func RestOf(s *snapshot.Snapshot, turn int) *Rest {
	r := &Rest{health: make(map[string]redis.Health, len(s.Instances)), master: -1}
	var masters []int
	for i := range s.Instances {
		in := s.Instances[i]
		if in.Redis == nil {
			return nil
		}
		r.health[in.Name] = healthOf(in.Redis)
		if in.Redis.Master {
			masters = append(masters, i)
		}
		in.Redis = nil
		r.instances = append(r.instances, in)
	}
	if len(masters) == 0 {
		return nil
	}
	r.master = masters[turn%len(masters)]
	told := s.Instances[r.master].Redis
	r.table = &snapshot.Redis{NodeID: told.NodeID, Master: true, Slots: told.Slots, Migrating: told.Migrating, Importing: told.Importing,
		Peers: told.Peers}
	return r
}

func healthOf(r *snapshot.Redis) redis.Health {
	h := redis.Health{Role: redis.RoleReplica, MasterLinkUp: r.MasterLinkUp, Loading: r.Loading, PersistenceError: r.PersistenceError}
	if r.Master {
		h.Role = redis.RoleMaster
	}
	return h
}

// Due reports whether something has to be read again that is read by name.
func (o *Observer) Due(cluster *v1alpha1.RedisCluster, m *Memory) bool {
	_, known := m.access.Get()
	return known && cluster.AuthEnabled() && !o.fresh(m.access.Read()) ||
		m.certificate.tls != nil && m.usesTLS(cluster) && !o.freshCertificate(cluster, &m.certificate) ||
		m.config.name != "" && m.config.name == cluster.Spec.Template().Configmap && !o.fresh(m.config.read)
}

// Unchanged reports whether all instances of a cluster answer within a time, and say what they said; and how long they kept it waiting.
func (o *Observer) Unchanged(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, rest *Rest, timeout time.Duration) (
	unchanged bool, waited time.Duration) {
	began := o.now()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	credentials := m.Credentials(cluster)
	looks := rest.next()
	said := make([]redis.Health, len(rest.instances))
	var asking errgroup.Group
	asking.SetLimit(describeAtOnce)
	for _, i := range looks {
		in := &rest.instances[i]
		asking.Go(func() error {
			return contain.Call(ctx, "look at "+in.Name, func() (err error) {
				said[i], err = o.look(ctx, in, credentials, rest, i == rest.master)
				return err
			})
		})
	}
	if unchanged = asking.Wait() == nil; unchanged {
		rest.looked(looks, said)
	}
	return unchanged, held(o.now().Sub(began), len(looks))
}

// next are the instances to ask now: see Rest.
func (r *Rest) next() (looks []int) {
	var replicas []int
	for i := range r.instances {
		if name := r.instances[i].Name; r.replicas == nil || r.health[name].Role == redis.RoleMaster {
			looks = append(looks, i)
		} else {
			replicas = append(replicas, i)
		}
	}
	if len(replicas) > 0 {
		looks = append(looks, replicas[r.turn%len(replicas)])
	}
	return looks
}

// looked notes that the instances said what they had said before.
func (r *Rest) looked(looks []int, said []redis.Health) {
	r.turn++
	if r.replicas != nil {
		return
	}
	r.replicas = map[string]int{}
	for _, i := range looks {
		r.replicas[r.instances[i].Name] = said[i].Replicas
	}
}

// look asks an instance for its health, and the master whose table counts for that; an error if either is not as it was.
func (o *Observer) look(ctx context.Context, in *snapshot.Instance, credentials redis.Credentials, rest *Rest, table bool) (
	said redis.Health, err error) {
	node := o.node(in, credentials)
	var view redis.View
	if table {
		said, view, err = node.HealthAndTable(ctx)
	} else {
		said, err = node.Health(ctx)
	}
	known, counted := rest.replicas[in.Name]
	is := said
	is.Replicas = 0
	switch {
	case err != nil:
		return said, err
	case is != rest.health[in.Name], counted && said.Replicas != known,
		table && (announcedName(view) != in.DomainName || !sameTable(rest.table, fromView(view, &texts{}))):
		return said, fmt.Errorf("%s is not as it was", in.Name)
	}
	return said, nil
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

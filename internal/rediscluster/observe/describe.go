// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// ask asks the instances for all that they alone know, and says how long they kept it waiting.
func (o *Observer) ask(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, s *snapshot.Snapshot,
	timeout time.Duration) time.Duration {
	credentials, settings := m.Credentials(cluster), settingNames(cluster, s.Config)
	whom, began := m.round(s), o.now()
	ctx, cancel := context.WithTimeout(ctx, whom.within(timeout))
	defer cancel()
	asked := o.describeAll(ctx, m, credentials, s, whom, timeout, settings)
	m.noteAnswers(s, asked, o.now())
	m.certificate.noteMissing(s)
	m.putGiven(s)
	m.noteWays(s)
	o.askAccess(ctx, m, credentials, s, timeout)
	o.askCertificates(ctx, m, credentials, s)
	o.countOpenKeys(ctx, credentials, s, timeout)
	o.weigh(ctx, cluster, m, s, timeout)
	o.askWhoListens(ctx, s)
	return held(o.now().Sub(began), whom.answered)
}

// askWhoListens tries whether anybody listens at the addresses of instances that are said to be stopped, when slots have no owner: a
// successor may have to be appointed then. Nobody is told anything.
func (o *Observer) askWhoListens(ctx context.Context, s *snapshot.Snapshot) {
	if !s.Formed || s.Owned().Len() == slots.Count {
		return
	}
	var group errgroup.Group
	group.SetLimit(describeAtOnce)
	for i := range s.Instances {
		if in := &s.Instances[i]; in.Stopped && !in.Ended && in.IP != "" && in.Redis == nil {
			group.Go(func() error {
				in.Refuses, in.Accepts = o.Redis.Refuses(ctx, in.Listeners()...)
				return nil
			})
		}
	}
	_ = group.Wait() // the functions return no error
}

// notAsked is the error of an instance that a reconciliation had no time for.
const notAsked = "it was not asked yet, because other instances of its cluster took too long to answer"

// describeAll asks instances for their views, several at a time, and returns who of those that were
// asked answered in time, by the UIDs of their pods.
func (o *Observer) describeAll(ctx context.Context, m *Memory, credentials redis.Credentials, s *snapshot.Snapshot, whom round,
	timeout time.Duration, settings []string) map[string]bool {
	for i := range s.Instances {
		in := &s.Instances[i]
		if in.Error = in.Waiting; in.Error == "" {
			in.Error = notAsked
		}
	}
	var mu sync.Mutex
	var shared texts
	asked := map[string]bool{}
	var first, silent errgroup.Group
	first.SetLimit(describeAtOnce)
	describe := func(in *snapshot.Instance) func() error {
		return func() error {
			if ctx.Err() != nil {
				return nil
			}
			began := o.now()
			o.describe(ctx, credentials, in, m.waysTo(in, credentials), timeout, settings, &shared)
			mu.Lock()
			defer mu.Unlock()
			asked[in.UID] = in.Redis != nil || o.now().Sub(began) < timeout/2 // a refusal costs no time
			return nil
		}
	}
	for _, in := range whom.silent {
		silent.Go(describe(in))
	}
	for _, in := range whom.first {
		first.Go(describe(in))
	}
	_, _ = first.Wait(), silent.Wait() // the functions return no error
	return asked
}

// describe asks one instance, in one of the ways, and notes which of them led to it. One that does not answer is Unknown, which is no
// error of the reconciliation.
func (o *Observer) describe(ctx context.Context, credentials redis.Credentials, in *snapshot.Instance, ways []snapshot.Way,
	timeout time.Duration, settings []string, shared *texts) {
	if in.Error = ""; len(ways) == 0 {
		in.Error = "it takes TLS, and is not asked without"
		return
	}
	err := contain.Call(ctx, "describe "+in.Name, func() error {
		began := o.now()
		view, err := o.firstView(ctx, credentials, in, ways, timeout, settings)
		if err != nil {
			return err
		}
		if name := announcedName(view); name != "" && name != in.DomainName {
			// The pod has moved on, and what answers may be another cluster's.
			return fmt.Errorf("%s answers at its address %s", name, in.IP)
		}
		in.Redis, in.Redirections = fromView(view, shared), view.Redirections
		in.Redis.AnsweredAt = o.now()
		in.Redis.AnsweredIn = in.Redis.AnsweredAt.Sub(began)
		return nil
	})
	if err != nil {
		in.Error = excerpt.Of(err.Error(), longestError)
		in.Refused = errors.Is(err, redis.ErrAuth)
	}
}

// longestError is how much is told of why an instance could not be asked.
const longestError = 400

// texts keep one copy of each text: every instance of a cluster names all the others.
type texts struct {
	mu    sync.Mutex
	known map[string]string
}

func (t *texts) one(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.known[text]; ok {
		return known
	}
	if t.known == nil {
		t.known = map[string]string{}
	}
	t.known[text] = text
	return text
}

// announcedName is the DNS name that an instance is started with, which is its pod's;
// empty when it announces none.
func announcedName(v redis.View) string {
	self, _ := v.Self()
	return self.Hostname
}

func fromView(v redis.View, shared *texts) *snapshot.Redis {
	r := &snapshot.Redis{
		NodeID: v.NodeID, Master: v.Role == redis.RoleMaster, MasterID: v.MasterID, Replicas: v.Replicas,
		MasterLinkUp: v.MasterLinkUp, MasterLinkDownFor: v.MasterLinkDownFor, MasterLinkLost: v.MasterLinkLost, MasterIP: v.MasterIP,
		Syncing: v.Syncing,
		Offset:  v.ReplicationOffset, FormerHistory: v.FormerHistory.ID, FormerOffset: v.FormerHistory.Offset, Keys: v.Keys,
		KeysWithTTL: v.KeysWithTTL, KeysWithFieldTTL: v.KeysWithFieldTTL,
		Version: v.Version, Engine: string(v.Engine),
		ClusterOK: v.ClusterState == redis.ClusterOK, Epoch: v.ConfigEpoch, NodeTimeout: v.NodeTimeout, Slots: v.Slots,
		Settings: v.Settings, UsedMemory: v.UsedMemory, MaxMemory: v.MaxMemory,
		AppendOnlySize: v.AppendOnlySize, Libraries: v.Libraries, Stats: v.Stats, Atomic: v.Atomic,
		SlowCommands:     v.SlowCommands,
		PersistenceError: v.PersistenceError, Unsaved: v.Unsaved, Rewriting: v.Rewriting, Rewritten: v.Rewritten,
		Loading: v.Loading, LoadErrors: v.LoadErrors,
		Migrating: v.Migrating, Importing: v.Importing, Peers: make(map[string]snapshot.Peer, len(v.Peers)),
	}
	for _, job := range v.SlotMigrations {
		r.Jobs = append(r.Jobs, snapshot.Job{Slots: job.Slots, SourceID: job.SourceID, TargetID: job.TargetID, HandingOver: job.HandingOver})
	}
	for _, p := range v.Peers {
		if p.ID == v.NodeID {
			continue
		}
		id := shared.one(p.ID)
		r.Peers[id] = snapshot.Peer{
			ID: id, IP: shared.one(p.IP), Port: p.Port, Master: p.Flags.Has(redis.FlagMaster), MasterID: shared.one(p.MasterID),
			Failed: p.Flags.Has(redis.FlagFailed), Suspected: p.Flags.Has(redis.FlagPossiblyFailed),
			Handshake: p.Flags.Has(redis.FlagHandshake), NoAddress: p.Flags.Has(redis.FlagNoAddress), Connected: p.LinkConnected, Slots: p.Slots,
			LastPong: p.PongReceived, Epoch: p.ConfigEpoch,
		}
	}
	return r
}

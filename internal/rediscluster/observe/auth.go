// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func (o *Observer) reader() access.Reader { return o.readerFrom(o.Secrets) }

func (o *Observer) readerFrom(from client.Reader) access.Reader {
	return access.Reader{Client: from, ServiceAccount: o.ServiceAccount}
}

// fresh reports whether what was read by name need not be read again.
func (o *Observer) fresh(read byname.Reading) bool {
	return read.Fresh(o.Watched, o.now(), cmp.Or(o.Age, byname.Age))
}

// Credentials are what the instances of a cluster accept, as last observed.
func (m *Memory) Credentials(cluster *v1alpha1.RedisCluster) redis.Credentials {
	var credentials redis.Credentials
	if m.usesTLS(cluster) {
		credentials.TLS = m.certificate.tls
	}
	if state := m.Access(); state != nil && cluster.AuthEnabled() {
		credentials.Password, credentials.Other = state.Password, state.Other()
	}
	return credentials
}

func (o *Observer) auth(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) (snapshot.Auth, error) {
	if !cluster.AuthEnabled() {
		return snapshot.Auth{Known: true}, nil
	}
	last, known := m.access.Get()
	if known && last.Generation == cluster.Generation && o.fresh(m.access.Read()) {
		return m.authOf(last), nil
	}
	reads := &byname.Reads{Reader: o.Secrets}
	reading, err := o.readerFrom(reads).Read(ctx, cluster)
	switch {
	case err != nil && known:
		return m.authOf(last), nil // the API server is away, and the password goes on to be right
	case err != nil:
		return snapshot.Auth{}, fmt.Errorf("read the Secret of the password: %w", err)
	case reading.State == nil && !reading.Absent && known:
		last.AskedProblem = reading.Problem // instances accept what they accepted, all the same
		reading = last
	case reading.State == nil:
		m.access.Expire()
		return snapshot.Auth{Absent: reading.Absent, Problem: reading.Problem}, nil
	}
	m.access.Put(reading, reads.At(o.now()))
	return m.authOf(reading), nil
}

func (m *Memory) authOf(r access.Reading) snapshot.Auth {
	auth := snapshot.Auth{
		Known:  true,
		Wanted: &snapshot.Access{Passwords: r.State.Accepts(), Link: access.Digest(r.State.Password), Users: r.State.UsersDigest()},
		Due:    r.State.Due(r.Asked), UsersDue: r.State.UsersDue(r.Asked), AskedProblem: r.AskedProblem,
		Changing: r.State.Stage(), ChangedAt: r.State.ChangedAt,
	}
	if why := m.access.Refused(r.Asked.Users); why != "" {
		auth.UsersDue, auth.AskedProblem = false, why
	}
	return auth
}

// askAccess asks every instance for its ACL users. What one does not answer is not known.
func (o *Observer) askAccess(ctx context.Context, m *Memory, credentials redis.Credentials, s *snapshot.Snapshot, timeout time.Duration) {
	if s.Auth.Wanted == nil {
		return
	}
	last, _ := m.access.Get()
	var group errgroup.Group
	group.SetLimit(describeAtOnce)
	for _, in := range s.Reachable() {
		group.Go(func() error {
			return contain.Call(ctx, "ask "+in.Name+" for its ACL users", func() error {
				ctx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				shown, err := o.node(in, credentials).Access(ctx)
				if err != nil {
					return err
				}
				live := access.LiveRights(s.Archive != nil, in.Redis.Engine, in.Redis.Version)
				in.Redis.Access = &snapshot.Access{Passwords: shown.Passwords, Users: last.State.ShownUsers(shown.Users, live), Live: live}
				if shown.LinkUser == access.DefaultUser {
					in.Redis.Access.Link = shown.Link
				}
				return nil
			})
		})
	}
	_ = group.Wait() // what one does not answer is not known
}

// expireRefusedPassword makes the next reconciliation read the Secret again.
func (m *Memory) expireRefusedPassword(s *snapshot.Snapshot) {
	for i := range s.Instances {
		if s.Instances[i].Refused {
			m.access.Expire()
			return
		}
	}
}

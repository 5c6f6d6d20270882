// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// node connects to an instance in the way that led to it.
func (o *Observer) node(in *snapshot.Instance, credentials redis.Credentials) *redis.Node {
	return o.Redis.Node(in.Address(), credentials.Plainly(in.Way.Plain))
}

// trustedSecret is the Secret that a pod has what it trusts from; false: the pod has no files of a certificate.
func trustedSecret(pod *corev1.Pod) (string, bool) {
	for _, v := range pod.Spec.Volumes {
		if v.Name != "config" || v.Projected == nil {
			continue
		}
		for _, p := range v.Projected.Sources {
			if p.Secret != nil && slices.ContainsFunc(p.Secret.Items, func(k corev1.KeyToPath) bool { return k.Path == redisconf.TLSTrustedFile }) {
				return p.Secret.Name, true
			}
		}
	}
	return "", false
}

// exporterShows reports whether the exporter of a pod, if it has one, shows Redis a certificate.
func exporterShows(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "exporter" }) ||
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volumeShown })
}

// volumeShown is the volume with what the exporter shows.
const volumeShown = "redis-certificate"

// noteMounted notes what pods have of TLS, whatever the status says: it may have been lost.
func (m *Memory) noteMounted(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) {
	m.mounted = slices.ContainsFunc(s.Instances, func(in snapshot.Instance) bool { return in.HasCertificate })
	m.plainly = cluster.Spec.TLS != nil && cluster.TLSMode() == v1alpha1.TLSDisabled && s.TLSStage == redisconf.TLSPlain
}

// usesTLS reports whether the Secrets of spec.tls are needed.
func (m *Memory) usesTLS(cluster *v1alpha1.RedisCluster) bool {
	return cluster.UsesTLS() || cluster.Spec.TLS != nil && m.mounted
}

// waysTo are those that may lead to an instance, the likeliest first; none while what to trust is not known and it may take TLS only: no
// password is told in its place to whoever has its address. What its pod can take decides: one that has no certificate takes
// plain connections only. One of TLS alone is never asked without it; one that takes both may be, when nothing else leads to it, because
// it may have started with a redis.conf of before. The way that led to it last comes first.
func (m *Memory) waysTo(in *snapshot.Instance, credentials redis.Credentials) []snapshot.Way {
	usual, second, plain := snapshot.Way{}, snapshot.Way{SecondPort: true}, snapshot.Way{Plain: true}
	var ways []snapshot.Way
	switch {
	case credentials.TLS == nil && in.HasCertificate && (!m.plainly || !in.TwoPorts):
		return nil
	case credentials.TLS == nil:
		return []snapshot.Way{usual}
	case !in.HasCertificate:
		return []snapshot.Way{plain}
	case in.TwoPorts:
		ways = []snapshot.Way{second, plain, usual}
	default:
		ways = []snapshot.Way{usual, second}
	}
	last, known := m.ways[in.UID]
	if !known {
		return ways
	}
	return append([]snapshot.Way{last}, slices.DeleteFunc(ways, func(w snapshot.Way) bool { return w == last })...)
}

// firstView asks an instance in one way after the other. What answers as Redis does is the way, whatever it says. The likeliest way may
// take the timeout and each other half of it, so that a port whose connections are dropped leaves time for the rest.
func (o *Observer) firstView(ctx context.Context, credentials redis.Credentials, in *snapshot.Instance, ways []snapshot.Way,
	timeout time.Duration, settings []string) (view redis.View, err error) {
	for i, way := range ways {
		in.Way = way
		within := timeout
		if i > 0 {
			within = timeout / 2
		}
		said, failed := o.viewWithin(ctx, credentials, in, within, settings)
		if failed == nil || answered(failed) {
			if way.Plain && err != nil {
				in.TLSError = excerpt.Of(err.Error(), longestError)
			}
			return said, failed
		}
		if i == 0 {
			err = failed
		}
		if ctx.Err() != nil {
			break
		}
	}
	in.Way = ways[0]
	return redis.View{}, err
}

// viewWithin asks an instance in the way that is noted.
func (o *Observer) viewWithin(ctx context.Context, credentials redis.Credentials, in *snapshot.Instance, timeout time.Duration,
	settings []string) (redis.View, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return o.node(in, credentials).Describe(ctx, settings...)
}

// answered reports whether a node said what the error is.
func answered(err error) bool {
	return errors.Is(err, redis.ErrRefused) || errors.Is(err, redis.ErrAuth) || errors.Is(err, redis.ErrLoading)
}

// noteWays remembers how instances were reached. One that takes TLS as well is not asked without it again.
func (m *Memory) noteWays(s *snapshot.Snapshot) {
	ways := map[string]snapshot.Way{}
	for _, in := range s.Reachable() {
		if stage := in.TLSStage(); in.Way != (snapshot.Way{}) && (!in.Way.Plain || stage == redisconf.TLSPlain) {
			ways[in.UID] = in.Way
		}
	}
	m.ways = ways
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"net"
	"strconv"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// Address is where the Redis of an instance with that IP usually listens.
func Address(ip string) string { return Way{}.Address(ip) }

// Way is how an instance's Redis is reached. The zero value is the usual one: port 6379, with TLS where the cluster has TLS.
type Way struct {
	// SecondPort: the port beside 6379 that takes TLS. Plain: without TLS, whatever the cluster has.
	SecondPort, Plain bool
}

// Address is where an instance with that IP listens.
func (w Way) Address(ip string) string {
	port := v1alpha1.PortRedis
	if w.SecondPort {
		port = v1alpha1.PortRedisTLS
	}
	return net.JoinHostPort(ip, strconv.Itoa(int(port)))
}

// Listeners are the addresses at which the instance's Redis may listen to clients; with a certificate it may be either of two.
func (in *Instance) Listeners() []string {
	if !in.HasCertificate {
		return []string{Address(in.IP)}
	}
	return []string{Address(in.IP), Way{SecondPort: true}.Address(in.IP)}
}

// TLSStage is the stage of TLS that the running instance shows; of one of a cluster without TLS, TLSUnknown.
func (in *Instance) TLSStage() redisconf.TLSStage {
	if in.Redis == nil {
		return redisconf.TLSUnknown
	}
	return redisconf.TLSStageOf(in.Redis.Settings)
}

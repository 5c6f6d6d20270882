// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Withheld says why no StatefulSet may be written now; nil when every Secret that one names
// was read just now and may go into pods. Who may write RedisClusters chooses the images that
// see it, and may not read every Secret. What was refused is looked at again within a minute.
func (o *Observer) Withheld(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) *snapshot.Withheld {
	if cluster.AuthEnabled() {
		why, err := o.reader().Mountable(ctx, cluster)
		if err != nil {
			why = fmt.Sprintf("the Secret of the password cannot be read now: %v", err)
		}
		if why != "" {
			m.access.Expire() // so that the next reconciliation sees it, and makes it if it is gone
			return &snapshot.Withheld{Cause: "PasswordUnavailable", Message: why}
		}
	}
	if !cluster.UsesTLS() {
		return nil
	}
	c := &m.certificate
	if c.problem == "" || !c.fresh(cluster, o.now()) {
		if err := o.lookAtCertificate(ctx, cluster, c); err != nil {
			return &snapshot.Withheld{Cause: "CertificateUnavailable", Message: fmt.Sprintf("the Secrets of spec.tls cannot be read now: %v", err)}
		}
	}
	if !c.denied && c.names == namesOf(cluster) {
		return nil // a certificate that expired is no reason not to put back what was there
	}
	return &snapshot.Withheld{Cause: "CertificateUnavailable", Message: c.problem}
}

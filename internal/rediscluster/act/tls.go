// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// reloadCertificates makes instances read their certificate again. One whose files are
// changed later shows the old one still when it is looked at next.
func (a *Actor) reloadCertificates(ctx context.Context, s Subject, step plan.ReloadCertificates) error {
	return each(ctx, step.On, func(ctx context.Context, on plan.Target) error {
		node, err := a.identified(ctx, s, on)
		if err != nil {
			return err
		}
		if err := node.ReloadCertificates(ctx, redisconf.TLSCertificatePath); err != nil {
			return fmt.Errorf("load the certificate of %s: %w", on.Pod, err)
		}
		return nil
	})
}

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

// setTLS takes instances to another stage of TLS, each by one command: all of its settings change, or none. All are identified before
// the first is told, so that they change within moments of each other, and nobody is told when one is not there.
func (a *Actor) setTLS(ctx context.Context, s Subject, step plan.SetTLS) error {
	targets := make([]plan.Target, len(step.Changes))
	for i, change := range step.Changes {
		targets[i] = change.On
	}
	failed := a.identify(ctx, s, targets)
	for _, t := range targets {
		if err := failed[t]; err != nil {
			return err
		}
	}
	return each(ctx, step.Changes, func(ctx context.Context, change plan.InstanceConfig) error {
		if err := a.node(s, change.On).ConfigSetAll(ctx, change.Settings); err != nil {
			return fmt.Errorf("change TLS of %s: %w", change.On.Pod, err)
		}
		return nil
	})
}

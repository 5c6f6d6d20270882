// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/manager"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// An operator that was stopped for longer than its lease ends when it finds that another one has it, and does not work beside that
// until its renew deadline is over.
func TestDeposedLeaderEnds(t *testing.T) {
	o := outside()
	o.Controllers = []string{"crontab"}
	o.LeaderElection.Enabled, o.LeaderElection.ID, o.LeaderElection.Namespace = true, "deposed", "default"
	o.LeaderElection.LeaseDuration, o.LeaderElection.RenewDeadline, o.LeaderElection.RetryPeriod = 2*time.Hour, time.Hour, time.Second
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("it works on"))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, rest.CopyConfig(restConfig), o, shared.Nowhere) }()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "deposed"}}
	eventually(t, "it does not lead", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity = ptr.To("another")
		return kube.Update(ctx, lease)
	})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "another operator has the lease by now") {
		t.Errorf("it ended with: %v (%v)", err, context.Cause(ctx))
	}
}

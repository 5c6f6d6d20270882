// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"
	"testing/synctest"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/test/crash"
)

// A switchover that a person asks for and that cannot be is tried once: the request is taken away, and the cluster is ready again.
func TestASwitchoverThatCannotBeIsTriedOnce(t *testing.T) {
	for _, fails := range []string{"CLUSTER SAVECONFIG", "CLUSTER FAILOVER"} {
		t.Run(fails, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { switchoverThatFails(t, fails) })
		})
	}
}

func switchoverThatFails(t *testing.T, fails string) {
	t.Helper()
	s := newSimulation(t, 1, 2)
	s.converge()
	s.watch(&crash.Killer{})
	askForSwitchover(s)
	before, tries := s.master(0), 0
	s.world.OnCommand(func(n *redistest.Node, args []string) {
		if strings.HasPrefix(strings.Join(args, " "), fails) {
			tries++
			s.world.FailNext(n, fails, redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR No space left on device"})
		}
	})
	s.converge()
	if s.cluster.Annotations[v1alpha1.AnnotationSwitchover] != "" || tries != 1 || s.master(0) != before {
		s.fail("tried %d times, %s is the master, and the annotations are %v", tries, s.master(0), s.cluster.Annotations)
	}
	s.wantHealthy()
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// crashed is what became of an installation in the midst of which the operator was killed.
type crashed struct {
	Contender string  `json:"contender"`
	CRs       int     `json:"crs"`
	Share     float64 `json:"share"`   // of the custom resources had settled when the operator was killed
	Settled   int     `json:"settled"` // how many that were
	Converged int     `json:"converged"`
	Seconds   float64 `json:"seconds"` // from the restart until all had converged, or the limit
	// Stuck counts the custom resources that did not converge, by the state of their last release.
	Stuck map[string]int `json:"stuck,omitempty"`
}

// newMoments returns a source of random shares of an installation, between 2 and 98 %.
func newMoments(seed int64) func() float64 {
	random := rand.New(rand.NewSource(seed)) //nolint:gosec // not a secret
	return func() float64 { return 0.02 + 0.96*random.Float64() }
}

// crash kills a contender when a share of its custom resources has settled, starts it again, and sees how many converge.
func crash(ctx context.Context, s *server, o options, c contender, share float64) (result crashed, err error) {
	result = crashed{Contender: c.name, CRs: o.crashCRs, Share: share}
	t, end, err := s.begin(ctx, o, c, o.crashCRs)
	if err != nil {
		return result, err
	}
	defer func() {
		if endErr := end(); err == nil {
			err = endErr
		}
	}()
	settled := func(name string) bool { return t.world.settled(name, firstText) }
	created := make(chan error, 1)
	go func() { created <- t.create(ctx) }()
	left, err := awaitDown(ctx, t.names, settleLimit, o.crashCRs-int(share*float64(o.crashCRs)), settled)
	if err != nil {
		return result, err
	}
	t.operator.Kill()
	result.Settled = o.crashCRs - len(left)
	if err := <-created; err != nil {
		return result, err
	}
	began := time.Now()
	successor, err := t.start(ctx)
	if err != nil {
		return result, err
	}
	t.operator = successor
	if left, err = await(ctx, left, o.convergence, settled); err != nil {
		return result, err
	}
	result.Seconds, result.Converged = time.Since(began).Seconds(), o.crashCRs-len(left)
	progress("%s: killed at %d of %d; %d converged within %.1f s", c.name, result.Settled, o.crashCRs, result.Converged, result.Seconds)
	if len(left) > 0 {
		result.Stuck, err = s.releaseStates(ctx, t.namespace, left)
	}
	return result, err
}

// releaseStates counts custom resources by the state of their last release, as Helm's storage has it.
func (s *server) releaseStates(ctx context.Context, namespace string, names []string) (map[string]int, error) {
	states := map[string]int{}
	for _, name := range names {
		list, err := s.typed.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + name})
		if err != nil {
			return nil, err
		}
		state, last := "no release", -1
		for _, secret := range list.Items {
			var version int
			if _, err := fmt.Sscan(secret.Labels["version"], &version); err != nil {
				return nil, fmt.Errorf("secret %s: label version: %w", secret.Name, err)
			}
			if version > last {
				state, last = secret.Labels["status"], version
			}
		}
		states[state]++
	}
	return states, nil
}

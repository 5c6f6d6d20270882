// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"middleware.hc.cn/operator/internal/fleet"
)

const (
	// turnsAnnotation has the turns, as JSON.
	turnsAnnotation = "redis.middleware.hc.cn/turns"
	// turnsWithin bounds a request: others wait meanwhile.
	turnsWithin = 5 * time.Second
)

// turns is where replicas that divide RedisClusters write down whose turn they give: in an annotation of a Lease, on condition that nobody
// has written it since it was read.
type turns struct {
	leases typedcoordinationv1.LeaseInterface
	name   string
	// revision is what the turns are for: those for another one are over.
	revision string
}

// written is what the annotation has.
type written struct {
	Revision string        `json:"revision"`
	Given    []fleet.Given `json:"given"`
}

// turns makes the ledger for a revision; nil: this process decides alone.
func (w wiring) turns() func(revision string) fleet.Ledger {
	if w.shards == nil {
		return nil
	}
	return func(revision string) fleet.Ledger {
		return turns{w.leases.client.Leases(w.leases.namespace), turnsLease(w.options.leaseName()), revision}
	}
}

func turnsLease(name string) string { return name + "-turns" }

// Read implements fleet.Ledger.
func (t turns) Read() (given []fleet.Given, version string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), turnsWithin)
	defer cancel()
	lease, err := t.leases.Get(ctx, t.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read Lease %s: %w", t.name, err)
	}
	var is written
	if text, has := lease.Annotations[turnsAnnotation]; has {
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			return nil, "", fmt.Errorf("read the annotation %s of Lease %s, which may be deleted: %w", turnsAnnotation, t.name, err)
		}
	}
	if is.Revision != t.revision {
		is.Given = nil
	}
	return is.Given, lease.ResourceVersion, nil
}

// Write implements fleet.Ledger.
func (t turns) Write(version string, given []fleet.Given) (bool, error) {
	text, err := json.Marshal(written{t.revision, given})
	if err != nil {
		return false, fmt.Errorf("encode the turns: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), turnsWithin)
	defer cancel()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: t.name, ResourceVersion: version,
		Annotations: map[string]string{turnsAnnotation: string(text)}}}
	if version == "" {
		_, err = t.leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		_, err = t.leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err): // somebody was first
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write Lease %s: %w", t.name, err)
	}
	return true, nil
}

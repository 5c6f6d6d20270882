// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	// turnsAnnotation, before the digest of a kind, has the turns of its objects, as JSON.
	turnsAnnotation = "turns.middleware.hc.cn/"
	// turnsWithin bounds a request: others wait meanwhile.
	turnsWithin = 5 * time.Second
)

// turns is where replicas that divide objects of a kind write down whose turn they give: in an annotation of a Lease, on condition that
// nobody has written that since it was read.
type turns struct {
	leases           typedcoordinationv1.LeaseInterface
	name, annotation string
	// revision is what the turns are for: those for another one are over.
	revision string
}

// written is what the annotation has.
type written struct {
	Revision string        `json:"revision"`
	Given    []fleet.Given `json:"given"`
}

// turns makes the ledger of a kind for a revision; nil: this process decides alone.
func (w wiring) turns() func(kind, revision string) fleet.Ledger {
	if w.shards == nil {
		return nil
	}
	return func(kind, revision string) fleet.Ledger {
		return turnsOf(w.leases.client.Leases(w.leases.namespace), turnsLease(w.options.leaseName()), kind, revision)
	}
}

func turnsOf(leases typedcoordinationv1.LeaseInterface, lease, kind, revision string) turns {
	sum := sha256.Sum256([]byte(kind))
	return turns{leases, lease, turnsAnnotation + hex.EncodeToString(sum[:8]), revision}
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
	if text, has := lease.Annotations[t.annotation]; has {
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			return nil, "", fmt.Errorf("read the annotation %s of Lease %s, which may be deleted: %w", t.annotation, t.name, err)
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
	lease, err := t.leases.Get(ctx, t.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && version == "":
		_, err = t.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: t.name,
			Annotations: map[string]string{t.annotation: string(text)}}}, metav1.CreateOptions{})
	case err == nil && version != "" && lease.ResourceVersion == version:
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, t.annotation, string(text))
		_, err = t.leases.Update(ctx, lease, metav1.UpdateOptions{})
	case err == nil:
		return false, nil
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err): // somebody was first
		return false, nil
	case err != nil:
		return false, fmt.Errorf("write Lease %s: %w", t.name, err)
	}
	return true, nil
}

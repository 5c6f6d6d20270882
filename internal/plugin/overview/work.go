// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Progress is something that is under way.
type Progress struct {
	What string `json:"what"`
	// Percent is how much of it is done; absent where that is not known.
	Percent *int   `json:"percent,omitempty"`
	Message string `json:"message"`
}

// work is what is under way: moving slots, following the load, a rollout, a change of the password, a restore, an import.
func work(seen Seen) []Progress {
	status := &seen.Cluster.Status
	var all []Progress
	if m := status.Migration; m != nil {
		all = append(all, migration(m, seen.Now))
	}
	if a := status.Autoscale; a != nil {
		all = append(all, Progress{What: "autoscale", Message: autoscaling(a, seen.Now)})
	}
	if b := status.Balance; b != nil && b.Reason != "" {
		all = append(all, Progress{What: "balance", Message: b.Reason})
	}
	if r := status.Rollout; r != nil && r.Total > 0 {
		all = append(all, Progress{What: "rollout", Percent: part(int64(r.Updated), int64(r.Total)),
			Message: fmt.Sprintf("%d of %s have the new template, last progress %s ago", r.Updated, count(int(r.Total), "instance"),
				age(r.LastProgressTime.Time, seen.Now))})
	}
	if p := status.PasswordChange; p != nil {
		message := p.Stage
		if !p.Until.IsZero() {
			message += ", ends at the earliest " + left(p.Until.Time, seen.Now)
		}
		if p.Message != "" {
			message += ": " + p.Message
		}
		all = append(all, Progress{What: "password", Message: message})
	}
	if r := status.Restoring; r != nil {
		all = append(all, transfer("restore", r, seen.Now))
	}
	if i := status.Import; i != nil {
		message := string(i.Phase) + " from " + i.Address
		if i.LagBytes != nil {
			message += ", " + Size(*resource.NewQuantity(*i.LagBytes, resource.BinarySI)) + " behind"
		}
		all = append(all, Progress{What: "import", Message: message})
	}
	return all
}

// autoscaling is how many shards there are to be, and how many the load asks for.
func autoscaling(a *v1alpha1.AutoscaleStatus, now time.Time) string {
	message := count(int(a.Shards), "shard")
	if a.Window != "" {
		message += fmt.Sprintf(" (window %s: from %d to %d)", a.Window, a.MinShards, a.MaxShards)
	}
	switch {
	case a.Wanted == nil:
		return message + ", what the load asks for is not known: " + a.Reason
	case *a.Wanted == a.Shards:
		return message + ": " + a.Reason
	}
	message += fmt.Sprintf(", the load asks for %d", *a.Wanted)
	if a.NotBefore != nil {
		message += ", " + left(a.NotBefore.Time, now) + " at the earliest"
	}
	return message + ": " + a.Reason
}

func migration(m *v1alpha1.MigrationStatus, now time.Time) Progress {
	p := Progress{What: "slots", Message: fmt.Sprintf("%d of %s left to move, %d → %d shards", m.SlotsLeft, count(int(m.SlotsTotal), "slot"),
		m.FromShards, m.ToShards)}
	if m.SlotsTotal > 0 {
		p.Percent = part(int64(m.SlotsTotal-m.SlotsLeft), int64(m.SlotsTotal))
	}
	if m.Method != "" {
		p.Message += ", " + string(m.Method)
	}
	if m.SlotsPerSecond > 0 {
		p.Message += fmt.Sprintf(", %d/s", m.SlotsPerSecond)
	}
	if m.EstimatedEndTime != nil {
		p.Message += ", done " + left(m.EstimatedEndTime.Time, now)
	}
	return p
}

func transfer(what string, t *v1alpha1.TransferProgress, now time.Time) Progress {
	p := Progress{What: what, Message: t.Stage + ": " + Size(*resource.NewQuantity(t.Bytes, resource.BinarySI))}
	if t.ExpectedBytes > 0 {
		p.Message += " of " + Size(*resource.NewQuantity(t.ExpectedBytes, resource.BinarySI))
	}
	if t.Percent != nil {
		percent := int(*t.Percent)
		p.Percent = &percent
	}
	if t.EstimatedEnd != nil {
		p.Message += ", done " + left(t.EstimatedEnd.Time, now)
	}
	return p
}

func part(done, all int64) *int {
	percent := int(min(max(done*100/all, 0), 100))
	return &percent
}

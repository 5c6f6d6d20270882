// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/shell"
	"middleware.hc.cn/operator/internal/watches"
)

// TypeUpgraded tells of a resource that took, or is to take, what is new in the operator in its turn. The words are those of RedisClusters.
const (
	TypeUpgraded = "Upgraded"

	ReasonUpToDate       = "UpToDate"
	ReasonUpgrading      = "Upgrading"
	ReasonWaitsForTurn   = "WaitsForTurn"
	ReasonUpgradeStopped = "UpgradeStopped"
)

const (
	// leastShare is how many of a hundred resources of a kind a wave has at least: with ten at once a large fleet would take days.
	leastShare = 5
	// givenUp is after how long a resource that is not ready waits no longer: what is new may be what mends it.
	givenUp = 10 * time.Minute
	// askEach is how often a resource asks for its turn for each that waits, so that those who ask take a bounded share of the processor,
	// within askSoonest and askLatest.
	askEach, askSoonest, askLatest = 10 * time.Millisecond, 5 * time.Second, 2 * time.Minute
)

// waves are how a change that only the operator made reaches the resources of a kind. The zero value lets all take it at once.
type waves struct {
	fleet *fleet.Fleet
	// chart is that of Desired.
	chart  string
	member func(*unstructured.Unstructured) fleet.Member
}

// inWaves sets the waves up that the options ask for.
func (r *Reconciler) inWaves(logger logr.Logger) (err error) {
	if r.waves.chart, err = identityOf(r.chart, r.entry, r.options); err != nil || r.options.Waves.Canaries <= 0 {
		return err
	}
	r.waves.member = func(cr *unstructured.Unstructured) fleet.Member {
		if !r.entry.Selector.Matches(labelSet(cr)) {
			return fleet.Member{UID: cr.GetUID()}
		}
		return memberOf(cr, r.waves.chart)
	}
	options, kind := r.options.Waves, r.gvk.GroupKind().String()
	options.Share = leastShare
	var ledger fleet.Ledger
	if r.options.Turns != nil {
		ledger = r.options.Turns(kind, r.waves.chart)
	}
	r.waves.fleet = &fleet.Fleet{Options: options, Now: r.options.Now, Ledger: ledger, Load: r.members,
		Told: func(v fleet.Verdict) {
			logger.Info("Objects of a chart kind take what is new in the operator", "kind", kind, "fleet", v.String())
			metrics.Fleet{Kind: kind, Waiting: v.Waiting, Upgrading: v.Upgrading, Done: v.Done, Failed: v.Failed}.Set()
		}}
	return nil
}

// members reads how far all resources are from the cache.
func (r *Reconciler) members() (members []fleet.Member, err error) {
	err = metrics.Each(context.Background(), r.reader, shell.ListOf(r.gvk), func(o client.Object) {
		if cr, is := o.(*unstructured.Unstructured); is {
			if m := r.waves.member(cr); m.State != "" {
				members = append(members, m)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("list resources of kind %s: %w", r.gvk.Kind, err)
	}
	return members, nil
}

func (w waves) report(cr *unstructured.Unstructured) {
	if w.fleet != nil {
		w.fleet.Report(w.member(cr))
	}
}

func (w waves) forget(uid types.UID) {
	if w.fleet != nil {
		w.fleet.Forget(uid)
	}
}

// identityOf identifies a chart and what the operator gives it besides the spec of a resource.
func identityOf(c *chart.Chart, entry watches.Watch, o Options) (string, error) {
	given := map[string]any{"overrides": entry.OverrideValues}
	if entry.ProxyVariables != "" {
		given["proxy"] = o.Proxy
	}
	digest, err := c.DigestFor(given, chart.Release{}, chart.Capabilities{})
	if err != nil {
		return "", fmt.Errorf("identify the chart of %s: %w", entry.Kind, err)
	}
	return digest[:16], nil
}

// specOf identifies the spec of a resource; empty: it cannot be told.
func specOf(cr *unstructured.Unstructured) string {
	text, err := json.Marshal(cr.Object["spec"])
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// madeBy says what a release is to be made by.
func (r *Reconciler) madeBy(cr *unstructured.Unstructured, seen Snapshot, d *Desired) {
	d.InWaves, d.Chart, d.Spec = r.waves.fleet != nil && !r.noTurns.Load(), r.waves.chart, seen.Deployed.Spec
	if seen.outdated(d.Digest) || seen.Deployed.Chart != d.Chart {
		d.Spec = specOf(cr)
	}
}

// held reports whether a release that is outdated waits for its turn: its author did not change it, and the operator has another chart.
// It does not wait if somebody changed or deleted one of its objects, which only the new chart puts back, nor if it has not been ready
// for long.
func (d Desired) held(seen Snapshot, now time.Time) bool {
	is := seen.Deployed
	onlyOurs := is.Digest != "" && is.Chart != "" && is.Chart != d.Chart && is.Spec == d.Spec && d.Spec != ""
	hasTurn := is.Turn.Chart == d.Chart && is.Turn.Spec == d.Spec
	broken := seen.Ready == nil || seen.Ready.Status != metav1.ConditionTrue && now.Sub(seen.Ready.LastTransitionTime.Time) >= givenUp
	return d.InWaves && onlyOurs && !hasTurn && !broken && len(seen.Drifted) == 0 && seen.Hooks.Event == "" && !seen.Deleting && !seen.Paused
}

// turn asks whether it is the turn of a resource. One that is not ready does not ask: the change would be blamed for it.
func (r *Reconciler) turn(cr *unstructured.Unstructured, seen Snapshot) (Step, error) {
	if seen.Ready == nil || seen.Ready.Status != metav1.ConditionTrue {
		return TakeTurn{Why: "it takes its turn when it is ready", Again: askSoonest}, nil
	}
	wave, has, verdict, err := r.waves.fleet.Ask(r.waves.member(cr))
	if err != nil {
		return nil, err
	}
	if has {
		return TakeTurn{Wave: wave, Again: goOn}, nil
	}
	told := r.memory.Get(cr.GetUID()).told.Next(verdict, cr.GetNamespace(), r.options.Now())
	r.memory.Update(cr.GetUID(), func(m *memory) { m.told = told })
	return TakeTurn{Stopped: told.Stopped, Why: told.Why, Again: min(max(time.Duration(verdict.Waiting)*askEach, askSoonest), askLatest)}, nil
}

// turnOf is the turn after a step: it is over when the resource is ready with what it took.
func (e effect) turnOf(readiness []metav1.Condition, now time.Time) Turn {
	t := e.deployed.Turn
	behind := e.lagging || slices.ContainsFunc(e.children, func(c Child) bool { return c.Behind })
	if t.Chart != "" && t.Chart == e.deployed.Chart && t.DoneAt.IsZero() && !behind && meta.IsStatusConditionTrue(readiness, TypeReady) {
		t.DoneAt = now.UTC()
	}
	return t
}

// upgradedCondition tells of waves those who took part in one.
func upgradedCondition(cr *unstructured.Unstructured, done effect) []metav1.Condition {
	step, turns := done.step.(TakeTurn)
	of := done.deployed
	var c metav1.Condition
	switch {
	case turns && step.Wave == 0 && step.Stopped:
		c = conditions.Condition(TypeUpgraded, metav1.ConditionFalse, ReasonUpgradeStopped, step.Why)
	case turns && step.Wave == 0:
		c = conditions.Condition(TypeUpgraded, metav1.ConditionFalse, ReasonWaitsForTurn, step.Why)
	case done.chart == "":
		return nil
	case of.Turn.Chart == done.chart && of.Chart != done.chart:
		c = conditions.Condition(TypeUpgraded, metav1.ConditionFalse, ReasonUpgrading, "it is the turn of this object")
	case of.Chart == done.chart && (of.Turn.Chart == done.chart || condition(cr, TypeUpgraded) != nil):
		c = conditions.Condition(TypeUpgraded, metav1.ConditionTrue, ReasonUpToDate, "")
	default:
		return nil
	}
	return []metav1.Condition{c}
}

// memberOf is how far a resource is with a chart of the operator, as its status says. One whose spec has changed since it was its turn is
// no member: what becomes of it is its author's.
func memberOf(cr *unstructured.Unstructured, chart string) fleet.Member {
	m := fleet.Member{Namespace: cr.GetNamespace(), Name: cr.GetName(), UID: cr.GetUID()}
	is, upgraded := readDeployed(cr), condition(cr, TypeUpgraded)
	turned := is.Turn.Chart == chart && !is.Turn.At.IsZero()
	waits := is.Chart != "" && is.Chart != chart && upgraded != nil && upgraded.Status == metav1.ConditionFalse
	if cr.GetDeletionTimestamp() != nil || !turned && !waits {
		return m
	}
	spec := specOf(cr)
	switch {
	case is.Spec != spec || turned && is.Turn.Spec != spec:
	case !turned:
		m.State = fleet.Waiting
	case is.Chart == chart && !is.Turn.DoneAt.IsZero():
		m.State, m.Wave, m.TurnAt, m.DoneAt = fleet.Done, int(is.Turn.Wave), is.Turn.At, is.Turn.DoneAt
		if ready := condition(cr, TypeReady); ready != nil && ready.Status != metav1.ConditionTrue {
			m.UnwellSince = ready.LastTransitionTime.UTC()
		}
	default:
		m.State, m.Wave, m.TurnAt = fleet.Upgrading, int(is.Turn.Wave), is.Turn.At
	}
	return m
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rediscluster reconciles RedisClusters: it observes, plans one step, acts, and
// reports.
package rediscluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/status"
	"middleware.hc.cn/operator/internal/tracing"
)

// Loop is the control loop of RedisClusters. The controller, the simulation and the tests on real
// engines run the same one.
type Loop struct {
	Observer *observe.Observer
	Children Children
	Actor    *act.Actor
	// Waves are how a change that only the operator made reaches the clusters; nil: at once.
	Waves *Waves
	// Options are the operator's.
	Options plan.Options
	// ClusterDomain is the DNS domain of the Kubernetes cluster; empty when it is not known.
	ClusterDomain string
	// RetryRefused is after how long a step that was refused is tried again.
	RetryRefused time.Duration
	// Now is the clock.
	Now func() time.Time
}

// Children are the objects that the chart renders.
type Children interface {
	// Compare renders a shape and compares it with what exists. An error means that this is not
	// known; what somebody must change is in Pending.Refused.
	Compare(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, shape plan.Shape, m *Memory) (Comparison, error)
}

// Comparison is what the chart renders, and how it differs from what exists.
type Comparison struct {
	Pending plan.Pending
	// Objects are to be applied; StatefulSets that are withheld are not among them. Obsolete are
	// to be deleted.
	Objects  []*unstructured.Unstructured
	Obsolete []apply.Ref
	// NamesOnly reports whether no more is known of Objects than which they are: none of them is pending, and they are not to be written.
	// Whether the Certificate is pending is not known then.
	NamesOnly bool
	// Template identifies the rendered pod template; empty: it is not known.
	Template string
	// Certificate is the rendered Certificate of cert-manager, NoCertificate one that is to go; nil: there is none. KeepsCertificate reports
	// whether there is one, or is to be.
	Certificate      *unstructured.Unstructured
	NoCertificate    *apply.Ref
	KeepsCertificate bool
	// CertificateUnread says why it is not known whether the Certificate is as rendered; empty: it is.
	CertificateUnread string
	// ArchiveWithheld says why the Deployment that writes the archive stays as it is; empty: it is not held back.
	ArchiveWithheld string
	// Outside is what is known of what clients outside are led by.
	Outside status.Outside
}

// Report is what one reconciliation came to.
type Report struct {
	status.Reconciliation
	// Acted reports that something was changed, so that there is something new to observe.
	Acted bool
	// Again reports that the step told only what the next reconciliation needs to know: there is
	// no status of it.
	Again bool
	// Held is how long instances kept the operator waiting.
	Held time.Duration
	// Until is a time before which the bounds of autoscaling do not change; zero: they never do.
	Until time.Time
	// movedBefore reports that the reconciliation before this one moved slots, too.
	movedBefore bool
}

const (
	// stepWithin bounds how long a step may take. The longest is a MIGRATE of a large key; both of
	// its ends would be taken for failed long before.
	stepWithin = time.Minute
	// longStep is how long a step may take that is not counted as waiting for instances.
	longStep = 5 * time.Second
)

// Once reconciles a cluster once: it observes, decides on one step, carries it out, remembers
// what the next reconciliation needs, and computes the status of the cluster, which it does not
// write. timeout is how long an instance may take to answer. An error means that too little is
// known to decide; Report.Err, that the step failed.
func (l *Loop) Once(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, timeout time.Duration) (Report, error) {
	defer m.rendered.pack()
	admission.Default(cluster)
	asked, err := l.withShards(ctx, cluster)
	if err != nil {
		return Report{}, fmt.Errorf("observe: %w", err)
	}
	observing, end := tracing.Span(ctx, "Observe")
	snap, held, err := l.Observer.Observe(observing, cluster, &m.Memory, timeout)
	end(err)
	if err != nil {
		return Report{Held: held}, fmt.Errorf("observe: %w", err)
	}
	snap = snap.Indexed()
	report := Report{Held: held, Reconciliation: status.Reconciliation{Snapshot: snap, ClusterDomain: l.ClusterDomain}}
	if asked != nil {
		report.Until = asked.until
	}
	m.anomaly, report.Anomalies = m.anomaly.Next(snap, l.Now())
	report.FewLooks = m.anomaly.Young(l.Now())
	desired := plan.DesiredFor(cluster, snap, l.Options)
	report.Autoscaling = l.autoscale(asked, cluster, snap, m, &desired)
	report.Upgrade = l.upgrade(cluster, snap)
	desired.Held = report.Upgrade.Held(cluster)
	report.Balancing = l.balance(cluster, snap, m, &desired)
	shape := plan.ShapeOf(desired, snap, l.Now())
	children, decision, err := l.decide(ctx, cluster, snap, desired, shape, m)
	if err != nil {
		return report, err
	}
	if report.Upgrade != nil {
		report.Upgrade.Makes.Template = children.Template
	}
	report.KeepsCertificate = children.KeepsCertificate || cluster.Status.Certificate != "" && children.Objects == nil
	report.CertificateUnread = children.CertificateUnread
	report.ArchiveWithheld, report.Outside, report.Decision = children.ArchiveWithheld, children.Outside, decision
	subject := act.Subject{
		Cluster: cluster, Credentials: m.Credentials(cluster), Access: m.Access(),
		Children: children.Objects, Certificate: children.Certificate, NoCertificate: children.NoCertificate,
		Seen: versions(snap), Obsolete: children.Obsolete, Pipeline: pipeline(cluster),
	}
	if children.NamesOnly {
		subject.Children, subject.Certificate = nil, nil
	}
	result, took, err := l.do(ctx, report.Decision.Step, subject)
	if err != nil || took > longStep {
		report.Held += took
	}
	if plan.Is[plan.ReloadCertificates](report.Decision.Step) {
		m.NoteReloaded(snap, plan.Pods(report.Decision.Step), err, l.Now())
	}
	report.movedBefore = m.moved
	m.moved = plan.Is[plan.MoveSlots](report.Decision.Step)
	m.load.note(report.Decision.Step)
	report.Again = m.note(cluster, report.Decision.Step, children.Pending, result, err, l.Now())
	if report.Again {
		return report, nil
	}
	report.Acted, report.Err = result.Acted, err
	if result.Outside != nil {
		report.Outside.Refused = result.Outside.Message
	}
	if result.Acted || err != nil {
		metrics.Step(report.Decision.Step.Name(), took, err)
	}
	report.KeysMoved, report.Refusals = result.KeysMoved, result.Refusals
	cluster.Status = status.Compute(cluster, report.Reconciliation, l.Now())
	return report, nil
}

// decide finds the next step, and what of the children it is decided by. A step that writes them is not carried out by objects of which
// only the names are known: they are unpacked for it.
func (l *Loop) decide(ctx context.Context, cluster *v1alpha1.RedisCluster, snap *snapshot.Snapshot, desired plan.Desired, shape plan.Shape,
	m *Memory) (children Comparison, decision plan.Decision, err error) {
	if !desired.Deleting && len(desired.Problems) == 0 {
		if children, err = l.Children.Compare(ctx, cluster, snap, shape, m); err != nil {
			return children, decision, fmt.Errorf("render: %w", err)
		}
	}
	m.apart(cluster, &children, l.Now())
	pending := m.known(cluster, children.Pending, l.Now(), l.RetryRefused)
	decision = shape.Next(pending)
	if children.NamesOnly && (act.NeedsChildren(decision.Step) || children.Pending.Certificate != "") {
		m.rendered.unpack()
		return l.decide(ctx, cluster, snap, desired, shape, m)
	}
	if plan.Is[plan.TakeTurn](decision.Step) && l.Waves != nil {
		if pending.Turn, err = l.turn(cluster, m); err != nil {
			return children, decision, err
		}
		decision = shape.Next(pending)
	}
	return children, decision, nil
}

// versions are those of the StatefulSets that were seen, by UID.
func versions(s *snapshot.Snapshot) map[types.UID]string {
	seen := map[types.UID]string{}
	for _, shard := range s.Shards {
		seen[types.UID(shard.UID)] = shard.Version
	}
	return seen
}

// do carries out a step, within a time.
func (l *Loop) do(ctx context.Context, step plan.Step, subject act.Subject) (act.Result, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stepWithin)
	defer cancel()
	ctx, end := tracing.Span(ctx, step.Name(), attribute.String("middleware.reason", step.Why()))
	began := l.Now()
	result, err := l.Actor.Do(ctx, subject, step)
	end(err)
	return result, l.Now().Sub(began), err
}

// pipeline is spec.updateStrategy.pipeline, which admission has checked; 0 when it is wrong.
func pipeline(cluster *v1alpha1.RedisCluster) int {
	n, _ := strconv.Atoi(cluster.Spec.UpdateStrategy.Pipeline)
	return n
}

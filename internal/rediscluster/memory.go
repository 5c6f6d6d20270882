// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/anomaly"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// Memory is what is remembered of one cluster from one reconciliation to the next. One
// reconciliation at a time may use it. The zero value remembers nothing.
type Memory struct {
	observe.Memory
	load     load
	balance  balancing
	rendered rendering
	refused  refusedStep
	outside  refusedOutside
	notGrown notGrown
	asIs     asRendered
	wait     wait
	rest     rest
	anomaly  anomaly.History
	unread   unread
	told     fleet.Told
	// moved reports that the last reconciliation moved slots.
	moved bool
}

// unread is why the Certificate could not be read, and until when it is not tried again.
type unread struct {
	why   string
	until time.Time
}

// refusedStep is a step that could not be carried out until somebody changes something. Until it is
// tried again what the cluster needs as it is goes on.
type refusedStep struct {
	plan.Refused
	generation int64
	told       time.Time // zero: not yet
}

// refusedOutside is what could not be written for clients outside. It is tried again more and more rarely.
type refusedOutside struct {
	act.RefusedOutside
	generation int64
	tries      int
	until      time.Time
}

// noteOutside remembers what became of what is made for clients outside, when it was written.
func (m *Memory) noteOutside(cluster *v1alpha1.RedisCluster, refused *act.RefusedOutside, now time.Time) {
	const first, doublings = 5 * time.Second, 6 // up to five minutes
	if refused == nil {
		m.outside = refusedOutside{}
		return
	}
	if m.outside.generation != cluster.Generation {
		m.outside.tries = 0
	}
	m.outside = refusedOutside{RefusedOutside: *refused, generation: cluster.Generation,
		tries: m.outside.tries + 1, until: now.Add(first << min(m.outside.tries, doublings))}
}

// apart takes what is made for clients outside out of a comparison while it is not to be tried again, and says why.
func (m *Memory) apart(cluster *v1alpha1.RedisCluster, c *Comparison, now time.Time) {
	if !slices.ContainsFunc(c.Pending.Children, func(child string) bool { return isOutside(cluster, child) }) {
		m.outside = refusedOutside{} // nothing is asked for any more that is not there
	}
	if o := &m.outside; c.Outside.Refused == "" && o.Message != "" && o.generation == cluster.Generation {
		c.Outside.Refused = o.Message
		if o.Person {
			c.Pending.Outside = o.Message
		}
		if now.Before(o.until) {
			c.withoutOutside(cluster)
		}
	}
}

// withoutOutside leaves what is made for clients outside as it is.
func (c *Comparison) withoutOutside(cluster *v1alpha1.RedisCluster) {
	c.Objects = slices.DeleteFunc(slices.Clone(c.Objects), func(o *unstructured.Unstructured) bool {
		return act.Outside(cluster, o.GetName())
	})
	c.Obsolete = slices.DeleteFunc(slices.Clone(c.Obsolete), func(ref apply.Ref) bool { return act.Outside(cluster, ref.Name) })
	c.Pending.Children = slices.DeleteFunc(slices.Clone(c.Pending.Children), func(child string) bool { return isOutside(cluster, child) })
}

// isOutside reports whether a pending child is for clients outside.
func isOutside(cluster *v1alpha1.RedisCluster, child string) bool {
	_, name, _ := strings.Cut(child, " ")
	return act.Outside(cluster, name)
}

// notGrown is why claims could not be expanded for the data, of which generation, and until when that is not tried again.
type notGrown struct {
	message    string
	generation int64
	until      time.Time
}

// growAgain is how often it is tried again.
const growAgain = 5 * time.Minute

// asRendered are children that were applied because they did not seem to be as rendered, and were:
// the cache may lag behind for a while.
type asRendered struct {
	children []string
	until    time.Time
}

// known is what is pending, with what the reconciliations before found out about it.
// A step that was refused is tried again after retry.
func (m *Memory) known(cluster *v1alpha1.RedisCluster, pending plan.Pending, now time.Time, retry time.Duration) plan.Pending {
	if r := &m.refused; r.Cause != "" && pending.Refused == nil && r.generation == cluster.Generation {
		if r.told.IsZero() { // however long it took to come back to the cluster, it is told once
			r.told = now
		}
		if r.told.Equal(now) || now.Sub(r.told) < retry {
			pending.Refused = &r.Refused
		}
	}
	if now.Before(m.asIs.until) && slices.Equal(pending.Children, m.asIs.children) {
		pending.Children = nil
	}
	if g := &m.notGrown; g.generation == cluster.Generation {
		pending.NotGrown, pending.GrowsLater = g.message, now.Before(g.until)
	}
	return pending
}

// note remembers what a step came to. again reports that the step told nothing but what the next
// reconciliation has to know.
func (m *Memory) note(cluster *v1alpha1.RedisCluster, step plan.Step, pending plan.Pending, result act.Result, err error,
	now time.Time) (again bool) {
	if switchover, is := step.(plan.Switchover); is && (err == nil || switchover.Requested) {
		m.NoteSwitchover(switchover.Replica.NodeID, now)
		m.anomaly.Planned(switchover.Replica.NodeID)
	}
	if promote, is := step.(plan.Promote); is && err == nil && !promote.Takeover {
		m.NoteSwitchover(promote.Replica.NodeID, now)
	}
	if rewrite, is := step.(plan.RewriteAOF); is {
		m.NoteRewrite(rewrite.On.NodeID, now)
	}
	for _, n := range result.Normalized {
		m.NoteNormalized(n.Name, n.Value, n.Shown)
	}
	if result.AccessChanged {
		m.ExpireAccess()
	}
	if refused := result.UsersRefused; refused != nil {
		m.NoteUsersRefused(refused.Users, refused.Why)
	}
	if expand, is := step.(plan.ExpandPVCs); is && expand.ByData {
		var refused *act.NotGrownError
		if m.notGrown = (notGrown{}); errors.As(err, &refused) {
			m.notGrown = notGrown{message: refused.Message, generation: cluster.Generation, until: now.Add(growAgain)}
			return true
		}
	}
	var stall *act.StallError
	if errors.As(err, &stall) && cluster.DeletionTimestamp == nil {
		m.refused = refusedStep{Refused: plan.Refused{Cause: stall.Cause, Message: stall.Message, Step: step}, generation: cluster.Generation}
		return true
	}
	applied := plan.Is[plan.ApplyChildren](step) || plan.Is[plan.Hibernate](step) || plan.Is[plan.Wake](step)
	if applied && err == nil && (result.Outside != nil || !now.Before(m.outside.until)) { // else it was not tried
		m.noteOutside(cluster, result.Outside, now)
	}
	if applied && err == nil && !result.Acted && result.Outside == nil {
		if now.Before(m.asIs.until) && slices.Equal(pending.Children, m.asIs.children) {
			return false // the cache still lags
		}
		m.asIs = asRendered{children: pending.Children, until: now.Add(apply.Lag)}
		return true
	}
	return false
}

// wait is what a cluster waits for, and since when.
type wait struct {
	reason string
	since  time.Time
}

// next spaces out looking again at a cluster that keeps waiting for the same thing: soon at
// first, then a fifth of the time waited so far, never less often than most.
func (w *wait) next(reason string, soon, most time.Duration, now time.Time) time.Duration {
	if w.since.IsZero() || w.reason != reason {
		*w = wait{reason: reason, since: now}
	}
	return min(max(soon, now.Sub(w.since)/5), max(soon, most))
}

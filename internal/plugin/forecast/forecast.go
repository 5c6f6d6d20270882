// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast says what a change of a RedisCluster would do: which slots move, which instances come, go and restart, which
// settings change on running instances, what is refused. It asks the same functions as the operator: the rules of admission, the chart,
// and the plan. It is pure.
package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/autoscale"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Change is a RedisCluster as it is and as it is to be.
type Change struct {
	// Before is nil when the RedisCluster does not exist yet.
	Before, After *v1alpha1.RedisCluster
	// Config is what the ConfigMaps of pod[0].configmap set, by name; one that is missing here is not known.
	Config map[string]map[string]string
	// Refused is why the API server does not take the change; empty: it does.
	Refused string
	// Notes are what else there is to know about how the change was read.
	Notes []string
	Now   time.Time
}

// Forecast is what a change would do. Its JSON is what `-o json` prints.
type Forecast struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	New       bool   `json:"new"`
	// Refusals are why the change is not to be; the rest is then about nothing.
	Refusals []string `json:"refusals,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Fields are what changes in the spec: path, value before and after.
	Fields []Field `json:"fields,omitempty"`
	// Moves are the slots that move.
	Moves []Move `json:"moves,omitempty"`
	// Added and Removed are pods, Restarts the pods that get a new template, one after the other.
	Added    []string `json:"added,omitempty"`
	Removed  []string `json:"removed,omitempty"`
	Restarts []string `json:"restarts,omitempty"`
	// OnDelete reports whether the user restarts them.
	OnDelete bool `json:"onDelete,omitempty"`
	// Live are settings that change on running instances.
	Live []Field `json:"live,omitempty"`
	// Objects are the other children that change, come or go.
	Objects []string `json:"objects,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// Field is something that has another value.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Move is slots that change their owner.
type Move struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Count int    `json:"count"`
	Slots string `json:"slots"`
}

// Of makes the forecast. The error is of the chart, which could not be rendered.
func Of(c Change) (Forecast, error) {
	f := Forecast{Kind: "RedisCluster", Namespace: c.After.Namespace, Name: c.After.Name, New: c.Before == nil, Notes: c.Notes}
	f.refusals(c)
	f.Warnings = admission.Warnings(c.After)
	var before any
	if c.Before != nil {
		before = c.Before.Spec
	}
	f.Fields = differences("spec", before, c.After.Spec)
	if len(f.Refusals) > 0 {
		return f, nil
	}
	if note := c.withShards(); note != "" {
		f.Notes = append(f.Notes, note)
	}
	if c.After.Spec.Pause {
		f.Notes = append(f.Notes, "spec.pause is true: nothing of this is done until it is false")
	}
	if err := f.children(c); err != nil {
		return f, err
	}
	if c.Before == nil {
		return f, nil
	}
	f.instances(c)
	f.moves(c)
	return f, nil
}

// withShards has both say how many shards there are, where the load decides on that, and returns a note on it; empty: it does not.
func (c *Change) withShards() string {
	var exist int32
	if c.Before != nil {
		after := *c.After
		after.Status.Autoscale, after.Status.Conditions = c.Before.Status.Autoscale, c.Before.Status.Conditions
		c.After = &after
		if exist = c.Before.Status.Shards; c.Before.Spec.Autoscale == nil {
			exist = c.Before.Spec.ShardCount()
		}
		if c.Before.Spec.Autoscale != nil {
			bounds, _ := autoscale.BoundsOf(c.Before.Spec.Autoscale, c.Now)
			c.Before = c.Before.WithShards(c.Before.ShardsInForce(exist, bounds.Least))
		}
	}
	a := c.After.Spec.Autoscale
	if a == nil {
		return ""
	}
	bounds, until := autoscale.BoundsOf(a, c.Now)
	shards := c.After.ShardsInForce(exist, bounds.Least)
	c.After = c.After.WithShards(shards)
	if a.Mode == v1alpha1.AutoscaleDryRun {
		return fmt.Sprintf("spec.autoscale is a dry run: there are %d shards, and the status says how many the load asks for", shards)
	}
	note := fmt.Sprintf("spec.autoscale: there are %d shards to begin with, and from %d to %d as the load asks for them", shards, bounds.Least,
		bounds.Most)
	switch {
	case bounds.Window != "":
		note += ", while the window " + bounds.Window + " is open"
	case !until.IsZero():
		note += ", until a window opens at " + until.UTC().Format(time.RFC3339)
	}
	return note
}

// refusals are those of the API server, and of the rules that webhook and operator follow.
func (f *Forecast) refusals(c Change) {
	if c.Refused != "" {
		f.Refusals = append(f.Refusals, c.Refused)
		return
	}
	// What is allowed by flags of the operator is not known here.
	allowed := admission.Options{AllowHostPath: true, ServiceAnnotationDomains: []string{"*"}, ClusterIssuers: []string{"*"}}
	all := admission.Validate(c.After, allowed)
	if c.Before != nil && len(all) == 0 {
		all = admission.ValidateUpdate(c.Before, c.After, allowed)
	}
	for _, refused := range all {
		f.Refusals = append(f.Refusals, refused.Error())
	}
}

// instances are the pods that come and go.
func (f *Forecast) instances(c Change) {
	before, after := c.Before.Spec.Topology(), c.After.Spec.Topology()
	for shard := range max(len(before), len(after)) {
		was, is := at(before, shard), at(after, shard)
		for ordinal := was; ordinal < is; ordinal++ {
			f.Added = append(f.Added, fmt.Sprintf("%s-%d", c.After.ShardName(shard), ordinal))
		}
		for ordinal := is; ordinal < was; ordinal++ {
			f.Removed = append(f.Removed, fmt.Sprintf("%s-%d", c.After.ShardName(shard), ordinal))
		}
	}
}

func at(t v1alpha1.Topology, shard int) int32 {
	if shard < len(t) {
		return t[shard]
	}
	return 0
}

// moves are those of the plan, from who owns what by the status.
func (f *Forecast) moves(c Change) {
	if !meta.IsStatusConditionTrue(c.Before.Status.Conditions, v1alpha1.ConditionFormed) {
		f.Notes = append(f.Notes, "the cluster has not formed yet: which slots go where is decided when it has")
		return
	}
	seen, problem := observed(c)
	if problem != "" {
		f.Notes = append(f.Notes, "which slots move is not known: "+problem)
		return
	}
	desired := plan.DesiredFor(c.After, seen, plan.Options{AllowHostPath: true, ServiceAnnotations: []string{"*"},
		ClusterIssuers: []string{"*"}})
	moves, known, err := plan.Foresee(desired, seen, c.Now)
	switch {
	case err != nil:
		f.Refusals = append(f.Refusals, err.Error())
		return
	case !known:
		f.Notes = append(f.Notes, "which slots move is not known: not every slot has one owner that answers")
		return
	}
	for _, move := range moves {
		f.Moves = append(f.Moves, Move{From: move.From.Pod, To: move.To.Pod, Count: move.Slots.Len(), Slots: move.Slots.String()})
	}
	if len(f.Moves) > 0 {
		f.Notes = append(f.Notes, "whether the data fits into the memory of the shards that receive is checked by the operator before it begins")
	}
}

// observed is the cluster as its status says, with the masters that the change adds.
func observed(c Change) (*snapshot.Snapshot, string) {
	status := &c.Before.Status
	s := &snapshot.Snapshot{Formed: true, SlotsAssigned: status.SlotsAssigned}
	for shard, replicas := range c.Before.Spec.Topology() {
		s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: c.Before.ShardName(shard), Replicas: replicas})
	}
	if m := status.Migration; m != nil {
		s.Goal = &snapshot.Goal{For: m.For, From: int(m.FromShards)}
		for _, text := range m.Goal {
			set, err := slots.Parse(text)
			if err != nil {
				return nil, "the recorded goal cannot be read: " + err.Error()
			}
			s.Goal.Shards = append(s.Goal.Shards, set)
		}
	}
	masters := map[int]bool{}
	for _, node := range status.Nodes {
		shard, ordinal, is := c.Before.InstanceOf(node.Name)
		if !is {
			continue
		}
		in := snapshot.Instance{Name: node.Name, Shard: shard, Ordinal: ordinal, IP: host(node.Instance), Error: node.Message}
		if node.NodeID != "" {
			set, err := slots.Parse(node.Slots)
			if err != nil {
				return nil, node.Name + " owns more ranges of slots than the status can hold"
			}
			in.Redis = &snapshot.Redis{NodeID: node.NodeID, Master: node.Type == "master", MasterID: node.MasterNodeID, MasterLinkUp: true,
				ClusterOK: true, Slots: set, Peers: map[string]snapshot.Peer{}}
			masters[shard] = masters[shard] || in.Redis.Master
		}
		s.Instances = append(s.Instances, in)
	}
	for shard := range c.After.Spec.Topology() {
		if !masters[shard] {
			name := c.After.ShardName(shard) + "-0"
			s.Instances = slices.DeleteFunc(s.Instances, func(in snapshot.Instance) bool { return in.Name == name })
			master := &snapshot.Redis{NodeID: "new-" + name, Master: true, ClusterOK: true, Peers: map[string]snapshot.Peer{}}
			s.Instances = append(s.Instances, snapshot.Instance{Name: name, Shard: shard, Redis: master})
		}
	}
	return s, ""
}

// host is the address without the port.
func host(address string) string {
	if i := strings.LastIndexByte(address, ':'); i >= 0 {
		return strings.Trim(address[:i], "[]")
	}
	return address
}

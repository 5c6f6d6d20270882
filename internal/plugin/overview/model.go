// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Cluster is a RedisCluster as people look at it. Its JSON is what `-o json` prints.
type Cluster struct {
	Kind      string    `json:"kind"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Created   time.Time `json:"created"`
	Phase     string    `json:"phase"`
	Reason    string    `json:"reason,omitempty"`
	Paused    bool      `json:"paused"`
	// Engine and Version are what runs; Target is the version asked for, where it is another one.
	Engine  string `json:"engine,omitempty"`
	Version string `json:"version,omitempty"`
	Target  string `json:"targetVersion,omitempty"`
	// Outside is where clients outside of Kubernetes connect.
	Outside []string `json:"outside,omitempty"`
	// Ready is how many instances serve of those asked for, Slots how many slots are served.
	Ready  string     `json:"ready,omitempty"`
	Slots  int32      `json:"slots"`
	Shards []Shard    `json:"shards,omitempty"`
	Plan   *Plan      `json:"plan,omitempty"`
	Work   []Progress `json:"work,omitempty"`
	// Findings are what is wrong, with what to type; the worst first.
	Findings []Finding `json:"findings,omitempty"`
	Events   []Event   `json:"events,omitempty"`
	Unread   []Unread  `json:"unread,omitempty"`
}

// Shard is a master and its replicas.
type Shard struct {
	Number    int32      `json:"number"`
	Slots     string     `json:"slots,omitempty"`
	Count     int        `json:"count"`
	Instances []Instance `json:"instances"`

	owns slots.Set
}

// Instance is a pod and the Redis in it.
type Instance struct {
	Name string `json:"name"`
	// Role is master or replica; empty when it is not known.
	Role string `json:"role,omitempty"`
	// State is Serving, or why it does not; Message is that in a sentence.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Lag is how far a replica is behind its master, as far as the status says: in sync, or behind.
	Lag     string `json:"lag,omitempty"`
	Address string `json:"address,omitempty"`
	Node    string `json:"node,omitempty"`
	Zone    string `json:"zone,omitempty"`
	// Memory is what the container uses and its limit, Claim what its volume holds.
	Memory string `json:"memory,omitempty"`
	Limit  string `json:"memoryLimit,omitempty"`
	// Share is how much of the limit is used, in percent; absent where that is not known.
	Share    *int   `json:"memoryPercent,omitempty"`
	Claim    string `json:"claim,omitempty"`
	Restarts int32  `json:"restarts"`
}

// Plan is what the operator does next.
type Plan struct {
	Step      string   `json:"step"`
	Reason    string   `json:"reason,omitempty"`
	BlockedBy string   `json:"blockedBy,omitempty"`
	Moves     []string `json:"moves,omitempty"`
	Settings  []string `json:"settings,omitempty"`
}

// Event is what happened, and how long ago.
type Event struct {
	Last    time.Time `json:"last"`
	Warning bool      `json:"warning"`
	Object  string    `json:"object"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Count   int32     `json:"count"`
}

// Of makes the model.
func Of(seen Seen) Cluster {
	cr, status := seen.Cluster, &seen.Cluster.Status
	c := Cluster{
		Kind: "RedisCluster", Namespace: cr.Namespace, Name: cr.Name, Created: cr.CreationTimestamp.UTC(),
		Phase: cmp.Or(string(status.Phase), string(v1alpha1.PhaseNone)), Reason: status.Reason, Paused: cr.Spec.Pause,
		Engine: status.Engine, Version: status.CurrentVersion, Ready: status.Instances, Slots: status.Slots, Unread: seen.Unread,
	}
	if status.TargetVersion != status.CurrentVersion {
		c.Target = status.TargetVersion
	}
	if status.External != nil {
		c.Outside = status.External.Addresses
	}
	c.Shards, c.Plan, c.Work, c.Events = shards(seen), planned(status.Plan), work(seen), events(seen)
	c.Findings = findings(seen, c)
	return c
}

// shards are those of the status, and pods that it does not know yet. A name that no instance has is left out: it may be anything.
func shards(seen Seen) []Shard {
	byNumber := map[int32]*Shard{}
	shard := func(number int32) *Shard {
		if byNumber[number] == nil {
			byNumber[number] = &Shard{Number: number}
		}
		return byNumber[number]
	}
	known := map[string]bool{}
	for _, node := range seen.Cluster.Status.Nodes {
		if _, _, is := seen.Cluster.InstanceOf(node.Name); !is {
			continue
		}
		known[node.Name] = true
		s := shard(node.Shard)
		s.Instances = append(s.Instances, instance(node, seen))
		if set, err := slots.Parse(node.Slots); err == nil { // ranges that were cut off are told as they are, and drawn nowhere
			s.owns = s.owns.Union(set)
		}
		if node.Slots != "" {
			s.Slots = node.Slots
		}
	}
	for i := range seen.Pods {
		pod := &seen.Pods[i]
		if number, _, is := seen.Cluster.InstanceOf(pod.Name); is && !known[pod.Name] {
			s := shard(int32(number)) //nolint:gosec // at most 500 shards
			s.Instances = append(s.Instances, instance(v1alpha1.NodeStatus{Name: pod.Name, Status: metav1.ConditionUnknown}, seen))
		}
	}
	var all []Shard
	for _, s := range byNumber {
		if s.owns.Len() > 0 {
			s.Slots, s.Count = s.owns.String(), s.owns.Len()
		}
		slices.SortFunc(s.Instances, func(a, b Instance) int {
			return cmp.Or(cmp.Compare(rank(a.Role), rank(b.Role)), compareNames(a.Name, b.Name))
		})
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b Shard) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func rank(role string) int { return slices.Index([]string{"master", "replica", ""}, role) }

// compareNames has cache-0-2 before cache-0-10.
func compareNames(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

func instance(node v1alpha1.NodeStatus, seen Seen) Instance {
	in := Instance{Name: node.Name, State: node.Reason, Message: node.Message, Address: node.Instance, Node: node.Hostname}
	switch node.Type {
	case "master":
		in.Role = "master"
	case "slave":
		in.Role, in.Lag = "replica", "in sync"
		if node.Reason == "NotInSync" {
			in.Lag = "behind"
		}
	}
	limit := resource.Quantity{}
	if at := slices.IndexFunc(seen.Pods, func(p corev1.Pod) bool { return p.Name == node.Name }); at >= 0 {
		in.fromPod(&seen.Pods[at])
		limit = limitOf(&seen.Pods[at])
	}
	if used, known := seen.Memory[node.Name]; known {
		in.Memory = Size(used)
		if limit.Value() > 0 {
			in.Share = part(used.Value(), limit.Value())
		}
	}
	for i := range seen.Claims {
		if claim := &seen.Claims[i]; claim.Name == "data-"+node.Name {
			in.Claim = claimOf(claim)
		}
	}
	in.State = cmp.Or(in.State, string(node.Status))
	return in
}

func (in *Instance) fromPod(pod *corev1.Pod) {
	in.Node, in.Zone = cmp.Or(in.Node, pod.Spec.NodeName), pod.Labels[corev1.LabelTopologyZone]
	if limit := limitOf(pod); !limit.IsZero() {
		in.Limit = Size(limit)
	}
	for _, container := range pod.Status.ContainerStatuses {
		in.Restarts += container.RestartCount
	}
	if in.State == "" {
		in.State, in.Message = "NotReported", cmp.Or(pods.Why(pod), "the operator has not reported this pod yet")
	}
}

// limitOf is how much memory the Redis of a pod may use; zero: as much as there is.
func limitOf(pod *corev1.Pod) resource.Quantity {
	at := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == redisContainer })
	if at < 0 {
		return resource.Quantity{}
	}
	return *pod.Spec.Containers[at].Resources.Limits.Memory()
}

// redisContainer is the container of an instance's Redis.
const redisContainer = "redis"

func claimOf(claim *corev1.PersistentVolumeClaim) string {
	if claim.Status.Phase != corev1.ClaimBound {
		return string(cmp.Or(claim.Status.Phase, corev1.ClaimPending))
	}
	has, asked := claim.Status.Capacity.Storage(), claim.Spec.Resources.Requests.Storage()
	if has.Cmp(*asked) < 0 {
		return Size(*has) + " → " + Size(*asked)
	}
	return Size(*has)
}

func planned(status *v1alpha1.PlanStatus) *Plan {
	if status == nil || status.Step == "" {
		return nil
	}
	plan := &Plan{Step: status.Step, Reason: status.Reason, BlockedBy: status.BlockedBy}
	for _, move := range status.Moves {
		plan.Moves = append(plan.Moves, count(int(move.Count), "slot")+" from "+move.From+" to "+move.To)
	}
	for _, setting := range status.Settings {
		text := setting.Name + ": " + quoted(setting.From) + " → " + quoted(setting.To) + ", " + setting.ApplyMethod
		if setting.Reason != "" {
			text += " (" + setting.Reason + ")"
		}
		plan.Settings = append(plan.Settings, text)
	}
	return plan
}

// At is when an Event was last seen.
func At(e *corev1.Event) time.Time {
	at := cmp.Or(e.LastTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	return at
}

// mostEvents is how many are shown.
const mostEvents = 8

// events are the last ones, the newest first.
func events(seen Seen) []Event {
	var all []Event
	for i := range seen.Events {
		e := &seen.Events[i]
		times := max(e.Count, 1)
		if e.Series != nil {
			times = max(times, e.Series.Count)
		}
		all = append(all, Event{Last: At(e).UTC(), Warning: e.Type == corev1.EventTypeWarning, Reason: e.Reason, Message: e.Message,
			Object: e.InvolvedObject.Kind + " " + e.InvolvedObject.Name, Count: times})
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	return all[:min(len(all), mostEvents)]
}

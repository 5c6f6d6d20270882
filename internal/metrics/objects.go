// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State is what is told of one custom resource.
type State struct {
	// Observed is the generation that its status speaks of; negative: that is not said.
	Observed int64
	// Conditions of the same type as one before are left out.
	Conditions []metav1.Condition
	// Succeeded is when what it makes regularly was last made; zero: it makes nothing, or has not yet.
	Succeeded time.Time
}

// Kind is a kind of custom resource whose objects are told.
type Kind struct {
	schema.GroupVersionKind
	// List is an empty list of them, and Reader the cache that has them.
	List   client.ObjectList
	Reader client.Reader
	// Elected is closed once this process reconciles them. Nothing is told before.
	Elected <-chan struct{}
	// Selected reports whether an object is reconciled; nil: each is.
	Selected func(client.Object) bool
	// State reads an object of the cache, which it may not change.
	State func(client.Object) State
}

// Tell has the objects of a kind told, in place of what was told of it before.
func Tell(kind Kind) {
	objects.mu.Lock()
	defer objects.mu.Unlock()
	objects.kinds[kind.GroupVersionKind] = kind
}

const (
	// readWithin is how long the cache may take. What is not known by then is not told.
	readWithin = 5 * time.Second
	// mostConditions of an object are told, of which each text has mostLabel bytes. Others may write conditions, too.
	mostConditions, mostLabel = 20, 64
)

var objects = newObjects()

// allObjects gives the state of every custom resource as the cache has it when it is asked for: there is nothing to keep, and no series
// outlives its object.
type allObjects struct {
	condition, since, lag, succeeded *prometheus.Desc

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]Kind
}

func newObjects() *allObjects {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "resource", name), help,
			append([]string{"group", "kind", "namespace", "name"}, more...), nil)
	}
	return &allObjects{
		kinds: map[schema.GroupVersionKind]Kind{},
		condition: desc("condition", "1 for a condition that is True, 0 for one that is False, -1 for Unknown. An object has 20 at most.",
			"type", "reason"),
		since: desc("ready_changed_timestamp_seconds", "When the condition Ready last became what it is."),
		lag:   desc("generations_behind", "Changes of the spec that the status does not speak of yet."),
		succeeded: desc("last_success_timestamp_seconds",
			"When the last complete backup of a RedisBackupSchedule was taken; absent before."),
	}
}

// Describe implements prometheus.Collector.
func (all *allObjects) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{all.condition, all.since, all.lag, all.succeeded} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (all *allObjects) Collect(to chan<- prometheus.Metric) {
	all.mu.Lock()
	kinds := slices.Collect(maps.Values(all.kinds))
	all.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	for _, kind := range kinds {
		select {
		case <-kind.Elected:
			all.collectKind(ctx, kind, to)
		default:
		}
	}
}

func (all *allObjects) collectKind(ctx context.Context, kind Kind, to chan<- prometheus.Metric) {
	list, _ := kind.List.DeepCopyObject().(client.ObjectList)
	said := texts{}
	_ = Each(ctx, kind.Reader, list, func(object client.Object) { // what is not known is not told
		if kind.Selected == nil || kind.Selected(object) {
			all.collect(kind, object, said, to)
		}
	})
}

// Each calls for every object of a kind, of which list is an empty list, that a cache has. None may be changed. A cache that keeps them in
// another form makes one at a time.
func Each(ctx context.Context, from client.Reader, list client.ObjectList, call func(client.Object)) error {
	if cache, is := from.(interface {
		Each(context.Context, *unstructured.UnstructuredList, func(client.Object)) error
	}); is {
		if untyped, is := list.(*unstructured.UnstructuredList); is {
			return cache.Each(ctx, untyped, call)
		}
	}
	if err := from.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		if object, is := item.(client.Object); is {
			call(object)
		}
		return nil
	})
}

func (all *allObjects) collect(kind Kind, object client.Object, said texts, to chan<- prometheus.Metric) {
	labels := slices.Clip(prometheus.MakeLabelPairs(all.lag, []string{kind.Group, kind.Kind, object.GetNamespace(), object.GetName()}))
	tell := func(desc *prometheus.Desc, value float64, more ...*dto.LabelPair) { // more comes after labels, in the order of names
		to <- &sample{desc: desc, kind: prometheus.GaugeValue, value: value, labels: append(labels, more...)}
	}
	state := kind.State(object)
	if state.Observed >= 0 {
		tell(all.lag, float64(max(0, object.GetGeneration()-state.Observed)))
	}
	if !state.Succeeded.IsZero() {
		tell(all.succeeded, float64(state.Succeeded.Unix()))
	}
	told := map[string]bool{}
	for _, condition := range state.Conditions[:min(len(state.Conditions), mostConditions)] {
		is := label(condition.Type)
		if told[is] {
			continue
		}
		told[is] = true
		tell(all.condition, conditionValue(condition.Status), said.label("reason", label(condition.Reason)), said.label("type", is))
		if is == "Ready" && !condition.LastTransitionTime.IsZero() {
			tell(all.since, float64(condition.LastTransitionTime.Unix()))
		}
	}
}

// texts are the labels of conditions in one scrape, of which many objects have the same.
type texts map[[2]string]*dto.LabelPair

func (t texts) label(name, value string) *dto.LabelPair {
	of := [2]string{name, value}
	pair := t[of]
	if pair == nil {
		pair = &dto.LabelPair{Name: ptr.To(name), Value: ptr.To(value)}
		t[of] = pair
	}
	return pair
}

// label is a text as a label: valid, and short.
func label(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), mostLabel)], "")
}

func conditionValue(status metav1.ConditionStatus) float64 {
	switch status {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	case metav1.ConditionUnknown:
	}
	return -1
}

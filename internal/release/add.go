// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"sync"
	"time"

	"github.com/operator-framework/operator-lib/handler"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	crhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/resync"
	"middleware.hc.cn/operator/internal/shards"
	"middleware.hc.cn/operator/internal/shell"
	"middleware.hc.cn/operator/internal/tracing"
	"middleware.hc.cn/operator/internal/watches"
)

// defaultMaxHistory is how many revisions Helm's history keeps, as helm does by default.
const defaultMaxHistory = 10

// Options are what a chart kind may bring besides its chart. All are optional.
type Options struct {
	// Validate says what is wrong with a resource, with field paths: the function its webhook calls. It must be pure.
	Validate func(*unstructured.Unstructured) field.ErrorList
	// StatusExtras computes the kind's own status fields and conditions from the children that are visible (metadata only
	// for kinds without a status). A field whose value is nil is removed; fields of the engine cannot be set. It must be pure.
	StatusExtras func(cr *unstructured.Unstructured, children []*unstructured.Unstructured, now time.Time) (fields map[string]any,
		extra []metav1.Condition)
	// MaxConcurrentReconciles is the number of resources worked on at once unless the watch says otherwise. Default 1.
	MaxConcurrentReconciles int
	// MaxHistory is the number of revisions kept in Helm's history. Default 10.
	MaxHistory int
	// ReconcilePeriod is how often a resource is looked at without a reason if neither its annotation nor the watch says so.
	ReconcilePeriod time.Duration
	// SyncPeriod is how often each resource is looked at without a reason, whatever its state; zero means never.
	SyncPeriod time.Duration
	// Proxy are the proxy variables of the operator's own environment, for the charts of watches that ask for them.
	Proxy []corev1.EnvVar
	// ServiceAccount is the operator's own, "namespace:name", for messages about missing rights.
	ServiceAccount string
	// Awaits returns the APIs that a resource asks for and that its chart does without where the cluster lacks them, as
	// .Capabilities.APIVersions has them. Their coming is noticed within a minute, and what the chart made without them stays
	// until the objects of these APIs are ready. It must be pure.
	Awaits func(*unstructured.Unstructured) []string
	// Waves are how what is new in the operator reaches objects that nobody changed; without canaries all take it at once. Turns is where
	// replicas that divide the objects write down whose turn they give, of a kind and for a revision; nil: there are no others.
	Waves fleet.Options
	Turns func(kind, revision string) fleet.Ledger
	// Shards divides the objects among replicas; nil: the leader has all.
	Shards *shards.Gate
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults(w watches.Watch) Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxHistory < 1 {
		o.MaxHistory = defaultMaxHistory
	}
	if w.MaxConcurrentReconciles > 0 {
		o.MaxConcurrentReconciles = w.MaxConcurrentReconciles
	}
	o.MaxConcurrentReconciles = max(o.MaxConcurrentReconciles, 1)
	if o.ServiceAccount == "" {
		o.ServiceAccount = "NAMESPACE:NAME of the operator's service account"
	}
	return o
}

// Load loads the chart of a watch.
func Load(w watches.Watch) (*chart.Chart, error) {
	loaded, err := chart.LoadPath(w.Chart)
	if err == nil && w.Allow.StructuredValues {
		loaded = loaded.AllowStructuredValues()
	}
	return loaded, err
}

// Add registers the controller of one chart kind with a manager. Children is a cache that holds exactly the objects labelled
// apply.ManagedByLabel and that the manager runs; informers for the kinds of children are added to it as they appear.
func Add(mgr ctrl.Manager, children cache.Cache, w watches.Watch, c *chart.Chart, o Options) error {
	live, err :=
		client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", w.Kind, err)
	}
	crds, err := c.CRDs()
	if err != nil {
		return fmt.Errorf("read the chart's crds/: %w", err)
	}
	reader := childReader{children}
	r := &Reconciler{
		gvk: w.GroupVersionKind, chart: c, options: o.withDefaults(w), entry: w,
		reader: mgr.GetCache(), live: live, children: reader, applier: apply.New(live, reader),
		events:     mgr.GetEventRecorder("middleware-operator"),
		namespaced: scopes(live),
		status:     statusWriter{client: live}, crds: crdInstaller{client: live, crds: crds},
	}
	r.lookup = r.lookupLive
	if err := r.inWaves(mgr.GetLogger().WithName("fleet")); err != nil {
		return err
	}
	r.memory.Forgotten = r.forget
	r.cluster = newDiscovered(mgr.GetConfig(), mgr.GetHTTPClient(), r.options.Now)
	selected := func(o client.Object) bool { return w.Selector.Matches(labelSet(o)) }
	guard := o.Shards.Guard(shards.Kind{List: shell.ListOf(w.GroupVersionKind), Cache: mgr.GetCache(), Forget: r.memory.Forget})
	run, err := controller.New(w.GroupKind().String(), mgr, controller.Options{
		Reconciler: guard.Reconciler(tracing.Reconciler(w.Kind, resync.Every(o.SyncPeriod,
			resync.Objects{Cache: mgr.GetCache(), Kind: kindOf(w.GroupVersionKind), Selected: selected}, r, r.options.Now))),
		NeedLeaderElection:      guard.NeedLeaderElection(),
		MaxConcurrentReconciles: r.options.MaxConcurrentReconciles,
		RateLimiter:             resync.Retries(o.SyncPeriod),
	})
	if err != nil {
		return fmt.Errorf("make the controller of %s: %w", w.Kind, err)
	}
	r.watch = childWatches(mgr, children, w, run)
	shell.Tell(mgr, w.GroupVersionKind, guard.Elected(mgr.Elected()), guard.Selected(selected))
	if err := run.Watch(guard.Source()); err != nil {
		return fmt.Errorf("watch the shards: %w", err)
	}
	return run.Watch(source.Kind(mgr.GetCache(), client.Object(kindOf(w.GroupVersionKind)), metrics.Enqueue(w.GroupVersionKind),
		ownPredicate(selected)))
}

// scopes reports whether a kind lives in namespaces, by what the API server serves.
func scopes(live client.Client) func(schema.GroupVersionKind) (bool, error) {
	return func(gvk schema.GroupVersionKind) (bool, error) {
		return apiutil.IsGVKNamespaced(gvk, live.RESTMapper())
	}
}

func kindOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	return object
}

// ownPredicate lets through what can change what a resource asks for; its status is ours and wakes nobody. What is deleted, or is
// another operator's from now on, was selected once, perhaps, and is then to be forgotten.
func ownPredicate(selected func(client.Object) bool) predicate.Predicate {
	may := predicate.NewPredicateFuncs(selected)
	may.UpdateFunc = func(e event.UpdateEvent) bool { return selected(e.ObjectOld) || selected(e.ObjectNew) }
	may.DeleteFunc = func(event.DeleteEvent) bool { return true }
	return predicate.And(
		may,
		predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, predicate.LabelChangedPredicate{}),
	)
}

// childWatches returns a function that makes sure a kind of child is watched: its events wake the owner, found by owner
// reference or by operator-lib's annotations.
func childWatches(mgr ctrl.Manager, children cache.Cache, w watches.Watch, run controller.Controller) func(schema.GroupVersionKind) error {
	var mu sync.Mutex
	watched := map[schema.GroupVersionKind]bool{}
	return func(gvk schema.GroupVersionKind) error {
		mu.Lock()
		defer mu.Unlock()
		if watched[gvk] || !w.WatchDependentResources {
			return nil
		}
		var object client.Object = kindOf(gvk)
		if !hasStatus(gvk.GroupKind()) {
			metadata := &metav1.PartialObjectMetadata{}
			metadata.SetGroupVersionKind(gvk)
			object = metadata
		}
		byReference := crhandler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), kindOf(w.GroupVersionKind),
			crhandler.OnlyControllerOwner())
		byAnnotation := &handler.EnqueueRequestForAnnotation[client.Object]{Type: w.GroupKind()}
		for _, h := range []crhandler.EventHandler{byReference, byAnnotation} {
			if err := run.Watch(source.Kind(children, object, h, predicate.Predicate(predicate.ResourceVersionChangedPredicate{}))); err != nil {
				return fmt.Errorf("watch %s: %w", gvk, err)
			}
		}
		watched[gvk] = true
		return nil
	}
}

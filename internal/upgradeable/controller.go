// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeable

import (
	"context"
	"fmt"
	"time"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/operator-framework/operator-lib/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Variable is the environment variable in which OLM (v0) names the OperatorCondition of the operator's ClusterServiceVersion. It is
// not set in other installations, and the operator has nobody to tell then.
const Variable = "OPERATOR_CONDITION_NAME"

// retryUnavailable is how long to wait when the OperatorCondition cannot be written for want of its CRD, of the object or of the
// right, which OLM makes at about the time when it starts the operator.
const retryUnavailable = time.Minute

// Options of the controller.
type Options struct {
	Limits Limits
	// Condition is the condition Upgradeable of the operator's OperatorCondition.
	Condition conditions.Condition
	// Now is the time.
	Now func() time.Time
}

// InCluster is the condition of the operator that runs in this pod, with the right that OLM gives it: get, update and patch of that
// one object. The OperatorCondition is read and written directly, never watched.
func InCluster(mgr ctrl.Manager) (conditions.Condition, error) {
	live, err :=
		client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return conditions.InClusterFactory{Client: live}.NewCondition(operatorsv2.ConditionType(operatorsv2.Upgradeable))
}

// Add registers the controller with a manager. It runs in the leader only, and shares the watch of RedisClusters with their own
// controller.
func Add(mgr ctrl.Manager, o Options) error {
	r := &reconciler{clusters: mgr.GetClient(), condition: o.Condition, judge: judge{limits: o.Limits}, now: o.Now}
	return ctrl.NewControllerManagedBy(mgr).Named("upgradeable").
		Watches(&v1alpha1.RedisCluster{}, handler.EnqueueRequestsFromMapFunc(everyCluster), builder.WithPredicates(newWork)).
		WatchesRawSource(source.Func(once)).
		Complete(r)
}

// reconciler keeps the condition up to date. There is one request for all clusters, so that many changes are one reconciliation.
type reconciler struct {
	clusters  client.Reader // the cache
	condition conditions.Condition
	judge     judge
	now       func() time.Time

	written Verdict
	// complained reports whether the log knows why the condition cannot be written.
	complained bool
}

// Reconcile writes the condition if it is not current.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var clusters v1alpha1.RedisClusterList
	if err := r.clusters.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		return reconcile.Result{}, fmt.Errorf("list RedisClusters: %w", err)
	}
	activities := make([]Activity, len(clusters.Items))
	for i := range clusters.Items {
		activities[i] = ActivityOf(&clusters.Items[i])
	}
	verdict, again := r.judge.verdict(activities, r.now())
	if verdict == r.written {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	logger := log.FromContext(ctx).WithValues("status", verdict.Status, "reason", verdict.Reason, "message", verdict.Message)
	err := r.condition.Set(ctx, verdict.Status, conditions.WithReason(verdict.Reason), conditions.WithMessage(verdict.Message))
	switch {
	case err == nil:
		r.written, r.complained = verdict, false
		logger.Info("Told OLM whether the operator may be upgraded")
		return reconcile.Result{RequeueAfter: again}, nil
	case unavailable(err):
		if !r.complained {
			logger.Info("OLM cannot be told whether the operator may be upgraded; trying again every minute, in silence", "error", err.Error())
		}
		r.complained = true
		return reconcile.Result{RequeueAfter: retryUnavailable}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("write the condition %s: %w", operatorsv2.Upgradeable, err)
	}
}

// unavailable tells that the condition cannot be written until somebody else has done something.
func unavailable(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// everyCluster maps each cluster to the one request.
func everyCluster(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} }

// once asks for a first reconciliation, which an installation without RedisClusters would not get from its watch.
func once(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	queue.Add(reconcile.Request{})
	return nil
}

// newWork lets those changes pass that begin or end work. Progress is looked at from time to time only.
var newWork = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCluster := e.ObjectOld.(*v1alpha1.RedisCluster)
		after, same := e.ObjectNew.(*v1alpha1.RedisCluster)
		return isCluster && same && ActivityOf(before).String() != ActivityOf(after).String()
	},
}

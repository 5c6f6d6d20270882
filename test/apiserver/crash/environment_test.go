// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crash ends the operator's process at every write that it makes for a chart kind, an Application or a RedisBackup, against a
// real API server: `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/crash`. Those for a RedisCluster are in
// test/apiserver/rediscluster, those to Redis in test/simulation.
package crash

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// root is the directory of the project.
const root = "../../.."

var (
	webKind = schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: "Web"}

	admin *rest.Config
	api   client.Client
)

func TestMain(m *testing.M) {
	utilruntime.Must(v1alpha1.AddToScheme(scheme.Scheme))
	_ = flag.Set("test.parallel", "12") // the runs mostly wait; the flag exists in every test binary
	server := &envtest.Environment{
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{environment.FreeCRD(webKind, environment.WithStatus())},
		CRDDirectoryPaths:     []string{root + "/config/crd/bases"},
		ErrorIfCRDPathMissing: true,
	}
	os.Exit(environment.Run(m, server, scheme.Scheme, startControllers))
}

// startControllers runs stand-ins for the controllers of a cluster whose work the operator waits for: those of Deployments, of Jobs and
// of RedisClusters that are restored.
func startControllers(ctx context.Context, as *rest.Config, c client.Client) (<-chan error, error) {
	admin, api = as, c
	mgr, err := ctrl.NewManager(admin, ctrl.Options{Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}})
	if err != nil {
		return nil, err
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(reconcile.AsReconciler(api, becomeAvailable)); err != nil {
		return nil, err
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&batchv1.Job{}).Complete(reconcile.AsReconciler(api, succeed)); err != nil {
		return nil, err
	}
	if err := ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.RedisCluster{}).Complete(reconcile.AsReconciler(api, beRestored)); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}

// statusWriter is a stand-in of a controller.
type controller[T client.Object] func(ctx context.Context, object T) (reconcile.Result, error)

func (c controller[T]) Reconcile(ctx context.Context, object T) (reconcile.Result, error) {
	return c(ctx, object)
}

// becomeAvailable is the controller of Deployments.
var becomeAvailable controller[*appsv1.Deployment] = func(ctx context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
	n := ptr.Deref(d.Spec.Replicas, 1)
	if d.DeletionTimestamp != nil || d.Status.ObservedGeneration == d.Generation && d.Status.AvailableReplicas == n {
		return reconcile.Result{}, nil
	}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
		AvailableReplicas: n}
	return reconcile.Result{}, client.IgnoreNotFound(api.Status().Update(ctx, d, client.FieldOwner("deployments")))
}

// succeed is the controller of Jobs. One whose container's command is "fail" fails.
var succeed controller[*batchv1.Job] = func(ctx context.Context, job *batchv1.Job) (reconcile.Result, error) {
	if job.DeletionTimestamp != nil || len(job.Status.Conditions) > 0 {
		return reconcile.Result{}, nil
	}
	if job.Name == slow+"-backup" || job.Name == slowDeleted+"-backup" {
		return reconcile.Result{}, nil
	}
	if job.Spec.Template.Spec.Containers[0].Name == "backup" {
		if err := runPod(ctx, job); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
	}
	now := metav1.NewTime(time.Now())
	conditions := map[batchv1.JobConditionType]string{batchv1.JobSuccessCriteriaMet: "", batchv1.JobComplete: ""}
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	if command := job.Spec.Template.Spec.Containers[0].Command; len(command) > 0 && command[0] == "fail" {
		conditions = map[batchv1.JobConditionType]string{batchv1.JobFailureTarget: "it failed", batchv1.JobFailed: "it failed"}
		job.Status = batchv1.JobStatus{StartTime: &now, Failed: 1}
	}
	for _, name := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete, batchv1.JobFailureTarget,
		batchv1.JobFailed} {
		if message, has := conditions[name]; has {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: name, Status: corev1.ConditionTrue,
				Message: message, LastTransitionTime: now, LastProbeTime: now})
		}
	}
	return reconcile.Result{}, client.IgnoreNotFound(api.Status().Update(ctx, job, client.FieldOwner("jobs")))
}

var check = environment.Check

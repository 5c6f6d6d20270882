// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the installed operator on a real Kubernetes with real Redis and
// Valkey. It needs KUBECONFIG, and the operator deployed there (make test-e2e does both).
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Where the operator is installed.
const (
	operatorNamespace  = "middleware-operator-system"
	operatorDeployment = "middleware-operator"
)

var (
	restConfig *rest.Config
	kube       client.Client
	clientset  kubernetes.Interface
)

func TestMain(m *testing.M) {
	if err := connect(); err != nil {
		fmt.Fprintf(os.Stderr, "end-to-end tests: %v; run them with make test-e2e, which brings a cluster up and installs the operator\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func connect() (err error) {
	if restConfig, err = config.GetConfig(); err != nil {
		return err
	}
	restConfig.QPS = -1                           // the tests poll
	restConfig.WarningHandler = rest.NoWarnings{} // admission's, about what tests mean to do
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	for _, add := range []func(*runtime.Scheme) error{appv1alpha1.AddToScheme, applicationv1.AddToScheme,
		crontabv1beta1.AddToScheme, foobarv1.AddToScheme, redisv1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	if kube, err = client.New(restConfig, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if clientset, err = kubernetes.NewForConfig(restConfig); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var operator appsv1.Deployment
	if err := kube.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorDeployment}, &operator); err != nil {
		return fmt.Errorf("find the operator: %w", err)
	}
	return nil
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package live is what tests on a real cluster share: a connection, namespaces of their own, waiting, and an application that
// notices everything.
package live

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Where `make deploy` installs the operator.
const (
	OperatorNamespace  = "middleware-operator-system"
	OperatorDeployment = "middleware-operator"
)

// The cluster, once Connect has succeeded.
var (
	Config    *rest.Config
	Kube      client.WithWatch
	Clientset kubernetes.Interface
)

// Connect connects to the cluster of KUBECONFIG. Its kinds are those of Kubernetes and of the operator.
func Connect() (err error) {
	log.SetLogger(logr.Discard()) // else the stack of whoever logs first is printed
	if Config, err = config.GetConfig(); err != nil {
		return err
	}
	Config.QPS = -1                           // the tests poll
	Config.WarningHandler = rest.NoWarnings{} // admission's, about what tests mean to do
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	for _, add := range []func(*runtime.Scheme) error{appv1alpha1.AddToScheme, applicationv1.AddToScheme,
		crontabv1beta1.AddToScheme, foobarv1.AddToScheme, redisv1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	if Kube, err = client.NewWithWatch(Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	Clientset, err = kubernetes.NewForConfig(Config)
	return err
}

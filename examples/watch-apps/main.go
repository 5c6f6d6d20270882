// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command watch-apps prints every App of a namespace, or of all, as it appears, changes and goes. It shows how a program of
// your own uses the generated clientset, informers and listers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"middleware.hc.cn/operator/api/app/v1alpha1"
	clientset "middleware.hc.cn/operator/pkg/generated/clientset/versioned"
	informers "middleware.hc.cn/operator/pkg/generated/informers/externalversions"
)

func main() {
	kubeconfig := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "path of a kubeconfig; empty: the Pod's own account")
	namespace := flag.String("namespace", metav1.NamespaceAll, "namespace to watch; empty: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := watch(ctx, *kubeconfig, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "watch-apps:", err)
		os.Exit(1)
	}
}

// watch prints until ctx ends.
func watch(ctx context.Context, kubeconfig, namespace string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("load the kubeconfig: %w", err)
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 10*time.Minute, informers.WithNamespace(namespace))
	apps := factory.Appcontroller().V1alpha1().Apps()
	if _, err := apps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { show("added", o) },
		UpdateFunc: func(_, o any) { show("changed", o) },
		DeleteFunc: func(o any) { show("deleted", o) },
	}); err != nil {
		return fmt.Errorf("watch Apps: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), apps.Informer().HasSynced) {
		return nil // asked to stop before all were listed
	}
	known, err := apps.Lister().List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list Apps: %w", err)
	}
	fmt.Printf("watching; %d Apps so far\n", len(known))
	<-ctx.Done()
	return nil
}

// show prints one line. What was deleted while the connection was down comes as its last known state.
func show(event string, o any) {
	if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if app, ok := o.(*v1alpha1.App); ok {
		fmt.Printf("%s %s/%s: image %s, %d ready\n", event, app.Namespace, app.Name, app.Spec.Image, app.Status.ReadyReplicas)
	}
}

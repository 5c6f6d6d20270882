// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	chartv1 "middleware.hc.cn/operator/api/chart/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// test is one test of the scorecard: the bundle's example of a kind becomes Ready, is what its users expect, and goes when deleted.
type test struct {
	// name is what the scorecard's configuration calls it.
	name string
	kind schema.GroupVersionKind
	// distinguish makes an example share nothing with others in its namespace; nil if its name alone does.
	distinguish func(example *unstructured.Unstructured) error
	// lacks says, in sentences, what users of a Ready object would miss.
	lacks func(object *unstructured.Unstructured, services addresses) ([]string, error)
}

// addresses is how many ready addresses the Services of a namespace lead to, by the Service's name.
type addresses map[string]int

var tests = []test{
	{name: "rediscluster-ready", kind: redisv1alpha1.GroupVersion.WithKind("RedisCluster"), lacks: on(redisClusterLacks)},
	{name: "app-ready", kind: appv1alpha1.GroupVersion.WithKind("App"), lacks: on(appLacks)},
	{name: "application-ready", kind: applicationv1.GroupVersion.WithKind("Application"), distinguish: distinguishApplication,
		lacks: on(applicationLacks)},
	{name: "crontab-ready", kind: crontabv1beta1.GroupVersion.WithKind("CronTab"), lacks: on(cronTabLacks)},
	{name: "foobar-ready", kind: foobarv1.GroupVersion.WithKind("FooBar"), lacks: on(fooBarLacks)},
}

// on lets a check read an object as its Go type.
func on[T any](lacks func(object *T, services addresses) []string) func(*unstructured.Unstructured, addresses) ([]string, error) {
	return func(object *unstructured.Unstructured, services addresses) ([]string, error) {
		typed := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return nil, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		return lacks(typed, services), nil
	}
}

func redisClusterLacks(cluster *redisv1alpha1.RedisCluster, services addresses) []string {
	var lacks []string
	status, want := &cluster.Status, int(cluster.Spec.Topology().Instances())
	if status.Slots != 16384 {
		lacks = append(lacks, fmt.Sprintf("%d of 16384 slots are served", status.Slots))
	}
	if len(status.Nodes) != want {
		lacks = append(lacks, fmt.Sprintf("%d instances exist, spec.replicas asks for %d", len(status.Nodes), want))
	}
	for _, node := range status.Nodes {
		if node.Status != "True" {
			lacks = append(lacks, fmt.Sprintf("instance %s does not serve: %s %s", node.Name, node.Reason, node.Message))
		}
	}
	if got := services[cluster.Name]; got != want {
		lacks = append(lacks, fmt.Sprintf("Service %s leads to %d of %d instances", cluster.Name, got, want))
	}
	if cluster.AuthEnabled() && status.SecretName == "" {
		lacks = append(lacks, "status.secretName does not say where the password is")
	}
	return lacks
}

func appLacks(app *appv1alpha1.App, services addresses) []string {
	var lacks []string
	if app.Status.ReadyReplicas < 1 || app.Status.ReadyReplicas < app.Status.Replicas {
		lacks = append(lacks, fmt.Sprintf("%d of %d pods are ready", app.Status.ReadyReplicas, app.Status.Replicas))
	}
	made := childrenOf(app.Status.ReleaseStatus, "Service")
	if len(made) == 0 {
		lacks = append(lacks, "there is no Service")
	}
	for _, service := range made {
		if services[service] < 1 {
			lacks = append(lacks, fmt.Sprintf("Service %s leads to no pod", service))
		}
	}
	return lacks
}

func applicationLacks(app *applicationv1.Application, _ addresses) []string {
	want := int32(1) // the default of a Deployment
	if replicas := app.Spec.Template.Spec.Replicas; replicas != nil {
		want = *replicas
	}
	if app.Status.ReadyReplicas != want {
		return []string{fmt.Sprintf("%d of %d pods are ready", app.Status.ReadyReplicas, want)}
	}
	return nil
}

func cronTabLacks(cronTab *crontabv1beta1.CronTab, _ addresses) []string {
	var lacks []string
	if len(childrenOf(cronTab.Status.ReleaseStatus, "CronJob")) != 1 {
		lacks = append(lacks, "there is no CronJob")
	}
	if suspended := cronTab.Spec.Suspend; cronTab.Status.NextRunTime == nil && (suspended == nil || !*suspended) {
		lacks = append(lacks, "status.nextRunTime does not say when it runs next")
	}
	return lacks
}

func fooBarLacks(fooBar *foobarv1.FooBar, _ addresses) []string {
	if meta.IsStatusConditionTrue(fooBar.Status.Conditions, foobarv1.ConditionComplete) {
		return nil
	}
	return []string{fmt.Sprintf("the command has not succeeded (%s completions)", fooBar.Status.Completions)}
}

func childrenOf(release chartv1.ReleaseStatus, kind string) []string {
	var names []string
	for _, entry := range release.Inventory {
		if entry.Kind == kind {
			names = append(names, entry.Name)
		}
	}
	return names
}

// runLabel tells the Deployment and the pods of one run from those of another Application with the same labels.
const runLabel = "scorecard.middleware.hc.cn/run"

func distinguishApplication(example *unstructured.Unstructured) error {
	paths := [][]string{
		{"spec", "selector", "matchLabels"},
		{"spec", "template", "metadata", "labels"},
		{"spec", "template", "spec", "selector", "matchLabels"},
		{"spec", "template", "spec", "template", "metadata", "labels"},
	}
	for _, path := range paths {
		labels, found, err := unstructured.NestedStringMap(example.Object, path...)
		if err != nil {
			return err
		}
		if !found { // it is derived from one that is there
			continue
		}
		labels[runLabel] = example.GetName()
		if err := unstructured.SetNestedStringMap(example.Object, labels, path...); err != nil {
			return err
		}
	}
	if _, found, _ := unstructured.NestedString(example.Object, "spec", "template", "metadata", "name"); found {
		return unstructured.SetNestedField(example.Object, example.GetName(), "spec", "template", "metadata", "name")
	}
	return nil
}

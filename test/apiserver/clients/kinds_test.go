// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	clientset "middleware.hc.cn/operator/pkg/generated/clientset/versioned"
	informers "middleware.hc.cn/operator/pkg/generated/informers/externalversions"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// creator makes the kind's object named x.
type creator func(ctx context.Context, clients *clientset.Clientset, namespace string) error

var (
	meta    = metav1.ObjectMeta{Name: "x"}
	options = metav1.CreateOptions{}
	labels  = map[string]string{"app": "x"}
)

// creators has a row for each kind of PROJECT: TestEveryKind compares.
var creators = map[schema.GroupVersionResource]creator{
	appv1alpha1.GroupVersion.WithResource("apps"): func(ctx context.Context, clients *clientset.Clientset, namespace string) error {
		_, err := clients.AppcontrollerV1alpha1().Apps(namespace).Create(ctx,
			&appv1alpha1.App{ObjectMeta: meta, Spec: appv1alpha1.AppSpec{Image: "x"}}, options)
		return err
	},
	applicationv1.GroupVersion.WithResource("applications"): func(ctx context.Context, clients *clientset.Clientset, namespace string) error {
		o := &applicationv1.Application{ObjectMeta: meta}
		o.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		o.Spec.Template.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		o.Spec.Template.Spec.Template.Metadata.Labels = labels
		o.Spec.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "x", Image: "x"}}
		_, err := clients.ControllerV1().Applications(namespace).Create(ctx, o, options)
		return err
	},
	crontabv1beta1.GroupVersion.WithResource("crontabs"): func(ctx context.Context, clients *clientset.Clientset, namespace string) error {
		_, err := clients.StableV1beta1().CronTabs(namespace).Create(ctx,
			&crontabv1beta1.CronTab{ObjectMeta: meta, Spec: crontabv1beta1.CronTabSpec{CronSpec: "@daily", Image: "x"}}, options)
		return err
	},
	foobarv1.GroupVersion.WithResource("foobars"): func(ctx context.Context, clients *clientset.Clientset, namespace string) error {
		_, err := clients.K8sV1().FooBars(namespace).Create(ctx, &foobarv1.FooBar{ObjectMeta: meta, Spec: foobarv1.FooBarSpec{Command: "true"}},
			options)
		return err
	},
	redisv1alpha1.GroupVersion.WithResource("redisbackups"): func(ctx context.Context, clients *clientset.Clientset, namespace string) error {
		_, err := clients.RedisV1alpha1().RedisBackups(namespace).Create(ctx,
			&redisv1alpha1.RedisBackup{ObjectMeta: meta, Spec: redisv1alpha1.RedisBackupSpec{Cluster: "x",
				Store: redisv1alpha1.BackupStore{S3: &redisv1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "x"}}}}, options)
		return err
	},
	redisv1alpha1.GroupVersion.WithResource("redisbackupschedules"): func(ctx context.Context, clients *clientset.Clientset,
		namespace string,
	) error {
		_, err := clients.RedisV1alpha1().RedisBackupSchedules(namespace).Create(ctx,
			&redisv1alpha1.RedisBackupSchedule{ObjectMeta: meta, Spec: redisv1alpha1.RedisBackupScheduleSpec{Schedule: "@daily", Cluster: "x",
				Store: redisv1alpha1.BackupStore{S3: &redisv1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "x"}}}}, options)
		return err
	},
	redisv1alpha1.GroupVersion.WithResource("redisclusters"): func(ctx context.Context, clients *clientset.Clientset, namespace string) error {
		_, err := clients.RedisV1alpha1().RedisClusters(namespace).Create(ctx, &redisv1alpha1.RedisCluster{ObjectMeta: meta}, options)
		return err
	},
}

// Every kind of the project is made by its typed client and read by its informer and lister.
func TestEveryKind(t *testing.T) {
	byName := func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) }
	if diff := cmp.Diff(slices.SortedFunc(slices.Values(kindsOfProject(t)), byName), slices.SortedFunc(maps.Keys(creators), byName)); diff !=
		"" {
		t.Fatalf("the kinds of PROJECT are not those of this test (-PROJECT +test):\n%s", diff)
	}
	ctx := t.Context()
	clients, err := clientset.NewForConfig(admin)
	shared.Check(t, err)
	namespace := shared.NewNamespace(t, api, "clients")
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace(namespace))
	for resource, create := range creators {
		t.Run(resource.Resource, func(t *testing.T) {
			informer, err := factory.ForResource(resource)
			shared.Check(t, err)
			watch := informer.Informer() // registers it before the factory starts
			factory.Start(ctx.Done())
			if !cache.WaitForCacheSync(ctx.Done(), watch.HasSynced) {
				t.Fatal("the informer did not list")
			}
			shared.Check(t, create(ctx, clients, namespace))
			shared.Eventually(t, "its lister's sight of it", func() string {
				if _, err := informer.Lister().ByNamespace(namespace).Get("x"); err != nil {
					return err.Error()
				}
				return ""
			})
		})
	}
}

// kindsOfProject are the kinds with Go types that operator-sdk's file names.
func kindsOfProject(t *testing.T) (kinds []schema.GroupVersionResource) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "PROJECT"))
	shared.Check(t, err)
	var project struct {
		Resources []struct{ Group, Domain, Version, Kind, Path string }
	}
	shared.Check(t, yaml.Unmarshal(text, &project))
	for _, r := range project.Resources {
		if r.Path == "" { // a chart kind without Go types
			continue
		}
		kinds = append(kinds, schema.GroupVersionResource{Group: r.Group + "." + r.Domain, Version: r.Version, Resource: strings.ToLower(r.Kind) +
			"s"})
	}
	return kinds
}

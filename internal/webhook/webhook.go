// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/app"
	"middleware.hc.cn/operator/internal/admission/application"
	"middleware.hc.cn/operator/internal/admission/crontab"
	"middleware.hc.cn/operator/internal/admission/foobar"
	"middleware.hc.cn/operator/internal/admission/images"
	"middleware.hc.cn/operator/internal/admission/rediscluster"
)

// The names that config/ gives to what belongs to the webhooks.
const (
	// Service is the Service through which the API server calls, in the operator's namespace.
	Service = "middleware-operator-webhook"
	// Configuration is the name of both the ValidatingWebhookConfiguration and the MutatingWebhookConfiguration.
	Configuration = "middleware-operator"
	// CertificateSecret is where the operator keeps the certificates it makes itself, in its own namespace.
	CertificateSecret = "middleware-operator-webhook-cert"
)

// Options are what admission depends on besides the object.
type Options struct {
	// AllowHostPath lets RedisClusters keep their data in directories of the nodes.
	AllowHostPath bool
	// ServiceAnnotationDomains are those of annotations that Services of RedisClusters may have; nil: the default ones.
	ServiceAnnotationDomains []string
	// ClusterIssuers are the names of those that RedisClusters may ask certificates of; "*" is any.
	ClusterIssuers []string
	// Images are those of resources that name none.
	Images images.Defaults
}

// Add serves admission for the five kinds. Kinds that users add by watches.yaml have the rules of their CRD and of their chart's
// values.schema.json.
func Add(mgr ctrl.Manager, o Options) error {
	server, scheme := mgr.GetWebhookServer(), mgr.GetScheme()
	redisOptions := rediscluster.Options{AllowHostPath: o.AllowHostPath, ServiceAnnotationDomains: o.ServiceAnnotationDomains,
		ClusterIssuers: o.ClusterIssuers}

	rules[*redisv1alpha1.RedisCluster]{
		gvk:   redisv1alpha1.GroupVersion.WithKind("RedisCluster"),
		fresh: func() *redisv1alpha1.RedisCluster { return &redisv1alpha1.RedisCluster{} },
		spec:  func(c *redisv1alpha1.RedisCluster) any { return c.Spec },
		image: func(before, c *redisv1alpha1.RedisCluster) {
			rediscluster.DefaultImage(before, c, o.Images.Redis)
		},
		defaults: rediscluster.Default,
		validate: func(c *redisv1alpha1.RedisCluster) field.ErrorList { return rediscluster.Validate(c, redisOptions) },
		validateUpdate: func(before, after *redisv1alpha1.RedisCluster) field.ErrorList {
			return rediscluster.ValidateUpdate(before, after, redisOptions)
		},
		warnings: rediscluster.Warnings,
	}.register(server, scheme)

	rules[*appv1alpha1.App]{
		gvk:            appv1alpha1.GroupVersion.WithKind("App"),
		fresh:          func() *appv1alpha1.App { return &appv1alpha1.App{} },
		spec:           func(a *appv1alpha1.App) any { return a.Spec },
		defaults:       app.Default,
		validate:       app.Validate,
		validateUpdate: app.ValidateUpdate,
		warnings:       app.Warnings,
	}.register(server, scheme)

	rules[*applicationv1.Application]{
		gvk:            applicationv1.GroupVersion.WithKind("Application"),
		fresh:          func() *applicationv1.Application { return &applicationv1.Application{} },
		spec:           func(a *applicationv1.Application) any { return a.Spec },
		defaults:       application.Default,
		validate:       application.Validate,
		validateUpdate: application.ValidateUpdate,
		warnings:       application.Warnings,
	}.register(server, scheme)

	rules[*crontabv1beta1.CronTab]{
		gvk:            crontabv1beta1.GroupVersion.WithKind("CronTab"),
		fresh:          func() *crontabv1beta1.CronTab { return &crontabv1beta1.CronTab{} },
		spec:           func(c *crontabv1beta1.CronTab) any { return c.Spec },
		defaults:       crontab.Default,
		validate:       crontab.Validate,
		validateUpdate: crontab.ValidateUpdate,
		warnings:       crontab.Warnings,
	}.register(server, scheme)

	rules[*foobarv1.FooBar]{
		gvk:            foobarv1.GroupVersion.WithKind("FooBar"),
		fresh:          func() *foobarv1.FooBar { return &foobarv1.FooBar{} },
		spec:           func(f *foobarv1.FooBar) any { return f.Spec },
		image:          func(before, f *foobarv1.FooBar) { foobar.DefaultImage(before, f, o.Images.FooBar) },
		defaults:       foobar.Default,
		validate:       foobar.Validate,
		validateUpdate: foobar.ValidateUpdate,
		warnings:       foobar.Warnings,
	}.register(server, scheme)
	return nil
}

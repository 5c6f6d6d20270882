// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"encoding/json"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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
	"middleware.hc.cn/operator/test/admit"
)

// kind is one of the five, as an API server and the operator's webhooks treat it.
type kind struct {
	page string
	crd  apiextensionsv1.CustomResourceDefinition
	// smallest is the spec that a fragment of a page is added to.
	smallest  string
	defined   *admit.Definition
	admission admission
}

// admission sets defaults and says what is wrong with an object, as JSON; before is nil at its making.
type admission func(before, object []byte) (field.ErrorList, error)

// webhook is the admission of one kind.
func webhook[T any](defaults func(*T), validate func(*T) field.ErrorList, update func(before, after *T) field.ErrorList) admission {
	return func(before, object []byte) (field.ErrorList, error) {
		var old, made T
		if err := json.Unmarshal(object, &made); err != nil {
			return nil, err
		}
		defaults(&made)
		if before == nil {
			return validate(&made), nil
		}
		if err := json.Unmarshal(before, &old); err != nil {
			return nil, err
		}
		defaults(&old)
		return update(&old, &made), nil
	}
}

// kinds are the five kinds by their apiVersion and kind.
func kinds(t *testing.T) map[string]*kind {
	t.Helper()
	// What docs/external-access.md has whoever runs the operator allow.
	options := rediscluster.Options{
		ServiceAnnotationDomains: append(slices.Clone(rediscluster.DefaultServiceAnnotationDomains), "external-dns.alpha.kubernetes.io")}
	byName := map[string]*kind{
		"redis.middleware.hc.cn/v1alpha1 RedisCluster": {page: redisPage, smallest: "{replicas: 6}",
			admission: webhook(func(c *redisv1alpha1.RedisCluster) {
				rediscluster.DefaultImage(nil, c, images.BuiltIn().Redis)
				rediscluster.Default(c)
			}, func(c *redisv1alpha1.RedisCluster) field.ErrorList { return rediscluster.Validate(c, options) },
				func(old, c *redisv1alpha1.RedisCluster) field.ErrorList {
					return rediscluster.ValidateUpdate(old, c, options)
				})},
		"redis.middleware.hc.cn/v1alpha1 RedisBackup": {page: "docs/backup.md",
			smallest: "{cluster: cache, store: {s3: {bucket: backups, credentialsSecretName: store}}}"},
		"redis.middleware.hc.cn/v1alpha1 RedisBackupSchedule": {page: "docs/backup-schedule.md",
			smallest: "{schedule: '@daily', cluster: cache, store: {s3: {bucket: backups, credentialsSecretName: store}}}"},
		"appcontroller.middleware.hc.cn/v1alpha1 App": {page: "docs/app.md", smallest: "{image: 'shop/web:1.4'}",
			admission: webhook[appv1alpha1.App](app.Default, app.Validate, app.ValidateUpdate)},
		"controller.controller.daocloud.io/v1 Application": {page: "docs/application.md",
			smallest: "{selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {template: {" +
				"metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'busybox:1.36'}]}}}}}",
			admission: webhook[applicationv1.Application](application.Default, application.Validate, application.ValidateUpdate)},
		"stable.example.com/v1beta1 CronTab": {page: "docs/crontab.md", smallest: "{cronSpec: '* * * * *', image: 'busybox:1.36'}",
			admission: webhook[crontabv1beta1.CronTab](crontab.Default, crontab.Validate, crontab.ValidateUpdate)},
		"k8s.io/v1 FooBar": {page: "docs/foobar.md", smallest: "{command: echo}",
			admission: webhook(func(f *foobarv1.FooBar) {
				foobar.DefaultImage(nil, f, images.FooBar)
				foobar.Default(f)
			}, foobar.Validate, foobar.ValidateUpdate)},
	}
	defined, err := admit.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	for gvk, d := range defined {
		k := byName[gvk.GroupVersion().String()+" "+gvk.Kind]
		if k == nil {
			t.Fatalf("%s is not among the kinds of this test", d.Name)
		}
		k.crd, k.defined = d.CustomResourceDefinition, d
	}
	return byName
}

// refuses says what the API server and the webhooks have against an object; nil when it is taken. Before is the object that it
// replaces, nil at its making.
func (k *kind) refuses(t *testing.T, before, object map[string]any) field.ErrorList {
	t.Helper()
	encoded := [2][]byte{}
	for i, o := range []map[string]any{before, object} {
		if o == nil {
			continue
		}
		refused := k.defined.Complete(o)
		if len(refused) == 0 {
			refused = k.defined.Refuses(t.Context(), before, o)
		}
		if len(refused) > 0 {
			return refused
		}
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		encoded[i] = text
	}
	if k.admission == nil { // the schema says it all
		return nil
	}
	refused, err := k.admission(encoded[0], encoded[1])
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath(""), nil, err.Error())}
	}
	return refused
}

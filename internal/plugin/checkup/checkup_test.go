// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checkup

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// installed is a cluster that has everything.
func installed() Seen {
	own := metav1.ObjectMeta{Name: product, Namespace: product + "-system", Labels: Selector}
	hook := admissionregistrationv1.WebhookClientConfig{CABundle: []byte("x")}
	seen := Seen{Namespace: "shop", Plugin: "0.1.0", Server: "v1.36.3", Unread: map[string]string{},
		Kinds:       []Kind{{Name: "RedisCluster", Versions: []string{"v1alpha1"}, Wanted: "v1alpha1"}},
		Deployments: []appsv1.Deployment{{ObjectMeta: own, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}}},
		Validating: []admissionregistrationv1.ValidatingWebhookConfiguration{{ObjectMeta: own,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: hook}}}, {ObjectMeta: metav1.ObjectMeta{Name: "of-others"}}},
		Mutating: []admissionregistrationv1.MutatingWebhookConfiguration{{ObjectMeta: own,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: hook}}}},
		Classes: []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "fast",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, AllowVolumeExpansion: ptr.To(true)}},
		Bindings: []rbacv1.RoleBinding{{ObjectMeta: own, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: namespaceRole},
			Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve"}, {Kind: "ServiceAccount", Name: "runs", Namespace: own.Namespace}}}}}
	seen.Deployments[0].Spec.Template.Spec.ServiceAccountName = "runs"
	for _, right := range Rights() {
		seen.Allowed = append(seen.Allowed, Answer{Right: right, Allowed: true})
	}
	return seen
}

func TestChecks(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Seen)
		failed bool
		want   string
	}{
		"all is there":          {func(*Seen) {}, false, "ok       class fast"},
		"an old Kubernetes":     {func(s *Seen) { s.Server = "v1.29.1" }, true, "is older than"},
		"a version of nobody":   {func(s *Seen) { s.Server = "\x1b[2J" }, false, "unknown  the API server says"},
		"no kind":               {func(s *Seen) { s.Kinds[0].Versions = nil }, true, "missing  the cluster has no RedisCluster"},
		"a newer operator":      {func(s *Seen) { s.Kinds[0].Versions = []string{"v1"} }, false, "use the plugin of the operator's version"},
		"no operator":           {func(s *Seen) { s.Deployments = nil }, true, "missing  no Deployment"},
		"one that does not run": {func(s *Seen) { s.Deployments[0].Status.ReadyReplicas = 0 }, true, "kubectl describe pods -n"},
		"no webhooks":           {func(s *Seen) { s.Validating, s.Mutating = nil, nil }, false, "warning  none of the operator's"},
		"without a certificate": {func(s *Seen) { s.Mutating[0].Webhooks[0].ClientConfig.CABundle = nil }, true, "1 of 1 have no caBundle"},
		"no storage class":      {func(s *Seen) { s.Classes = nil }, false, "there is no default storage class"},
		"one of fixed size":     {func(s *Seen) { s.Classes[0].AllowVolumeExpansion = nil }, false, "cannot be expanded"},
		"no right to keep them": {func(s *Seen) { s.Bindings = nil }, false, "kubectl create rolebinding middleware-operator -n shop"},
		"a binding of others":   {func(s *Seen) { s.Bindings[0].Subjects[1].Namespace = "elsewhere" }, false, "no RoleBinding of the operator"},
		"one of nobody":         {func(s *Seen) { s.Bindings[0].Subjects = nil }, false, "no RoleBinding of the operator"},
		"a Role of that name":   {func(s *Seen) { s.Bindings[0].RoleRef.Kind = "Role" }, false, "no RoleBinding of the operator"},
		"one of ours":           {func(*Seen) {}, false, "the operator may keep Secrets in shop"},
		"a Deployment that may not be read": {func(s *Seen) {
			s.Deployments, s.Unread["operator"], s.Bindings[0].Subjects[1].Name = nil, "forbidden", product
		}, false, "the operator may keep Secrets in shop"},
		"what may not be read": {func(s *Seen) { s.Deployments, s.Unread["operator"] = nil, "forbidden" }, false,
			"unknown  could not be read: forbidden"},
		"a right that is missing": {func(s *Seen) { s.Allowed[0].Allowed = false }, false,
			"status: you may not get redisclusters.redis.middleware.hc.cn"},
		"one that it goes without": {func(s *Seen) { s.Allowed[2].Allowed = false }, false,
			"status: you may not list pods: it leaves out memory limits"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := installed()
			tt.change(&seen)
			report := Of(seen)
			text := report.Text(terminal.Page{Width: 200})
			if report.Failed() != tt.failed || !strings.Contains(text, tt.want) || strings.Contains(text, "\x1b") ||
				strings.Contains(text, "of-others") {
				t.Errorf("failed %t, want %q in\n%s", report.Failed(), tt.want, text)
			}
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"middleware.hc.cn/operator/test/live"
)

// runGateway runs hack/tools/gateway in a namespace, for that namespace: as Service gateway, with an IngressClass of the
// namespace's name. It may read that namespace, and answer in the status of what it serves.
func runGateway(t *testing.T, namespace string) {
	t.Helper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: "gateway"}
	account := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "gateway"}}
	read := []string{"get", "list", "watch"}
	live.Create(t, &corev1.ServiceAccount{ObjectMeta: name})
	live.Create(t, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "secrets", "configmaps"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses"}, Verbs: read},
		{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"*"}, Verbs: append(read, "update", "patch")},
	}})
	live.Create(t,
		&rbacv1.RoleBinding{
			ObjectMeta: name, Subjects: account, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "gateway"}})
	cluster := metav1.ObjectMeta{Name: "gateway-" + namespace}
	createForTest(t, &rbacv1.ClusterRole{ObjectMeta: cluster, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: read},
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingressclasses"}, Verbs: read},
		{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gatewayclasses", "gatewayclasses/status"},
			Verbs: append(read, "update", "patch")},
	}})
	createForTest(t,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: cluster, Subjects: account, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}})
	createForTest(t,
		&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"}})

	labels := map[string]string{"app": "gateway"}
	deployment := &appsv1.Deployment{ObjectMeta: name, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			ServiceAccountName: "gateway", SecurityContext: restricted(),
			Containers: []corev1.Container{{
				Name: "gateway", Image: "middleware.hc.cn/gateway:3.7.13", Args: []string{"--namespace=" + namespace}, SecurityContext: unprivileged(),
				ReadinessProbe: &corev1.Probe{
					PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
			}},
		}},
	}}
	live.Create(t, deployment)
	live.Create(t, &corev1.Service{ObjectMeta: name, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 8080}}}})
	live.Eventually(t, "the Gateway runs", func() error {
		if err := live.Get(t, deployment); err != nil || deployment.Status.AvailableReplicas < 1 {
			return errors.Join(err, errors.New("it is not available"))
		}
		return nil
	})
}

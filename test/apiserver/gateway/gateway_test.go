// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/conditions"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// An App that names a Gateway is reachable whatever becomes of the Gateway API's CRDs, and an Ingress stays until the Gateway has
// accepted the route that replaces it.
func TestGatewayAPIComesAndGoes(t *testing.T) {
	const ingresses = "Ingress/web Ingress/web-canary"
	removeRoutes(t) // another test may have had them
	namespace := shared.NewNamespace(t, api, "gateway")
	stop := startOperator(t, namespace)
	web := newApp(t, namespace, "web", true)
	says(t, web, ingresses, metav1.ConditionTrue, "")

	t.Log("the CRDs come")
	serveGatewayAPI(t)
	aMinuteLater(t, web)
	says(t, web, ingresses+" HTTPRoute/web", metav1.ConditionFalse, "has no answer from Gateway "+namespace+"/public")
	answer(t, web, metav1.ConditionFalse, "NotAllowedByListeners")
	says(t, web, ingresses+" HTTPRoute/web", metav1.ConditionFalse, "is not accepted by Gateway "+namespace+
		"/public: NotAllowedByListeners: so it is")

	t.Log("a change takes effect meanwhile")
	shared.Change(t, api, web, func(a *unstructured.Unstructured) {
		check(t, unstructured.SetNestedField(a.Object, int64(50), "spec", "canary", "weight"))
	})
	eventually(t, "the Ingress and the route have the new weight", func() string { return weighs(t, web, 50) })

	answer(t, web, metav1.ConditionTrue, "Accepted")
	says(t, web, "HTTPRoute/web", metav1.ConditionTrue, "")
	if url, _, _ := unstructured.NestedString(web.Object, "status", "url"); url != "http://web.example.com" {
		t.Errorf("status.url is %q", url)
	}

	t.Log("the CRDs were there before")
	stop()
	stop = startOperator(t, namespace)
	later := newApp(t, namespace, "later", true)
	says(t, later, "HTTPRoute/later", metav1.ConditionFalse, "has no answer")
	answer(t, later, metav1.ConditionTrue, "Accepted")
	says(t, later, "HTTPRoute/later", metav1.ConditionTrue, "")
	says(t, web, "HTTPRoute/web", metav1.ConditionTrue, "")

	t.Log("the CRDs go")
	removeRoutes(t)
	says(t, web, ingresses, metav1.ConditionTrue, "")
	says(t, later, "Ingress/later Ingress/later-canary", metav1.ConditionTrue, "")
	if c := meta.FindStatusCondition(conditions.Read(web), "ReleaseFailed"); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("the App tells of a failure: %v", c)
	}

	t.Log("and come again, while no operator runs")
	stop()
	serveGatewayAPI(t)
	startOperator(t, namespace)
	says(t, web, ingresses+" HTTPRoute/web", metav1.ConditionFalse, "has no answer")
	answer(t, web, metav1.ConditionTrue, "Accepted")
	says(t, web, "HTTPRoute/web", metav1.ConditionTrue, "")

	t.Log("the App no longer names a Gateway")
	shared.Change(t, api, web, func(a *unstructured.Unstructured) {
		unstructured.RemoveNestedField(a.Object, "spec", "ingress", "gateway")
	})
	says(t, web, ingresses, metav1.ConditionTrue, "")
}

// weighs looks for a canary's weight in both the Ingress and the route.
func weighs(t *testing.T, app *unstructured.Unstructured, weight int64) string {
	t.Helper()
	ingress := shared.Object(schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, app.GetNamespace(),
		app.GetName()+"-canary")
	route := shared.Object(routeKind, app.GetNamespace(), app.GetName())
	if !shared.Get(t, api, ingress) || !shared.Get(t, api, route) {
		return "one of them is gone"
	}
	if got := ingress.GetAnnotations()["nginx.ingress.kubernetes.io/canary-weight"]; got != "50" {
		return "the Ingress has " + got
	}
	rules, _, _ := unstructured.NestedSlice(route.Object, "spec", "rules")
	last, _ := rules[len(rules)-1].(map[string]any)
	backends, _, _ := unstructured.NestedSlice(last, "backendRefs")
	if got, _, _ := unstructured.NestedInt64(backends[1].(map[string]any), "weight"); got != weight {
		return "the route has another weight"
	}
	return ""
}

// An API whose server is away (metrics, above all) is none that an App asks for.
func TestAppsDoWithoutTheAPIsOfOthers(t *testing.T) {
	away := shared.Object(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "",
		"v1beta1.away.example.com")
	away.Object["spec"] = map[string]any{"group": "away.example.com", "version": "v1beta1", "groupPriorityMinimum": int64(100),
		"versionPriority":       int64(100),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "away"}}
	check(t, api.Create(context.Background(), away))
	defer func() { check(t, api.Delete(context.Background(), away)) }()
	eventually(t, "the API server has seen that it is away", func() string {
		if c := meta.FindStatusCondition(conditions.Read(away), "Available"); !shared.Get(t, api, away) || c == nil ||
			c.Status != metav1.ConditionFalse {
			return "it has not"
		}
		return ""
	})
	namespace := shared.NewNamespace(t, api, "gateway")
	startOperator(t, namespace)
	web := newApp(t, namespace, "web", false)
	says(t, web, "Ingress/web Ingress/web-canary", metav1.ConditionTrue, "")
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway runs Apps on an API server to which the CRDs of the Gateway API come and from which they go. No Gateway runs there:
// tests write the status that its controller would write; test/e2e has the traffic.
package gateway

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	helmcharts "middleware.hc.cn/operator/helm-charts"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/chartkind"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/gatewayapi"
)

const root = "../../.."

var (
	appKind   = appv1alpha1.GroupVersion.WithKind("App")
	routeKind = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}

	environment = &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	admin       *rest.Config
	api         client.Client
	// ahead is how far the operator's clock is ahead, in nanoseconds.
	ahead atomic.Int64
)

func TestMain(m *testing.M) {
	// Off by default, and on in OpenShift: who sets blockOwnerDeletion must be allowed to update the owner's finalizers.
	environment.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	os.Exit(shared.Run(m, environment, scheme.Scheme, func(_ context.Context, config *rest.Config, c client.Client) (<-chan error, error) {
		admin, api = config, c
		return nil, grant()
	}))
}

// grant gives the operator's service account the rights that it has everywhere.
func grant() error {
	text, err := os.ReadFile(filepath.Join(root, "config", "rbac", "manager_role.yaml"))
	if err != nil {
		return err
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return err
		}
		if err := api.Create(context.Background(), object); err != nil {
			return err
		}
	}
	return nil
}

var check = shared.Check

// startOperator runs the App kind as it ships, with the rights of its role, for one namespace.
func startOperator(t *testing.T, namespace string) (stop func()) {
	t.Helper()
	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:middleware-operator-system:middleware-operator",
		Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	mgr, children, err := shared.NewManager(as, scheme.Scheme, namespace)
	check(t, err)
	files, err := fs.Sub(helmcharts.FS, "app")
	check(t, err)
	loaded, err := chart.Load(files)
	check(t, err)
	kind := chartkind.For(appKind)
	check(t, release.Add(mgr, children, watches.Watch{GroupVersionKind: appKind, WatchDependentResources: true, Selector: labels.Everything()},
		loaded, release.Options{
			Validate: kind.Validate, StatusExtras: kind.StatusExtras, Awaits: kind.Awaits,
			Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		}))
	return shared.Start(t, mgr)
}

// newApp makes an App with a canary that is to be reached from outside, through the Gateway public or none.
func newApp(t *testing.T, namespace, name string, gateway bool) *unstructured.Unstructured {
	t.Helper()
	app := shared.Object(appKind, namespace, name)
	app.Object["spec"] = map[string]any{
		"image":   "web:1",
		"canary":  map[string]any{"image": "web:2", "weight": int64(30), "header": "X-Canary"},
		"ingress": map[string]any{"enabled": true, "host": name + ".example.com", "className": namespace},
	}
	if gateway {
		nameGateway(t, app)
	}
	check(t, api.Create(context.Background(), app))
	return app
}

// nameGateway sets the Gateway that an App is to be reached through.
func nameGateway(t *testing.T, app *unstructured.Unstructured) {
	t.Helper()
	check(t, unstructured.SetNestedMap(app.Object, map[string]any{"name": "public"}, "spec", "ingress", "gateway"))
}

// serveGatewayAPI installs the CRDs that are not there.
func serveGatewayAPI(t *testing.T) {
	t.Helper()
	crds, err := gatewayapi.CRDs(root)
	check(t, err)
	for _, crd := range crds {
		if err := api.Create(context.Background(), crd); !apierrors.IsAlreadyExists(err) {
			check(t, err)
		}
	}
	eventually(t, "HTTPRoute is served", func() string {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(routeKind)
		if err := api.List(context.Background(), list); err != nil {
			return err.Error()
		}
		return ""
	})
}

// removeRoutes deletes the CRD of HTTPRoutes, and with it every route.
func removeRoutes(t *testing.T) {
	t.Helper()
	crd := shared.Object(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "",
		"httproutes.gateway.networking.k8s.io")
	check(t, client.IgnoreNotFound(api.Delete(context.Background(), crd)))
	eventually(t, "the CRD is gone", func() string {
		if shared.Get(t, api, crd) {
			return fmt.Sprint(conditions.Read(crd))
		}
		return ""
	})
}

// aMinuteLater has the operator look at an App again when what it knows of the cluster is old.
func aMinuteLater(t *testing.T, app *unstructured.Unstructured) {
	t.Helper()
	ahead.Add(int64(61 * time.Second))
	shared.Change(t, api, app, func(a *unstructured.Unstructured) {
		a.SetAnnotations(map[string]string{"example.com/poked": fmt.Sprint(ahead.Load())})
	})
}

var eventually = shared.Eventually

// entrances lists what leads to an App from outside.
func entrances(t *testing.T, app *unstructured.Unstructured) string {
	t.Helper()
	var found []string
	ingresses := &networkingv1.IngressList{}
	check(t, api.List(context.Background(), ingresses, client.InNamespace(app.GetNamespace()),
		client.MatchingLabels{"app.kubernetes.io/instance": app.GetName()}))
	for _, in := range ingresses.Items {
		found = append(found, "Ingress/"+in.Name)
	}
	route := shared.Object(routeKind, app.GetNamespace(), app.GetName())
	if err := api.Get(context.Background(), client.ObjectKeyFromObject(route), route); err == nil {
		found = append(found, "HTTPRoute/"+route.GetName())
	}
	return strings.Join(found, " ")
}

// says waits until the entrances are these, and Ready has a status and a message with a text.
func says(t *testing.T, app *unstructured.Unstructured, want string, status metav1.ConditionStatus, text string) {
	t.Helper()
	eventually(t, want, func() string {
		playDeployments(t, app.GetNamespace())
		if !shared.Get(t, api, app) {
			return "the App is gone"
		}
		c := meta.FindStatusCondition(conditions.Read(app), "Ready")
		if got := entrances(t, app); got != want || c == nil || c.Status != status || !strings.Contains(c.Message, text) {
			return fmt.Sprintf("%s, %v", got, c)
		}
		return ""
	})
}

// answer writes what the controller of the Gateway says about a route.
func answer(t *testing.T, app *unstructured.Unstructured, accepted metav1.ConditionStatus, reason string) {
	t.Helper()
	route := shared.Object(routeKind, app.GetNamespace(), app.GetName())
	eventually(t, "the answer of the Gateway", func() string {
		if !shared.Get(t, api, route) {
			return "there is no route"
		}
		condition := func(kind string, status metav1.ConditionStatus, reason string) map[string]any {
			return map[string]any{"type": kind, "status": string(status), "reason": reason, "message": "so it is",
				"lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339), "observedGeneration": route.GetGeneration()}
		}
		route.Object["status"] = map[string]any{"parents": []any{map[string]any{
			"controllerName": "example.com/gateway", "parentRef": map[string]any{"name": "public", "namespace": app.GetNamespace()},
			"conditions": []any{condition("Accepted", accepted, reason), condition("ResolvedRefs", metav1.ConditionTrue, "ResolvedRefs")},
		}}}
		if err := api.Status().Update(context.Background(), route); err != nil {
			return err.Error()
		}
		return ""
	})
}

// playDeployments writes the status that the controller of Deployments would write.
func playDeployments(t *testing.T, namespace string) {
	t.Helper()
	list := &appsv1.DeploymentList{}
	check(t, api.List(context.Background(), list, client.InNamespace(namespace)))
	for i := range list.Items {
		d := &list.Items[i]
		if d.Status.ObservedGeneration == d.Generation {
			continue
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
			AvailableReplicas: n}
		if err := api.Status().Update(context.Background(), d); err != nil {
			t.Log(err) // tried again
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"

	"middleware.hc.cn/operator/test/gatewayapi"
	"middleware.hc.cn/operator/test/live"
)

// A canary gets its share of the requests, and all that carry its header: through an Ingress first, then, when the Gateway API comes
// to the cluster, through an HTTPRoute. No request fails on the way from one to the other.
func TestAppCanarySharesTraffic(t *testing.T) {
	shownElsewhere(t, "TestCanarySharesTraffic, without pods")
	parallel(t)
	if !live.Local() {
		t.Skip("the Gateway's image is built here and loaded into the local cluster")
	}
	namespace := live.NewNamespace(t)
	runGateway(t, namespace)
	app := &appv1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: appv1alpha1.AppSpec{
			Image: "docker.io/library/busybox:1.36", Command: []string{"sh", "-c", "hostname > /tmp/index.html && exec httpd -f -p 8080 -h /tmp"},
			Ingress: appv1alpha1.Ingress{Enabled: ptr.To(true), Host: "shop.example.com", ClassName: namespace,
				Gateway: &appv1alpha1.Gateway{Name: "public", SectionName: "web"}},
			Canary: &appv1alpha1.Canary{Image: "docker.io/library/busybox:1.36", Weight: ptr.To[int32](20), Header: "X-Canary"},
		},
	}
	live.Create(t, app)
	live.Ready(t, app)
	entrance(t, app, 2, false)
	t.Log("through the Ingress")
	wantShares(t, namespace)

	watcher := startClient(t, namespace, "watcher", "", 0)
	serveGatewayAPI(t, namespace)
	live.Eventually(t, "the App is reached through the HTTPRoute only", func() error {
		return errors.Join(live.IsReady(t, app), entranceIs(t, app, 0, true))
	})
	t.Log("through the HTTPRoute")
	wantShares(t, namespace)
	live.Change(t, app, func(a *appv1alpha1.App) { a.Spec.Canary.Weight = ptr.To[int32](0) })
	live.Eventually(t, "a weight of 0 takes the canary out of the traffic", func() error {
		if counts := sendRequests(t, namespace, "", 20); counts.canary > 0 || counts.failed > 0 {
			return fmt.Errorf("%+v", counts)
		}
		return nil
	})
	if counts := endClient(t, watcher); counts.failed > 0 || counts.stable+counts.canary == 0 {
		t.Errorf("requests while the Ingress gave way to the HTTPRoute: %+v", counts)
	}
}

// wantShares sends requests and looks who answers.
func wantShares(t *testing.T, namespace string) {
	t.Helper()
	live.Eventually(t, "the Gateway knows both versions", func() error {
		if c := sendRequests(t, namespace, "X-Canary: always", 5); c.canary < 5 {
			return fmt.Errorf("%+v", c)
		}
		return nil
	})
	for _, tt := range []struct {
		header      string
		of          int
		least, most int
	}{
		{"", 1000, 150, 250}, // 20 %, five standard deviations of chance either way
		{"X-Canary: always", 200, 200, 200},
		{"X-Canary: never", 200, 0, 0},
	} {
		counts := sendRequests(t, namespace, tt.header, tt.of)
		if counts.failed > 0 || counts.stable+counts.canary != tt.of || counts.canary < tt.least || counts.canary > tt.most {
			t.Errorf("%d requests with %q: %+v, want %d to %d for the canary", tt.of, tt.header, counts, tt.least, tt.most)
		}
		t.Logf("%d requests with %q: %+v", tt.of, tt.header, counts)
	}
}

func entrance(t *testing.T, app *appv1alpha1.App, ingresses int, route bool) {
	t.Helper()
	if err := entranceIs(t, app, ingresses, route); err != nil {
		t.Fatal(err)
	}
}

// entranceIs compares what leads to an App with how many Ingresses and whether an HTTPRoute it is to have.
func entranceIs(t *testing.T, app *appv1alpha1.App, ingresses int, route bool) error {
	t.Helper()
	var list networkingv1.IngressList
	if err := live.Kube.List(t.Context(), &list, client.InNamespace(app.Namespace)); err != nil {
		return err
	}
	found := gatewayObject("HTTPRoute", app.Namespace, app.Name)
	if has := live.Get(t, found) == nil; len(list.Items) != ingresses || has != route {
		return fmt.Errorf("%d Ingresses, HTTPRoute: %v", len(list.Items), has)
	}
	return nil
}

// counted is who answered the requests of a client.
type counted struct{ stable, canary, failed int }

// sendRequests sends requests from a pod, one after the other, and waits for their end.
func sendRequests(t *testing.T, namespace, header string, n int) counted {
	t.Helper()
	pod := startClient(t, namespace, "client", header, n)
	live.Eventually(t, "the client has ended", func() error {
		if err := live.Get(t, pod); err != nil || pod.Status.Phase != corev1.PodSucceeded {
			return errors.Join(err, fmt.Errorf("the pod is %s", pod.Status.Phase))
		}
		return nil
	})
	return read(t, pod)
}

// startClient runs a pod that sends requests; 0 means until the file /tmp/end exists.
func startClient(t *testing.T, namespace, name, header string, n int) *corev1.Pod {
	t.Helper()
	const script = `i=0
while [ ! -e /tmp/end ] && { [ $1 = 0 ] || [ $i -lt $1 ]; }; do
  i=$((i+1))
  wget -q -T 10 -O - --header "Host: shop.example.com" ${0:+--header "$0"} http://gateway:8080/ || echo failed
  [ $1 != 0 ] || sleep 0.05
done | sed 's/^shop-canary-.*/canary/; s/^shop-.*/stable/' | sort | uniq -c`
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: name + "-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: restricted(),
			Containers: []corev1.Container{{
				Name: "client", Image: "docker.io/library/busybox:1.36", Command: []string{"sh", "-c", script, header, fmt.Sprint(n)},
				SecurityContext: unprivileged(), VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
			}},
			Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	live.Create(t, pod)
	live.Eventually(t, "the client runs", func() error {
		if err := live.Get(t, pod); err != nil || pod.Status.Phase == corev1.PodPending {
			return errors.Join(err, errors.New("the pod is pending"))
		}
		return nil
	})
	return pod
}

// endClient ends one that runs until it is told to.
func endClient(t *testing.T, pod *corev1.Pod) counted {
	t.Helper()
	if _, err := live.Execute(t.Context(), pod.Namespace, pod.Name, "client", "touch", "/tmp/end"); err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, "the client has ended", func() error {
		if err := live.Get(t, pod); err != nil || pod.Status.Phase != corev1.PodSucceeded {
			return errors.Join(err, fmt.Errorf("the pod is %s", pod.Status.Phase))
		}
		return nil
	})
	return read(t, pod)
}

// read reads what a client counted.
func read(t *testing.T, pod *corev1.Pod) counted {
	t.Helper()
	text, err := live.Logs(t.Context(), pod.Namespace, pod.Name, 50)
	if err != nil {
		t.Fatal(err)
	}
	var c counted
	for line := range strings.Lines(text) {
		var n int
		var who string
		if _, err := fmt.Sscan(line, &n, &who); err != nil {
			continue
		}
		switch who {
		case "stable":
			c.stable = n
		case "canary":
			c.canary = n
		default:
			c.failed += n
		}
	}
	return c
}

func restricted() *corev1.PodSecurityContext {
	return &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
}

func unprivileged() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

func gatewayObject(kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("gateway.networking.k8s.io/v1")
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// serveGatewayAPI brings the CRDs, a GatewayClass and a Gateway.
func serveGatewayAPI(t *testing.T, namespace string) {
	t.Helper()
	crds, err := gatewayapi.CRDs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range crds {
		createForTest(t, crd)
	}
	class := gatewayObject("GatewayClass", "", namespace)
	class.Object["spec"] = map[string]any{"controllerName": "traefik.io/gateway-controller"}
	gateway := gatewayObject("Gateway", namespace, "public")
	gateway.Object["spec"] = map[string]any{"gatewayClassName": class.GetName(), "listeners": []any{
		map[string]any{"name": "web", "port": int64(8080), "protocol": "HTTP", "hostname": "*.example.com"}}}
	for _, object := range []client.Object{class, gateway} {
		live.Eventually(t, object.GetName()+" is there", func() error { // once its kind is served
			return live.Kube.Create(t.Context(), object)
		})
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// A canary gets its share of the requests, and all that carry its header, through an Ingress as through an HTTPRoute. The Gateway is
// a process beside the API server (hack/tools/gateway); servers of the test stand for the pods.
func TestCanarySharesTraffic(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "gateway")
	check(t, api.Create(context.Background(), &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"}}))
	gateway := runGateway(t, namespace)
	startOperator(t, namespace)
	web := newApp(t, namespace, "web", false)
	servePods(t, namespace, "web", "stable")
	servePods(t, namespace, "web-canary", "canary")
	says(t, web, "Ingress/web Ingress/web-canary", metav1.ConditionTrue, "")
	wantShares(t, gateway)

	serveGatewayAPI(t)
	class := shared.Object(routeKind.GroupVersion().WithKind("GatewayClass"), "", namespace)
	class.Object["spec"] = map[string]any{"controllerName": "traefik.io/gateway-controller"}
	check(t, api.Create(context.Background(), class))
	shared.Change(t, api, web, func(a *unstructured.Unstructured) { nameGateway(t, a) })
	aMinuteLater(t, web)
	says(t, web, "Ingress/web Ingress/web-canary HTTPRoute/web", metav1.ConditionFalse, "has no answer")
	wantShares(t, gateway) // as nobody serves the route yet
	public := shared.Object(routeKind.GroupVersion().WithKind("Gateway"), namespace, "public")
	_, port, err := net.SplitHostPort(gateway)
	check(t, err)
	var number int64
	_, err = fmt.Sscan(port, &number)
	check(t, err)
	public.Object["spec"] =
		map[string]any{"gatewayClassName": namespace, "listeners": []any{map[string]any{"name": "web", "port": number, "protocol": "HTTP"}}}
	check(t, api.Create(context.Background(), public))
	says(t, web, "HTTPRoute/web", metav1.ConditionTrue, "")
	wantShares(t, gateway)
}

// runGateway starts hack/tools/gateway for a namespace and returns the address it serves.
func runGateway(t *testing.T, namespace string) string {
	t.Helper()
	tool := exec.Command(filepath.Join(root, "hack", "tool.sh"), "gateway")
	tool.Stderr = os.Stderr
	binary, err := tool.Output()
	check(t, err)
	user, err := environment.AddUser(envtest.User{Name: "gateway", Groups: []string{"system:masters"}}, admin)
	check(t, err)
	access, err := user.KubeConfig()
	check(t, err)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	check(t, os.WriteFile(file, access, 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	address := free.Addr().String()
	check(t, free.Close())
	command := exec.Command(strings.TrimSpace(string(binary)), "--namespace="+namespace, "--listen="+address)
	command.Env = append(os.Environ(), "KUBECONFIG="+file)
	var log strings.Builder
	command.Stdout, command.Stderr = &log, &log
	check(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return address
}

// servePods has a server of the test answer for a Service with a word. An EndpointSlice takes no loopback address, so that it listens
// at another one of this machine.
func servePods(t *testing.T, namespace, service, word string) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	check(t, err)
	var own net.IP
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && own == nil && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			own = ip.IP
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(own.String(), "0"))
	check(t, err)
	server := &httptest.Server{
		Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, word) })}}
	server.Start()
	t.Cleanup(server.Close)
	check(t, api.Create(context.Background(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{own.String()}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports: []discoveryv1.EndpointPort{
			{Name: ptr.To("http"), Port: ptr.To(int32(listener.Addr().(*net.TCPAddr).Port)), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}))
}

// wantShares sends requests and counts who answers: 30 % are for the canary.
func wantShares(t *testing.T, gateway string) {
	t.Helper()
	eventually(t, "the Gateway knows both versions", func() string {
		if word := ask(t, gateway, "always"); word != "canary" {
			return word
		}
		return ""
	})
	for _, tt := range []struct {
		header      string
		of          int
		least, most int
	}{{"", 1000, 250, 350}, {"always", 100, 100, 100}, {"never", 100, 0, 0}, {"other", 1000, 250, 350}} {
		got := map[string]int{}
		for range tt.of {
			got[ask(t, gateway, tt.header)]++
		}
		t.Logf("%d requests with X-Canary %q: %v", tt.of, tt.header, got)
		if got["canary"] < tt.least || got["canary"] > tt.most || got["stable"]+got["canary"] != tt.of {
			t.Errorf("want %d to %d for the canary, and no other answer", tt.least, tt.most)
		}
	}
}

// ask sends one request and returns the answer.
func ask(t *testing.T, gateway, header string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+gateway+"/", nil)
	check(t, err)
	request.Host = "web.example.com"
	if header != "" {
		request.Header.Set("X-Canary", header)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	check(t, err)
	return strings.TrimSpace(string(text))
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AppStatus computes replicas, readyReplicas, selector and url of an App from its
// stable (not its canary) Deployment, Service, and HTTPRoute or Ingress.
func AppStatus(object *unstructured.Unstructured, children []*unstructured.Unstructured, _ time.Time) (map[string]any, []metav1.Condition) {
	stable := func(name string) bool { return name == object.GetName() }
	fields := map[string]any{"replicas": nil, "readyReplicas": nil, "selector": nil, "url": nil}
	if d := newest[appsv1.Deployment](children, schema.GroupKind{Group: "apps", Kind: "Deployment"}, stable); d != nil {
		fields["replicas"] = int64(d.Status.Replicas)
		fields["readyReplicas"] = int64(d.Status.ReadyReplicas)
		if selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err == nil {
			fields["selector"] = selector.String()
		}
	}
	ingress := newest[networkingv1.Ingress](children, schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}, stable)
	service := newest[corev1.Service](children, schema.GroupKind{Kind: "Service"}, stable)
	route := newest[unstructured.Unstructured](children, schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}, stable)
	if url := cmp.Or(routeURL(route, object), ingressURL(ingress), serviceURL(service)); url != "" {
		fields["url"] = url
	}
	return fields, nil
}

// AppAwaits is the route of an App that names a Gateway.
func AppAwaits(object *unstructured.Unstructured) []string {
	enabled, _, _ := unstructured.NestedBool(object.Object, "spec", "ingress", "enabled")
	gateway, _, _ := unstructured.NestedMap(object.Object, "spec", "ingress", "gateway")
	if !enabled || len(gateway) == 0 {
		return nil
	}
	return []string{"gateway.networking.k8s.io/v1/HTTPRoute"}
}

// routeURL is where an HTTPRoute leads from. Whether that is HTTPS is known to the Gateway's listener; the App says it by naming a
// certificate.
func routeURL(route, app *unstructured.Unstructured) string {
	if route == nil {
		return ""
	}
	hosts, _, _ := unstructured.NestedStringSlice(route.Object, "spec", "hostnames")
	if len(hosts) == 0 {
		return ""
	}
	scheme := "http"
	if secret, _, _ := unstructured.NestedString(app.Object, "spec", "ingress", "tlsSecretName"); secret != "" {
		scheme = "https"
	}
	path, _, _ := unstructured.NestedString(app.Object, "spec", "ingress", "path")
	return fmt.Sprintf("%s://%s%s", scheme, hosts[0], strings.TrimSuffix(path, "/"))
}

func ingressURL(in *networkingv1.Ingress) string {
	if in == nil || len(in.Spec.Rules) == 0 {
		return ""
	}
	scheme, rule := "http", in.Spec.Rules[0]
	if len(in.Spec.TLS) > 0 {
		scheme = "https"
	}
	path := ""
	if rule.HTTP != nil && len(rule.HTTP.Paths) > 0 {
		path = strings.TrimSuffix(rule.HTTP.Paths[0].Path, "/")
	}
	return fmt.Sprintf("%s://%s%s", scheme, rule.Host, path)
}

// serviceURL is the address that a load balancer gave, else the name within the
// cluster. The scheme follows the name of the first port, as Kubernetes advises to
// name ports: http and https are themselves, anything else is its protocol.
func serviceURL(s *corev1.Service) string {
	if s == nil || len(s.Spec.Ports) == 0 {
		return ""
	}
	host := fmt.Sprintf("%s.%s.svc", s.Name, s.Namespace)
	if given := s.Status.LoadBalancer.Ingress; len(given) > 0 {
		host = cmp.Or(given[0].Hostname, given[0].IP, host)
		if strings.Contains(host, ":") { // IPv6
			host = "[" + host + "]"
		}
	}
	port := s.Spec.Ports[0]
	scheme := strings.ToLower(cmp.Or(string(port.Protocol), "TCP"))
	usual := int32(0)
	switch {
	case strings.HasPrefix(port.Name, "https"):
		scheme, usual = "https", 443
	case strings.HasPrefix(port.Name, "http"):
		scheme, usual = "http", 80
	}
	if port.Port == usual {
		return fmt.Sprintf("%s://%s", scheme, host)
	}
	return fmt.Sprintf("%s://%s:%d", scheme, host, port.Port)
}

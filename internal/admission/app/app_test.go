// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	v1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/app"
)

func valid() *v1alpha1.App {
	a := &v1alpha1.App{Spec: v1alpha1.AppSpec{Image: "busybox:1.36"}}
	a.Name = "app-sample"
	return a
}

func TestValidateRefuses(t *testing.T) {
	type change = func(*v1alpha1.AppSpec)
	annotation := func(key, value string) change {
		return func(s *v1alpha1.AppSpec) { s.Ingress.Annotations = map[string]string{key: value} }
	}
	ingress := func(host string) change {
		return func(s *v1alpha1.AppSpec) { s.Ingress = v1alpha1.Ingress{Enabled: ptr.To(true), Host: host} }
	}
	gateway := func(path string, to v1alpha1.Gateway) change {
		return func(s *v1alpha1.AppSpec) {
			s.Ingress = v1alpha1.Ingress{Enabled: ptr.To(true), Host: "a.example.com", Path: path, Gateway: &to}
		}
	}
	cpu := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
	tests := []struct {
		name   string
		change change
		want   string
	}{
		{"nothing", func(*v1alpha1.AppSpec) {}, ""},
		{"many arguments", func(s *v1alpha1.AppSpec) { s.Args = make([]string, 4000) }, "spec: Invalid value: \"12"},
		{"a long argument", func(s *v1alpha1.AppSpec) { s.Args = []string{strings.Repeat("x", 128<<10)} },
			"must be at most 131072 bytes in 4000 entries"},
		{"no image", func(s *v1alpha1.AppSpec) { s.Image = "" },
			"spec.image: Required value: name the container image, such as docker.io/library/busybox:1.36"},
		{"replicas", func(s *v1alpha1.AppSpec) { s.Replicas = ptr.To[int32](-1) }, "spec.replicas: Invalid value: -1: must be from 0 to 1000"},
		{"environment name", func(s *v1alpha1.AppSpec) { s.Env = []corev1.EnvVar{{Name: "A=B"}} }, `spec.env[0].name: Invalid value: "A=B": `},
		{"environment twice", func(s *v1alpha1.AppSpec) { s.Env = []corev1.EnvVar{{Name: "A"}, {Name: "A"}} },
			`spec.env[1].name: Duplicate value: "A"`},
		{"two sources of a variable", func(s *v1alpha1.AppSpec) {
			s.Env = []corev1.EnvVar{{Name: "A", Value: "b", ValueFrom: &corev1.EnvVarSource{}}}
		}, "spec.env[0].valueFrom: Forbidden: a variable has a value or a valueFrom; remove one"},
		{"envFrom nothing", func(s *v1alpha1.AppSpec) { s.EnvFrom = []corev1.EnvFromSource{{}} },
			"spec.envFrom[0]: Invalid value: must name either a configMapRef or a secretRef"},
		{"request above limit", func(s *v1alpha1.AppSpec) {
			s.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
			s.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}, `spec.resources.requests[memory]: Invalid value: "2Gi": must not exceed the limit of 1Gi`},
		{"port name", func(s *v1alpha1.AppSpec) { s.Ports = []v1alpha1.Port{{Name: "a-", ContainerPort: 1}} },
			`spec.ports[0].name: Invalid value: "a-": must not begin or end with a hyphen`},
		{"port number", func(s *v1alpha1.AppSpec) {
			s.Ports = []v1alpha1.Port{{Name: "a", ContainerPort: 65536, ServicePort: 80}}
		},
			"spec.ports[0].containerPort: Invalid value: 65536: must be from 1 to 65535"},
		{"two ports of the Service alike", func(s *v1alpha1.AppSpec) {
			s.Ports = []v1alpha1.Port{{Name: "a", ContainerPort: 80}, {Name: "b", ContainerPort: 8080, ServicePort: 80}}
		}, "spec.ports[1].servicePort: Duplicate value: 80"},
		{"probe of an unknown port", func(s *v1alpha1.AppSpec) {
			s.Probes = &v1alpha1.Probes{Path: "/", Port: ptr.To(intstr.FromString("admin"))}
		}, `spec.probes.port: Not found: "admin"`},
		{"probe without ports", func(s *v1alpha1.AppSpec) { s.Ports, s.Probes = []v1alpha1.Port{}, &v1alpha1.Probes{Path: "/"} },
			"spec.probes.port: Required value: spec.ports is empty, so there is no first port to ask; name the port's number"},
		{"probe path", func(s *v1alpha1.AppSpec) { s.Probes = &v1alpha1.Probes{Path: "healthz"} },
			`spec.probes.path: Invalid value: "healthz": must begin with a slash`},
		{"service annotation of Helm", func(s *v1alpha1.AppSpec) {
			s.Service.Annotations = map[string]string{"helm.sh/resource-policy": "keep"}
		}, `spec.service.annotations[helm.sh/resource-policy]: Forbidden: annotations of helm.sh are set by Kubernetes and this operator; remove it`},
		{"service annotation of the owner", func(s *v1alpha1.AppSpec) {
			s.Service.Annotations = map[string]string{"operator-sdk/primary-resource": "other/one"}
		}, `spec.service.annotations[operator-sdk/primary-resource]: Forbidden`},
		{"annotation of a cloud", func(s *v1alpha1.AppSpec) {
			s.Service.Annotations = map[string]string{"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}
		}, ""},
		{"Ingress without a host", ingress(""),
			"spec.ingress.host: Required value: name the host that the Ingress answers for, such as app.example.com: without one it would receive the requests of every host"},
		{"Ingress", ingress("app.example.com"), ""},
		{"wildcard host", ingress("*.example.com"), ""},
		{"host with a line break", ingress("a.example.com\n  evil"), "spec.ingress.host: Invalid value"},
		{"Ingress without a Service", func(s *v1alpha1.AppSpec) { ingress("a.b")(s); s.Service.Enabled = ptr.To(false) },
			"spec.ingress.enabled: Invalid value: true: an Ingress leads to a Service; set spec.service.enabled to true"},
		{"Ingress without ports", func(s *v1alpha1.AppSpec) { ingress("a.b")(s); s.Ports = []v1alpha1.Port{} },
			"spec.ingress.enabled: Invalid value: true: an Ingress leads to the first port; add one to spec.ports"},
		{"path with configuration", func(s *v1alpha1.AppSpec) { s.Ingress.Path = "/;} location / {" },
			`spec.ingress.path: Invalid value: "/;} location / {": must begin with a slash and hold only characters of a URL path`},
		{"snippet", annotation("nginx.ingress.kubernetes.io/configuration-snippet", "return 200;"),
			"spec.ingress.annotations[nginx.ingress.kubernetes.io/configuration-snippet]: Forbidden: a snippet becomes configuration of the shared Ingress controller; remove it"},
		{"canary by hand", annotation("nginx.ingress.kubernetes.io/canary", "true"),
			"spec.ingress.annotations[nginx.ingress.kubernetes.io/canary]: Forbidden: use spec.canary instead"},
		{"annotation with a line break", annotation("nginx.ingress.kubernetes.io/rewrite-target", "/\nevil"), "must not hold a line break"},
		{"annotation", annotation("cert-manager.io/cluster-issuer", "letsencrypt"), ""},
		{"Gateway", gateway("/shop", v1alpha1.Gateway{Name: "public", Namespace: "infra", SectionName: "web"}), ""},
		{"Gateway without a name", gateway("/", v1alpha1.Gateway{}),
			"spec.ingress.gateway.name: Required value: name the Gateway, or remove spec.ingress.gateway for an Ingress"},
		{"Gateway's name", gateway("/", v1alpha1.Gateway{Name: "a b"}), `spec.ingress.gateway.name: Invalid value: "a b"`},
		{"Gateway's namespace", gateway("/", v1alpha1.Gateway{Name: "a", Namespace: "a.b"}),
			`spec.ingress.gateway.namespace: Invalid value: "a.b"`},
		{"Gateway's listener", gateway("/", v1alpha1.Gateway{Name: "a", SectionName: "A"}),
			`spec.ingress.gateway.sectionName: Invalid value: "A"`},
		{"path that a route cannot have", gateway("/a/../b", v1alpha1.Gateway{Name: "a"}),
			`spec.ingress.path: Invalid value: "/a/../b": a path of the Gateway API holds no //, /./, /../ or %2F`},
		{"path with an encoded slash", gateway("/a%2fb", v1alpha1.Gateway{Name: "a"}), `spec.ingress.path: Invalid value: "/a%2fb"`},
		{"path with a bare percent sign", gateway("/a%b", v1alpha1.Gateway{Name: "a"}), `spec.ingress.path: Invalid value: "/a%b"`},
		{"path with dots in names", gateway("/.well-known/a..b/%7E", v1alpha1.Gateway{Name: "a"}), ""},
		{"such a path of an Ingress", func(s *v1alpha1.AppSpec) { s.Ingress.Path = "/a//b" }, ""},
		{"class", func(s *v1alpha1.AppSpec) { s.Ingress.ClassName = "Nginx!" }, `spec.ingress.className: Invalid value: "Nginx!"`},
		{"scaling without a request", func(s *v1alpha1.AppSpec) { s.Autoscaling = &v1alpha1.Autoscaling{MaxReplicas: 3} },
			"spec.resources.requests[cpu]: Required value: autoscaling follows the load in percent of the requested CPU; request some, such as 100m"},
		{"scaling", func(s *v1alpha1.AppSpec) {
			s.Autoscaling, s.Resources.Requests = &v1alpha1.Autoscaling{MaxReplicas: 3}, cpu
		}, ""},
		{"scaling the wrong way", func(s *v1alpha1.AppSpec) {
			s.Autoscaling, s.Resources.Requests = &v1alpha1.Autoscaling{MinReplicas: ptr.To[int32](4), MaxReplicas: 3}, cpu
		}, "spec.autoscaling.minReplicas: Invalid value: 4: must not exceed maxReplicas (3)"},
		{"canary without image", func(s *v1alpha1.AppSpec) { s.Canary = &v1alpha1.Canary{} }, "spec.canary.image: Required value"},
		{"canary weight", func(s *v1alpha1.AppSpec) { s.Canary = &v1alpha1.Canary{Image: "b:2", Weight: ptr.To[int32](101)} },
			"spec.canary.weight: Invalid value: 101: must be from 0 to 100"},
		{"canary header", func(s *v1alpha1.AppSpec) { s.Canary = &v1alpha1.Canary{Image: "b:2", Header: "X: y"} },
			`spec.canary.header: Invalid value: "X: y": must hold only letters, digits and hyphens, such as X-Canary`},
		{"canary value without header", func(s *v1alpha1.AppSpec) { s.Canary = &v1alpha1.Canary{Image: "b:2", HeaderValue: "beta"} },
			`spec.canary.header: Required value: name the header whose value is to be "beta"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := valid()
			tt.change(&a.Spec)
			check(t, a, tt.want)
			app.Default(a)
			check(t, a, tt.want) // the defaults make nothing wrong, and mend nothing
		})
	}
}

func check(t *testing.T, a *v1alpha1.App, want string) {
	t.Helper()
	refused := app.Validate(a)
	if want == "" {
		if len(refused) > 0 {
			t.Errorf("refused: %v", refused.ToAggregate())
		}
		return
	}
	if len(refused) != 1 || !strings.Contains(refused[0].Error(), want) {
		t.Errorf("got  %v\nwant %s", refused, want)
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"app":                   "",
		"":                      "", // generateName
		"1app":                  "metadata.name: Invalid value: \"1app\": becomes the name of a Service",
		"a.b":                   "metadata.name: Invalid value: \"a.b\": becomes the name of a Service",
		strings.Repeat("a", 57): "must have at most 56 characters, because it becomes the name of a Service; choose a shorter name",
	} {
		a := valid()
		a.Name = name
		check(t, a, want)
	}
}

func TestWarnings(t *testing.T) {
	a := valid()
	a.Spec.Canary = &v1alpha1.Canary{Image: "busybox"}
	a.Spec.Ingress.Gateway = &v1alpha1.Gateway{Name: "public"}
	want := []string{
		`spec.canary.image: "busybox" names no version, so each node runs the "latest" that it pulled first; add a tag or a digest`,
		"spec.canary: without spec.ingress.enabled no traffic shifts to the canary; it answers as Service app-sample-canary only",
		"spec.ingress.gateway: has no effect while spec.ingress.enabled is false",
	}
	if diff := cmp.Diff(want, app.Warnings(a)); diff != "" {
		t.Error(diff)
	}
}

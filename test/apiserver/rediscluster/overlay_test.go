// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// merge is an overlay, in YAML.
func merge(t *testing.T, text string) []v1alpha1.PodTemplate {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	check(t, err)
	return []v1alpha1.PodTemplate{{Overlay: &runtime.RawExtension{Raw: raw}}}
}

const overlaid = `
initContainers:
  - {name: proxy, image: "proxy:1", restartPolicy: Always, ports: [{containerPort: 15000}], startupProbe: {tcpSocket: {port: 15000}},
     lifecycle: {preStop: {sleep: {seconds: 1}}}, volumeMounts: [{name: settings, mountPath: /etc/proxy.yaml, subPath: proxy.yaml}]}
  - {name: fetch, image: "fetch:1", securityContext: {runAsUser: 1337}}
containers:
  - {name: redis, volumeMounts: [{name: settings, mountPath: /settings, readOnly: true}], livenessProbe: {periodSeconds: 30}}
volumes:
  - {name: settings, configMap: {name: proxy}}
  - {name: who, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}
serviceAccountName: mesh
securityContext: {supplementalGroups: [7], sysctls: [{name: net.ipv4.tcp_keepalive_time, value: "60"}]}
dnsPolicy: None
dnsConfig: {nameservers: [10.0.0.10]}
hostAliases: [{ip: 10.1.2.3, hostnames: [vault]}]
runtimeClassName: sandbox
terminationGracePeriodSeconds: 90
`

// What an overlay names comes into the pod template when somebody who may has labelled it, and Kubernetes takes all of it. What the
// Service looks like changes no template.
func TestOverlay(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	object := metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "proxy"}
	settings := &corev1.ConfigMap{ObjectMeta: object}
	object.Name = "mesh"
	account := &corev1.ServiceAccount{ObjectMeta: object}
	create(t, settings)
	create(t, account)

	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pod = merge(t, overlaid) })
	awaitStalled(t, cluster, "OverlayUnavailable", "spec.pod[0].overlay.serviceAccountName: ServiceAccount mesh lacks the label")
	change(t, account, func(a *corev1.ServiceAccount) { a.Labels = map[string]string{v1alpha1.LabelPod: "true"} })
	change(t, settings, func(c *corev1.ConfigMap) { c.Labels = map[string]string{v1alpha1.LabelPod: "true"} })
	if account := template(t, cluster, 0).Spec.ServiceAccountName; account != "" {
		t.Errorf("the template names the account %s, which nobody had labelled", account)
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { // a new spec is looked at at once, an old one within a minute
		c.Spec.Service = &v1alpha1.ClientService{Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"prometheus.io/a": "b"},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, IPFamilyPolicy: corev1.IPFamilyPolicyPreferDualStack}
	})
	eventually(t, "the template has the overlay", func() string {
		if template(t, cluster, 1).Spec.ServiceAccountName == "" {
			return "it has not"
		}
		return ""
	})
	spec := template(t, cluster, 1).Spec
	if spec.ServiceAccountName != "mesh" || *spec.AutomountServiceAccountToken || len(spec.InitContainers) != 2 ||
		*spec.InitContainers[0].RestartPolicy != corev1.ContainerRestartPolicyAlways || *spec.TerminationGracePeriodSeconds != 90 {
		t.Errorf("the template is %+v", spec)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "cache"}}
	if !get(t, service) || service.Labels["team"] != "a" || service.Labels[v1alpha1.LabelCluster] != "cache" ||
		service.Annotations["prometheus.io/a"] != "b" || *service.Spec.IPFamilyPolicy != corev1.IPFamilyPolicyPreferDualStack {
		t.Errorf("the Service is %+v", service)
	}

	before := template(t, cluster, 1)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Service.Labels["team"] = "b" })
	eventually(t, "the Service has the label", func() string {
		if get(t, service); service.Labels["team"] != "b" {
			return service.Labels["team"]
		}
		return ""
	})
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Service = nil })
	eventually(t, "the Service is as it was", func() string {
		if get(t, service); service.Labels["team"] != "" || service.Annotations["prometheus.io/a"] != "" {
			return "it is not"
		}
		return ""
	})
	if diff := cmp.Diff(before, template(t, cluster, 1)); diff != "" {
		t.Errorf("the pods change with their Service:\n%s", diff)
	}
}

// An overlay that came past the webhook and cannot be read is that RedisCluster's failure alone.
func TestOverlayThatCannotBeRead(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	op := startOperator(t, namespace, k.world)
	for name, overlay := range map[string]any{
		"type":    map[string]any{"containers": int64(5)},
		"endless": map[string]any{"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{"sizeLimit": "1e1000000000"}}}},
		"host":    map[string]any{"hostNetwork": true},
		"root":    map[string]any{"securityContext": map[string]any{"runAsUser": int64(0)}},
		"template": map[string]any{"initContainers": []any{map[string]any{"name": "a", "image": "a:1", "args": []any{"{{ .Values }}"},
			"stdin": true}}},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"pod": []any{map[string]any{"overlay": overlay}}}}}
		object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RedisCluster"))
		object.SetNamespace(namespace)
		object.SetName(name)
		create(t, object)
	}
	cluster := newCluster(namespace, "cache")
	create(t, cluster)
	awaitWhole(t, cluster)
	for _, name := range []string{"type", "endless", "host", "root", "template"} {
		bad := newCluster(namespace, name)
		get(t, bad)
		awaitStalled(t, bad, "InvalidSpec", "spec")
	}
	var sets appsv1.StatefulSetList
	check(t, api.List(t.Context(), &sets, client.InNamespace(namespace)))
	if len(sets.Items) != 3 {
		t.Errorf("%d StatefulSets, want those of cache", len(sets.Items))
	}
	if slices.Contains(op.asked(), "GET /api/v1/namespaces/"+namespace+"/serviceaccounts/default") {
		t.Error("the operator looks at what nobody named")
	}
}

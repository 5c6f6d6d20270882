// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func fromOutside(c *v1alpha1.RedisCluster) {
	c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalNodePort, Host: "nodes.example.com"}
}

// balanced lets clients outside in at ports that are known before.
func balanced(c *v1alpha1.RedisCluster) {
	c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalLoadBalancer, Host: "redis.example.com"}
}

// awaitExternal waits for the condition ExternalAccess; an empty reason means that there is to be none.
func awaitExternal(t *testing.T, cluster *v1alpha1.RedisCluster, reason, message string) {
	t.Helper()
	eventually(t, "ExternalAccess is "+reason, func() string {
		get(t, cluster)
		c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionExternalAccess)
		if c == nil && reason == "" || c != nil && c.Reason == reason && strings.Contains(c.Message, message) {
			return ""
		}
		return fmt.Sprintf("%+v", c)
	})
}

// outsideOf is where the map of gateways says that instances are.
func outsideOf(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]string {
	t.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.GatewayName()}}
	at := map[string]string{}
	if !get(t, config) {
		return at
	}
	var m struct {
		Instances []struct{ Name, Outside string }
	}
	check(t, json.Unmarshal([]byte(config.Data["map.json"]), &m))
	for _, i := range m.Instances {
		at[i.Name] = i.Outside
	}
	return at
}

// Clients outside are let into a running cluster, at the ports that Kubernetes gives, and kept out again; no instance restarts for it, and
// only a Secret that says so is given to gateways.
func TestExternalIsServed(t *testing.T) {
	t.Parallel()
	cluster, op, _ := running(t)
	name := metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.GatewayName()}
	service, d := &corev1.Service{ObjectMeta: name}, &appsv1.Deployment{ObjectMeta: name}
	others := []client.Object{&policyv1.PodDisruptionBudget{ObjectMeta: name}, &networkingv1.NetworkPolicy{ObjectMeta: name},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ExternalConfigMap()}}}
	since := len(op.asked())
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		fromOutside(c)
		c.Spec.External.TLS = &v1alpha1.ExternalTLS{SecretName: "front"}
	})
	awaitExternal(t, cluster, v1alpha1.ReasonExternalWithheld, "there is no Secret front")
	if get(t, d) {
		t.Fatal("the Deployment is made, and its Secret is not there")
	}
	create(t, labelled(cluster.Namespace, "front", v1alpha1.LabelExternalTLS, map[string]string{"tls.crt": "a", "tls.key": "b"}))
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.External.Replicas = ptr.To[int32](3) })
	awaitExternal(t, cluster, v1alpha1.ReasonExternalNotRunning, "the Deployment has no pod")
	if !get(t, d) || !metav1.IsControlledBy(d, cluster) || *d.Spec.Replicas != 3 || d.Spec.Template.Spec.Containers[0].Image != operatorImage {
		t.Errorf("the Deployment is %+v", d)
	}
	for _, other := range others {
		if !get(t, other) || !metav1.IsControlledBy(other, cluster) {
			t.Errorf("%T is %+v", other, other)
		}
	}
	if !get(t, service) || service.Spec.Type != corev1.ServiceTypeNodePort {
		t.Fatalf("the Service is %+v", service)
	}
	at := outsideOf(t, cluster)
	for _, port := range service.Spec.Ports {
		want := fmt.Sprintf("nodes.example.com:%d", port.NodePort)
		instance := strings.Replace(port.Name, "shard", cluster.Name, 1)
		if port.Name == "any" {
			instance = cluster.Name
			if is := cluster.Status.External; is == nil || !slices.Equal(is.Addresses, []string{want}) {
				t.Errorf("status.external is %+v, want %s", is, want)
			}
		}
		if at[instance] != want {
			t.Errorf("%s is at %q, want %s", instance, at[instance], want)
		}
	}
	t.Log("who has the labels, the program and an owner of such a name, and is not of the Deployment, is none of the gateways")
	stranger := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-0"},
		Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}}
	create(t, stranger)
	forged := deployedPod(t, d, stranger)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.External.Replicas = ptr.To[int32](2) })
	eventually(t, "the Deployment is of two", func() string {
		if !get(t, d) || *d.Spec.Replicas != 2 {
			return fmt.Sprintf("%+v", d.Spec)
		}
		return ""
	})
	awaitExternal(t, cluster, v1alpha1.ReasonExternalNotRunning, "the Deployment has no pod")
	remove(t, forged)
	pod := archiveWriter(t, d)
	awaitExternal(t, cluster, v1alpha1.ReasonExternalAvailable, "nodes.example.com")
	remove(t, pod)

	t.Log("a Service that somebody deletes is made again, at other ports, which the map has")
	remove(t, service)
	eventually(t, "the map follows the Service", func() string {
		if !get(t, service) || len(service.Spec.Ports) == 0 {
			return "there is none"
		}
		want := fmt.Sprintf("nodes.example.com:%d", service.Spec.Ports[0].NodePort)
		if is := outsideOf(t, cluster)[cluster.Name]; is != want {
			return is + ", want " + want
		}
		return ""
	})

	t.Log("a balancer has an address when its controller says so")
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalLoadBalancer}
	})
	awaitExternal(t, cluster, v1alpha1.ReasonExternalAddressPending, "has no address")
	if len(outsideOf(t, cluster)) == 0 {
		t.Error("the map is gone while the address is not known")
	}
	get(t, service)
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.7"}}
	check(t, api.Status().Update(context.Background(), service))
	awaitExternal(t, cluster, v1alpha1.ReasonExternalNotRunning, "no pod")
	if is := cluster.Status.External; !slices.Equal(is.Addresses, []string{"192.0.2.7:7000"}) ||
		outsideOf(t, cluster)[cluster.Name+"-0-0"] != "192.0.2.7:7010" {
		t.Errorf("status.external is %+v, the map %v", is, outsideOf(t, cluster))
	}

	t.Log("and given up")
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.External = nil })
	awaitExternal(t, cluster, "", "")
	eventually(t, "all of it goes", func() string {
		for _, object := range append(others, service, d) {
			if get(t, object) {
				return fmt.Sprintf("%T is there", object)
			}
		}
		return ""
	})
	for _, name := range op.written(since) {
		if strings.HasPrefix(name, "statefulsets/") || strings.HasPrefix(name, "pods/") {
			t.Errorf("%s was written for clients outside", name)
		}
	}
}

// Clients outside are told a name that external-dns gives the Service, whatever address the balancer has.
func TestExternalHasAName(t *testing.T) {
	t.Parallel()
	cluster, op, _ := running(t)
	const annotation, name, port = "external-dns.alpha.kubernetes.io/hostname", "redis.example.com", 7000
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		balanced(c)
		c.Spec.External.Annotations = map[string]string{annotation: name}
	})
	awaitExternal(t, cluster, v1alpha1.ReasonExternalAddressPending, "has no address")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.GatewayName()}}
	if !get(t, service) || service.Annotations[annotation] != name {
		t.Fatalf("external-dns finds %v", service.Annotations)
	}
	give := func(by ...corev1.LoadBalancerIngress) {
		get(t, service)
		service.Status.LoadBalancer.Ingress = by
		check(t, api.Status().Update(t.Context(), service))
	}
	var since int
	for i, by := range []corev1.LoadBalancerIngress{{Hostname: "lb-1.example.net"}, {IP: "192.0.2.7"}} {
		give()
		awaitExternal(t, cluster, v1alpha1.ReasonExternalAddressPending, "has no address")
		give(by)
		awaitExternal(t, cluster, v1alpha1.ReasonExternalNotRunning, "no pod")
		want := fmt.Sprintf("%s:%d", name, port)
		if is := cluster.Status.External; is == nil || !slices.Equal(is.Addresses, []string{want}) {
			t.Errorf("behind balancer %d status.external is %+v, want %s", i, is, want)
		}
		if at := outsideOf(t, cluster); at[cluster.Name] != want || at[cluster.Name+"-0-1"] != name+":7011" {
			t.Errorf("behind balancer %d the map is %v", i, at)
		}
		if i == 0 {
			since = len(op.asked())
		}
	}
	binding := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ExternalConfigMap()}}
	if !get(t, binding) || binding.Data["host"] != name || binding.Data["port"] != "7000" {
		t.Errorf("applications are told %v", binding.Data)
	}
	for _, written := range op.written(since) {
		if strings.HasPrefix(written, "configmaps/") || strings.HasPrefix(written, "deployments/") {
			t.Errorf("for another address of the balancer %s is written", written)
		}
	}
}

// What the API server refuses of the Service is told, and holds back nothing else that is rendered.
func TestExternalIsRefused(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		fromOutside(c)
		c.Spec.External.FirstPort = ptr.To[int32](100) // no node port
		c.Spec.PodDisruptionBudget.Enabled = ptr.To(false)
	})
	eventually(t, "it is told", func() string {
		get(t, cluster)
		is := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled)
		if is == nil || is.Reason != "ExternalRefused" || !strings.Contains(is.Message, "not in the valid range") {
			return fmt.Sprintf("%+v", is)
		}
		return ""
	})
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.External.FirstPort = nil })
	awaitExternal(t, cluster, v1alpha1.ReasonExternalNotRunning, "")
	eventually(t, "the budget is gone", func() string {
		if get(t, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}) {
			return "it is there"
		}
		return ""
	})
}

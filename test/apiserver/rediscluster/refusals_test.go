// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// What keeps a cluster from being made is said in its status, with a remedy; once the remedy is applied it goes on by
// itself, without anybody touching the RedisCluster.

func TestNamespaceWithoutRights(t *testing.T) {
	t.Parallel()
	namespace := newBareNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	create(t, cluster)
	awaitStalled(t, cluster, "PasswordUnavailable", fmt.Sprintf(
		"kubectl create rolebinding middleware-operator --namespace %s --clusterrole middleware-operator-namespace --serviceaccount %s",
		namespace, serviceAccount))
	if found := children(t, cluster); len(found) > 0 {
		t.Errorf("children %v were made without a password", slices.Collect(maps.Keys(found)))
	}
	allow(t, namespace)
	awaitWhole(t, cluster)
}

// hostile is a password that would be more than one argument, more than one line or more than one setting if it were
// written into redis.conf as it is.
const hostile = "pa\"ss'wo\\rd \r\nrename-command FLUSHALL \"\"\nloadmodule /tmp/x.so\t#ünï \\x41"

func TestPasswordOfASecret(t *testing.T) {
	t.Parallel()
	labelled := map[string]string{v1alpha1.LabelAuth: "true"}
	for name, tt := range map[string]struct {
		labels  map[string]string
		data    map[string]string // nil: there is no Secret
		refusal string
		mended  string
	}{
		"missing":      {refusal: "spec.auth.secretName: Secret mine does not exist", mended: "secret"},
		"not labelled": {data: map[string]string{"password": "secret"}, refusal: "kubectl label secret mine", mended: "secret"},
		"without the key": {labels: labelled, data: map[string]string{"pass": "secret"},
			refusal: "the key password of Secret mine must hold 1 to 512 bytes, and holds 0", mended: "secret"},
		"too long": {labels: labelled, data: map[string]string{"password": strings.Repeat("x", 513)}, refusal: "and holds 513",
			mended: strings.Repeat("x", 512)},
		"hostile": {labels: labelled, data: map[string]string{"password": hostile}, mended: hostile},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			k := startKubelet(t, namespace)
			startOperator(t, namespace, k.world)
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine", Labels: tt.labels}, StringData: tt.data}
			if tt.data != nil {
				create(t, secret)
			}
			cluster := newCluster(namespace, "cache")
			cluster.Spec.Auth.SecretName = "mine"
			create(t, cluster)
			if tt.refusal != "" {
				awaitStalled(t, cluster, "PasswordUnavailable", tt.refusal)
				mended := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine", Labels: labelled},
					StringData: map[string]string{"password": tt.mended}}
				check(t, client.IgnoreNotFound(api.Delete(context.Background(), secret)))
				create(t, mended)
			}
			awaitWhole(t, cluster) // the stand-in reads auth.conf as Redis does, and the operator logs in

			own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache-auth"}}
			get(t, own)
			if got := string(own.Data[v1alpha1.SecretKeyPassword]); got != tt.mended {
				t.Errorf("the key password is %q, want %q", got, tt.mended)
			}
			if config, want := string(own.Data[v1alpha1.SecretKeyConfig]), "\nmasterauth "+redisconf.Quote(tt.mended)+
				"\n"; !strings.HasSuffix(config, want) {
				t.Errorf("auth.conf is %q, and is to end in %q", config, want)
			}
		})
	}
}

func TestSettingsOfAConfigMap(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data    map[string]string // nil: there is no ConfigMap
		refusal string
	}{
		"missing":           {refusal: "spec.pod[0].configmap: ConfigMap mine does not exist"},
		"without the key":   {data: map[string]string{"redis": ""}, refusal: "ConfigMap mine has no key redis.conf"},
		"a refused setting": {data: map[string]string{"redis.conf": "maxclients 100\nrename-command GET \"\"\n"}, refusal: "rename-command"},
		"a hidden setting":  {data: map[string]string{"redis.conf": "maxclients \"100\r\nport 1\"\n"}, refusal: "spec.pod[0].configmap"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			k := startKubelet(t, namespace)
			startOperator(t, namespace, k.world)
			config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, Data: tt.data}
			if tt.data != nil {
				create(t, config)
			}
			cluster := newCluster(namespace, "cache")
			cluster.Spec.Pod = []v1alpha1.PodTemplate{{Configmap: "mine"}}
			create(t, cluster)
			awaitStalled(t, cluster, "InvalidSpec", tt.refusal)
			if found := children(t, cluster); len(found) > 0 {
				t.Errorf("children %v were made", slices.Collect(maps.Keys(found)))
			}

			check(t, client.IgnoreNotFound(api.Delete(context.Background(), config)))
			create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"},
				Data: map[string]string{"redis.conf": "maxclients 100\n"}})
			awaitWhole(t, cluster)
			rendered := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache-config"}}
			get(t, rendered)
			if !strings.Contains(rendered.Data["redis.conf"], "maxclients") {
				t.Errorf("redis.conf lacks the setting:\n%s", rendered.Data["redis.conf"])
			}
		})
	}
}

// An object of a child's name that belongs to someone else is left alone.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "shop"}}
	}
	for name, tt := range map[string]struct {
		taken   client.Object
		cause   string
		message string
	}{
		"Service": {&corev1.Service{ObjectMeta: meta("cache"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, "NameTaken",
			"Service"},
		"Service of the operator's label": {&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "cache",
			Labels: map[string]string{"app.kubernetes.io/managed-by": "middleware-operator"}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}, "NameTaken", "Service"},
		"ConfigMap": {&corev1.ConfigMap{ObjectMeta: meta("cache-config"), Data: map[string]string{"redis.conf": "theirs"}}, "NameTaken",
			"ConfigMap"},
		"StatefulSet": {&appsv1.StatefulSet{ObjectMeta: meta("cache-1"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}}}, "NameTaken", "StatefulSet"},
		"Secret without the keys": {&corev1.Secret{ObjectMeta: meta("cache-auth"), StringData: map[string]string{"token": "theirs"}},
			"PasswordUnavailable", "Secret cache-auth exists and was not made for this cluster"},
		"Secret with the keys": {&corev1.Secret{ObjectMeta: meta("cache-auth"),
			StringData: map[string]string{"password": "theirs", "auth.conf": "requirepass theirs\nmasterauth theirs\n"}},
			"PasswordUnavailable", "Secret cache-auth exists and was not made for this cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			k := startKubelet(t, namespace)
			startOperator(t, namespace, k.world)
			taken := tt.taken
			taken.SetNamespace(namespace)
			create(t, taken)
			version := taken.GetResourceVersion()
			cluster := newCluster(namespace, "cache")
			create(t, cluster)
			awaitStalled(t, cluster, tt.cause, tt.message)
			if _, isSet := taken.(*appsv1.StatefulSet); !isSet { // whose status the stand-in writes
				if get(t, taken); taken.GetResourceVersion() != version || len(taken.GetOwnerReferences()) > 0 {
					t.Errorf("it was changed: %v", taken)
				}
			} else if get(t, taken); taken.GetGeneration() != 1 || len(taken.GetOwnerReferences()) > 0 || taken.GetLabels()["app"] != "shop" {
				t.Errorf("it was changed: %v", taken)
			}
			remove(t, taken)
			awaitWhole(t, cluster)
		})
	}
}

// Objects that come past admission (the webhook is down) are refused by the reconciler, and nothing is made of them.
func TestInvalidSpec(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	op := startOperator(t, namespace, k.world)
	for name, tt := range map[string]struct {
		change func(*v1alpha1.RedisCluster)
		path   string
	}{
		"reserved": {func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"dir": "/tmp"} }, "spec.config[dir]"},
		"injected": {func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"maxclients": "1\nport 1"} }, "spec.config[maxclients]"},
		"host-path": {func(c *v1alpha1.RedisCluster) {
			c.Spec.Pod = []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: "hostPath"}}}
		}, "spec.pod[0].volumes.type"},
		"old": {func(c *v1alpha1.RedisCluster) { c.Spec.Version = "6.2.1" }, "spec.version"},
		"env": {func(c *v1alpha1.RedisCluster) {
			c.Spec.Pod = []v1alpha1.PodTemplate{
				{Env: []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}}}}
		}, "spec.pod[0].env[0].valueFrom.secretKeyRef"},
		"huge": {func(c *v1alpha1.RedisCluster) {
			c.Spec.Replicas, c.Spec.Pod = new(int32(100)), []v1alpha1.PodTemplate{{Tolerations: make([]corev1.Toleration, 2500)}}
		}, "spec.pod[0].tolerations"},
	} {
		cluster := newCluster(namespace, name)
		tt.change(cluster)
		create(t, cluster)
		awaitStalled(t, cluster, "InvalidSpec", tt.path)
		if found := children(t, cluster); len(found) > 0 || len(cluster.Finalizers) > 0 {
			t.Errorf("%s: children %v and finalizers %v were made", name, slices.Collect(maps.Keys(found)), cluster.Finalizers)
		}
	}
	if written := op.written(0); len(written) > 0 {
		t.Errorf("these were written: %v", written)
	}

	// A spec that becomes invalid leaves what runs as it is.
	cluster := newCluster(namespace, "cache")
	create(t, cluster)
	awaitWhole(t, cluster)
	before := len(op.asked())
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"dir": "/tmp"} })
	awaitStalled(t, cluster, "InvalidSpec", "spec.config[dir]")
	if written := op.written(before); len(written) > 0 || cluster.Status.Slots != 16384 {
		t.Errorf("these were written: %v; %d slots are served", written, cluster.Status.Slots)
	}
	// One that was accepted by an operator without limits, too; and it can be deleted.
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Config, c.Spec.Pod = nil, []v1alpha1.PodTemplate{{Tolerations: make([]corev1.Toleration, 2500)}}
	})
	awaitStalled(t, cluster, "InvalidSpec", "spec.pod[0].tolerations")
	if written := op.written(before); len(written) > 0 || cluster.Status.Slots != 16384 {
		t.Errorf("these were written: %v; %d slots are served", written, cluster.Status.Slots)
	}
	remove(t, cluster)
	awaitGone(t, cluster.DeepCopy())
	wantNothingRuns(t, cluster)
}

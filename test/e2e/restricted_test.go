// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"

	"middleware.hc.cn/operator/test/live"
)

// user is the one that the policies of test/apiserver/platform give to pods.
const user = "1000650000"

// Where the platform gives pods their user IDs and refuses others, as OpenShift does, every kind comes up under its namespace's
// user, and a RedisCluster lives there as elsewhere.
func TestUnderTheUserOfTheNamespace(t *testing.T) {
	shownElsewhere(t, "TestPodsRunUnderTheUserOfTheirNamespace of test/apiserver")
	if !live.Local() {
		t.Skip("changes what the cluster serves and how the operator is installed")
	}
	restart := keepOperator(t) // first, so that the kind is gone when the operator looks again at the end
	createForTest(t, constraints())
	live.Eventually(t, "the platform's kind is served", func() error {
		_, err := live.Clientset.Discovery().ServerResourcesForGroupVersion("security.openshift.io/v1")
		return err
	})
	restart("--platform-user-ids=auto")
	namespace := live.NewNamespace(t)
	restrict(t, namespace)
	wantRefused(t, namespace)

	app, tab := &appv1alpha1.App{}, &crontabv1beta1.CronTab{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "minutely"},
		Spec: crontabv1beta1.CronTabSpec{CronSpec: "* * * * *", Image: "docker.io/library/busybox:1.36",
			Command: []string{"sh", "-c", "echo it is time for $(id -u)"}},
	}
	place(t, "appcontroller_v1alpha1_app.yaml", app, namespace)
	others := []client.Object{app, tab, &applicationv1.Application{}, &applicationv1.Application{}, &foobarv1.FooBar{}}
	live.Create(t, tab)
	place(t, "controller_v1_application.yaml", others[2], namespace)
	place(t, "controller_v1_application_full.yaml", others[3], namespace)
	place(t, "k8s_v1_foobar.yaml", others[4], namespace)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Pod[0].MonitorImage = "docker.io/oliver006/redis_exporter:v1.45.0"
	cluster.Spec.Pod[0].InitImage = "docker.io/library/busybox:1.36"
	live.Create(t, cluster)
	keyed := newCluster(namespace, "keyed") // its password changes meanwhile
	keyed.Spec.Replicas = ptr.To[int32](3)
	live.Create(t, keyed)
	live.Ready(t, keyed)
	write(t, keyed, keys)
	files := passwordFiles(t, keyed)
	live.Change(t, keyed, func(c *v1alpha1.RedisCluster) { c.Spec.Auth.Rotate = "once" })
	for _, object := range append(others, cluster) {
		live.Ready(t, object)
	}
	live.Eventually(t, "the FooBar has run", func() error { return podSaid(t, namespace, "foobar") })
	live.Eventually(t, "the CronTab has run", func() error { return podSaid(t, namespace, "it is time for "+user) })
	wantUser(t, namespace)
	livesUnderItsUser(t, cluster)
	wantPasswordFilesChanged(t, keyed, files)
	wantUser(t, namespace)
}

// wantPasswordFilesChanged waits until the next password has come to the files of all pods, which the user can still read.
func wantPasswordFilesChanged(t *testing.T, cluster *v1alpha1.RedisCluster, before map[string]string) {
	t.Helper()
	live.Eventually(t, "the files of every pod hold the next password", func() error {
		for pod, file := range passwordFiles(t, cluster) {
			if file == before[pod] {
				return fmt.Errorf("%s has what it had", pod)
			}
		}
		return nil
	})
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 3)
	wantOwned(t, cluster)
}

// passwordFiles is what every instance would read its passwords from if it started now, by pod.
func passwordFiles(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pod := range podsOf(t, cluster) {
		out, err := live.Execute(t.Context(), pod.Namespace, pod.Name, "redis", "cat", "/etc/redis/auth/auth.conf")
		if err != nil || out == "" {
			t.Fatalf("the password file of %s: %q: %v", pod.Name, out, err)
		}
		files[pod.Name] = out
	}
	return files
}

// keys are written to each of the clusters.
const keys = 200

// livesUnderItsUser takes a RedisCluster through what happens to one.
func livesUnderItsUser(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	wantOwned(t, cluster)
	write(t, cluster, keys)
	healthy := func(shards, instances int32) {
		t.Helper()
		wantKeys(t, cluster, keys)
		wantHealthy(t, cluster, shards, instances)
		wantOwned(t, cluster)
	}

	settled(t, cluster, killPods(t, cluster, master(t, cluster, 0).Name))
	healthy(3, 6)
	if os.Getenv("E2E") == "all" { // what is scaled has the pods of the others: TestRedisClusterScales
		for _, shards := range []int32{4, 3} {
			setSize(t, cluster, shards, 2*shards)
			live.Ready(t, cluster)
			healthy(shards, 2*shards)
		}
	}
	rolled(t, cluster, "more memory", func(c *v1alpha1.RedisCluster) {
		c.Spec.Pod[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("192Mi")}
	})
	if !told(t, cluster, "Switchover") {
		t.Error("no master switched over before it was restarted")
	}
	healthy(3, 6)
}

// told reports whether the operator has done a step.
func told(t *testing.T, cluster *v1alpha1.RedisCluster, step string) bool {
	t.Helper()
	events, err := live.Clientset.CoreV1().Events(cluster.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == step && e.InvolvedObject.Name == cluster.Name })
}

// wantOwned: the processes of Redis are the user's, its data too, and it reads its password from a file that is the group's alone.
func wantOwned(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	const script = `set -e
cat /proc/1/comm && sed -n 's/^Uid:[[:space:]]*//p' /proc/1/status
stat -L -c '%a %g' /etc/redis/auth/auth.conf && stat -c '%g' /data && stat -c '%u' /data/nodes.conf`
	want := []string{"redis-server", user, user, user, user, "440", user, user, user}
	for _, pod := range podsOf(t, cluster) {
		out, err := live.Execute(t.Context(), pod.Namespace, pod.Name, "redis", "sh", "-c", script)
		if err != nil || !slices.Equal(strings.Fields(out), want) {
			t.Errorf("%s: process and user, mode and group of its password, group and user of its data: %v: %q, want %q",
				pod.Name, err, strings.Fields(out), want)
		}
	}
}

// wantUser: no pod of the namespace has another user or group for its files, for its own part or for that of a container.
func wantUser(t *testing.T, namespace string) {
	t.Helper()
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if c := pod.Spec.SecurityContext; fmt.Sprint(ptr.Deref(c.RunAsUser, 0), ptr.Deref(c.FSGroup, 0)) != user+" "+user {
			t.Errorf("pod %s runs as user %d with group %d", pod.Name, ptr.Deref(c.RunAsUser, 0), ptr.Deref(c.FSGroup, 0))
		}
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
				t.Errorf("container %s of pod %s runs as %d", c.Name, pod.Name, *c.SecurityContext.RunAsUser)
			}
		}
	}
	if least := 6 + 3 + 5; len(pods.Items) < least {
		t.Errorf("there are %d pods, want %d: nine of Redis, and one of each other object at least", len(pods.Items), least)
	}
}

// constraints is OpenShift's kind, as far as discovery shows it: by that the operator knows such a platform.
func constraints() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "securitycontextconstraints.security.openshift.io"},
		"spec": map[string]any{
			"group": "security.openshift.io", "scope": "Cluster",
			"names": map[string]any{"kind": "SecurityContextConstraints", "listKind": "SecurityContextConstraintsList",
				"plural": "securitycontextconstraints", "singular": "securitycontextconstraints"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
		},
	}}
}

// restrict does to the pods of one namespace what OpenShift's restricted-v2 does.
func restrict(t *testing.T, namespace string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "apiserver", "platform", "restricted.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, object); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(object.GetKind(), "Binding") {
			only := map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: namespace}}
			if err := unstructured.SetNestedMap(object.Object, only, "spec", "matchResources", "namespaceSelector"); err != nil {
				t.Fatal(err)
			}
		}
		createForTest(t, object)
	}
}

// wantRefused waits until the policies count, which they do a moment after they are made.
func wantRefused(t *testing.T, namespace string) {
	t.Helper()
	live.Eventually(t, "a user of the pod's choice is refused", func() error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "refused-"},
			Spec: corev1.PodSpec{SecurityContext: restricted(),
				Containers: []corev1.Container{{Name: "c", Image: "c", SecurityContext: unprivileged()}}},
		}
		err := live.Kube.Create(t.Context(), pod, client.DryRunAll)
		switch {
		case err == nil:
			return errors.New("it is admitted")
		case strings.Contains(err.Error(), "runAsUser is not in the range"):
			return nil
		}
		return err
	})
}

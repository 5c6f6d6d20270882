// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package platform

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// resources are what users write on such a platform; the exporter and the init container are in the RedisCluster's pods as well.
const resources = `
apiVersion: redis.middleware.hc.cn/v1alpha1
kind: RedisCluster
metadata: {name: cache}
spec: {replicas: 6, pod: [{monitorImage: "exporter:1", initImage: "init:1"}]}
---
apiVersion: appcontroller.middleware.hc.cn/v1alpha1
kind: App
metadata: {name: web}
spec: {image: "web:1"}
---
apiVersion: stable.example.com/v1beta1
kind: CronTab
metadata: {name: report}
spec: {cronSpec: "@daily", image: "report:1"}
---
apiVersion: k8s.io/v1
kind: FooBar
metadata: {name: greet}
spec: {command: "true"}
`

// Pods of every kind, and the operator's own, pass what restricted-v2 asks for, and get the user of their namespace.
func TestPodsRunUnderTheUserOfTheirNamespace(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "platform")
	create(t, namespace, resources)
	templates := map[string]corev1.PodTemplateSpec{"operator": operatorPods(t)}
	find(t, templates, "RedisCluster", namespace, "cache-0", &appsv1.StatefulSet{}, func(o *appsv1.StatefulSet) corev1.PodTemplateSpec {
		return o.Spec.Template
	})
	find(t, templates, "App", namespace, "web", &appsv1.Deployment{}, func(o *appsv1.Deployment) corev1.PodTemplateSpec {
		return o.Spec.Template
	})
	find(t, templates, "CronTab", namespace, "report", &batchv1.CronJob{}, func(o *batchv1.CronJob) corev1.PodTemplateSpec {
		return o.Spec.JobTemplate.Spec.Template
	})
	find(t, templates, "FooBar", namespace, jobOf(t, namespace, "greet"), &batchv1.Job{}, func(o *batchv1.Job) corev1.PodTemplateSpec {
		return o.Spec.Template
	})

	policies, err := os.ReadFile("restricted.yaml")
	shared.Check(t, err)
	create(t, "", string(policies))
	for kind, template := range templates {
		t.Run(kind, func(t *testing.T) {
			fixed := pod(namespace, template)
			fixed.Spec.SecurityContext.RunAsUser = ptr.To[int64](999)
			shared.Eventually(t, "the refusal of a user that the platform did not give", func() string { // policies take a moment to count
				if err := api.Create(context.Background(), fixed.DeepCopy(), client.DryRunAll); err == nil ||
					!strings.Contains(err.Error(), "runAsUser is not in the range") {
					return fmt.Sprint("the answer is ", err)
				}
				return ""
			})
			shared.Eventually(t, "a pod with the user that the platform gives", func() string { // by another policy, which takes its own moment
				given := pod(namespace, template)
				if err := api.Create(context.Background(), given, client.DryRunAll); err != nil {
					return fmt.Sprintf("restricted-v2 refuses the pod: %v", err)
				}
				if user := given.Spec.SecurityContext.RunAsUser; user == nil || *user != 1000650000 {
					return fmt.Sprintf("the pod runs as user %v", ptr.Deref(user, -1))
				}
				return ""
			})
		})
	}
}

// pod is one of a template, as far as admission looks at it.
func pod(namespace string, template corev1.PodTemplateSpec) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "pod-"}, Spec: *template.Spec.DeepCopy()}
	p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = "", "" // there are none in this cluster
	p.Spec.PriorityClassName = ""
	for i, volume := range p.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			p.Spec.Volumes[i].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	claimed := map[string]bool{}
	for _, v := range p.Spec.Volumes {
		claimed[v.Name] = true
	}
	if !claimed["data"] { // it comes from a claim template
		p.Spec.Volumes =
			append(p.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}
	return p
}

// find waits for what a resource's pods are made from.
func find[T client.Object](t *testing.T, templates map[string]corev1.PodTemplateSpec, kind, namespace, name string, object T,
	template func(T) corev1.PodTemplateSpec) {
	t.Helper()
	shared.Eventually(t, "what the pods of the "+kind+" are made from", func() string {
		if err := api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return err.Error()
		}
		return ""
	})
	templates[kind] = template(object)
}

// jobOf is the name of a FooBar's Job, which tells its command apart.
func jobOf(t *testing.T, namespace, name string) string {
	t.Helper()
	var jobs batchv1.JobList
	shared.Eventually(t, "the Job of the FooBar", func() string {
		shared.Check(t, api.List(context.Background(), &jobs, client.InNamespace(namespace)))
		if len(jobs.Items) != 1 || !strings.HasPrefix(jobs.Items[0].Name, name) {
			return fmt.Sprintf("there are %d Jobs", len(jobs.Items))
		}
		return ""
	})
	return jobs.Items[0].Name
}

func operatorPods(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "manager", "deployment.yaml"))
	shared.Check(t, err)
	var deployment appsv1.Deployment
	shared.Check(t, yaml.Unmarshal(text, &deployment))
	return deployment.Spec.Template
}

// create makes the objects of a YAML text.
func create(t *testing.T, namespace, text string) {
	t.Helper()
	for document := range bytes.SplitSeq([]byte(text), []byte("\n---\n")) {
		object := &unstructured.Unstructured{}
		shared.Check(t, yaml.Unmarshal(document, object))
		object.SetNamespace(namespace)
		shared.Check(t, api.Create(context.Background(), object))
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"

	"middleware.hc.cn/operator/test/live"
)

// place puts a sample into the test's namespace.
func place(t *testing.T, file string, into client.Object, namespace string) {
	t.Helper()
	live.Sample(t, file, into)
	into.SetNamespace(namespace)
	live.Create(t, into)
}

func TestCronTabOfTheSourceDocument(t *testing.T) {
	parallel(t)
	namespace := live.NewNamespace(t)
	var tab crontabv1beta1.CronTab
	place(t, "stable_v1beta1_crontab.yaml", &tab, namespace)
	live.Ready(t, &tab)
	var jobs batchv1.CronJobList
	if err := live.Kube.List(t.Context(), &jobs, client.InNamespace(namespace)); err != nil || len(jobs.Items) != 1 {
		t.Fatalf("%d CronJobs (%v), want 1", len(jobs.Items), err)
	}
	job := jobs.Items[0]
	if job.Spec.Schedule != tab.Spec.CronSpec || job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image != tab.Spec.Image {
		t.Errorf("the CronJob runs %q on %q", job.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image, job.Spec.Schedule)
	}
	if tab.Status.NextRunTime == nil {
		t.Error("status does not say when the next run is")
	}
}

// A CronTab runs: within the minute its pod has run to its end.
func TestCronTabRuns(t *testing.T) {
	t.Parallel() // it waits most of the time
	namespace := live.NewNamespace(t)
	tab := &crontabv1beta1.CronTab{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "minutely"},
		Spec: crontabv1beta1.CronTabSpec{CronSpec: "* * * * *", Image: "docker.io/library/busybox:1.36",
			Command: []string{"echo", "it is time"}},
	}
	live.Create(t, tab)
	live.Eventually(t, "the CronTab has run", func() error {
		if err := live.Get(t, tab); err != nil || tab.Status.LastRunTime == nil {
			return errors.Join(err, errors.New("no last run in status"))
		}
		return podSaid(t, namespace, "it is time")
	})
}

func TestFooBarOfTheSourceDocument(t *testing.T) {
	parallel(t)
	namespace := live.NewNamespace(t)
	var bar foobarv1.FooBar
	place(t, "k8s_v1_foobar.yaml", &bar, namespace)
	live.Eventually(t, "the FooBar is Complete", func() error {
		if err := live.Get(t, &bar); err != nil {
			return err
		}
		for _, c := range bar.Status.Conditions {
			if c.Type == "Complete" && c.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions: %v", bar.Status.Conditions)
	})
	live.Eventually(t, "its output can be read", func() error { return podSaid(t, namespace, "foobar") })
	// barz is "false": another foo alone does not run the command again, another command does.
	first := bar.Status.JobName
	live.Change(t, &bar, func(b *foobarv1.FooBar) { b.Spec.Foo = "another" })
	live.Eventually(t, "another foo has been seen", func() error {
		if err := live.Get(t, &bar); err != nil || bar.Status.ObservedGeneration != bar.Generation {
			return errors.Join(err, fmt.Errorf("status is about generation %d", bar.Status.ObservedGeneration))
		}
		return nil
	})
	if bar.Status.JobName != first {
		t.Errorf("another foo made Job %s of %s", bar.Status.JobName, first)
	}
	live.Change(t, &bar, func(b *foobarv1.FooBar) { b.Spec.Command = "echo again" })
	live.Eventually(t, "the new command has run", func() error {
		if err := live.Get(t, &bar); err != nil {
			return err
		}
		if bar.Status.JobName == first {
			return fmt.Errorf("the Job is still %s", first)
		}
		return podSaid(t, namespace, "again")
	})
}

func TestAppServesHTTP(t *testing.T) {
	parallel(t)
	namespace := live.NewNamespace(t)
	var app appv1alpha1.App
	place(t, "appcontroller_v1alpha1_app.yaml", &app, namespace)
	live.Ready(t, &app)
	answer := fetch(t, namespace, "http://"+app.Name)
	if !strings.Contains(answer, "200 OK") {
		t.Errorf("the App answers %q through its Service", answer)
	}
	if app.Status.ReadyReplicas < 1 {
		t.Errorf("status.readyReplicas is %d", app.Status.ReadyReplicas)
	}

	live.Change(t, &app, func(a *appv1alpha1.App) {
		a.Spec.Ingress = appv1alpha1.Ingress{Enabled: ptr.To(true), Host: "shop.example.com"}
		a.Spec.Canary = &appv1alpha1.Canary{Image: a.Spec.Image, Weight: ptr.To[int32](10)}
	})
	live.Eventually(t, "a canary shares the traffic", func() error {
		var ingresses networkingv1.IngressList
		if err := live.Kube.List(t.Context(), &ingresses, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(ingresses.Items) != 2 {
			return fmt.Errorf("%d ingresses, want 2", len(ingresses.Items))
		}
		for _, ingress := range ingresses.Items {
			if ingress.Annotations["nginx.ingress.kubernetes.io/canary-weight"] == "10" {
				return nil
			}
		}
		return errors.New("no ingress has the canary's weight")
	})
	if err := live.Kube.Delete(t.Context(), &app); err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, "everything goes with the App", func() error {
		var deployments appsv1.DeploymentList
		if err := live.Kube.List(t.Context(), &deployments, client.InNamespace(namespace)); err != nil || len(deployments.Items) > 0 {
			return errors.Join(err, fmt.Errorf("%d Deployments are left", len(deployments.Items)))
		}
		return gone(t, app.DeepCopy())
	})
}

func TestApplicationOfTheSourceDocument(t *testing.T) {
	parallel(t)
	namespace := live.NewNamespace(t)
	var application applicationv1.Application
	place(t, "controller_v1_application.yaml", &application, namespace)
	live.Ready(t, &application)
	deployment := onlyDeployment(t, namespace)
	count := application.Status.Count

	uid := deployment.UID
	if err := live.Kube.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, "the deleted Deployment is made again", func() error {
		var list appsv1.DeploymentList
		if err := live.Kube.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].UID == uid {
			return fmt.Errorf("%d Deployments", len(list.Items))
		}
		if err := live.IsReady(t, &application); err != nil {
			return err
		}
		if application.Status.Count <= count {
			return fmt.Errorf("status.count is %d as before", application.Status.Count)
		}
		return nil
	})

	deployment = onlyDeployment(t, namespace)
	image := deployment.Spec.Template.Spec.Containers[0].Image
	live.Change(t, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "docker.io/library/nothing:1" })
	live.Eventually(t, "the edited Deployment is restored", func() error {
		if err := live.Get(t, deployment); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("its image is %s", got)
		}
		return live.IsReady(t, &application)
	})

	if err := live.Kube.Delete(t.Context(), &application); err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, "the Deployment goes with the Application", func() error {
		return gone(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment.Name}})
	})
}

func onlyDeployment(t *testing.T, namespace string) *appsv1.Deployment {
	t.Helper()
	var list appsv1.DeploymentList
	if err := live.Kube.List(t.Context(), &list, client.InNamespace(namespace)); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d Deployments (%v), want 1", len(list.Items), err)
	}
	return &list.Items[0]
}

// podSaid looks for a pod that ran to its end and printed a line.
func podSaid(t *testing.T, namespace, line string) error {
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if pods.Items[i].Status.Phase != corev1.PodSucceeded {
			continue
		}
		if text, err := live.Logs(t.Context(), namespace, pods.Items[i].Name, 10); err == nil && strings.TrimSpace(text) == line {
			return nil
		}
	}
	return fmt.Errorf("no pod has ended after printing %q", line)
}

// fetch asks a URL from a pod of its own, as any client in the cluster would, and returns
// the status line and headers. A Service leads to a pod a moment after the pod is ready, so
// it asks again for a while.
func fetch(t *testing.T, namespace, url string) string {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "fetch-"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "fetch", Image: "docker.io/library/busybox:1.36",
				Command: []string{"sh", "-c", `for i in $(seq 20); do wget -S -O /dev/null "$0" && exit; sleep 1; done; exit 1`, url},
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false),
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	live.Create(t, pod)
	var text string
	live.Eventually(t, "the answer is there", func() error {
		if err := live.Get(t, pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("the pod is %s", pod.Status.Phase)
		}
		var err error
		text, err = live.Logs(t.Context(), namespace, pod.Name, 20)
		return err
	})
	return text
}

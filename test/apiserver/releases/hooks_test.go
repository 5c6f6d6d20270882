// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

func conditionText(c *metav1.Condition) string { return fmt.Sprintf("it is %+v", c) }

func hookJob(name, events, more string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-%s
  annotations: {helm.sh/hook: "%s"%s}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: web:1}]}
`, name, events, more)
}

// hooked has a ConfigMap and hooks around everything.
var hooked = map[string]string{
	"values.yaml":           "text: hello\n",
	"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name | quote }}}\ndata: {text: {{ .Values.text | quote }}}\n",
	"templates/before.yaml": hookJob("migrate", "pre-install,pre-upgrade",
		`, helm.sh/hook-weight: "5", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"`),
	"templates/account.yaml": `apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}-migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-5"}
`,
	"templates/after.yaml":  hookJob("announce", "post-install,post-upgrade", ""),
	"templates/backup.yaml": hookJob("backup", "pre-delete", ""),
}

// finish plays the Job controller.
func finish(t *testing.T, namespace, name string, succeeded bool) {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	environment.Eventually(t, "Job "+name, func() string {
		if !get(t, job) || job.DeletionTimestamp != nil || len(job.Status.Conditions) > 0 {
			return "it is not there, or has ended before"
		}
		now := metav1.Now()
		job.Status.StartTime = &now
		if succeeded {
			job.Status.CompletionTime, job.Status.Succeeded = &now, 1
			job.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now},
				{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now}}
		} else {
			job.Status.Failed = 1
			job.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "it failed",
					LastTransitionTime: now, LastProbeTime: now},
				{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "it failed", LastTransitionTime: now,
					LastProbeTime: now}}
		}
		if err := api.Status().Update(context.Background(), job); err != nil {
			return err.Error()
		}
		return ""
	})
}

func named(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func TestHooksFromInstallToUninstall(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "hooks")
	op := start(t, namespace, hooked, watches.Allow{})
	web := newWeb(t, namespace, "web", nil)

	has(t, web, "Ready", metav1.ConditionFalse, "HookRunning: pre-install hook Job web-migrate runs")
	if get(t, named(namespace, "web")) {
		t.Error("nothing is installed before its pre-install hooks have succeeded")
	}
	if !get(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-migrate"}}) {
		t.Error("hooks run in the order of their weights")
	}
	if len(web.GetFinalizers()) == 0 {
		t.Error("hooks of a deletion need a finalizer before anything is installed")
	}
	finish(t, namespace, "web-migrate", true)
	has(t, web, "Ready", metav1.ConditionFalse, "post-install hook Job web-announce runs")
	has(t, web, "Deployed", metav1.ConditionTrue, "revision 1")
	environment.Eventually(t, "the delete policy", func() string {
		if get(t, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-migrate"}}) {
			return "the Job is there"
		}
		return ""
	})

	// A restart in the middle goes on where it was.
	op.stop()
	op = start(t, namespace, hooked, watches.Allow{})
	has(t, web, "Ready", metav1.ConditionFalse, "post-install hook Job web-announce runs")
	finish(t, namespace, "web-announce", true)
	has(t, web, "Ready", metav1.ConditionTrue, "")
	if _, running, _ := unstructured.NestedMap(web.Object, "status", "hooks"); running {
		t.Error("status.hooks is there although no hook runs")
	}

	environment.Change(t, api, web, spec(map[string]any{"text": "second"}))
	finish(t, namespace, "web-migrate", false)
	has(t, web, "ReleaseFailed", metav1.ConditionTrue,
		"UpgradeError: pre-upgrade hook Job web-migrate failed: BackoffLimitExceeded: it failed")
	if config := named(namespace, "web"); !get(t, config) || config.Data["text"] != "hello" {
		t.Errorf("a failed hook leaves the release as it was: %v", config.Data)
	}
	finish(t, namespace, "web-migrate", true) // the second try, ten seconds later
	finish(t, namespace, "web-announce", true)
	has(t, web, "Ready", metav1.ConditionTrue, "")
	has(t, web, "ReleaseFailed", metav1.ConditionFalse, "")
	has(t, web, "Deployed", metav1.ConditionTrue, "revision 2")
	before := op.requests.Load()
	has(t, web, "Ready", metav1.ConditionTrue, "")
	if more := op.requests.Load() - before; more > 0 {
		t.Errorf("%d requests although nothing is to be done", more)
	}

	check(t, api.Delete(context.Background(), web))
	has(t, web, "Ready", metav1.ConditionFalse, "pre-delete hook Job web-backup runs")
	if !get(t, named(namespace, "web")) {
		t.Error("nothing is deleted before the backup")
	}
	finish(t, namespace, "web-backup", true)
	gone(t, web, named(namespace, "web"), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-backup"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-migrate"}})
}

// gone waits until nothing of these is left.
func gone(t *testing.T, objects ...client.Object) {
	t.Helper()
	environment.Eventually(t, "the end of everything", func() string {
		for _, o := range objects {
			if get(t, o) {
				return fmt.Sprintf("%T %s is there, finalizers %v", o, o.GetName(), o.GetFinalizers())
			}
		}
		return ""
	})
}

func TestHooksThatAreSwitchedOff(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "hooks")
	start(t, namespace, hooked, watches.Allow{})
	web := newWeb(t, namespace, "web", func(web *unstructured.Unstructured) {
		web.SetAnnotations(map[string]string{"helm.sdk.operatorframework.io/install-disable-hooks": "true",
			"helm.sdk.operatorframework.io/uninstall-disable-hooks": "true"})
	})
	has(t, web, "Ready", metav1.ConditionTrue, "")
	if len(web.GetFinalizers()) > 0 {
		t.Errorf("no hook runs at its deletion, so no finalizer is needed: %v", web.GetFinalizers())
	}
}

func TestUninstallWait(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "wait")
	start(t, namespace, map[string]string{"templates/config.yaml": hooked["templates/config.yaml"], "values.yaml": hooked["values.yaml"]},
		watches.Allow{})
	web := newWeb(t, namespace, "web", annotated(release.UninstallWaitAnnotation, "true"))
	has(t, web, "Ready", metav1.ConditionTrue, "")
	config := named(namespace, "web")
	environment.Change(t, api, config, func(c *corev1.ConfigMap) { c.Finalizers = []string{"test.middleware.hc.cn/hold"} })
	check(t, api.Delete(context.Background(), web))
	has(t, web, "Ready", metav1.ConditionFalse, "Uninstalling: waiting until these are gone: ConfigMap web")
	environment.Change(t, api, config, func(c *corev1.ConfigMap) { c.Finalizers = nil })
	gone(t, web, config)
}

// A process that ends when a revision is in Helm's history and the status does not say yet that it is deployed has a successor that
// takes the record for its own, not for another operator's release: the hooks that follow an installation run.
func TestHooksRunAfterACrashBehindTheHistory(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "hooks")
	op := start(t, namespace, hooked, watches.Allow{})
	web := newWeb(t, namespace, "web", nil)
	has(t, web, "Ready", metav1.ConditionFalse, "HookRunning: pre-install hook Job web-migrate runs")
	before := web.DeepCopy()
	finish(t, namespace, "web-migrate", true)
	has(t, web, "Ready", metav1.ConditionFalse, "post-install hook Job web-announce runs")

	op.stop()
	environment.Change(t, api, web, func(*unstructured.Unstructured) {}) // read
	inventory, _, err := unstructured.NestedFieldCopy(web.Object, "status", "inventory")
	check(t, err)
	check(t, unstructured.SetNestedField(before.Object, inventory, "status", "inventory"))
	before.SetResourceVersion(web.GetResourceVersion())
	check(t, api.Status().Update(t.Context(), before))
	check(t, api.Delete(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-announce"}},
		client.PropagationPolicy(metav1.DeletePropagationBackground)))
	start(t, namespace, hooked, watches.Allow{})
	finish(t, namespace, "web-migrate", true)
	has(t, web, "Ready", metav1.ConditionFalse, "post-install hook Job web-announce runs")
	finish(t, namespace, "web-announce", true)
	has(t, web, "Ready", metav1.ConditionTrue, "")
	has(t, web, "Deployed", metav1.ConditionTrue, "revision 1")
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"maps"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/application"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// site is a chart whose second version has another text, one object less, one more and one that is kept.
var site = map[string]string{
	"values.yaml": "text: first\n",
	"templates/site.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name | quote }}}
data: {text: {{ .Values.text | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-kept, annotations: {helm.sh/resource-policy: keep}}
data: {text: {{ .Values.text | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-{{ .Values.text }}}
spec: {selector: {app: {{ .Release.Name | quote }}}, ports: [{name: http, port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name | quote }}}
spec:
  selector: {matchLabels: {app: {{ .Release.Name | quote }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name | quote }}}}
    spec: {containers: [{name: web, image: {{ printf "web:%s" .Values.text | quote }}}]}
`,
}

// hooks surround everything. None of the first two events is deleted because it succeeded: the operator notes the success first, so that
// no hook runs twice, and a process that ends then leaves the object.
var hooks = map[string]string{
	"templates/account.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ .Release.Name }}-migrate\n  annotations:\n" +
		"    {helm.sh/hook: \"pre-install,pre-upgrade\", helm.sh/hook-weight: \"-5\"}\n",
	"templates/migrate.yaml":  hookJob("migrate", "pre-install,pre-upgrade", ""),
	"templates/announce.yaml": hookJob("announce", "post-install,post-upgrade", ""),
	"templates/backup.yaml":   hookJob("backup", "pre-delete", ""),
	"templates/farewell.yaml": hookJob("farewell", "post-delete", `, helm.sh/hook-delete-policy: "hook-succeeded"`),
}

func hookJob(name, events, more string) string {
	return `apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-` + name + `
  annotations: {helm.sh/hook: "` + events + `"` + more + `}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: "web:1"}]}}
`
}

// remote is an object that no owner reference reaches.
var remote = map[string]string{
	"templates/remote.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-{{ .Values.text }}, " +
		"namespace: {{ .Values.there | quote }}}\ndata: {text: {{ .Values.text | quote }}}\n",
}

// invented is a password that is another one each time that the chart is rendered.
var invented = map[string]string{
	"templates/password.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-password}\n" +
		"stringData: {password: {{ randAlphaNum 30 | quote }}}\n",
}

// more is what another version of a chart has besides.
var more = map[string]string{"templates/more.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-more}}\n"}

// together are the files of several charts.
func together(charts ...map[string]string) map[string]string {
	all := map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"}
	for _, files := range charts {
		maps.Copy(all, files)
	}
	return all
}

func load(files map[string]string) (*chart.Chart, error) {
	mapped := fstest.MapFS{}
	for name, content := range files {
		mapped[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return chart.Load(mapped)
}

// addChart registers a chart kind.
func addChart(files map[string]string) func(ctrl.Manager, cache.Cache, []string, func() time.Time) error {
	return func(mgr ctrl.Manager, children cache.Cache, namespaces []string, now func() time.Time) error {
		loaded, err := load(files)
		if err != nil {
			return err
		}
		return release.Add(mgr, children, watches.Watch{GroupVersionKind: webKind, WatchDependentResources: true, Selector: labels.Everything(),
			Allow: watches.Allow{Namespaces: namespaces[1:]}}, loaded, release.Options{ServiceAccount: "system:operator", Now: now,
			Waves: fleet.Options{Canaries: 1, Wave: 1, Stuck: time.Hour}})
	}
}

func addApplication(mgr ctrl.Manager, children cache.Cache, _ []string, now func() time.Time) error {
	return application.Add(mgr, children, application.Options{Now: now})
}

func web([]string) *unstructured.Unstructured {
	object := environment.Object(webKind, "", "web")
	object.Object["spec"] = map[string]any{}
	return object
}

// reaching is a resource with a child in another namespace.
func reaching(namespaces []string) *unstructured.Unstructured {
	object := web(nil)
	object.Object["spec"] = map[string]any{"there": namespaces[1]}
	return object
}

// waiting is a resource whose deletion waits for its children.
func waiting([]string) *unstructured.Unstructured {
	object := web(nil)
	object.SetAnnotations(map[string]string{release.UninstallWaitAnnotation: "true"})
	return object
}

func second(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	environment.Change(t, api, object, func(o *unstructured.Unstructured) {
		check(t, unstructured.SetNestedField(o.Object, "second", "spec", "text"))
	})
}

func remove(how metav1.DeletionPropagation) func(t *testing.T, object *unstructured.Unstructured) {
	return func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		check(t, api.Delete(t.Context(), object, client.PropagationPolicy(how)))
	}
}

// damage is what somebody does to children behind the operator's back.
func damage(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}
	environment.Change(t, api, &appsv1.Deployment{ObjectMeta: meta}, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "else:1"
	})
	check(t, client.IgnoreNotFound(api.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: meta})))
}

func newApplication([]string) *unstructured.Unstructured {
	object := environment.Object(applicationv1.GroupVersion.WithKind("Application"), "", "web")
	labels := map[string]any{"app": "web"}
	object.Object["spec"] = map[string]any{
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"spec": map[string]any{"replicas": int64(2), "template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
		}}},
	}
	return object
}

func scaleApplication(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	environment.Change(t, api, object, func(o *unstructured.Unstructured) {
		check(t, unstructured.SetNestedField(o.Object, int64(3), "spec", "template", "spec", "replicas"))
	})
}

const ready, upgraded = "Ready=True", "Upgraded=True"

var flows = slices.Concat([]flow{
	{name: "install", add: addChart(together(site)), object: web, last: ready},
	{name: "upgrade", add: addChart(together(site)), object: web, first: ready, change: second, last: ready},
	{name: "another chart", add: addChart(together(site)), next: addChart(together(site, more)), object: web, first: ready, last: upgraded},
	{name: "repair", add: addChart(together(site)), object: web, first: ready, change: damage, last: ready},
	{name: "uninstall", add: addChart(together(site)), object: waiting, first: ready, change: remove(metav1.DeletePropagationBackground)},
	{name: "install with hooks", add: addChart(together(site, hooks)), object: web, last: ready},
	{name: "upgrade with hooks", add: addChart(together(site, hooks)), object: web, first: ready, change: second, last: ready},
	{name: "uninstall with hooks", add: addChart(together(site, hooks)), object: web, first: ready,
		change: remove(metav1.DeletePropagationBackground)},
	{name: "install elsewhere", elsewhere: true, add: addChart(together(site, remote)), object: reaching, last: ready},
	{name: "upgrade elsewhere", elsewhere: true, add: addChart(together(site, remote)), object: reaching, first: ready,
		change: second, last: ready},
	{name: "uninstall elsewhere", elsewhere: true, add: addChart(together(site, remote)), object: reaching, first: ready,
		change: remove(metav1.DeletePropagationBackground)},
	{name: "install with a password", invents: true, add: addChart(together(site, invented)), object: web, last: ready},
	{name: "upgrade with a password", invents: true, add: addChart(together(site, invented)), object: web, first: ready, change: second,
		last: ready},
	{name: "takeover", add: addChart(together(site)), object: former, before: leave(chart.StatusDeployed), last: ready},
	{name: "takeover in the middle of an upgrade", add: addChart(together(site)), object: formerSecond,
		before: leave(chart.StatusPendingUpgrade), last: ready},
}, []flow{
	{name: "Application, create", add: addApplication, object: newApplication, last: ready},
	{name: "Application, change", add: addApplication, object: newApplication, first: ready, change: scaleApplication, last: ready},
	{name: "Application, repair", add: addApplication, object: newApplication, first: ready, change: damage, last: ready},
	{name: "Application, delete", add: addApplication, object: newApplication, first: ready,
		change: remove(metav1.DeletePropagationForeground)},
}, backupFlows, scheduleFlows)

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/watches"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

const configTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name | quote }}}\ndata: {text: {{ .Values.text | default \"\" | quote }}}\n"

var farReaching = map[string]string{
	"templates/config.yaml": configTemplate,
	"templates/role.yaml":   "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: {{ .Release.Namespace }}-{{ .Release.Name }}}\nrules: []\n",
	"templates/there.yaml":  "{{- if .Values.there }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name | quote }}, namespace: {{ .Values.there | quote }}}\n{{- end }}\n",
}

func TestObjectsOutOfReachNeedLeaveAndGoWithTheirResource(t *testing.T) {
	namespace, there := environment.NewNamespace(t, api, "here"), environment.NewNamespace(t, api, "there")
	start(t, namespace, farReaching, watches.Allow{ClusterScoped: true, Namespaces: []string{there}})
	web := newWeb(t, namespace, "web", spec(map[string]any{"there": there}))
	has(t, web, "Ready", metav1.ConditionTrue, "all 3 objects")
	if len(web.GetFinalizers()) != 1 {
		t.Errorf("only we delete what no owner reference reaches: %v", web.GetFinalizers())
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-web"}}
	remote := named(there, "web")
	check(t, api.Delete(context.Background(), remote))
	check(t, api.Delete(context.Background(), role))
	environment.Eventually(t, "the repair", func() string {
		if !get(t, remote) || !get(t, role) {
			return "an object is missing"
		}
		return ""
	})
	environment.Change(t, api, web, spec(map[string]any{"there": "kube-system"}))
	has(t, web, "Stalled", metav1.ConditionTrue, `"kube-system"`)
	if get(t, named("kube-system", "web")) {
		t.Error("an object was made in a namespace that the watch does not allow")
	}
	check(t, api.Delete(context.Background(), web))
	gone(t, web, role, remote)
}

func TestObjectsOutOfReachAreRefusedWithoutLeave(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "refused")
	start(t, namespace, farReaching, watches.Allow{})
	web := newWeb(t, namespace, "web", nil)
	has(t, web, "Irreconcilable", metav1.ConditionTrue, "allow.clusterScoped")
	has(t, web, "Stalled", metav1.ConditionTrue, "RenderFailed")
	if get(t, named(namespace, "web")) {
		t.Error("a refused rendering is not applied in part")
	}
}

func crdFile(plural, kind string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.chart.test}
spec:
  group: chart.test
  scope: Namespaced
  names: {plural: %[1]s, singular: %[2]s, kind: %[3]s, listKind: %[3]sList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, strings.ToLower(kind), kind)
}

func TestCRDsOfTheChartComeBeforeItsObjectsAndStay(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "crds")
	start(t, namespace, map[string]string{
		"crds/all.yaml":         crdFile("widgets", "Widget") + "---\n" + crdFile("gears", "Gear"),
		"templates/widget.yaml": "apiVersion: chart.test/v1\nkind: Widget\nmetadata: {name: {{ .Release.Name | quote }}}\n",
	}, watches.Allow{})
	web := newWeb(t, namespace, "web", nil)
	has(t, web, "Ready", metav1.ConditionTrue, "all 1 objects")
	check(t, api.Delete(context.Background(), web))
	for _, name := range []string{"widgets.chart.test", "gears.chart.test"} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := direct(t).Get(context.Background(), client.ObjectKey{Name: name}, crd); err != nil {
			t.Errorf("a CRD outlives the resources of its chart: %v", err)
		}
	}
}

func direct(t *testing.T) client.Client {
	t.Helper()
	check(t, apiextensionsv1.AddToScheme(api.Scheme()))
	return api
}

var random = map[string]string{
	"templates/config.yaml": configTemplate,
	"templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name | quote }}}\nstringData: {password: {{ randAlphaNum 20 | quote }}}\n",
}

func password(t *testing.T, namespace string) string {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	get(t, secret)
	return string(secret.Data["password"])
}

// A password that a chart invents is invented once a revision: neither a repair nor a restart makes another one.
func TestRandomValuesStayAsTheyAre(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "random")
	op := start(t, namespace, random, watches.Allow{})
	web := newWeb(t, namespace, "web", nil)
	has(t, web, "Ready", metav1.ConditionTrue, "")
	first := password(t, namespace)
	check(t, api.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}))
	environment.Eventually(t, "the Secret made again", func() string {
		if got := password(t, namespace); got != first {
			return fmt.Sprintf("password %q, was %q", got, first)
		}
		return ""
	})
	op.stop()
	check(t, api.Delete(context.Background(), named(namespace, "web"))) // drift that the next process finds
	start(t, namespace, random, watches.Allow{})
	environment.Eventually(t, "the ConfigMap made again", func() string {
		if !get(t, named(namespace, "web")) {
			return "it is not"
		}
		return ""
	})
	if got := password(t, namespace); got != first {
		t.Errorf("another password after a restart: %q, was %q", got, first)
	}
	has(t, web, "Deployed", metav1.ConditionTrue, "revision 1")
}

func TestLookupKeepsWhatExists(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "lookup")
	start(t, namespace, map[string]string{
		"templates/config.yaml": configTemplate,
		"templates/secret.yaml": `{{- $found := lookup "v1" "Secret" .Release.Namespace .Release.Name }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name | quote }}}
data:
  password: {{ if $found }}{{ $found.data.password | quote }}{{ else }}{{ randAlphaNum 20 | b64enc | quote }}{{ end }}
`}, watches.Allow{})
	web := newWeb(t, namespace, "web", nil)
	has(t, web, "Ready", metav1.ConditionTrue, "")
	first := password(t, namespace)
	environment.Change(t, api, web, spec(map[string]any{"text": "second"}))
	has(t, web, "Deployed", metav1.ConditionTrue, "revision 2")
	has(t, web, "Ready", metav1.ConditionTrue, "")
	if got := password(t, namespace); got != first || first == "" {
		t.Errorf("an upgrade replaced what lookup found: %q, was %q", got, first)
	}
	environment.Change(t, api, web, annotated("any", "thing"))
	has(t, web, "Deployed", metav1.ConditionTrue, "revision 2")
}

func TestLookupStaysInTheNamespace(t *testing.T) {
	namespace, other := environment.NewNamespace(t, api, "lookup"), environment.NewNamespace(t, api, "other")
	start(t, namespace, map[string]string{"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name | quote }}}
data: {found: {{ lookup "v1" "Secret" .Values.from "root" | toJson | quote }}}
`}, watches.Allow{})
	web := newWeb(t, namespace, "web", spec(map[string]any{"from": other}))
	has(t, web, "Stalled", metav1.ConditionTrue, fmt.Sprintf("reads namespace %q", other))
	everywhere := newWeb(t, namespace, "everywhere", spec(map[string]any{"from": ""}))
	has(t, everywhere, "Stalled", metav1.ConditionTrue, "reads all namespaces")
}

// A restart asks for nothing but the lists of its informers: what a former process applied is recognised from the status.
func TestRestartAsksForNothing(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "restart")
	files := map[string]string{"templates/config.yaml": configTemplate,
		"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name | quote }}}\nspec: {ports: [{name: http, port: 80}]}\n"}
	op := start(t, namespace, files, watches.Allow{})
	var webs []*unstructured.Unstructured
	for i := range 5 {
		webs = append(webs, newWeb(t, namespace, fmt.Sprintf("web-%d", i), nil))
	}
	for _, web := range webs {
		has(t, web, "Ready", metav1.ConditionTrue, "")
	}
	op.stop()
	before := environment.Passes(t)
	again := start(t, namespace, files, watches.Allow{})
	environment.Eventually(t, "a reconciliation over each", func() string {
		if n := environment.Passes(t) - before; n < 5 {
			return fmt.Sprintf("%v passes", n)
		}
		return ""
	})
	deleted := named(namespace, "web-0") // its repair shows that the engine is awake
	check(t, api.Get(context.Background(), client.ObjectKeyFromObject(deleted), deleted))
	check(t, api.Delete(context.Background(), deleted))
	environment.Eventually(t, "the repair of what is deleted now", func() string {
		repaired := named(namespace, "web-0")
		if !get(t, repaired) {
			return "it is gone"
		}
		if repaired.GetUID() == deleted.GetUID() {
			return "it is being deleted"
		}
		return ""
	})
	var asked []string
	for _, request := range again.requests.List() {
		if strings.HasPrefix(request, "GET") || strings.Contains(request, "/web-0") {
			continue // discovery and lists, and what the deletion above brought
		}
		asked = append(asked, request)
	}
	if diff := cmp.Diff([]string(nil), asked); diff != "" {
		t.Errorf("a restart wrote: %s", diff)
	}
}

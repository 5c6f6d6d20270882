// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/preview"
	"middleware.hc.cn/operator/internal/release"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// site is a resource in YAML.
func site(namespace, spec string) string {
	return fmt.Sprintf("apiVersion: test.middleware.hc.cn/v1\nkind: Site\nmetadata: {name: www, namespace: %s}\nspec: {%s}\n", namespace, spec)
}

// diff runs the comparison for a resource. Changes are the lines of the diff that begin with + or -, without the context.
func diff(t *testing.T, p preview.Project, resource string) (different bool, changes []string, notes string, err error) {
	t.Helper()
	var out, remarks strings.Builder
	p.Stdin = strings.NewReader(resource)
	different, err = preview.Diff(context.Background(), preview.Request{Project: p, File: "-", Out: &out, Notes: &remarks}, admin)
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			changes = append(changes, line)
		}
	}
	return different, changes, remarks.String(), err
}

// settle makes or changes the resource and waits until the operator has deployed it.
func settle(t *testing.T, namespace string, spec map[string]any) {
	t.Helper()
	cr := shared.Object(siteKind, namespace, "www")
	if shared.Get(t, api, cr) {
		shared.Change(t, api, cr, func(o *unstructured.Unstructured) { o.Object["spec"] = spec })
	} else {
		cr.Object["spec"] = spec
		shared.Check(t, api.Create(context.Background(), cr))
	}
	shared.Eventually(t, "the deployment of Site www", func() string {
		shared.Get(t, api, cr)
		observed, _, _ := unstructured.NestedInt64(cr.Object, "status", "observedGeneration")
		revision, found, _ := unstructured.NestedInt64(cr.Object, "status", "deployedRelease", "revision")
		if !found || revision < 1 || observed != cr.GetGeneration() {
			return fmt.Sprintf("the status is %v", cr.Object["status"])
		}
		return ""
	})
}

// versions are the resource versions of everything there could be for Site www, itself included.
func versions(t *testing.T, namespace string) map[string]string {
	t.Helper()
	seen := map[string]string{}
	objects := []client.Object{shared.Object(siteKind, namespace, "www"), &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{},
		&appsv1.Deployment{}, &batchv1.Job{}}
	for _, o := range objects {
		o.SetNamespace(namespace)
		o.SetName("www")
		if shared.Get(t, api, o) {
			seen[fmt.Sprintf("%T", o)] = o.GetResourceVersion()
		}
	}
	return seen
}

func TestDiffOfAResourceThatIsNotThere(t *testing.T) {
	p, namespace := writeProject(t, siteFiles), shared.NewNamespace(t, api, "preview")
	different, changes, _, err := diff(t, p, site(namespace, ""))
	shared.Check(t, err)
	text := strings.Join(changes, "\n")
	if !different || strings.Count(text, "--- live (no ") != 5 || !strings.Contains(text, "+  text: hello") {
		t.Errorf("five new objects: %v\n%s", different, text)
	}
	if strings.Contains(text, "very secret") || strings.Contains(text, "dmVyeSBzZWNyZXQ") {
		t.Errorf("the diff shows a password:\n%s", text)
	}
	if seen := versions(t, namespace); len(seen) != 0 {
		t.Errorf("the comparison made objects: %v", seen)
	}
}

func TestDiffForetellsWhatTheOperatorDoes(t *testing.T) {
	p, namespace := writeProject(t, siteFiles), shared.NewNamespace(t, api, "preview")
	startOperator(t, p, namespace)
	settle(t, namespace, map[string]any{"replicas": int64(3)})
	before := versions(t, namespace)
	for _, tc := range []struct {
		name, spec string
		want       []string
	}{
		{"what is deployed", "replicas: 3", nil},
		{"a value that changes", "replicas: 3, text: bye",
			[]string{"--- live ConfigMap N/www", "+++ rendered ConfigMap N/www", "-  text: hello", "+  text: bye"}},
		{"a secret that changes", "replicas: 3, password: other",
			[]string{"--- live Secret N/www", "+++ rendered Secret N/www", "-  password: '*** (before)'", "+  password: '*** (after)'"}},
		{"replicas that are left to an autoscaler", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			different, changes, _, err := diff(t, p, site(namespace, tc.spec))
			shared.Check(t, err)
			for i := range changes {
				changes[i] = strings.ReplaceAll(changes[i], namespace, "N")
			}
			if diff := cmp.Diff(tc.want, changes); diff != "" || different != (tc.want != nil) {
				t.Errorf("different: %v (-want +got):\n%s", different, diff)
			}
		})
	}
	different, changes, _, err := diff(t, p, site(namespace, "replicas: 3, service: false"))
	shared.Check(t, err)
	if text := strings.Join(changes, "\n"); !different || !strings.Contains(text, "+++ rendered (no Service "+namespace+"/www)") {
		t.Errorf("an object that is no longer rendered goes:\n%s", text)
	}
	if diff := cmp.Diff(before, versions(t, namespace)); diff != "" {
		t.Errorf("the comparisons changed something: %s", diff)
	}
	settle(t, namespace, map[string]any{"text": "bye", "service": false})
	shared.Eventually(t, "that what was foretold has happened", func() string {
		different, changes, _, err := diff(t, p, site(namespace, "text: bye, service: false"))
		if err != nil || different {
			return fmt.Sprintf("%v %v", err, changes)
		}
		return ""
	})
}

// What a chart of chance made is not made anew for a resource that did not change, and the revision stays what it is.
func TestDiffOfWhatIsLeftToChance(t *testing.T) {
	files := maps.Clone(siteFiles)
	files["chart/templates/site.yaml"] = `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name | quote }}}
data:
  text: {{ randAlphaNum 20 | quote }}
  revision: {{ .Release.Revision | quote }}
  looked: {{ len (lookup "v1" "Secret" .Release.Namespace "www") | quote }}
`
	p, namespace := writeProject(t, files), shared.NewNamespace(t, api, "preview")
	startOperator(t, p, namespace)
	settle(t, namespace, map[string]any{})
	different, changes, _, err := diff(t, p, site(namespace, ""))
	shared.Check(t, err)
	if different {
		t.Errorf("nothing would happen: %v", changes)
	}
	different, changes, _, err = diff(t, p, site(namespace, "text: other"))
	shared.Check(t, err)
	if text := strings.Join(changes, "\n"); !different || !strings.Contains(text, "+  revision: \"2\"") {
		t.Errorf("another revision, with another text: %v", changes)
	}
}

// A release of which only Helm's history and a finalizer tell is one of helm-operator's: what it has too much goes.
func TestDiffOfATakeover(t *testing.T) {
	p, namespace := writeProject(t, siteFiles), shared.NewNamespace(t, api, "preview")
	t.Run("a release", func(t *testing.T) {
		startOperator(t, p, namespace)
		settle(t, namespace, map[string]any{})
	})
	cr := shared.Object(siteKind, namespace, "www")
	shared.Get(t, api, cr)
	cr.SetFinalizers([]string{release.SDKFinalizer})
	shared.Check(t, api.Update(context.Background(), cr))
	delete(cr.Object, "status")
	shared.Check(t, api.Status().Update(context.Background(), cr))
	records := &corev1.SecretList{}
	shared.Check(t, api.List(context.Background(), records, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}))
	for _, record := range records.Items { // as helm-operator writes it: without the mark of our own records
		record.SetAnnotations(nil)
		shared.Check(t, api.Update(context.Background(), &record))
	}
	different, changes, _, err := diff(t, p, site(namespace, "service: false"))
	shared.Check(t, err)
	if text := strings.Join(changes, "\n"); !different || !strings.Contains(text, "+++ rendered (no Service "+namespace+"/www)") {
		t.Errorf("the Service goes:\n%s", text)
	}
}

func TestDiffOfWhatCannotBeChanged(t *testing.T) {
	p, namespace := writeProject(t, siteFiles), shared.NewNamespace(t, api, "preview")
	startOperator(t, p, namespace)
	settle(t, namespace, map[string]any{})
	forced := strings.Replace(site(namespace, "command: second"), "namespace: ",
		"annotations: {helm.sdk.operatorframework.io/upgrade-force: 'true'}, namespace: ", 1)
	different, changes, notes, err := diff(t, p, forced)
	shared.Check(t, err)
	if !different || !strings.Contains(notes, "Job "+namespace+"/www is deleted and made anew") ||
		!strings.Contains(strings.Join(changes, "\n"), "+++ rendered (no Job") {
		t.Errorf("different: %v, notes %q, changes %v", different, notes, changes)
	}
}

func TestDiffRefusesWhatTheOperatorRefuses(t *testing.T) {
	p, namespace := writeProject(t, siteFiles), shared.NewNamespace(t, api, "preview")
	shared.Check(t, api.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "www"}}))
	for _, tc := range []struct{ name, resource, says string }{
		{"an object of someone else", site(namespace, ""), "ConfigMap " + namespace + "/www"},
		{"a namespace that is not there", site("nowhere", ""), "nowhere"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, changes, _, err := diff(t, p, tc.resource); err == nil || !strings.Contains(err.Error(), tc.says) || changes != nil {
				t.Errorf("got %v and %v, want an error that says %q", err, changes, tc.says)
			}
		})
	}
}

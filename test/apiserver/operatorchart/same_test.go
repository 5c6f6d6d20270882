// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operatorchart

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// The chart is the installation of config/, object by object, in whatever namespace; and with the values of an overlay it is the overlay.
func TestTheChartIsTheInstallation(t *testing.T) {
	for name, tt := range map[string]struct {
		kustomization, namespace string
		values                   []string
	}{
		"as it is":                     {"config/default", installationNamespace, nil},
		"in another namespace":         {"config/default", "op-7f3", nil},
		"certificate of cert-manager":  {"config/overlays/cert-manager", "op-7f3", []string{"webhooks.certManager=true"}},
		"data in directories of nodes": {"config/overlays/host-path", installationNamespace, []string{"allowHostPath=true"}},
		"ServiceMonitor, PrometheusRule": {"config/overlays/prometheus", "op-7f3",
			[]string{"metrics.serviceMonitor.enabled=true", "metrics.prometheusRule.enabled=true"}},
		"CRDs that others install before": {"config/operator", installationNamespace, []string{"crds.install=false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			arguments := []string{"template", "another-name", chartFolder, "--namespace", tt.namespace, "--kube-version", "v1.36.0",
				"--set", "image.tag=dev"}
			for _, value := range tt.values {
				arguments = append(arguments, "--set", value)
			}
			text := helm(t, arguments...)
			if tt.namespace != installationNamespace {
				text = strings.ReplaceAll(text, tt.namespace, installationNamespace)
			}
			got := objectsOf(t, text)
			for at, o := range got {
				withoutHelm(t, at, o)
			}
			want := objectsOf(t, run(t, tool(t, "kustomize"), "build", root+"/"+tt.kustomization))
			delete(want, "Namespace  "+installationNamespace) // helm install --create-namespace
			for at := range want {
				if diff := cmp.Diff(want[at], got[at]); diff != "" {
					t.Errorf("%s: kustomize (-) and the chart (+) differ:\n%s", at, diff)
				}
				delete(got, at)
			}
			for at := range got {
				t.Errorf("the chart has %s besides", at)
			}
		})
	}
}

// withoutHelm takes off what only a release has.
func withoutHelm(t *testing.T, at string, o map[string]any) {
	t.Helper()
	u := unstructured.Unstructured{Object: o}
	labels := u.GetLabels()
	const prefix = "app.kubernetes.io/"
	for _, label := range []string{"helm.sh/chart", prefix + "instance", prefix + "version", prefix + "managed-by"} {
		if labels[label] == "" {
			t.Errorf("%s has no label %s", at, label)
		}
		delete(labels, label)
	}
	annotations := u.GetAnnotations()
	if keep := annotations["helm.sh/resource-policy"] == "keep"; keep != (u.GetKind() == "CustomResourceDefinition") {
		t.Errorf("%s stays when the release goes: %t", at, keep)
	}
	delete(annotations, "helm.sh/resource-policy")
	for field, left := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(left) == 0 {
			unstructured.RemoveNestedField(o, "metadata", field)
			continue
		}
		shared.Check(t, unstructured.SetNestedStringMap(o, left, "metadata", field))
	}
}

// objectsOf are the objects of YAML documents, by what identifies them.
func objectsOf(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for document := range bytes.SplitSeq([]byte("\n"+text), []byte("\n---\n")) {
		encoded, err := yaml.YAMLToJSON(document)
		shared.Check(t, err)
		if string(encoded) == "null" {
			continue
		}
		var o unstructured.Unstructured
		shared.Check(t, o.UnmarshalJSON(encoded))
		at := o.GetKind() + " " + o.GetNamespace() + " " + o.GetName()
		if all[at] != nil {
			t.Errorf("%s is there twice", at)
		}
		all[at] = o.Object
	}
	return all
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bundle tests the OLM bundle of this checkout (make bundle): what people see of it in a console, what OLM grants the
// operator because of it, and that an upgrade to it is safe.
package bundle

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

const (
	manifestsDir = "../../bundle/manifests"
	csvFile      = manifestsDir + "/middleware-operator.clusterserviceversion.yaml"
	samplesDir   = "../../config/samples"
)

// The samples that become Ready in an empty namespace, one of each kind.
var examples = []string{
	"appcontroller_v1alpha1_app.yaml",
	"controller_v1_application.yaml",
	"k8s_v1_foobar.yaml",
	"redis_v1alpha1_redisbackup.yaml",
	"redis_v1alpha1_redisbackupschedule.yaml",
	"redis_v1alpha1_rediscluster_full.yaml",
	"stable_v1beta1_crontab_full.yaml",
}

// clusterServiceVersion is what the tests look at of one. (OLM's own types would bring its dependencies into this module.)
type clusterServiceVersion struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Version       string
		Icon          []icon
		RelatedImages []image
		InstallModes  []struct {
			Type      string
			Supported bool
		}
		Install struct {
			Spec struct {
				Permissions, ClusterPermissions []permissions
				Deployments                     []struct {
					Name string
					Spec appsv1.DeploymentSpec
				}
			}
		}
		WebhookDefinitions        []webhookDefinition
		CustomResourceDefinitions struct{ Owned []ownedKind }
	}
}

type (
	icon        struct{ Base64data, Mediatype string }
	image       struct{ Name, Image string }
	permissions struct {
		ServiceAccountName string
		Rules              []rbacv1.PolicyRule
	}
	webhookDefinition struct {
		Type, GenerateName, DeploymentName, WebhookPath string
		TargetPort                                      intstr.IntOrString
		Rules                                           []admissionregistrationv1.RuleWithOperations
		FailurePolicy                                   admissionregistrationv1.FailurePolicyType
		TimeoutSeconds                                  int32
	}
)

func readCSV(t *testing.T) clusterServiceVersion {
	t.Helper()
	text, err := os.ReadFile(csvFile)
	if err != nil {
		t.Fatal(err)
	}
	var csv clusterServiceVersion
	if err := yaml.Unmarshal(text, &csv); err != nil {
		t.Fatalf("%s: %v", csvFile, err)
	}
	return csv
}

// manager is the operator's container.
func (csv clusterServiceVersion) manager(t *testing.T) corev1.Container {
	t.Helper()
	deployments := csv.Spec.Install.Spec.Deployments
	if len(deployments) != 1 || len(deployments[0].Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("want one Deployment of one container, not %v", deployments)
	}
	return deployments[0].Spec.Template.Spec.Containers[0]
}

// read decodes the one document of a YAML file, which must have no field that into lacks.
func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestExamplesAreTheSamples(t *testing.T) {
	var got []map[string]any
	if err := json.Unmarshal([]byte(readCSV(t).Annotations["alm-examples"]), &got); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(got, func(a, b map[string]any) int {
		return strings.Compare(a["apiVersion"].(string), b["apiVersion"].(string))
	})
	var want []map[string]any
	for _, file := range examples {
		var sample map[string]any
		read(t, filepath.Join(samplesDir, file), &sample)
		delete(sample["metadata"].(map[string]any), "namespace") // a console fills in its own
		want = append(want, sample)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("config/samples (-) and alm-examples (+) differ:\n%s", diff)
	}
}

func TestExamplesAreValid(t *testing.T) {
	var objects []map[string]any
	if err := json.Unmarshal([]byte(readCSV(t).Annotations["alm-examples"]), &objects); err != nil {
		t.Fatal(err)
	}
	byKind := schemas(t)
	for _, object := range objects {
		kind := object["kind"].(string)
		schema := byKind[kind]
		var internal apiextensions.JSONSchemaProps
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&schema, &internal, nil); err != nil {
			t.Fatal(err)
		}
		validator, _, err := validation.NewSchemaValidator(&internal)
		if err != nil {
			t.Fatal(err)
		}
		for _, mistake := range validation.ValidateCustomResource(nil, object, validator) {
			t.Errorf("%s: %v", kind, mistake)
		}
	}
}

// TestTheConsoleBeginsWithARedisCluster: what it proposes to make after the installation is one of the examples.
func TestTheConsoleBeginsWithARedisCluster(t *testing.T) {
	annotations := readCSV(t).Annotations
	var all []map[string]any
	var first map[string]any
	if err := json.Unmarshal([]byte(annotations["alm-examples"]), &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(annotations["operatorframework.io/initialization-resource"]), &first); err != nil {
		t.Fatal(err)
	}
	if first["kind"] != "RedisCluster" || !slices.ContainsFunc(all, func(e map[string]any) bool { return gocmp.Equal(e, first) }) {
		t.Errorf("%v is not the example of a RedisCluster", first)
	}
}

func TestTheOperatorIsNamedOnce(t *testing.T) {
	csv := readCSV(t)
	if want := "middleware-operator.v" + csv.Spec.Version; csv.Name != want {
		t.Errorf("name is %s, want %s", csv.Name, want)
	}
	manager := csv.manager(t)
	if got := csv.Annotations["containerImage"]; got != manager.Image {
		t.Errorf("annotation containerImage is %s, the container's image %s", got, manager.Image)
	}
	if len(csv.Spec.RelatedImages) == 0 || csv.Spec.RelatedImages[0] != (image{"operator", manager.Image}) {
		t.Errorf("relatedImages do not begin with the operator: %v", csv.Spec.RelatedImages)
	}
	if _, err := time.Parse(time.RFC3339, csv.Annotations["createdAt"]); err != nil {
		t.Errorf("createdAt: %v", err)
	}
}

// TestTheOperatorLearnsItsNamespacesFromOLM: without it, an operator of one namespace would ask for what it may not see.
func TestTheOperatorLearnsItsNamespacesFromOLM(t *testing.T) {
	for _, e := range readCSV(t).manager(t).Env {
		if e.Name == "WATCH_NAMESPACE" && e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "metadata.annotations['olm.targetNamespaces']" {
			return
		}
	}
	t.Error("WATCH_NAMESPACE is not taken from the annotation olm.targetNamespaces")
}

func TestEveryInstallModeIsOffered(t *testing.T) {
	offered := map[string]bool{}
	for _, mode := range readCSV(t).Spec.InstallModes {
		offered[mode.Type] = mode.Supported
	}
	want := map[string]bool{"OwnNamespace": true, "SingleNamespace": true, "MultiNamespace": true, "AllNamespaces": true}
	if diff := gocmp.Diff(want, offered); diff != "" {
		t.Error(diff)
	}
}

func TestTheIconIsTheDrawing(t *testing.T) {
	drawing, err := os.ReadFile("../../config/manifests/icon.svg")
	if err != nil {
		t.Fatal(err)
	}
	want := []icon{{base64.StdEncoding.EncodeToString(drawing), "image/svg+xml"}}
	if diff := gocmp.Diff(want, readCSV(t).Spec.Icon); diff != "" {
		t.Error(diff)
	}
}

// TestOLMCallsTheSameWebhooks: with OLM's webhooks the same requests are asked about as without OLM, and nothing else.
func TestOLMCallsTheSameWebhooks(t *testing.T) {
	port := intstr.FromString("webhooks")
	var want []webhookDefinition
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	read(t, "../../config/webhook/mutating.yaml", &mutating)
	for _, w := range mutating.Webhooks {
		want = append(want, webhookDefinition{"MutatingAdmissionWebhook", w.Name, "middleware-operator", *w.ClientConfig.Service.Path, port,
			w.Rules, *w.FailurePolicy, *w.TimeoutSeconds})
	}
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	read(t, "../../config/webhook/validating.yaml", &validating)
	for _, w := range validating.Webhooks {
		want = append(want, webhookDefinition{"ValidatingAdmissionWebhook", w.Name, "middleware-operator", *w.ClientConfig.Service.Path, port,
			w.Rules, *w.FailurePolicy, *w.TimeoutSeconds})
	}
	got := readCSV(t).Spec.WebhookDefinitions
	byName := func(a, b webhookDefinition) int { return strings.Compare(a.GenerateName, b.GenerateName) }
	slices.SortFunc(want, byName)
	slices.SortFunc(got, byName)
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("config/webhook (-) and webhookdefinitions (+) differ:\n%s", diff)
	}
}

// TestTheBundleHoldsOnlyWhatEveryClusterKnows: OLM fails an installation with an object whose kind is not served (ServiceMonitor,
// PrometheusRule), catalogs refuse a NetworkPolicy, and namespaces and service accounts are OLM's to make.
func TestTheBundleHoldsOnlyWhatEveryClusterKnows(t *testing.T) {
	allowed := []string{"ClusterServiceVersion", "CustomResourceDefinition", "ClusterRole", "Service", "PodDisruptionBudget"}
	for file, kind := range kindsOf(t) {
		if !slices.Contains(allowed, kind) {
			t.Errorf("%s is a %s", file, kind)
		}
	}
}

func kindsOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(manifestsDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, file := range files {
		var object map[string]any
		read(t, file, &object)
		kinds[filepath.Base(file)], _ = object["kind"].(string)
	}
	return kinds
}

// TestTheBundleFitsIntoAConfigMap: OLM unpacks a bundle into one, of which etcd allows 1 MiB; it is compressed.
func TestTheBundleFitsIntoAConfigMap(t *testing.T) {
	var size counter
	packed := gzip.NewWriter(&size)
	archive := tar.NewWriter(packed)
	if err := archive.AddFS(os.DirFS("../../bundle")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []io.Closer{archive, packed} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if size > 1<<20/2 {
		t.Errorf("the bundle has %d bytes compressed, more than half of what fits", size)
	}
}

// counter counts what is written to it.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

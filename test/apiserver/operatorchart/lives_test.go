// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operatorchart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/webhook"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	releaseName = "op"
	place       = "op-7f3" // the namespace of the release
)

// A release begins with the CRDs of each version that was released, is upgraded to this chart, and is uninstalled. From the newest on,
// the operator works meanwhile with what the chart grants it: its own certificate, the webhooks, its kinds. What users have stays all the
// while, and nothing else does.
func TestTheChartLives(t *testing.T) {
	released, err := filepath.Glob(filepath.Join(root, "config", "crd", "released", "*"))
	shared.Check(t, err)
	if len(released) == 0 {
		t.Fatal("config/crd/released has no version")
	}
	slices.SortFunc(released, func(a, b string) int {
		return semver.MustParse(filepath.Base(a)).Compare(semver.MustParse(filepath.Base(b)))
	})
	for i, folder := range released {
		helm(t, "install", releaseName, chartOf(t, folder), "--namespace", place, "--create-namespace")
		if i < len(released)-1 {
			upgraded(t)
			uninstalled(t)
			for _, crd := range crds(t) {
				shared.Check(t, api.Delete(t.Context(), &crd))
			}
			continue
		}
		stop := startOperator(t)
		hasRoom(t)
		users := admitted(t)
		before := caBundle(t)
		upgraded(t)
		if after := caBundle(t); !bytes.Equal(before, after) {
			t.Error("the upgrade changed the caBundle, which is the operator's")
		}
		secondReleaseIsRefused(t)
		stop()
		uninstalled(t)
		for _, o := range users {
			if uid := o.GetUID(); !shared.Get(t, api, o) || o.GetUID() != uid || o.GetDeletionTimestamp() != nil {
				t.Errorf("%s %s went with the release", o.GetKind(), o.GetName())
			}
		}
	}
	takenOver(t)
}

// chartOf is the chart with the CRDs of a folder in place of its own, as if it were of that version.
func chartOf(t *testing.T, crds string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "middleware-operator")
	shared.Check(t, os.CopyFS(folder, os.DirFS(chartFolder)))
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	shared.Check(t, err)
	var text strings.Builder
	for _, file := range files {
		var o unstructured.Unstructured
		read, err := os.ReadFile(file)
		shared.Check(t, err)
		shared.Check(t, yaml.Unmarshal(read, &o.Object))
		shared.Check(t, unstructured.SetNestedField(o.Object, "keep", "metadata", "annotations", "helm.sh/resource-policy"))
		encoded, err := yaml.Marshal(o.Object)
		shared.Check(t, err)
		fmt.Fprintf(&text, "---\n%s", encoded)
	}
	shared.Check(t, os.WriteFile(filepath.Join(folder, "templates", "crds.yaml"), []byte(text.String()), 0o600))
	metadata, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	shared.Check(t, err)
	var about map[string]any
	shared.Check(t, yaml.Unmarshal(metadata, &about))
	about["version"] = filepath.Base(crds)
	metadata, err = yaml.Marshal(about)
	shared.Check(t, err)
	shared.Check(t, os.WriteFile(filepath.Join(folder, "Chart.yaml"), metadata, 0o600))
	return folder
}

// startOperator runs the operator as the release's service account, at the endpoint of the webhooks' Service.
func startOperator(t *testing.T) (stop func()) {
	t.Helper()
	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + place + ":middleware-operator",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	listener, err := net.Listen("tcp", ":0")
	shared.Check(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	shared.Check(t, listener.Close())
	o := shared.Options()
	o.Controllers = []string{"app"}
	o.LeaderElection.Enabled = true
	o.Webhooks = manager.WebhookOptions{Mode: manager.WebhooksOn, Port: port, CertDir: t.TempDir()}
	inPod := func(name string) (string, bool) {
		value, set := map[string]string{"POD_NAMESPACE": place, "POD_SERVICE_ACCOUNT": "middleware-operator"}[name]
		return value, set
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, as, o, inPod) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	shared.Check(t, api.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: place, Name: "webhook",
			Labels: map[string]string{discoveryv1.LabelServiceName: webhook.Service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address(t)}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(port)), Protocol: ptr.To(corev1.ProtocolTCP)}},
	}))
	return stop
}

// address is one of this machine that endpoints may have, which loopback addresses may not.
func address(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	shared.Check(t, err)
	for _, a := range addresses {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Fatal("this machine has no address but loopback ones, so that the API server cannot call a Service's endpoint on it")
	return ""
}

var (
	apps     = schema.GroupVersionKind{Group: "appcontroller.middleware.hc.cn", Version: "v1alpha1", Kind: "App"}
	clusters = schema.GroupVersionKind{Group: "redis.middleware.hc.cn", Version: "v1alpha1", Kind: "RedisCluster"}
)

// admitted makes objects through the webhooks, and returns those that users have.
func admitted(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	app := shared.Object(apps, "default", "web")
	app.Object["spec"] = map[string]any{"image": "docker.io/library/busybox:1.36"}
	cluster := shared.Object(clusters, "default", "cache")
	cluster.Object["spec"] = map[string]any{"replicas": int64(6)}
	users := []*unstructured.Unstructured{app, cluster}
	for _, o := range users {
		shared.Eventually(t, "an object is admitted", func() string {
			if err := api.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
				return err.Error()
			}
			return ""
		})
	}
	if image, _, _ := unstructured.NestedString(cluster.Object, "spec", "repository"); image == "" {
		t.Error("the webhook wrote no image into the RedisCluster")
	}
	refused := cluster.DeepCopy()
	refused.SetResourceVersion("")
	refused.SetName("refused")
	shared.Check(t, unstructured.SetNestedStringMap(refused.Object, map[string]string{"dir": "/tmp"}, "spec", "config"))
	if err := api.Create(t.Context(), refused); err == nil || !strings.Contains(err.Error(), "admission webhook") {
		t.Errorf("a reserved setting: %v, want the webhook to refuse it", err)
	}
	shared.Eventually(t, "the App has its Deployment", func() string {
		if !shared.Get(t, api, shared.Object(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "default", "web")) {
			return "it is not there"
		}
		return ""
	})
	return users
}

// hasRoom checks that the record of a release, which is a Secret with the whole chart, does not come near what a Secret may hold.
func hasRoom(t *testing.T) {
	t.Helper()
	records := &corev1.SecretList{}
	shared.Check(t, api.List(t.Context(), records, client.InNamespace(place), client.MatchingLabels{"owner": "helm"}))
	if len(records.Items) == 0 {
		t.Error("the release has no record")
	}
	for _, record := range records.Items {
		if size := len(record.Data["release"]); size > corev1.MaxSecretSize/2 {
			t.Errorf("the record %s has %d bytes, of %d", record.Name, size, corev1.MaxSecretSize)
		} else {
			t.Logf("the record %s has %d bytes", record.Name, size)
		}
	}
}

// caBundle is what the operator told the webhook configurations.
func caBundle(t *testing.T) []byte {
	t.Helper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook.Configuration}}
	if !shared.Get(t, api, c) || len(c.Webhooks[0].ClientConfig.CABundle) == 0 {
		t.Fatal("the webhooks have no caBundle")
	}
	return c.Webhooks[0].ClientConfig.CABundle
}

// upgraded upgrades the release to this chart: without its CRDs, which leaves them as they are, and with them.
func upgraded(t *testing.T) {
	t.Helper()
	for _, install := range []bool{false, true} {
		helm(t, "upgrade", releaseName, chartFolder, "--namespace", place, "--set", fmt.Sprintf("crds.install=%t", install))
		for _, crd := range crds(t) {
			there := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
			if shared.Get(t, api, there); install != cmp.Equal(schemaOf(t, there), schemaOf(t, &crd)) {
				t.Errorf("with crds.install=%t, the schema of %s is this version's: %t", install, crd.Name, !install)
			}
		}
	}
}

// schemaOf is the schema of a CRD's first version, as the API server gives it.
func schemaOf(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) string {
	t.Helper()
	if len(crd.Spec.Versions) == 0 {
		return ""
	}
	text, err := json.Marshal(crd.Spec.Versions[0].Schema)
	shared.Check(t, err)
	return string(text)
}

// crds are those of config/crd.
func crds(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	shared.Check(t, err)
	all := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		shared.Check(t, err)
		shared.Check(t, yaml.Unmarshal(text, &all[i]))
	}
	return all
}

func secondReleaseIsRefused(t *testing.T) {
	t.Helper()
	_, problem := try(t, tool(t, "helm"), "install", "another", chartFolder, "--namespace", "another", "--create-namespace",
		"--set", "watchNamespaces={shop}", "--set", "secretNamespaces={shop}")
	want := "the operator is in this cluster already, as the release op of namespace op-7f3, and a cluster has one"
	if !strings.Contains(problem, want) {
		t.Errorf("a second release: %q, want %q", problem, want)
	}
}

// uninstalled uninstalls the release: the CRDs stay, every other object of it goes.
func uninstalled(t *testing.T) {
	t.Helper()
	manifest := objectsOf(t, helm(t, "get", "manifest", releaseName, "--namespace", place))
	helm(t, "uninstall", releaseName, "--namespace", place)
	for at, content := range manifest {
		o := &unstructured.Unstructured{Object: content}
		if there := shared.Get(t, api, o); there != (o.GetKind() == "CustomResourceDefinition") || o.GetDeletionTimestamp() != nil {
			t.Errorf("after the uninstallation %s is there: %t", at, there)
		}
	}
}

// takenOver makes a release of an installation by kubectl.
func takenOver(t *testing.T) {
	t.Helper()
	objects := objectsOf(t, run(t, tool(t, "kustomize"), "build", filepath.Join(root, "config", "operator")))
	first := "Namespace  " + installationNamespace
	for _, at := range append([]string{first}, slices.Collect(maps.Keys(objects))...) {
		err := api.Create(t.Context(), &unstructured.Unstructured{Object: objects[at]})
		shared.Check(t, client.IgnoreAlreadyExists(err))
	}
	arguments := []string{"install", releaseName, chartFolder, "--namespace", installationNamespace}
	if _, problem := try(t, tool(t, "helm"), arguments...); !strings.Contains(problem, "cannot be imported into the current release") {
		t.Errorf("without being asked to, Helm took over what is not its own: %q", problem)
	}
	helm(t, append(arguments, "--take-ownership")...)
}

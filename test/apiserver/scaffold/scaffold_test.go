// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// operator-sdk adds a kind of each shape to a copy: a Go kind with its controller and webhooks, and a chart kind. The copy builds, its
// manifests hold both kinds, and its operator runs both.
func TestKindsThatOperatorSDKAdds(t *testing.T) {
	if os.Getenv("E2E") != "all" {
		t.Skip("compiles a copy of the checkout for minutes: with E2E=all")
	}
	c := copyCheckout(t)
	sdk := c.tool("operator-sdk")
	c.run(sdk, "create", "api", "--group=cache", "--version=v1", "--kind=Memcached", "--resource", "--controller")
	c.run(sdk, "create", "webhook", "--group=cache", "--version=v1", "--kind=Memcached", "--defaulting", "--programmatic-validation")
	c.run(sdk, "create", "api", "--plugins=helm.sdk.operatorframework.io/v1", "--group=web", "--version=v1alpha1", "--kind=Site")
	c.run("make", "manifests")
	c.run("go", "build", "-trimpath", "-o", "manager", "./cmd")
	c.run("go", "vet", "-trimpath", "./api/cache/...", "./internal/controller/...", "./internal/webhook/cache/...")
	c.run(sdk, "generate", "kustomize", "manifests", "--quiet", "--interactive=false", "--apis-dir=api")
	if base, err := os.ReadFile(filepath.Join(c.dir, "config/manifests/bases/middleware-operator.clusterserviceversion.yaml")); err != nil ||
		!bytes.Contains(base, []byte("kind: Memcached")) {
		t.Errorf("the bundle's base does not own Memcached (%v)", err)
	}

	checkManifests(t, c.run(c.tool("kustomize"), "build", "config/default"))
	checkRuns(t, c)
}

// checkManifests looks at the whole installation: each kind's CRD, the rights, and webhooks in the configurations that the operator
// keeps the certificate of.
func checkManifests(t *testing.T, text string) {
	t.Helper()
	roles, webhooks, crds := map[string]rbacv1.ClusterRole{}, []string{}, 0
	for _, document := range strings.Split(text, "\n---\n") {
		if strings.Contains(document, "kind: CustomResourceDefinition") {
			crds += strings.Count(document, "\n  name: memcacheds.cache.middleware.hc.cn") +
				strings.Count(document, "\n  name: sites.web.middleware.hc.cn")
			continue
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		shared.Check(t, err)
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			roles[o.Name] = *o
		case *admissionv1.MutatingWebhookConfiguration:
			for _, w := range o.Webhooks {
				webhooks = append(webhooks, o.Name+" "+*w.ClientConfig.Service.Path+" "+w.ClientConfig.Service.Namespace+"/"+
					w.ClientConfig.Service.Name)
			}
		case *admissionv1.ValidatingWebhookConfiguration:
			for _, w := range o.Webhooks {
				webhooks = append(webhooks, o.Name+" "+*w.ClientConfig.Service.Path+" "+w.ClientConfig.Service.Namespace+"/"+
					w.ClientConfig.Service.Name)
			}
		}
	}
	if crds != 2 {
		t.Errorf("of the two new CRDs %d are installed", crds)
	}
	for _, verb := range []string{"mutate", "validate"} {
		want := "middleware-operator /" + verb + "-cache-middleware-hc-cn-v1-memcached middleware-operator-system/middleware-operator-webhook"
		if !strings.Contains(strings.Join(webhooks, "\n"), want) {
			t.Errorf("no webhook %q in %q", want, webhooks)
		}
	}
	for role, resource := range map[string]string{"middleware-operator-go-kinds": "memcacheds", "middleware-operator-chart-kinds": "sites"} {
		rules := fmt.Sprint(roles[role].Rules)
		if !strings.Contains(rules, resource) || strings.Contains(rules, "secrets") {
			t.Errorf("the rules of ClusterRole %s are %s", role, rules)
		}
	}
}

// checkRuns runs the copy's operator: the Go kind's controller is called for its object, and the chart kind's object becomes what the
// chart renders.
func checkRuns(t *testing.T, c checkout) {
	t.Helper()
	metrics := start(t, c)
	namespace := shared.NewNamespace(t, api, "scaffold")
	for _, kind := range []schema.GroupVersionKind{
		{Group: "cache.middleware.hc.cn", Version: "v1", Kind: "Memcached"},
		{Group: "web.middleware.hc.cn", Version: "v1alpha1", Kind: "Site"},
	} {
		shared.Eventually(t, "creating a "+kind.Kind, func() string {
			object := shared.Object(kind, namespace, "sixth")
			object.Object["spec"] = map[string]any{}
			if err := api.Create(context.Background(), object); err != nil {
				return err.Error() // its CRD is not there yet
			}
			return ""
		})
	}
	shared.Eventually(t, "the Deployment of the Site", func() string {
		var deployments appsv1.DeploymentList
		shared.Check(t, api.List(context.Background(), &deployments, client.InNamespace(namespace)))
		if len(deployments.Items) != 1 {
			return fmt.Sprintf("there are %d Deployments", len(deployments.Items))
		}
		return ""
	})
	reconciled := regexp.MustCompile(`controller_runtime_reconcile_total\{controller="cache-memcached",result="success"\} [1-9]`)
	shared.Eventually(t, "a reconciliation for the Memcached", func() string {
		if text := metrics(); !reconciled.MatchString(text) {
			return "no controller counts one"
		}
		return ""
	})
}

// start runs the copy's operator until the test ends; metrics reads what it counts.
func start(t *testing.T, c checkout) (metrics func() string) {
	t.Helper()
	user, err := server.AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, nil)
	shared.Check(t, err)
	text, err := user.KubeConfig()
	shared.Check(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	shared.Check(t, os.WriteFile(kubeconfig, text, 0o600))

	address := freeAddress(t)
	process := c.command("./manager", "--kubeconfig="+kubeconfig, "--install-crds", "--leader-elect=false", "--webhooks=off",
		"--controllers=*,-rediscluster",
		"--metrics-secure=false", "--metrics-bind-address="+address, "--health-probe-bind-address=0")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	shared.Check(t, err)
	process.Stdout, process.Stderr = log, log
	shared.Check(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Signal(os.Interrupt) // if it has ended already, its log says why
		_ = process.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("the operator said at the end:\n%s", text[max(0, len(text)-6000):])
		}
	})
	return func() string {
		answer, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		shared.Check(t, err)
		return string(text)
	}
}

// freeAddress is one of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	shared.Check(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

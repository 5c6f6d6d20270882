// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin runs `kubectl middleware` against a real API server:
// `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/plugin`.
package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin"
	"middleware.hc.cn/operator/internal/plugin/checkup"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

var (
	server = &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true}
	admin *rest.Config
	api   client.Client
)

func TestMain(m *testing.M) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme, appv1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	os.Exit(shared.Run(m, server, known, shared.Into(&admin, &api)))
}

// user has the rights that the commands use in a namespace, and no others: what docs/plugin.md says is enough. It returns the path of
// a kubeconfig.
func user(t *testing.T, name, namespace string, commands ...string) string {
	t.Helper()
	in := rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
	for _, right := range checkup.Rights() {
		for _, command := range commands {
			if right.Command == command && !right.ClusterWide {
				in.Rules = append(in.Rules, rbacv1.PolicyRule{APIGroups: []string{right.Group}, Resources: []string{right.Resource},
					Verbs: []string{right.Verb}})
			}
		}
	}
	shared.Check(t, api.Create(context.Background(), &in))
	shared.Check(t, api.Create(context.Background(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}}))
	added, err := server.AddUser(envtest.User{Name: name, Groups: []string{"system:authenticated"}}, nil)
	shared.Check(t, err)
	return kubeconfigOf(t, added)
}

// root may do anything.
var root = envtest.User{Name: "root", Groups: []string{"system:masters"}}

func kubeconfigOf(t *testing.T, added *envtest.AuthenticatedUser) string {
	t.Helper()
	kubeconfig, err := added.KubeConfig()
	shared.Check(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	shared.Check(t, os.WriteFile(path, kubeconfig, 0o600))
	return path
}

// run runs the plugin as a user.
func run(kubeconfig, input string, arguments ...string) (out string, err error) {
	var printed strings.Builder
	root := plugin.New(plugin.Environment{In: strings.NewReader(input), Out: &printed, Err: &printed,
		Lookup: func(string) (string, bool) { return "", false }})
	root.SetArgs(append([]string{"--kubeconfig=" + kubeconfig}, arguments...))
	err = root.ExecuteContext(context.Background())
	return printed.String(), err
}

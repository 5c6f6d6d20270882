// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/measure"
)

// user is the operator's; its requests are counted.
const user = "middleware-operator"

// server is an API server with etcd, the operator's CRDs and roles, and no controllers.
type server struct {
	*measure.Server
	client     client.WithWatch
	kubeconfig string // the operator's
}

// withServer starts the API server, calls a function, and ends the API server.
func withServer(ctx context.Context, scheme *runtime.Scheme, call func(*server) error) error {
	progress("starting an API server")
	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd/bases"}, ErrorIfCRDPathMissing: true}
	return measure.WithServer(env, func(started *measure.Server) (err error) {
		s := &server{Server: started}
		if s.client, err = client.NewWithWatch(s.Admin, client.Options{Scheme: scheme}); err != nil {
			return err
		}
		if err := s.grant(ctx); err != nil {
			return err
		}
		return call(s)
	})
}

// grant gives the operator's user the roles of an installation, and a kubeconfig.
func (s *server) grant(ctx context.Context) (err error) {
	for _, file := range []string{"cluster_role.yaml", "manager_role.yaml", "namespace_role.yaml"} {
		text, err := os.ReadFile(filepath.Join("config/rbac", file)) //nolint:gosec // the names are above
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			role := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &role.Object); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if err := s.client.Create(ctx, role); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if role.GetKind() != "ClusterRole" || file == "namespace_role.yaml" {
				continue
			}
			if err := s.client.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "bench-" + role.GetName()},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.GetName()},
				Subjects: operator()}); err != nil {
				return err
			}
		}
	}
	s.kubeconfig, err = s.NewUser(user)
	return err
}

func operator() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
}

// newNamespace makes a namespace in which the operator may keep Secrets.
func (s *server) newNamespace(ctx context.Context, name string) error {
	if err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return err
	}
	return s.client.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "middleware-operator"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "middleware-operator-namespace"},
		Subjects: operator()})
}

// program is a running operator.
type program struct {
	*measure.Program
	metrics, pprof string
}

// startOperator runs the operator's binary for all namespaces.
func (s *server) startOperator(ctx context.Context, o options) (*program, error) {
	addresses, err := measure.FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	arguments := append([]string{"run", "--leader-elect=false", "--webhooks=off", "--metrics-bind-address=" + addresses[0],
		"--metrics-secure=false", "--health-probe-bind-address=" + addresses[1], "--pprof-bind-address=" + addresses[2]},
		strings.Fields(o.arguments)...)
	command := exec.Command(o.manager, arguments...) //nolint:gosec // whoever runs the bench names the binary
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "WATCH_NAMESPACE=")
	started := time.Now()
	p, err := measure.Start(ctx, command, o.log, addresses[1])
	if err != nil {
		return nil, err
	}
	progress("the operator is ready after %.1f s", time.Since(started).Seconds())
	return &program{Program: p, metrics: addresses[0], pprof: addresses[2]}, nil
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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

const (
	// user is the operator's; its requests are counted.
	user = "middleware-operator"
	// leases is the namespace of its Leases.
	leases = "middleware-operator-system"
	// shardsEach is how many shards there are for each of several replicas.
	shardsEach = 4
)

// server is an API server with etcd, the operator's CRDs and roles, and no controllers.
type server struct {
	*measure.Server
	client     client.Client
	kubeconfig string // the operator's
}

// withServer starts the API server, calls a function, and ends the API server.
func withServer(ctx context.Context, scheme *runtime.Scheme, call func(*server) error) error {
	progress("starting an API server")
	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd/bases"}, ErrorIfCRDPathMissing: true}
	return measure.WithServer(env, func(started *measure.Server) (err error) {
		s := &server{Server: started}
		if s.client, err = client.New(s.Admin, client.Options{Scheme: scheme}); err != nil {
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
	if err := s.grantLeases(ctx); err != nil {
		return err
	}
	s.kubeconfig, err = s.NewUser(user)
	return err
}

// grantLeases makes the namespace of the Leases by which replicas share the work.
func (s *server) grantLeases(ctx context.Context) error {
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: leases}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: user}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create", "get", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create"}},
		}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: user},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}, Subjects: operator()},
	} {
		if err := s.client.Create(ctx, o); err != nil {
			return err
		}
	}
	return nil
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

// startOperators runs all replicas. What it returns is to be killed, also when one did not start.
func (s *server) startOperators(ctx context.Context, o options) ([]*program, error) {
	started := time.Now()
	replicas, failed := make([]*program, o.replicas), make([]error, o.replicas)
	var all sync.WaitGroup
	for i := range replicas {
		all.Go(func() { replicas[i], failed[i] = s.startOperator(ctx, o) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return slices.DeleteFunc(replicas, func(p *program) bool { return p == nil }), err
	}
	progress("the operator is ready after %.1f s", time.Since(started).Seconds())
	return replicas, nil
}

// startOperator runs the operator's binary for all namespaces, or as one of several replicas.
func (s *server) startOperator(ctx context.Context, o options) (*program, error) {
	addresses, err := measure.FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	arguments := []string{"run", "--webhooks=off", "--metrics-bind-address=" + addresses[0],
		"--metrics-secure=false", "--health-probe-bind-address=" + addresses[1], "--pprof-bind-address=" + addresses[2]}
	if o.replicas > 1 {
		arguments = append(arguments, fmt.Sprintf("--shards=%d", shardsEach*o.replicas), "--leader-election-namespace="+leases)
	} else {
		arguments = append(arguments, "--leader-elect=false")
	}
	arguments = append(arguments, strings.Fields(o.arguments)...)
	command := exec.Command(o.manager, arguments...) //nolint:gosec // whoever runs the bench names the binary
	command.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "WATCH_NAMESPACE=")
	p, err := measure.Start(ctx, command, o.log, addresses[1])
	if err != nil {
		return nil, err
	}
	return &program{Program: p, metrics: addresses[0], pprof: addresses[2]}, nil
}

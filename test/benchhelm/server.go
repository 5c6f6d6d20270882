// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/test/measure"
)

// server is an API server with etcd and no controllers. Requests of the operators are in its audit log.
type server struct {
	*measure.Server
	dynamic dynamic.Interface
	typed   kubernetes.Interface
	// pid is that of the API server, etcdPID that of its etcd.
	pid, etcdPID int
}

// withServer starts the API server, calls a function, and ends the API server.
func withServer(ctx context.Context, call func(*server) error) error {
	progress("starting an API server")
	env := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{newCRD()}}
	return measure.WithServer(env, func(started *measure.Server) error {
		s := &server{Server: started}
		if err := s.connect(ctx); err != nil {
			return err
		}
		return call(s)
	})
}

func (s *server) connect(ctx context.Context) (err error) {
	if s.dynamic, err = dynamic.NewForConfig(s.Admin); err != nil {
		return err
	}
	if s.typed, err = kubernetes.NewForConfig(s.Admin); err != nil {
		return err
	}
	if s.pid, err = measure.ChildPID("kube-apiserver"); err != nil {
		return err
	}
	if s.etcdPID, err = measure.ChildPID("etcd"); err != nil {
		return err
	}
	// The operators are no members of system:masters: those are exempt from priority and fairness.
	_, err = s.typed.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "measured"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: measure.MeasuredGroup}},
	}, metav1.CreateOptions{})
	return err
}

// newNamespace makes a fresh namespace.
func (s *server) newNamespace(ctx context.Context) (string, error) {
	namespace, err := s.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-"}},
		metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return namespace.Name, nil
}

// clear removes what an operator left in a namespace, once the operator has ended.
func (s *server) clear(ctx context.Context, namespace string) error {
	list, err := s.dynamic.Resource(webs).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var names []string
	for _, web := range list.Items {
		names = append(names, web.GetName())
	}
	withoutFinalizers := []byte(`{"metadata":{"finalizers":null}}`)
	if err := inParallel(names, func(_ int, name string) error {
		_, err := s.dynamic.Resource(webs).Namespace(namespace).Patch(ctx, name, mergePatch, withoutFinalizers, metav1.PatchOptions{})
		return err
	}); err != nil {
		return err
	}
	resources := append(append(children[:0:0], children...), secrets, webs)
	for _, resource := range resources {
		if err := s.dynamic.Resource(resource).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err !=
			nil {
			return fmt.Errorf("delete all %s: %w", resource.Resource, err)
		}
	}
	return nil
}

// usage is what processes have used at a moment.
type usage struct {
	at                        time.Time
	operator, apiServer, etcd float64 // processor seconds
	allocated                 measure.Allocations
}

// usage reads the counters of an operator, the API server and etcd.
func (s *server) usage(o *operator) (usage, error) {
	u := usage{at: time.Now()}
	var err error
	if u.operator, err = measure.CPUSeconds(o.PID()); err != nil {
		return u, err
	}
	if u.apiServer, err = measure.CPUSeconds(s.pid); err != nil {
		return u, err
	}
	if u.etcd, err = measure.CPUSeconds(s.etcdPID); err != nil {
		return u, err
	}
	u.allocated, err = measure.Allocated(o.metrics)
	return u, err
}

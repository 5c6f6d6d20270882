// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Server is an API server with etcd and no controllers. Requests of its users are in its audit log.
type Server struct {
	Directory string // for this run's files
	Admin     *rest.Config
	Audit     *AuditLog

	env *envtest.Environment
}

// WithServer starts the API server of an environment, calls a function, and ends the API server.
func WithServer(env *envtest.Environment, call func(*Server) error) error {
	ctrl.SetLogger(logr.Discard())
	directory, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	policy, log := filepath.Join(directory, "policy.yaml"), filepath.Join(directory, "audit.log")
	if err := os.WriteFile(policy, []byte(AuditPolicy), 0o600); err != nil {
		return err
	}
	env.ControlPlane.GetAPIServer().Configure().Append("audit-policy-file", policy).Append("audit-log-path", log).
		Set("service-cluster-ip-range", "10.96.0.0/12") // envtest has 254 addresses
	admin, err := env.Start()
	if err != nil {
		return fmt.Errorf("start the API server (KUBEBUILDER_ASSETS is the directory that hack/envtest.sh prints): %w", err)
	}
	defer func() { _ = env.Stop() }() // its processes end with this one at the latest
	admin.QPS = -1
	return call(&Server{Directory: directory, Admin: admin, Audit: &AuditLog{Path: log}, env: env})
}

// NewUser writes a kubeconfig of a user whose requests are in the audit log.
func (s *Server) NewUser(name string) (kubeconfig string, err error) {
	user, err := s.env.AddUser(envtest.User{Name: name, Groups: []string{MeasuredGroup}}, nil)
	if err != nil {
		return "", err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	kubeconfig = filepath.Join(s.Directory, name+".kubeconfig")
	return kubeconfig, os.WriteFile(kubeconfig, text, 0o600)
}

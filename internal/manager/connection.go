// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// Connection is how the API server is reached: as --kubeconfig, KUBECONFIG, the pod or ~/.kube/config tell, the first that does, but
// at --master if that is given. What they tell of who the operator is goes to --master too; alone, --master is asked without.
func (o Options) Connection() (*rest.Config, error) {
	cfg, err := config.GetConfig()
	if err != nil && (o.Master == "" || !clientcmd.IsEmptyConfig(err)) {
		return nil, fmt.Errorf("finding the cluster (give --kubeconfig or --master, or set KUBECONFIG): %w", err)
	}
	if err != nil {
		// QPS as controller-runtime has it: the API server limits by itself.
		return &rest.Config{Host: o.Master, QPS: -1}, nil //nolint:nilerr // no kubeconfig is no error then
	}
	if o.Master != "" {
		cfg.Host = o.Master
	}
	return cfg, nil
}

func validateMaster(o Options) []error {
	if o.Master == "" {
		return nil
	}
	server, err := url.Parse(o.Master)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return []error{fmt.Errorf("--master: %q is not the URL of an API server; give https://HOST:PORT", o.Master)}
	}
	return nil
}

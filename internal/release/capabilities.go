// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
)

// discoverOnce asks the API server what it is and serves when that is first needed, and remembers the answer.
func discoverOnce(config *rest.Config, http *http.Client) func(context.Context) (chart.Capabilities, error) {
	var mu sync.Mutex
	var known *chart.Capabilities
	return func(ctx context.Context) (chart.Capabilities, error) {
		mu.Lock()
		defer mu.Unlock()
		if known != nil {
			return *known, nil
		}
		found, err := discover(config, http)
		if err != nil {
			return chart.Capabilities{}, fmt.Errorf("discover the cluster's capabilities: %w", err)
		}
		known = &found
		return found, nil
	}
}

func discover(config *rest.Config, http *http.Client) (chart.Capabilities, error) {
	var found chart.Capabilities
	api, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return found, err
	}
	version, err := api.ServerVersion()
	if err != nil {
		return found, err
	}
	found.KubeVersion = version.GitVersion
	_, resources, err := api.ServerGroupsAndResources()
	if err != nil {
		return found, err // also if one group did not answer: unknown is not absent
	}
	for _, group := range resources {
		found.APIVersions = append(found.APIVersions, group.GroupVersion)
		for _, resource := range group.APIResources {
			found.APIVersions = append(found.APIVersions, group.GroupVersion+"/"+resource.Kind)
		}
	}
	return found, nil
}

func labelSet(object client.Object) labels.Set { return object.GetLabels() }

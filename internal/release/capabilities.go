// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
)

// capabilitiesFor is how long the answer of discovery counts. It is asked again when a pass needs it after that, so that idle
// resources cost nothing.
const capabilitiesFor = 10 * time.Minute

// discovered asks the API server what it is and serves when that is needed, and remembers the answer.
func discovered(config *rest.Config, http *http.Client, now func() time.Time) func(context.Context) (chart.Capabilities, error) {
	var mu sync.Mutex
	var known chart.Capabilities
	var at time.Time
	return func(context.Context) (chart.Capabilities, error) {
		mu.Lock()
		defer mu.Unlock()
		if !at.IsZero() && now().Sub(at) < capabilitiesFor {
			return known, nil
		}
		found, err := Discover(config, http)
		if err != nil {
			return chart.Capabilities{}, fmt.Errorf("discover the cluster's capabilities: %w", err)
		}
		known, at = found, now()
		return known, nil
	}
}

// Discover asks the API server what it is and serves.
func Discover(config *rest.Config, http *http.Client) (chart.Capabilities, error) {
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
	slices.Sort(found.APIVersions) // the order is not part of what is known
	return found, nil
}

func labelSet(object client.Object) labels.Set { return object.GetLabels() }

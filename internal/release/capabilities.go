// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
)

const (
	// capabilitiesFor is how long the answer of discovery counts. It is asked again when a reconciliation needs it after that, so that idle
	// resources cost nothing.
	capabilitiesFor = 10 * time.Minute
	// incompleteFor is how long an answer counts that lacks what a reconciliation needs: an API that a chart waits for, or groups whose server
	// is away.
	incompleteFor = time.Minute
)

// discovered is what is known of what the API server is and serves. It is safe for concurrent use.
type discovered struct {
	ask func() (chart.Capabilities, error)
	now func() time.Time

	mu    sync.Mutex
	known chart.Capabilities
	// missing are the groups that did not answer, with their errors.
	missing error
	at      time.Time
}

func newDiscovered(config *rest.Config, http *http.Client, now func() time.Time) *discovered {
	return &discovered{now: now, ask: func() (chart.Capabilities, error) { return Discover(config, http) }}
}

// get returns what is known, and asks if that is old. Needed are APIs whose absence is worth another question after a minute.
// Besides what is known, the error may say which groups did not answer: of those nothing is known.
func (d *discovered) get(needed ...string) (chart.Capabilities, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	lasts := capabilitiesFor
	if d.missing != nil || slices.ContainsFunc(needed, func(api string) bool { return !slices.Contains(d.known.APIVersions, api) }) {
		lasts = incompleteFor
	}
	if d.now().Sub(d.at) < lasts {
		return d.known, d.missing
	}
	found, err := d.ask()
	if err != nil {
		err = fmt.Errorf("discover the cluster's capabilities: %w", err)
	}
	if _, partial := discovery.GroupDiscoveryFailedErrorGroups(err); err == nil || partial {
		d.known, d.missing, d.at = found, err, d.now()
	}
	return found, err
}

// doubt has the next get ask again: something that was served is not.
func (d *discovered) doubt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = time.Time{}
}

// capabilities returns what a chart sees of the cluster. A group whose server is away concerns those charts only that ask for it.
func (r *Reconciler) capabilities(needed ...string) (chart.Capabilities, error) {
	if !r.chart.UsesCapabilities() {
		return chart.Capabilities{}, nil
	}
	found, err := r.cluster.get(needed...)
	apis, only := r.chart.AsksOnlyFor()
	if groups, failed := discovery.GroupDiscoveryFailedErrorGroups(err); failed && only {
		for group := range groups {
			if slices.ContainsFunc(apis, func(api string) bool { return api == group.String() || strings.HasPrefix(api, group.String()+"/") }) {
				return chart.Capabilities{}, err
			}
		}
		return found, nil
	}
	return found, err
}

// awaited returns the APIs that a resource asks for and the cluster does not serve.
func (r *Reconciler) awaited(cr *unstructured.Unstructured) []string {
	if r.options.Awaits == nil {
		return nil
	}
	apis := r.options.Awaits(cr)
	if len(apis) == 0 {
		return nil
	}
	found, err := r.capabilities(apis...)
	if err != nil {
		return apis
	}
	return slices.DeleteFunc(apis, func(api string) bool { return slices.Contains(found.APIVersions, api) })
}

// Discover asks the API server what it is and serves. If some groups did not answer, it returns the others, and an error that says which
// (discovery.ErrGroupDiscoveryFailed).
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
	if _, partial := discovery.GroupDiscoveryFailedErrorGroups(err); err != nil && !partial {
		return found, err
	}
	for _, group := range resources {
		found.APIVersions = append(found.APIVersions, group.GroupVersion)
		for _, resource := range group.APIResources {
			found.APIVersions = append(found.APIVersions, group.GroupVersion+"/"+resource.Kind)
		}
	}
	slices.Sort(found.APIVersions) // the order is not part of what is known
	return found, err              // which may say that one group did not answer: unknown is not absent
}

func labelSet(object client.Object) labels.Set { return object.GetLabels() }

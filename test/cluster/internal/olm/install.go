// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Cluster is what installing takes of a cluster.
type Cluster interface {
	// Kubectl runs kubectl with an administrator's rights and returns its output.
	Kubectl(ctx context.Context, stdin string, args ...string) (string, error)
	// Stage runs one part of the work and reports how long it took.
	Stage(name string, run func() error) error
	// Poll repeats check until it succeeds or too long has passed.
	Poll(ctx context.Context, check func() error) error
}

// Up installs OLM, or completes or repairs what is there, and waits until packages
// are served.
func Up(ctx context.Context, c Cluster, m Manifest) error {
	err := c.Stage("OLM's definitions", func() error {
		if err := apply(ctx, c, m.Definitions); err != nil {
			return err
		}
		return c.Poll(ctx, func() error { return established(ctx, c, m.DefinitionNames) })
	})
	if err != nil {
		return err
	}
	if err := c.Stage("OLM's objects", func() error { return apply(ctx, c, m.Objects) }); err != nil {
		return err
	}
	for _, deployment := range []string{"olm-operator", "catalog-operator", "packageserver"} {
		if err := c.Stage(deployment, func() error {
			return c.Poll(ctx, func() error { return available(ctx, c, deployment) })
		}); err != nil {
			return err
		}
	}
	return c.Stage("packages are served", func() error {
		return c.Poll(ctx, func() error {
			_, err := c.Kubectl(ctx, "", "get", "--raw", packagesPath)
			return err
		})
	})
}

// packagesPath is the aggregated API that packageserver serves.
const packagesPath = "/apis/packages.operators.coreos.com/v1/packagemanifests"

func apply(ctx context.Context, c Cluster, manifest string) error {
	_, err := c.Kubectl(ctx, manifest, "apply", "--server-side", "--force-conflicts", "--field-manager=cluster", "-f", "-")
	return err
}

func established(ctx context.Context, c Cluster, names []string) error {
	out, err := c.Kubectl(ctx, "", append([]string{"get", "customresourcedefinitions", "-o",
		`jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Established")].status}{"\n"}{end}`}, names...)...)
	if err != nil {
		return err
	}
	if n := strings.Count(out, "=True"); n < len(names) {
		return fmt.Errorf("%d of %d definitions are established", n, len(names))
	}
	return nil
}

func available(ctx context.Context, c Cluster, deployment string) error {
	out, err := c.Kubectl(ctx, "", "-n", Namespace, "get", "deployment", deployment, "--ignore-not-found", "-o",
		`jsonpath={.status.observedGeneration}={.metadata.generation} {.status.conditions[?(@.type=="Available")].status}`)
	if err != nil {
		return err
	}
	if out == "" {
		return fmt.Errorf("%s is not there", deployment)
	}
	observed, condition, _ := strings.Cut(out, " ")
	if seen, current, _ := strings.Cut(observed, "="); seen != current || condition != "True" {
		return fmt.Errorf("%s is not available; kubectl -n %s describe pods -l app=%s", deployment, Namespace, deployment)
	}
	return nil
}

// Serve makes the cluster serve a catalog, or serve it from another image, and waits
// until OLM is connected to it and its packages are served.
func Serve(ctx context.Context, c Cluster, catalog Catalog) error {
	return c.Stage("catalog "+catalog.Namespace+"/"+catalog.Name, func() error {
		manifest, err := catalog.Manifest()
		if err != nil {
			return err
		}
		if err := apply(ctx, c, manifest); err != nil {
			return err
		}
		return c.Poll(ctx, func() error { return connected(ctx, c, catalog) })
	})
}

// connected asks for the pod too: the connection may still be that to an older one.
func connected(ctx context.Context, c Cluster, catalog Catalog) error {
	pods, err := c.Kubectl(ctx, "", "-n", catalog.Namespace, "get", "pods", "-l", "olm.catalogSource="+catalog.Name, "-o",
		`jsonpath={range .items[*]}{.spec.containers[0].image} {.status.conditions[?(@.type=="Ready")].status};{end}`+
			`{"|"}{.items[*].status.containerStatuses[0].lastState.terminated.message}`)
	if err != nil {
		return err
	}
	ready, message, _ := strings.Cut(pods, "|")
	if ready != catalog.Image+" True;" {
		return fmt.Errorf("the pod of catalog %s is not ready: %q; kubectl -n %s describe pods -l olm.catalogSource=%s",
			catalog.Name, message, catalog.Namespace, catalog.Name)
	}
	state, err := c.Kubectl(ctx, "", "-n", catalog.Namespace, "get", "catalogsource", catalog.Name,
		"-o", "jsonpath={.status.connectionState.lastObservedState}")
	if err != nil {
		return err
	}
	if state != "READY" {
		return fmt.Errorf("catalog %s is %q, not READY", catalog.Name, state)
	}
	packages, err := c.Kubectl(ctx, "", "-n", catalog.Namespace, "get", "packagemanifests.packages.operators.coreos.com",
		"-l", "catalog="+catalog.Name, "-o", "name")
	if err != nil {
		return err
	}
	if packages == "" {
		return fmt.Errorf("no package of catalog %s is served", catalog.Name)
	}
	return nil
}

// Status describes OLM and what it manages. The error says what is wrong.
func Status(ctx context.Context, c Cluster) (string, error) {
	var text strings.Builder
	var wrong []error
	for _, deployment := range []string{"olm-operator", "catalog-operator", "packageserver"} {
		word := "available"
		if err := available(ctx, c, deployment); err != nil {
			word, wrong = "not available", append(wrong, err)
		}
		fmt.Fprintf(&text, "%-18s %s\n", deployment, word)
	}
	if len(wrong) > 0 {
		return text.String(), errors.Join(append(wrong, errors.New("OLM is not up; run hack/cluster.sh olm up"))...)
	}
	for _, resource := range []string{"catalogsources", "subscriptions", "clusterserviceversions", "packagemanifests"} {
		out, err := c.Kubectl(ctx, "", "get", resource+"."+groups[resource], "--all-namespaces")
		if err != nil {
			return text.String(), err
		}
		if out != "" {
			fmt.Fprintf(&text, "\n%s", out)
		}
	}
	return text.String(), nil
}

// groups of the resources that Status lists.
var groups = map[string]string{
	"catalogsources":         "operators.coreos.com",
	"subscriptions":          "operators.coreos.com",
	"clusterserviceversions": "operators.coreos.com",
	"packagemanifests":       "packages.operators.coreos.com",
}

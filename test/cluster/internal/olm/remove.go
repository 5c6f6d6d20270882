// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"fmt"
	"strings"
)

// Down removes OLM and everything that it made: first, while it runs, the operators
// that it installed (what they need to clean up after themselves is still there),
// then OLM, then what neither owns. The custom resource definitions that operators
// brought stay, and with them the objects of users, as OLM leaves them too.
func Down(ctx context.Context, c Cluster, m Manifest) error {
	present, err := c.Kubectl(ctx, "", "get", "customresourcedefinitions", "-o", "name")
	if err != nil {
		return err
	}
	if strings.Contains(present, "/clusterserviceversions.operators.coreos.com\n") {
		if err := c.Stage("operators", func() error { return removeOperators(ctx, c) }); err != nil {
			return err
		}
	}
	if err := c.Stage("OLM", func() error { return removeOLM(ctx, c, m) }); err != nil {
		return err
	}
	return c.Stage("what OLM made", func() error { return removeLeftovers(ctx, c) })
}

// removeOperators deletes subscriptions before versions, or OLM installs again what
// is deleted. packageserver, OLM's own version, comes with the others.
func removeOperators(ctx context.Context, c Cluster) error {
	for _, kind := range []string{"subscriptions", "installplans", "clusterserviceversions", "catalogsources", "operatorgroups"} {
		resource := kind + ".operators.coreos.com"
		if _, err := c.Kubectl(ctx, "", "delete", resource, "--all", "--all-namespaces", "--ignore-not-found", "--wait=false"); err != nil &&
			!isUnknownResource(err) {
			return err
		}
		if available(ctx, c, "olm-operator") != nil { // nobody will finish them
			if err := release(ctx, c, resource); err != nil {
				return err
			}
		}
		if err := c.Poll(ctx, func() error { return noneLeft(ctx, c, resource) }); err != nil {
			return err
		}
	}
	return nil
}

// noneLeft fails as long as there are objects of the resource.
func noneLeft(ctx context.Context, c Cluster, resource string) error {
	out, err := c.Kubectl(ctx, "", "get", resource, "--all-namespaces", "-o", "name")
	if err != nil && isUnknownResource(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if left := strings.Fields(out); len(left) > 0 {
		return fmt.Errorf("still there: %s", strings.Join(left, ", "))
	}
	return nil
}

// release removes the finalizers of all objects of the resource.
func release(ctx context.Context, c Cluster, resource string) error {
	out, err := c.Kubectl(ctx, "", "get", resource, "--all-namespaces", "-o",
		`jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}`)
	if err != nil && isUnknownResource(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		namespace, name, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		if _, err := c.Kubectl(ctx, "", "-n", namespace, "patch", resource, name, "--type=merge",
			"-p", `{"metadata":{"finalizers":null}}`); err != nil && !strings.Contains(err.Error(), "NotFound") {
			return err
		}
	}
	return nil
}

func removeOLM(ctx context.Context, c Cluster, m Manifest) error {
	// Before its pods: an aggregated API that nobody serves keeps namespaces from
	// being deleted.
	if _, err := c.Kubectl(ctx, "", "delete", "apiservice", "v1.packages.operators.coreos.com", "--ignore-not-found"); err != nil {
		return err
	}
	for _, manifest := range []string{m.Objects, m.Definitions} {
		if _, err := c.Kubectl(ctx, manifest, "delete", "--ignore-not-found", "--wait=false", "-f", "-"); err != nil && !isUnknownResource(err) {
			return err
		}
	}
	for _, namespace := range []string{Namespace, OperatorNamespace} {
		// There is nothing left that a pod would have to finish within its 30 s.
		if _, err := c.Kubectl(ctx, "", "-n", namespace, "delete", "pods", "--all", "--grace-period=1", "--wait=false"); err != nil {
			return err
		}
	}
	return c.Poll(ctx, func() error {
		out, err := c.Kubectl(ctx, "", append([]string{"get", "--ignore-not-found", "-o", "name",
			"namespace/" + Namespace, "namespace/" + OperatorNamespace}, prefixed("customresourcedefinition/", m.DefinitionNames)...)...)
		if err != nil {
			return err
		}
		if left := strings.Fields(out); len(left) > 0 {
			return fmt.Errorf("still there: %s", strings.Join(left, ", "))
		}
		return nil
	})
}

// leftovers are objects that OLM makes for operators and operator groups where none
// of these can own them: of the whole cluster, or in other namespaces. And the labels
// that mark them.
var leftovers = struct{ resources, labels []string }{
	resources: []string{
		"clusterrolebindings", "clusterroles", "rolebindings", "roles",
		"mutatingwebhookconfigurations", "validatingwebhookconfigurations", "apiservices",
	},
	labels: []string{"olm.owner", "olm.managed"},
}

func removeLeftovers(ctx context.Context, c Cluster) error {
	for _, label := range leftovers.labels {
		if _, err := c.Kubectl(ctx, "", "delete", strings.Join(leftovers.resources, ","), "--all-namespaces", "-l", label,
			"--ignore-not-found"); err != nil {
			return err
		}
	}
	return nil
}

func prefixed(prefix string, names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = prefix + n
	}
	return out
}

// isUnknownResource reports whether kubectl was asked for a kind that the cluster does not
// have: that OLM was never, or only half, installed.
func isUnknownResource(err error) bool {
	return strings.Contains(err.Error(), "doesn't have a resource type") || strings.Contains(err.Error(), "no matches for kind")
}

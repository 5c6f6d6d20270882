// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm installs the Operator Lifecycle Manager into a cluster and removes it
// without a trace. It renders the chart that is part of OLM's own Go module: the
// ready-made manifests of a release name images that only a public registry has.
package olm

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/test/cluster/internal/config"
)

// Namespace is where OLM runs and where catalogs for all namespaces are.
// OperatorNamespace is where operators for all namespaces are subscribed to.
const (
	Namespace         = "olm"
	OperatorNamespace = "operators"
)

// Module is OLM's Go module, of the version in hack/tools/olm.
const Module = "github.com/operator-framework/operator-lifecycle-manager"

// HelmArguments render the chart in the folder of OLM's module.
func HelmArguments(module string) []string {
	args := []string{
		"template", "olm", module + "/deploy/chart", "--include-crds", "--namespace", Namespace,
		"--values", module + "/deploy/upstream/values.yaml",
		// Anything but upstream leaves out the catalog of OperatorHub.io.
		"--set", "installType=local",
		"--set", "package.replicaCount=1",
		"--set-string", "catalog.opmImageArgs=--opmImage=" + config.OPMImage,
	}
	for _, part := range []string{"olm", "catalog", "package"} {
		args = append(args,
			"--set-string", part+".image.ref="+config.OLMImage,
			"--set", part+".image.pullPolicy=IfNotPresent",
			"--set", part+".resources.requests.memory=40Mi")
	}
	return args
}

// Manifest is OLM, rendered.
type Manifest struct {
	// Definitions are the custom resource definitions, Objects all else: YAML
	// documents. Objects can be created once Definitions are established.
	Definitions, Objects string
	// DefinitionNames are the names of Definitions.
	DefinitionNames []string
}

// Split takes a rendered chart apart. An empty document is no object.
func Split(rendered string) (Manifest, error) {
	var m Manifest
	for _, document := range strings.Split("\n"+rendered, "\n---") {
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			return Manifest{}, fmt.Errorf("OLM's chart rendered something that is not YAML: %w", err)
		}
		switch head.Kind {
		case "":
		case "CustomResourceDefinition":
			m.Definitions += "---\n" + document + "\n"
			m.DefinitionNames = append(m.DefinitionNames, head.Metadata.Name)
		default:
			m.Objects += "---\n" + document + "\n"
		}
	}
	if len(m.DefinitionNames) == 0 || m.Objects == "" {
		return Manifest{}, fmt.Errorf("OLM's chart rendered %d definitions and %d bytes of other objects; is its folder complete?",
			len(m.DefinitionNames), len(m.Objects))
	}
	return m, nil
}

// Catalog is a catalog of operators in the cluster.
type Catalog struct {
	// Namespace and Name of the CatalogSource. One in the namespace olm serves all
	// namespaces, another only its own.
	Namespace, Name string
	// Image holds a file-based catalog and serves it.
	Image string
}

// Manifest is the CatalogSource.
func (c Catalog) Manifest() (string, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "CatalogSource",
		"metadata":   map[string]any{"namespace": c.Namespace, "name": c.Name},
		"spec": map[string]any{
			"sourceType":    "grpc",
			"image":         c.Image,
			"displayName":   c.Name,
			"grpcPodConfig": map[string]any{"securityContextConfig": "restricted"},
		},
	})
	return string(text), err
}

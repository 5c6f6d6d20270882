// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"middleware.hc.cn/operator/test/cluster/internal/lifecycle"
	lifecyclemanager "middleware.hc.cn/operator/test/cluster/internal/olm"
)

func olm() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "olm",
		Short: "Install the Operator Lifecycle Manager, or remove it",
		Example: `  hack/cluster.sh olm up
  hack/cluster.sh olm down`,
	}
	cmd.AddCommand(olmUp(), olmDown(), olmStatus())
	return cmd
}

func olmUp() *cobra.Command {
	catalog := lifecyclemanager.Catalog{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Install OLM, or repair it, and wait until packages are served",
		Long: `Installs OLM and waits until packages are served; with --catalog, also makes the cluster
serve the catalog in that image and waits until OLM is connected to it. What is there
already is kept. The first time it builds OLM and its images, some five minutes.`,
		Example: `  hack/cluster.sh olm up
  hack/cluster.sh load-image catalog.tar
  hack/cluster.sh olm up --catalog middleware.hc.cn/operator-catalog:v0.1.0`,
		Args: cobra.NoArgs,
		RunE: with(func(ctx context.Context, c *lifecycle.Cluster, _ []string) error { return c.OLMUp(ctx, catalog) }),
	}
	cmd.Flags().StringVar(&catalog.Image, "catalog", "", "name of a loaded image that serves a file-based catalog")
	cmd.Flags().StringVar(&catalog.Name, "catalog-name", "local-catalog", "name of its CatalogSource")
	cmd.Flags().StringVar(&catalog.Namespace, "catalog-namespace", lifecyclemanager.Namespace,
		"namespace of its CatalogSource; another than the default serves that namespace alone")
	return cmd
}

func olmDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the operators that OLM installed, then OLM",
		Long: `Removes the operators that OLM installed, then OLM with its namespaces olm and operators.
The definitions that operators brought stay, and the objects of those kinds.`,
		Example: "  hack/cluster.sh olm down",
		Args:    cobra.NoArgs,
		RunE:    with(func(ctx context.Context, c *lifecycle.Cluster, _ []string) error { return c.OLMDown(ctx) }),
	}
}

func olmStatus() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show OLM, its catalogs and operators; exits with 1 unless OLM is up",
		Example: "  hack/cluster.sh olm status",
		Args:    cobra.NoArgs,
		RunE: with(func(ctx context.Context, c *lifecycle.Cluster, _ []string) error {
			text, err := c.OLMStatus(ctx)
			fmt.Print(text)
			return err
		}),
	}
}

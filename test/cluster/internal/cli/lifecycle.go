// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"middleware.hc.cn/operator/test/cluster/internal/lifecycle"
)

func up() *cobra.Command {
	o := lifecycle.Options{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start the cluster, or bring it back to what it should be",
		Long: `Starts the cluster. One that runs is left as it is; nodes that were lost are started
again with their data; after a crash or a reboot it starts empty. The first time it
builds Kubernetes and the images, which takes some fifteen minutes on two cores.`,
		Example: `  hack/cluster.sh up
  hack/cluster.sh up --nodes 1 --engines=false
  hack/cluster.sh up --metrics-server   # on a cluster that runs, too`,
		Args: cobra.NoArgs,
		RunE: with(func(ctx context.Context, c *lifecycle.Cluster, _ []string) error { return c.Up(ctx, o) }),
	}
	cmd.Flags().IntVar(&o.Nodes, "nodes", 3, "number of nodes; node1 is in zone-a, node2 in zone-b, node3 in zone-c, node4 in zone-a, …")
	cmd.Flags().BoolVar(&o.MetricsServer, "metrics-server", false, "run metrics-server, which is built first")
	cmd.Flags().BoolVar(&o.Engines, "engines", true, "load the images of Redis, Valkey, busybox and the exporter")
	return cmd
}

func down() *cobra.Command {
	purge := false
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster and delete its data",
		Example: `  hack/cluster.sh down
  hack/cluster.sh down --purge   # built tools and images too: the next up takes minutes`,
		Args: cobra.NoArgs,
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, _ []string) error { return c.Down(purge) }),
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "also remove images and built tools, which clusters of other names use too")
	return cmd
}

func status() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show members, their programs and the nodes; exits with 1 unless all is well",
		Example: "  hack/cluster.sh status",
		Args:    cobra.NoArgs,
		RunE: with(func(ctx context.Context, c *lifecycle.Cluster, _ []string) error {
			text, err := c.Status(ctx)
			fmt.Print(text)
			return err
		}),
	}
}

func kubeconfig() *cobra.Command {
	return &cobra.Command{
		Use:     "kubeconfig",
		Short:   "Print the path of the administrator's kubeconfig",
		Example: "  export KUBECONFIG=$(hack/cluster.sh kubeconfig)",
		Args:    cobra.NoArgs,
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, _ []string) error {
			fmt.Println(c.Dirs.Kubeconfig())
			return nil
		}),
	}
}

func node() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Lose a node, or bring it back",
		Example: `  hack/cluster.sh node stop node2    # as if its power were cut
  hack/cluster.sh node start node2   # with the data it had`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "stop NAME", Short: "End everything on a node at once, and its network link",
			Example: "  hack/cluster.sh node stop node2",
			Args:    cobra.ExactArgs(1),
			RunE: with(func(_ context.Context, c *lifecycle.Cluster, args []string) error {
				return c.StopNode(args[0])
			}),
		},
		&cobra.Command{
			Use: "start NAME", Short: "Start a node that was stopped",
			Example: "  hack/cluster.sh node start node2",
			Args:    cobra.ExactArgs(1),
			RunE: with(func(ctx context.Context, c *lifecycle.Cluster, args []string) error {
				return c.StartNode(ctx, args[0])
			}),
		})
	return cmd
}

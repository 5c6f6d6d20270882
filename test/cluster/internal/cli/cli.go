// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of the cluster.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"middleware.hc.cn/operator/test/cluster/internal/lifecycle"
	"middleware.hc.cn/operator/test/cluster/internal/preflight"
	"middleware.hc.cn/operator/test/cluster/internal/state"
)

// Main runs the command line and returns the exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "A real Kubernetes cluster on this machine",
		Long: `A real Kubernetes cluster on this machine: a control plane and several nodes, each in
Linux namespaces of its own. Nothing leaves the machine, and ` + "`down`" + ` leaves nothing behind
but caches (which ` + "`down --purge`" + ` removes too).`,
		Example: `  hack/cluster.sh up
  export KUBECONFIG=$(hack/cluster.sh kubeconfig)
  hack/cluster.sh down`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(up(), down(), status(), kubeconfig(), loadImage(), images(), logs(), registryAddress(), digest(), olm(), node(), execNet(),
		requests())
	cmd.AddCommand(hidden()...)
	return cmd
}

// cluster is the machine's cluster; progress goes to stderr, results to stdout.
func cluster() (*lifecycle.Cluster, error) {
	if err := preflight.Check(); err != nil {
		return nil, err
	}
	dirs, err := state.FromEnvironment()
	if err != nil {
		return nil, err
	}
	return &lifecycle.Cluster{Dirs: dirs, Out: os.Stderr, Now: time.Now}, nil
}

// with makes the body of a command that uses the cluster.
func with(run func(ctx context.Context, c *lifecycle.Cluster, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := cluster()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, args)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"middleware.hc.cn/operator/test/cluster/internal/audit"
	"middleware.hc.cn/operator/test/cluster/internal/lifecycle"
	"middleware.hc.cn/operator/test/cluster/internal/sandbox"
	"middleware.hc.cn/operator/test/cluster/internal/state"
	"middleware.hc.cn/operator/test/cluster/internal/storage"
)

func loadImage() *cobra.Command {
	return &cobra.Command{
		Use:   "load-image ARCHIVE_OR_NAME…",
		Short: "Put images into all nodes",
		Long: `Puts images into all nodes. An argument is an archive (as docker save and buildah push
docker-archive: write them) or the name of an image built here.`,
		Example: `  hack/cluster.sh load-image $(hack/image.sh localhost/middleware-operator:dev)
  hack/cluster.sh load-image redis-8.0`,
		Args: cobra.MinimumNArgs(1),
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, args []string) error { return c.Load(args) }),
	}
}

func images() *cobra.Command {
	olm := false
	cmd := &cobra.Command{
		Use:   "images",
		Short: "Build the archives of the images that a cluster starts with and print their paths",
		Example: `  hack/cluster.sh images
  hack/cluster.sh images --olm   # those of OLM, opm and scorecard instead`,
		Args: cobra.NoArgs,
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, _ []string) error {
			archives, err := c.BuildImages(olm)
			for _, a := range archives {
				fmt.Println(a)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&olm, "olm", false, "the images of OLM and of what operator-sdk starts, which the cluster itself does without")
	return cmd
}

func logs() *cobra.Command {
	follow := false
	cmd := &cobra.Command{
		Use:   "logs [COMPONENT]",
		Short: "Print the log of a component, or list the components",
		Example: `  hack/cluster.sh logs                 # which are there
  hack/cluster.sh logs kube-apiserver
  hack/cluster.sh logs -f node2/kubelet`,
		Args: cobra.MaximumNArgs(1),
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, args []string) error {
			if len(args) == 0 {
				return c.ListLogs(os.Stdout)
			}
			return c.Logs(args[0], follow)
		}),
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as the log grows")
	return cmd
}

func execNet() *cobra.Command {
	return &cobra.Command{
		Use:   "exec-net -- COMMAND…",
		Short: "Run a program of this machine inside the cluster's network",
		Long: `Runs a program of this machine inside the cluster's network, where it reaches pods,
services and cluster names. It reaches nothing else: there is no default route.`,
		Example: `  hack/cluster.sh exec-net -- curl http://my-service.default.svc:8080
  hack/cluster.sh exec-net -- bin/manager --kubeconfig=$(hack/cluster.sh kubeconfig)`,
		Args: cobra.MinimumNArgs(1),
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, args []string) error {
			runtime.LockOSThread()
			member := c.Dirs.Member(state.ControlPlane)
			return sandbox.Enter(member, member+"/config/resolv.conf", args)
		}),
	}
}

func requests() *cobra.Command {
	var since time.Duration
	var client string
	cmd := &cobra.Command{
		Use:   "requests",
		Short: "Count the API requests of each client",
		Example: `  hack/cluster.sh requests --since 1m
  hack/cluster.sh requests --since 1m --client manager`,
		Args: cobra.NoArgs,
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, _ []string) error {
			log, err := os.Open(c.Dirs.AuditLog())
			if err != nil {
				return err
			}
			defer log.Close()
			now := c.Now()
			counts, err := audit.Requests(log, now.Add(-since), now, client)
			if err != nil {
				return err
			}
			return printCounts(counts)
		}),
	}
	cmd.Flags().DurationVar(&since, "since", time.Minute, "how far to look back")
	cmd.Flags().StringVar(&client, "client", "", "only clients whose program or user name holds this text")
	return cmd
}

func printCounts(counts []audit.Count) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "REQUESTS\tCLIENT\tUSER\tVERB\tRESOURCE")
	total := 0
	for _, c := range counts {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", c.Requests, c.Client, c.User, c.Verb, c.Resource)
		total += c.Requests
	}
	fmt.Fprintf(w, "%d\ttotal\n", total)
	return w.Flush()
}

// hidden are the commands under which the cluster runs parts of itself.
func hidden() []*cobra.Command {
	var config, members string
	provisioner := &cobra.Command{
		Use: "storage-provisioner", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return storage.Run(cmd.Context(), config, members)
		},
	}
	provisioner.Flags().StringVar(&config, "kubeconfig", "", "")
	provisioner.Flags().StringVar(&members, "members", "", "")
	initialize := &cobra.Command{
		Use: sandbox.InitCommand + " DIR", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return sandbox.Init(args[0]) },
	}
	return []*cobra.Command{provisioner, initialize, serveImages()}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"middleware.hc.cn/operator/test/cluster/internal/config"
	"middleware.hc.cn/operator/test/cluster/internal/lifecycle"
	"middleware.hc.cn/operator/test/cluster/internal/registry"
)

func registryAddress() *cobra.Command {
	ca := false
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Print the address of the registry that serves every image built or loaded",
		Long: `Prints the address of the registry that serves every image built or loaded. An image
NAME is ADDRESS/NAME there, the same from this machine, from nodes and from pods. It
speaks HTTPS with a certificate of the cluster's authority, and cannot be pushed to:
load-image adds an image.`,
		Example: `  export SSL_CERT_FILE=$(hack/cluster.sh registry --ca)
  operator-sdk run bundle $(hack/cluster.sh registry)/middleware.hc.cn/operator-bundle:v0.1.0`,
		Args: cobra.NoArgs,
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, _ []string) error {
			if ca {
				fmt.Println(c.RegistryCA())
				return nil
			}
			address, err := c.RegistryAddress()
			if err == nil {
				fmt.Println(address)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&ca, "ca", false, "print the path of the authority's certificate instead")
	return cmd
}

func digest() *cobra.Command {
	return &cobra.Command{
		Use:   "digest ARCHIVE_OR_NAME",
		Short: "Print the digest under which the registry serves an image",
		Long: `Prints the digest under which the registry serves an image: of the first image in an
archive, loaded or not, or of the image of that name. It depends on the archive alone.`,
		Example: `  echo middleware.hc.cn/operator@$(hack/cluster.sh digest middleware.hc.cn/operator:0.1.0)`,
		Args:    cobra.ExactArgs(1),
		RunE: with(func(_ context.Context, c *lifecycle.Cluster, args []string) error {
			digest, err := c.Digest(args[0])
			if err == nil {
				fmt.Println(digest)
			}
			return err
		}),
	}
}

// serveImages is the control plane's registry.
func serveImages() *cobra.Command {
	var listen, listenTLS, cert, key string
	cmd := &cobra.Command{
		Use: config.RegistryCommand + " FOLDER…", Hidden: true,
		RunE: func(_ *cobra.Command, folders []string) error {
			handler := registry.Handler{Store: &registry.Store{Folders: folders}}
			ended := make(chan error, 2)
			go func() { ended <- http.ListenAndServe(listen, handler) }()
			go func() { ended <- http.ListenAndServeTLS(listenTLS, cert, key, handler) }()
			return <-ended
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "")
	cmd.Flags().StringVar(&listenTLS, "listen-tls", "", "")
	cmd.Flags().StringVar(&cert, "tls-cert", "", "")
	cmd.Flags().StringVar(&key, "tls-key", "", "")
	return cmd
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"middleware.hc.cn/operator/internal/gateway"
)

func newGateway() *cobra.Command {
	var (
		o      gateway.Options
		listen string
	)
	command := &cobra.Command{
		Use:   "gateway",
		Short: "lead clients outside to the instances of a cluster",
		Long: "Listens on a port for each instance of a map, or on one for all that the server name of TLS tells apart, and passes\n" +
			"connections on. Addresses of instances in what these say become those that clients outside can reach; all else passes as it is.\n" +
			"Replication and administrative commands are not passed on.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case o.MapFile == "":
				return errors.New("--map-file is required")
			case (o.CertFile == "") != (o.KeyFile == ""):
				return errors.New("--cert-file and --key-file belong together")
			case (o.CAFile == "") != (o.ServerName == ""):
				return errors.New("--ca-file and --server-name belong together")
			case (o.ClientCertFile == "") != (o.ClientKeyFile == ""):
				return errors.New("--client-cert-file and --client-key-file belong together")
			case o.ClientCAFile != "" && o.CertFile == "":
				return errors.New("--client-ca-file: clients show a certificate by TLS only: give --cert-file and --key-file")
			case o.MaxConnections < 1, o.MaxPerSource < 1, o.MaxPerInstance < 1:
				return errors.New("--max-connections, --max-connections-per-source and --max-connections-per-instance must be 1 or more")
			case o.DrainDelay < 0, o.DrainTimeout < 0:
				return errors.New("--drain-delay and --drain-timeout must not be negative")
			}
			o.Log = logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
			g, err := gateway.New(command.Context(), o)
			if err != nil {
				return err
			}
			return serving(command.Context(), listen, g.Handler(), g.Run)
		},
	}
	const connections, perSource, perInstance = 10_000, 1_000, 4_000
	flags := command.Flags()
	flags.StringVar(&o.MapFile, "map-file", "", "file that says which instance is reached where, as JSON (required); it is read every second")
	flags.StringVar(&o.Host, "bind", "", "address that ports are opened at (default: all)")
	flags.StringVar(&o.CertFile, "cert-file", "", "certificate that clients are shown, in PEM; with it, they must use TLS")
	flags.StringVar(&o.KeyFile, "key-file", "", "key of the certificate")
	flags.StringVar(&o.CAFile, "ca-file", "", "certificates to trust of instances, in PEM; with it, connections to them are encrypted")
	flags.StringVar(&o.ServerName, "server-name", "", "name that the certificates of instances are for")
	flags.StringVar(&o.ClientCertFile, "client-cert-file", "", "certificate for instances that want one of clients, in PEM")
	flags.StringVar(&o.ClientKeyFile, "client-key-file", "", "its private key")
	flags.StringVar(&o.ClientCAFile, "client-ca-file", "",
		"certificates, in PEM, that those of clients are signed with; with it, each client has to show one")
	flags.IntVar(&o.MaxConnections, "max-connections", connections, "how many clients may be connected")
	flags.IntVar(&o.MaxPerSource, "max-connections-per-source", perSource,
		"how many of them from one address, of IPv6 from one network of 64 bits")
	flags.IntVar(&o.MaxPerInstance, "max-connections-per-instance", perInstance,
		"how many of them to one instance: all gateways together must stay below its maxclients")
	flags.DurationVar(&o.DrainDelay, "drain-delay", 5*time.Second, "after SIGTERM, for how long connections are still accepted")
	flags.DurationVar(&o.DrainTimeout, "drain-timeout", 20*time.Second, "after that, for how long they may go on")
	flags.StringVar(&listen, "listen", "", "address for /healthz, /readyz and /metrics, such as :8080; none: nobody is answered")
	return command
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/relay"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// outside is a server that is imported.
type outside struct {
	address string
	login   login
}

func (o *outside) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "from", "", "address of the server, HOST:PORT (required)")
	flags.StringVar(&o.login.user, "user", "", "who logs in (default: the default user)")
	flags.StringVar(&o.login.passwordFile, "password-file", "", "file with the password; none: no password")
	flags.StringVar(&o.login.caFile, "ca-file", "", "certificates to trust, in PEM; with it, connections are encrypted")
	flags.StringVar(&o.login.serverName, "server-name", "", "name that the server's certificate is for (default: that of the address)")
}

// node is the server. Close the pool in the end.
func (o *outside) node() (*redis.Node, *redis.Pool, error) {
	host, _, err := net.SplitHostPort(o.address)
	if err != nil {
		return nil, nil, fmt.Errorf("--from: %w", err)
	}
	l := o.login
	if l.serverName == "" {
		l.serverName = host
	}
	credentials, err := l.credentials()
	if err != nil {
		return nil, nil, err
	}
	pool := redis.NewPool(redis.Options{IOTimeout: 10 * time.Second, DialTimeout: 5 * time.Second})
	return pool.Node(o.address, credentials), pool, nil
}

func newFollow() *cobra.Command {
	var (
		from               outside
		following          archive.Following
		reader, reportFile string
	)
	command := &cobra.Command{
		Use:   "follow",
		Short: "write what an instance needs to start as the replica of a server that is in no cluster",
		Long: "Asks a server whether its data can come into a cluster, and writes nodes.conf into an instance's directory. The instance starts\n" +
			"as the replica of what answers at --master, such as a relay, which it takes for a master of all slots.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			is, err := follow(command.Context(), from, following, reader)
			if reportFile == "" {
				return err
			}
			if err != nil {
				return errors.Join(err, writeEnd(reportFile, err))
			}
			text, err := report.Following{Engine: string(is.Engine), Version: is.Version, Slots: slots.All().String()}.Encode()
			if err != nil {
				return err
			}
			return os.WriteFile(reportFile, text, 0o600)
		},
	}
	flags := command.Flags()
	from.add(flags)
	flags.StringVar(&following.Directory, "directory", "/data", "directory of an instance that has no data")
	flags.StringVar(&following.Address, "master", "", "what the instance follows, IP:PORT (required)")
	flags.StringVar(&following.MasterID, "master-id", "", "node ID, of 40 hex digits, that the instance knows it by (required)")
	flags.StringVar(&following.Request, "request", "", "what it is asked for with; a directory that was filled for the same is left as it is")
	flags.StringVar(&reader, "engine", "", "engine that is to follow, such as redis:8.0.6 or valkey:9.1.2: refuse what it cannot read")
	flags.StringVar(&reportFile, "report-file", "", "file to write into what became of it, as JSON, 4096 bytes at most")
	return command
}

func follow(ctx context.Context, from outside, following archive.Following, reader string) (redis.Outside, error) {
	engine, version, err := engineOf(reader)
	if err != nil {
		return redis.Outside{}, err
	}
	server, pool, err := from.node()
	if err != nil {
		return redis.Outside{}, err
	}
	defer pool.Close()
	is, err := server.Outside(ctx)
	if err != nil {
		return is, err
	}
	if err := archive.CheckSource(is, engine, version); err != nil {
		return is, fmt.Errorf("the server at %s cannot be imported: %w", from.address, err)
	}
	return is, following.Write()
}

func newRelay() *cobra.Command {
	var (
		from                                outside
		listen, passwordFile, cert, certKey string
		request, reportFile                 string
	)
	command := &cobra.Command{
		Use:   "relay",
		Short: "let an instance follow a server outside through this program, until stopped",
		Long: "Passes on to a server what a replica says, INFO, and the pausing of writes, and no other command. The server is reached with its\n" +
			"own password and certificates, and this program with those of the cluster.\n\n" +
			"The user needs the rights\n  " + redis.RightsToImport,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if reportFile != "" {
				defer func() { err = errors.Join(err, writeEnd(reportFile, err)) }()
			}
			server, pool, err := from.node()
			if err != nil {
				return err
			}
			defer pool.Close()
			listener, err := (&net.ListenConfig{}).Listen(command.Context(), "tcp", listen)
			if err != nil {
				return err
			}
			if cert != "" {
				listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12,
					GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
						pair, err := tls.LoadX509KeyPair(cert, certKey)
						return &pair, err
					}})
			}
			r := &relay.Relay{Dial: server.Connect, Check: func(ctx context.Context) error { return followable(ctx, server) },
				Passwords: passwords(passwordFile), Rest: relay.DefaultRest,
				Report: func(text string) { fmt.Fprintln(command.ErrOrStderr(), text) }}
			// A Job whose pod is stopped, with its node, is to make another one: that is no success.
			return cmp.Or(r.Serve(command.Context(), listener), errors.New("it was stopped"))
		},
	}
	flags := command.Flags()
	from.add(flags)
	flags.StringVar(&listen, "listen", ":6379", "address to listen at")
	flags.StringVar(&passwordFile, "accept-password-file", "", "file with the password that is asked for; none: nobody is asked")
	flags.StringVar(&cert, "cert-file", "", "certificate to show, in PEM; with it, connections are encrypted")
	flags.StringVar(&certKey, "key-file", "", "its private key")
	flags.StringVar(&request, "request", "", "whom it works for, for people")
	flags.StringVar(&reportFile, "report-file", "", "file to write into why it ended, as JSON, 4096 bytes at most")
	return command
}

// writeEnd writes down why a relay ended; it was stopped, if that is no error.
func writeEnd(path string, failed error) error {
	if failed == nil {
		return nil
	}
	text, err := report.Following{Error: failed.Error()}.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// followable says why a server cannot be followed at the moment. Redis 7.0 crashes in cluster mode when a base has other databases.
func followable(ctx context.Context, server *redis.Node) error {
	is, err := server.Outside(ctx)
	if err == nil {
		err = archive.CheckSource(is, "", "")
	}
	return err
}

// passwords reads a file anew each time; the password changes.
func passwords(file string) func() ([]string, error) {
	return func() ([]string, error) {
		if file == "" {
			return nil, nil
		}
		text, err := os.ReadFile(file) //nolint:gosec // the command line names it
		if err != nil {
			return nil, err
		}
		if lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return line == "" }); len(lines) > 0 {
			return lines, nil
		}
		return nil, fmt.Errorf("%s has no password", file)
	}
}

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

// outside is a server that is imported, or the cluster that it is in.
type outside struct {
	address string
	login   login
}

func (o *outside) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.address, "from", "", "address of the server, or of any node of its cluster, HOST:PORT (required)")
	flags.StringVar(&o.login.user, "user", "", "who logs in (default: the default user)")
	flags.StringVar(&o.login.passwordFile, "password-file", "", "file with the password; none: no password")
	flags.StringVar(&o.login.caFile, "ca-file", "", "certificates to trust, in PEM; with it, connections are encrypted")
	flags.StringVar(&o.login.serverName, "server-name", "",
		"name that the server's certificate is for, and those of all nodes (default: that of the address; for other nodes what they announce)")
	o.login.addCertificate(flags)
}

// source is where some slots are followed. Close the pool in the end.
func (o *outside) source(of slots.Set) (*relay.Source, *redis.Pool, error) {
	if _, _, err := net.SplitHostPort(o.address); err != nil {
		return nil, nil, fmt.Errorf("--from: %w", err)
	}
	logins := &logins{login: o.login}
	if err := logins.read(); err != nil {
		return nil, nil, err
	}
	pool := redis.NewPool(redis.Options{IOTimeout: 10 * time.Second, DialTimeout: 5 * time.Second})
	return &relay.Source{Pool: pool, Address: o.address, Login: logins.at, Slots: of}, pool, nil
}

func newFollow() *cobra.Command {
	var (
		from               outside
		following          archive.Following
		reader, reportFile string
		shards             int
	)
	command := &cobra.Command{
		Use:   "follow",
		Short: "write what an instance needs to start as the replica of a server outside",
		Long: "Asks a server whether its data can come into a cluster, and writes nodes.conf into an instance's directory. The instance\n" +
			"starts as the replica of what answers at --master, such as a relay, which it takes for the master of all slots, or, of a server in\n" +
			"cluster mode, for that of the slots of one of its shards.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			said, err := follow(command.Context(), from, following, shards, reader)
			if reportFile == "" {
				return err
			}
			if err != nil {
				return errors.Join(err, writeEnd(reportFile, err))
			}
			text, err := said.Encode()
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
	flags.IntVar(&following.Shard, "shard", 0, "which shard of the server's cluster, by their lowest slots")
	flags.IntVar(&shards, "shards", 0, "how many there must be; 0: any number")
	flags.StringVar(&following.Request, "request", "", "what it is asked for with; a directory that was filled for the same is left as it is")
	flags.StringVar(&reader, "engine", "", "engine that is to follow, such as redis:8.0.6 or valkey:9.1.2: refuse what it cannot read")
	flags.StringVar(&reportFile, "report-file", "", "file to write into what became of it, as JSON, 4096 bytes at most")
	return command
}

func follow(ctx context.Context, from outside, following archive.Following, want int, reader string) (said report.Following, err error) {
	engine, version, err := engineOf(reader)
	if err != nil {
		return said, err
	}
	source, pool, err := from.source(slots.Set{})
	if err != nil {
		return said, err
	}
	defer pool.Close()
	shards, err := source.Shards(ctx)
	if err != nil {
		return said, fmt.Errorf("the server at %s: %w", from.address, err)
	}
	switch {
	case len(shards) > report.MostShards:
		return said, fmt.Errorf("the cluster at %s has %d masters, and %d is the most", from.address, len(shards), report.MostShards)
	case want != 0 && want != len(shards), following.Shard < 0 || following.Shard >= len(shards):
		return said, fmt.Errorf("the cluster at %s has %d masters now: delete the Jobs that prepare instances to begin anew", from.address,
			len(shards))
	}
	for _, is := range shards {
		if err := archive.CheckSource(is, engine, version); err != nil {
			return said, fmt.Errorf("the server at %s cannot be imported: %w", from.address, err)
		}
		if len(is.Slots.String()) > report.MostSlots {
			return said, fmt.Errorf("the slots of a master at %s are in too many pieces (%.80s…): rebalance them", from.address, is.Slots)
		}
	}
	is := shards[following.Shard]
	following.Slots = is.Slots
	return report.Following{Engine: string(is.Engine), Version: is.Version, Slots: is.Slots.String(), Shards: len(shards)}, following.Write()
}

func newRelay() *cobra.Command {
	var (
		from                                outside
		listen, passwordFile, cert, certKey string
		request, reportFile, of             string
	)
	command := &cobra.Command{
		Use:   "relay",
		Short: "let an instance follow a server outside through this program, until stopped",
		Long: "Passes on to a server what a replica says, INFO, CLUSTER NODES, and the pausing of writes, and no other command. The server is\n" +
			"reached with its own password and certificates, and this program with those of the cluster. Of a server in cluster mode, the master\n" +
			"of the slots is meant, whoever that is.\n\n" +
			"The user needs the rights\n  " + redis.RightsToImport,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if reportFile != "" {
				defer func() { err = errors.Join(err, writeEnd(reportFile, err)) }()
			}
			set, err := slots.Parse(of)
			if err != nil {
				return fmt.Errorf("--slots: %w", err)
			}
			source, pool, err := from.source(set)
			if err != nil {
				return err
			}
			defer pool.Close()
			go func() { _ = pool.Start(command.Context()) }() // closes connections of former passwords
			listener, err := (&net.ListenConfig{}).Listen(command.Context(), "tcp", listen)
			if err != nil {
				return err
			}
			if cert != "" {
				shown := &pair{cert: cert, key: certKey}
				listener = tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: shown.get})
			}
			r := &relay.Relay{Dial: source.Dial, Check: func(ctx context.Context) error { return archive.Followable(ctx, source) },
				Passwords: passwords(passwordFile), Rest: relay.DefaultRest,
				Report: func(text string) { fmt.Fprintln(command.ErrOrStderr(), text) }}
			go source.Watch(command.Context(), r.Drop)
			// A Job whose pod is stopped, with its node, is to make another one: that is no success.
			return cmp.Or(r.Serve(command.Context(), listener), errors.New("it was stopped"))
		},
	}
	flags := command.Flags()
	from.add(flags)
	flags.StringVar(&of, "slots", slots.All().String(), "slots whose master is followed")
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

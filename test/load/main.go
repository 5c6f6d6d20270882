// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command load is an application of a Redis Cluster that keeps books: it writes and
// reads at a steady rate through an ordinary cluster client, and tells afterwards what
// failed, what was lost and how long anything took. The end-to-end tests and the
// benchmarks run it while a cluster changes under it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(os.Stdout, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

const overview = `An application of a Redis Cluster that keeps books.

fill puts data in, content and types by number, so that verify can check every key
later. run writes and reads at a steady rate until it gets SIGTERM or SIGINT (or for
--duration), then reads back everything that was acknowledged. Each prints one JSON
object.

The password comes from the variable REDIS_PASSWORD. The client follows MOVED and ASK
and repeats nothing: an attempt that ends with any other error is a failed command,
even when the client library tries again by itself and succeeds.`

// command is the command line. Results go to out, progress to progress.
func command(out, progress io.Writer) *cobra.Command {
	var addresses []string
	var authority string
	root := &cobra.Command{
		Use: "load", Short: "An application of a Redis Cluster that keeps books", Long: overview,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.PersistentFlags().StringSliceVar(&addresses, "addr", []string{"127.0.0.1:6379"},
		"where the cluster is: host:port, several separated by commas")
	root.PersistentFlags().StringVar(&authority, "ca", "", "certificates to trust, in PEM: connect by TLS")
	server := func() server {
		return server{addresses: addresses, password: os.Getenv("REDIS_PASSWORD"), authority: authority}
	}
	root.AddCommand(fillCommand(server, out), verifyCommand(server, out), runCommand(server, out, progress), watchCommand(server, out),
		probeCommand(server, out), journalCommand(server, out))
	return root
}

func fillCommand(server func() server, out io.Writer) *cobra.Command {
	var data dataset
	cmd := &cobra.Command{
		Use: "fill", Short: "Put data in, content and types by number", Args: cobra.NoArgs,
		Example: "  load fill --addr cache:6379 --keys 1000000\n  load fill --addr cache:6379 --keys 20000 --types all --big 4",
		RunE: func(cmd *cobra.Command, _ []string) error {
			started := time.Now()
			result, err := fill(cmd.Context(), server(), data)
			if err != nil {
				return err
			}
			result.Seconds = time.Since(started).Seconds()
			return printJSON(out, result)
		},
	}
	data.flags(cmd)
	return cmd
}

func verifyCommand(server func() server, out io.Writer) *cobra.Command {
	var data dataset
	cmd := &cobra.Command{
		Use: "verify", Short: "Check every key that fill has put in: type, content, time to live", Args: cobra.NoArgs,
		Long:    "Checks every key that fill has put in with the same flags: its type, its content, the time it expires. Fails if one is missing or differs.",
		Example: "  load verify --addr cache:6379 --keys 1000000",
		RunE: func(cmd *cobra.Command, _ []string) error {
			started := time.Now()
			result, err := verify(cmd.Context(), server(), data)
			if err != nil {
				return err
			}
			result.Seconds = time.Since(started).Seconds()
			if err := printJSON(out, result); err != nil {
				return err
			}
			return result.failure()
		},
	}
	cmd.Flags().DurationVar(&data.slack, "expiry-slack", 10*time.Second,
		"how far from its time a key may expire: MIGRATE sends what is left to live, so the time on the way is added")
	data.flags(cmd)
	return cmd
}

func runCommand(server func() server, out, progress io.Writer) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run", Short: "Write and read at a steady rate, then read everything back", Args: cobra.NoArgs,
		Long: `Writes and reads at a steady rate until it gets SIGTERM or SIGINT, or for --duration,
then reads back everything that was acknowledged and prints what it saw:

  failed   commands (of new clients too), or attempts inside of the client, that ended with an error other
           than MOVED and ASK; errors holds samples
  failedOtherwise  of failed, what did not time out
  lost     acknowledged writes that are not there any more. Each write asks for the
           value it replaces (SET ... GET), so that a later write hides nothing
  stale    reads that were older than the last acknowledged write of that key
  corrupt  values that nobody wrote
  tryAgain answers TRYAGAIN to commands with several keys, which the protocol of
           classic slot migration allows; not in failed
  closedByClient   attempts whose connection the client library closed itself, which says
           nothing about the cluster; not in failed
  stalled  attempts that timed out while a processor of this machine stalled for at
           least half of their time, as those of a virtual machine do whose host is busy;
           not in failed
  longestStallMS  the longest time that one command took, redirections included
  clientStallMS   how late this program itself woke up at worst on any processor, if later
                  than 20 ms: what part of a stall may be due to a busy machine
  stallSeconds  how long it was late altogether, on the processor that was worst`,
		Example: "  load run --addr cache:6379 --writes 2500 --reads 2500 --duration 30s\n  load run --addr cache:6379 --writes 0 --reads 0   # as fast as it goes",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.verbose {
				o.progress = json.NewEncoder(progress)
			}
			at := server()
			at.dialTimeout, at.refresh = o.dialTimeout, o.refresh
			result, err := run(cmd.Context(), at, o)
			if err != nil {
				return err
			}
			return printJSON(out, result)
		},
	}
	o.flags(cmd)
	return cmd
}

func watchCommand(server func() server, out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "watch", Short: "Tell when slots began and ended to move to or from instances", Args: cobra.NoArgs,
		Long:    "Asks the instances at --addr for their slots, 40 times a second, until it gets SIGTERM or SIGINT. Prints how many they owned at first and at last, when the first was on its way and when the last had changed its owner.",
		Example: "  load watch --addr 10.244.1.7:6379,10.244.2.4:6379",
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := watch(cmd.Context(), server())
			if err != nil {
				return err
			}
			return printJSON(out, result)
		},
	}
}

func probeCommand(server func() server, out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "probe", Short: "Tell when no write into a sixteenth of the slots was acknowledged by any instance", Args: cobra.NoArgs,
		Long:    "Writes a key of each sixteenth of the slots at every instance that the cluster names, 50 times a second, until it gets SIGTERM or SIGINT. Prints the times of 300 ms and more in which nobody acknowledged one. It does not depend on a client that has to learn who owns what.",
		Example: "  load probe --addr cache:6379",
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := probe(cmd.Context(), server())
			if err != nil {
				return err
			}
			return printJSON(out, result)
		},
	}
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

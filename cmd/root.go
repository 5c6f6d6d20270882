// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	cliflag "k8s.io/component-base/cli/flag"

	"middleware.hc.cn/operator/internal/manager"
)

// newRoot returns the command line. "manager" alone is "manager run".
func newRoot(env manager.Environment) *cobra.Command {
	root := newRun(env)
	root.Use = "manager"
	root.Long = "Runs the Middleware Operator: RedisCluster, Application, and the chart kinds of a watches file.\n\"manager\" alone is \"manager run\"."
	root.Example = "  manager --controllers=*,-foobar --watch-namespaces=shop,billing\n" +
		"  manager --leader-elect=false --install-crds --kubeconfig=$HOME/.kube/config"
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newRun(env), newValidate(env), newRender(env), newVersion())
	return root
}

// gcPercent is Go's GOGC for the operator: its heap lives as long as the objects it watches, and half the usual garbage on top of
// it costs little processor time and saves a quarter of the memory. The environment's GOGC goes before it.
const gcPercent = 50

func newRun(env manager.Environment) *cobra.Command {
	options := manager.DefaultOptions()
	groups := options.Flags(env)
	command := &cobra.Command{
		Use:   "run",
		Short: "run the operator until SIGTERM",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			flush, err := options.StartLogs(command.Flags())
			if err != nil {
				return err
			}
			defer flush()
			if err := options.Validate(); err != nil {
				return err
			}
			if _, set := os.LookupEnv("GOGC"); !set {
				debug.SetGCPercent(gcPercent)
			}
			if limit := env.MemoryLimit(); limit > 0 {
				debug.SetMemoryLimit(limit)
			}
			cfg, err := options.Connection()
			if err != nil {
				return err
			}
			options.Scaffolded = manager.Scaffolded{Scheme: scheme, Add: addScaffolded}
			return manager.Run(command.Context(), cfg, options, env)
		},
	}
	command.Version = build()
	command.SetVersionTemplate("{{.Version}}\n")
	command.Flags().SetNormalizeFunc(cliflag.WordSepNormalizeFunc) // --log_dir is --log-dir, as in Kubernetes' components
	for _, group := range groups {
		command.Flags().AddFlagSet(group.FlagSet)
	}
	command.SetUsageFunc(func(command *cobra.Command) error { return usage(command, groups) })
	return command
}

// build says which build this is.
func build() string {
	b := manager.BuildInfo()
	return fmt.Sprintf("middleware-operator %s (commit %s, %s)", b.Version, b.Commit, b.Go)
}

func newVersion() *cobra.Command {
	command := &cobra.Command{
		Use:   "version",
		Short: "print which build this is",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), build())
			return err
		},
	}
	command.SetUsageFunc(func(command *cobra.Command) error { return usage(command, nil) })
	return command
}

// usage prints the help, flags in groups.
func usage(command *cobra.Command, groups []manager.FlagGroup) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage:\n  %s\n", command.UseLine())
	if command.HasExample() {
		fmt.Fprintf(&text, "\nExamples:\n%s\n", command.Example)
	}
	if command.HasSubCommands() {
		fmt.Fprintf(&text, "\nCommands:\n")
	}
	for _, sub := range command.Commands() {
		fmt.Fprintf(&text, "  %-12s%s\n", sub.Name(), sub.Short)
	}
	for _, group := range groups {
		fmt.Fprintf(&text, "\n%s:\n%s", group.Title, group.FlagUsagesWrapped(100))
	}
	_, err := fmt.Fprint(command.OutOrStdout(), text.String())
	return err
}

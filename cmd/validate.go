// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/preview"
)

func newValidate(env manager.Environment) *cobra.Command {
	project := preview.Project{WatchesFile: manager.DefaultOptions().WatchesFile, Env: env}
	var samples []string
	var output, roleName string
	var strict, printRules bool
	command := &cobra.Command{
		Use:   "validate",
		Short: "check watches, charts, CRDs and sample resources without a cluster",
		Long: "Checks what is to be shipped, without a cluster: the watches file, its charts (dependencies, schemas, templates), the CRDs of its kinds,\n" +
			"sample resources, and whether the watches allow what the charts make. Exit code: 0, or 1 if there is an error.",
		Example: "  manager validate --crds=config/crd/bases --sample=config/samples\n" +
			"  manager validate --crds=config/crd/bases --sample=config/samples --print-rbac > charts-role.yaml",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output: %q is neither text nor json", output)
			}
			project.Stdin = command.InOrStdin()
			report := preview.Validate(project, samples)
			if !printRules {
				roleName = ""
			}
			if err := printReport(command, report, output, roleName); err != nil {
				return err
			}
			return report.Err(strict)
		},
	}
	what, how := flagSet(), flagSet()
	projectFlags(what, &project)
	what.StringArrayVar(&samples, "sample", nil, "file or directory with custom resources to check and render; may be given more than once")
	how.StringVarP(&output, "output", "o", "text", "text or json")
	how.BoolVar(&strict, "strict", false, "make warnings errors")
	how.BoolVar(&printRules, "print-rbac", false,
		"print the ClusterRole that the operator needs for these kinds, without wildcards; the findings go to standard error")
	how.StringVar(&roleName, "rbac-name", "middleware-operator-charts", "name of that ClusterRole")
	grouped(command, manager.FlagGroup{Title: "What is checked", FlagSet: what}, manager.FlagGroup{Title: "What is printed", FlagSet: how})
	return command
}

// printReport prints the ClusterRole of a name, unless that is empty, and the findings.
func printReport(command *cobra.Command, report *preview.Report, output, roleName string) error {
	out := command.OutOrStdout()
	if roleName != "" {
		role, err := report.ClusterRole(roleName)
		if err != nil {
			return err
		}
		if _, err := out.Write(role); err != nil {
			return err
		}
		out = command.ErrOrStderr()
	}
	if output == "json" {
		return report.JSON(out)
	}
	return report.Text(out)
}

// projectFlags are the flags of what both commands look at.
func projectFlags(f *pflag.FlagSet, p *preview.Project) {
	f.StringVar(&p.WatchesFile, "watches-file", p.WatchesFile, "file that lists the chart kinds; charts are found relative to it")
	f.StringArrayVar(&p.CRDs, "crds", nil,
		"file or directory with CustomResourceDefinitions, besides those of the operator's own kinds; may be given more than once")
	f.StringVar(&p.KubeVersion, "kube-version", chart.DefaultKubeVersion, "version of Kubernetes that charts see")
	f.StringSliceVar(&p.APIVersions, "api-versions", nil,
		"APIs that charts see besides those of Kubernetes and of the CRDs, as monitoring.coreos.com/v1 or monitoring.coreos.com/v1/ServiceMonitor")
}

func flagSet() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	return flags
}

// grouped gives a command flags, which its help shows in groups.
func grouped(command *cobra.Command, groups ...manager.FlagGroup) {
	for _, group := range groups {
		command.Flags().AddFlagSet(group.FlagSet)
	}
	command.SetUsageFunc(func(command *cobra.Command) error { return usage(command, groups) })
}

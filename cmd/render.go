// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/preview"
)

// exitCode is an error that ends the program with a code of its own. A nil Err prints nothing.
type exitCode struct {
	code int
	err  error
}

func (e *exitCode) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitCode) Unwrap() error { return e.err }

// What `render --diff` ends with, as kubectl diff does.
const (
	exitDifferent  = 1
	exitDiffFailed = 2
)

func newRender(env manager.Environment) *cobra.Command {
	request := preview.Request{Project: preview.Project{WatchesFile: manager.DefaultOptions().WatchesFile, Env: env}}
	var output, kubeconfig string
	var diff bool
	userIDs := manager.UserIDsAuto
	command := &cobra.Command{
		Use:   "render -f FILE",
		Short: "print what would be applied for custom resources, or how it differs from a cluster",
		Long: "Prints the objects the operator would apply for custom resources of chart kinds. Without --diff no cluster is contacted: defaults come from\n" +
			"the CRDs, lookup finds nothing, and owner references, which hold the resource's UID, are left out.\n" +
			"With --diff the same is done against a cluster in dry runs, and the difference is printed; the values of Secrets are masked.\n" +
			"Exit code: 0, or 1 if it failed. With --diff: 0 no difference, 1 differences, 2 it failed.",
		Example: "  manager render -f config/samples/stable_v1beta1_crontab.yaml\n" +
			"  manager render --kind=App -f - --diff < app.yaml",
		Args: func(command *cobra.Command, arguments []string) error {
			return failed(diff, cobra.NoArgs(command, arguments))
		},
		RunE: func(command *cobra.Command, _ []string) error {
			request.Stdin, request.Out, request.Notes = command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr()
			if request.File == "" {
				return failed(diff, errors.New("which resource? give -f FILE, or -f - for standard input"))
			}
			if output != "yaml" && output != "json" {
				return failed(diff, fmt.Errorf("--output: %q is neither yaml nor json", output))
			}
			if err := userIDs.Validate(); err != nil {
				return failed(diff, err)
			}
			request.JSON, request.UserIDs = output == "json", userIDs.FromPlatform
			if !diff {
				return preview.Render(command.Context(), request)
			}
			return compare(command, request, kubeconfig)
		},
	}
	what, how, cluster := flagSet(), flagSet(), flagSet()
	what.StringVarP(&request.File, "filename", "f", "", "file with the custom resources, - for standard input")
	what.StringVar(&request.Kind, "kind", "",
		"which of them, as CronTab or CronTab.stable.example.com; may be left out if there is one object")
	what.StringVarP(&request.Namespace, "namespace", "n", "",
		"namespace of resources that name none (default: with --diff the kubeconfig's, else default)")
	what.Var(&userIDs, "platform-user-ids",
		"render pods as an operator with this flag does: on, off, or auto (with --diff by what the cluster serves, else off)")
	projectFlags(what, &request.Project)
	how.StringVarP(&output, "output", "o", "yaml", "yaml or json")
	how.BoolVar(&request.ShowHooks, "show-hooks", false, "print the objects of hooks too, after the others")
	cluster.BoolVar(&diff, "diff", false, "print the difference to what is in the cluster instead")
	cluster.StringVar(&kubeconfig, "kubeconfig", "", "file that tells the cluster (default: KUBECONFIG, or ~/.kube/config)")
	// Whether --diff was meant cannot be told from flags that cannot be read; 1 would say that there are differences.
	command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failed(true, err) })
	grouped(command, manager.FlagGroup{Title: "What is rendered", FlagSet: what}, manager.FlagGroup{Title: "What is printed", FlagSet: how},
		manager.FlagGroup{Title: "Comparison", FlagSet: cluster})
	return command
}

// compare runs the comparison and turns its result into an exit code.
func compare(command *cobra.Command, request preview.Request, kubeconfig string) error {
	ctrl.SetLogger(logr.Discard()) // what there is to say is printed
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	cfg, err := loader.ClientConfig()
	if err != nil {
		return failed(true, fmt.Errorf("finding the cluster (give --kubeconfig or set KUBECONFIG): %w", err))
	}
	cfg.WarningHandler = rest.NewWarningWriter(command.ErrOrStderr(), rest.WarningWriterOptions{Deduplicate: true})
	own, _, err := loader.Namespace()
	if err != nil {
		return failed(true, fmt.Errorf("finding the namespace: %w", err))
	}
	request.Namespace = cmp.Or(request.Namespace, own)
	different, err := preview.Diff(command.Context(), request, cfg)
	if err != nil {
		return failed(true, err)
	}
	if different {
		return &exitCode{code: exitDifferent}
	}
	return nil
}

// failed tells an error with the exit code that means one.
func failed(diff bool, err error) error {
	if diff && err != nil {
		return &exitCode{code: exitDiffFailed, err: err}
	}
	return err
}

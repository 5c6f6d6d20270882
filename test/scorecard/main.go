// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scorecard holds the operator's own tests for `operator-sdk scorecard` (v1alpha3): each takes the example of one kind from the
// bundle, makes it, waits until it is Ready and what its users expect, deletes it and waits until it is gone.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/operator-framework/api/pkg/apis/scorecard/v1alpha3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Exit codes.
const (
	passed = iota
	failed
	misused
)

func main() {
	// The scorecard ends a pod that takes too long with SIGTERM: what was made is deleted then.
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(run(ctx, os.Args[1:], os.Getenv("SCORECARD_NAMESPACE"), os.Stdout, os.Stderr))
}

// options are the command line.
type options struct {
	bundle, namespace, kubeconfig string
	within                        time.Duration
	list, verbose                 bool
	tests                         []test
}

// run is the command: JSON and the names of -list go to stdout, all else to stderr.
func run(ctx context.Context, args []string, namespace string, stdout, stderr io.Writer) int {
	o, err := parse(args, namespace, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return passed
	case err != nil:
		fmt.Fprintln(stderr, "scorecard:", err)
		return misused
	case o.list:
		fmt.Fprintln(stdout, strings.Join(names(tests), "\n"))
		return passed
	}
	status := o.run(ctx, stderr)
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(status); err != nil {
		fmt.Fprintln(stderr, "scorecard:", err)
		return failed
	}
	if slices.ContainsFunc(status.Results, func(r v1alpha3.TestResult) bool { return r.State != v1alpha3.PassState }) {
		return failed
	}
	return passed
}

func parse(args []string, namespace string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("scorecard", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.bundle, "bundle", "/bundle", "unpacked bundle, with manifests/ and metadata/")
	flags.StringVar(&o.namespace, "namespace", namespace, "where the examples are made; SCORECARD_NAMESPACE if not given")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig; else KUBECONFIG, else the pod's own account")
	flags.DurationVar(&o.within, "timeout", 4*time.Minute, "how long an object may take; the scorecard's --wait-time should be longer")
	flags.BoolVar(&o.list, "list", false, "print the names of the tests")
	flags.BoolVar(&o.verbose, "verbose", false, "tell on standard error what goes on; not in a pod of the scorecard, which wants JSON only")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage(flags, stderr)
		}
		return o, err
	}
	if o.list {
		return o, nil
	}
	for _, name := range flags.Args() {
		i := slices.IndexFunc(tests, func(t test) bool { return t.name == name })
		if i < 0 {
			return o, fmt.Errorf("there is no test %q; there are %s", name, strings.Join(names(tests), ", "))
		}
		o.tests = append(o.tests, tests[i])
	}
	switch {
	case len(o.tests) == 0:
		return o, fmt.Errorf("name a test, or several: %s", strings.Join(names(tests), ", "))
	case o.namespace == "":
		return o, errors.New("-namespace: give the namespace to make the examples in, or set SCORECARD_NAMESPACE")
	case o.within < time.Second:
		return o, fmt.Errorf("-timeout: %v is too short; give 1s or more", o.within)
	}
	return o, nil
}

func usage(flags *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, "Usage: scorecard [flags] TEST...\n\nTests: %s\n\nFlags:\n", strings.Join(names(tests), ", "))
	flags.SetOutput(w)
	flags.PrintDefaults()
	fmt.Fprintln(w, "\nThe result is JSON on standard output. Exit code 0: all passed, 1: one did not, 2: wrong command line.")
}

// run runs the chosen tests one after the other.
func (o options) run(ctx context.Context, stderr io.Writer) v1alpha3.TestStatus {
	live := io.Discard
	if o.verbose {
		live = stderr
	}
	list, api, err := o.prepare()
	var status v1alpha3.TestStatus
	for _, t := range o.tests {
		if err != nil {
			status.Results = append(status.Results, v1alpha3.TestResult{Name: t.name, State: v1alpha3.ErrorState, Errors: []string{err.Error()}})
			continue
		}
		trial := trial{test: t, client: api, namespace: o.namespace, within: o.within, log: newJournal(time.Now, live)}
		status.Results = append(status.Results, trial.run(ctx, list))
	}
	return status
}

func (o options) prepare() ([]unstructured.Unstructured, client.Client, error) {
	list, err := examples(o.bundle)
	if err != nil {
		return nil, nil, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("find the cluster: %w", err)
	}
	api, err := client.New(config, client.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("reach the API server: %w", err)
	}
	return list, api, nil
}

func names(tests []test) []string {
	list := make([]string, len(tests))
	for i, t := range tests {
		list[i] = t.name
	}
	return list
}

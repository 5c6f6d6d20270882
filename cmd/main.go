// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the Middleware Operator.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	"middleware.hc.cn/operator/internal/manager"
	// +kubebuilder:scaffold:imports
)

// What operator-sdk's `create api` and `create webhook` write at the markers uses these names.
var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup") //nolint:unused // by what is scaffolded
)

func init() {
	utilruntime.Must(manager.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

// addScaffolded adds the controllers and webhooks that operator-sdk scaffolded; the operator's own are in internal/manager.
func addScaffolded(mgr ctrl.Manager) {
	// +kubebuilder:scaffold:builder
}

func main() {
	os.Exit(codeOf(newRoot(os.LookupEnv).ExecuteContext(ctrl.SetupSignalHandler()), os.Stderr))
}

// codeOf writes an error, and tells the exit code for it.
func codeOf(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	var own *exitCode
	if !errors.As(err, &own) {
		own = &exitCode{code: 1, err: err}
	}
	if own.err != nil {
		fmt.Fprintln(stderr, "Error:", own.err)
	}
	return own.code
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager runs the Middleware Operator.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
)

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

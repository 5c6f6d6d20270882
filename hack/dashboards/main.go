// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command dashboards writes the dashboards of config/grafana, in the directory that it is given.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

const readable = 0o644

func main() {
	if len(os.Args) != 2 { //nolint:mnd // the directory
		fmt.Fprintln(os.Stderr, "usage: dashboards DIRECTORY")
		os.Exit(2) //nolint:mnd // as of wrong usage
	}
	for _, d := range all() {
		text, err := d.JSON()
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], d.UID+".json"), text, readable) //nolint:gosec // the directory is who calls's
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "dashboards:", err)
			os.Exit(1)
		}
	}
}

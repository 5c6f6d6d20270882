// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release makes what a release needs besides what is compiled:
//
//	release chart  the operator's Helm chart, from what kustomize makes of config/
//	release notes  the part of CHANGELOG.md that is about a version
//	release krew   the manifest of the kubectl plugin, from the checksums of its archives
//
// It is run by hack/chart.sh and hack/release.sh.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]func([]string) error{"chart": runChart, "notes": runNotes, "krew": runKrew}
	if len(args) > 0 {
		if command, ok := commands[args[0]]; ok {
			return command(args[1:])
		}
	}
	return errors.New("usage: release chart|notes|krew [flags]; --help tells the flags of each")
}

func runChart(args []string) error {
	flags := flag.NewFlagSet("release chart", flag.ExitOnError)
	c := chart{}
	flags.StringVar(&c.builds, "builds", "build/chart", "folder of what kustomize made: default.yaml, and one for each overlay")
	flags.StringVar(&c.csv, "csv", "config/manifests/bases/middleware-operator.clusterserviceversion.yaml",
		"what people read about the operator")
	flags.StringVar(&c.output, "output", "deploy/middleware-operator",
		"folder of the chart, with what is written by hand in it; its generated files are written anew")
	flags.StringVar(&c.version, "version", "", "version of the operator, which is the chart's")
	flags.StringVar(&c.image, "image", "", "the operator's image, as NAME or NAME@sha256:DIGEST; empty: as values.yaml says")
	flags.StringVar(&c.changelog, "changelog", "",
		"CHANGELOG.md, whose part about the version becomes the chart's list of changes; empty: none")
	_ = flags.Parse(args) // ExitOnError
	return c.write()
}

func runNotes(args []string) error {
	flags := flag.NewFlagSet("release notes", flag.ExitOnError)
	changelog := flags.String("changelog", "CHANGELOG.md", "the file")
	version := flags.String("version", "", "version")
	snapshot := flags.Bool("snapshot", false, "take what is unreleased when the file does not know the version yet")
	_ = flags.Parse(args) // ExitOnError
	part, err := readChanges(*changelog, *version, *snapshot)
	if err != nil {
		return err
	}
	fmt.Println(part.text)
	return nil
}

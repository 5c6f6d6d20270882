// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command olm makes what operator-sdk and opm leave to be done by hand on the way from config/ to a catalog:
//
//	olm finish      completes a bundle that `operator-sdk generate bundle` wrote
//	olm pin         replaces the image tags of a bundle by digests
//	olm catalog     makes a file-based catalog from a list of bundles
//	olm submission  makes what OperatorHub's repositories want beside a bundle
//	olm release     keeps the CRDs of a version, for the next one to be compared with
//
// It is run by hack/bundle.sh, hack/catalog.sh and hack/operatorhub.sh.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "olm:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	commands := map[string]func([]string) error{
		"finish": runFinish, "pin": runPin, "catalog": runCatalog, "submission": runSubmission, "release": runRelease,
	}
	if len(args) > 0 {
		if command, ok := commands[args[0]]; ok {
			return command(args[1:])
		}
	}
	return errors.New("usage: olm finish|pin|catalog|submission|release [flags]; --help tells the flags of each")
}

func runFinish(args []string) error {
	flags := flag.NewFlagSet("olm finish", flag.ExitOnError)
	bundle := flags.String("bundle", "bundle", "folder of the bundle")
	base := flags.String("base", "", "CSV base, which has the release date in its annotation createdAt")
	icon := flags.String("icon", "", "SVG file of the icon")
	_ = flags.Parse(args) // ExitOnError
	return finish(*bundle, *base, *icon)
}

func runPin(args []string) error {
	flags := flag.NewFlagSet("olm pin", flag.ExitOnError)
	bundle := flags.String("bundle", "bundle", "folder of the bundle; it is changed")
	resolver := flags.String("resolver", "", "command that prints the digest (sha256:...) of the image that is appended to it")
	_ = flags.Parse(args) // ExitOnError
	if *resolver == "" {
		return errors.New("pin: --resolver is missing, such as --resolver='crane digest'")
	}
	return pin(*bundle, commandResolver(strings.Fields(*resolver)))
}

func runCatalog(args []string) error {
	flags, read := catalogFlags("olm catalog")
	output := flags.String("output", "", "file to write")
	_ = flags.Parse(args) // ExitOnError
	documents, err := read()
	if err != nil {
		return err
	}
	return writeDocuments(*output, documents...)
}

func runSubmission(args []string) error {
	flags, read := catalogFlags("olm submission")
	version := flags.String("version", "", "version that is submitted")
	output := flags.String("output", "", "the operator's folder, as OperatorHub's repositories have it")
	_ = flags.Parse(args) // ExitOnError
	documents, err := read()
	if err != nil {
		return err
	}
	name, _ := documents[0]["name"].(string)
	return submission(documents, name+".v"+*version, *version, *output)
}

// catalogFlags are the flags that say what the catalog holds, and what reads it once they are parsed.
func catalogFlags(name string) (*flag.FlagSet, func() ([]map[string]any, error)) {
	flags := flag.NewFlagSet(name, flag.ExitOnError)
	template := flags.String("template", "catalog/semver.yaml", "the bundles of each channel (schema olm.semver)")
	icon := flags.String("icon", "", "SVG file of the icon")
	opm := flags.String("opm", "opm", "the program opm, which reads bundles")
	local := map[string]string{}
	flags.Func("bundle", "IMAGE=DIR: take this bundle from a folder instead of its registry (may be repeated)", func(value string) error {
		image, dir, ok := strings.Cut(value, "=")
		if !ok {
			return fmt.Errorf("%q is not IMAGE=DIR", value)
		}
		local[image] = dir
		return nil
	})
	return flags, func() ([]map[string]any, error) { return readCatalog(*template, *icon, opmRenderer(*opm, local)) }
}

func runRelease(args []string) error {
	flags := flag.NewFlagSet("olm release", flag.ExitOnError)
	bases := flags.String("crds", "config/crd/bases", "folder of the CRDs")
	output := flags.String("output", "", "folder to write")
	_ = flags.Parse(args) // ExitOnError
	return release(*bases, *output)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed" // of the template
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	texttemplate "text/template"
)

//go:embed krew.yaml.tmpl
var krewTemplate string

// plugin is what the manifest of the kubectl plugin is made of.
type plugin struct {
	Version, Homepage, Downloads string
	Platforms                    []platform
}

// platform is one of those that the plugin is built for.
type platform struct{ OS, Arch, Program, Archive, SHA256 string }

// platforms are those of the build with the ID plugin in .goreleaser.yaml.
var platforms = [][2]string{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}}

func runKrew(args []string) error {
	flags := flag.NewFlagSet("release krew", flag.ExitOnError)
	p := plugin{}
	flags.StringVar(&p.Version, "version", "", "version")
	flags.StringVar(&p.Homepage, "homepage", "https://middleware.hc.cn/operator", "where people read about it")
	flags.StringVar(&p.Downloads, "downloads", "", "address of the folder that the archives are downloaded from")
	checksums := flags.String("checksums", "dist/release/checksums.txt", "what sha256sum said of the archives")
	_ = flags.Parse(args) // ExitOnError
	text, err := os.ReadFile(*checksums)
	if err != nil {
		return err
	}
	return p.write(os.Stdout, string(text))
}

// write writes the manifest. Every platform must be among the checksums.
func (p plugin) write(to io.Writer, checksums string) error {
	if p.Version == "" || !strings.HasPrefix(p.Downloads, "https://") {
		return errors.New("give --version, and --downloads with an address that begins with https://")
	}
	line := regexp.MustCompile(`(?m)^([0-9a-f]{64})  (\S+)$`)
	sums := map[string]string{}
	for _, match := range line.FindAllStringSubmatch(checksums, -1) {
		sums[match[2]] = match[1]
	}
	for _, at := range platforms {
		one := platform{OS: at[0], Arch: at[1], Program: "kubectl-middleware",
			Archive: fmt.Sprintf("kubectl-middleware_%s_%s_%s.tar.gz", p.Version, at[0], at[1])}
		if one.OS == "windows" {
			one.Program += ".exe"
		}
		if one.SHA256 = sums[one.Archive]; one.SHA256 == "" {
			return fmt.Errorf("the checksums do not have %s", one.Archive)
		}
		p.Platforms = append(p.Platforms, one)
	}
	made, err := texttemplate.New("krew").Parse(krewTemplate)
	if err != nil {
		return err
	}
	return made.Execute(to, p)
}

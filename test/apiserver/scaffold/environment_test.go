// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold lets operator-sdk add kinds to a copy of the checkout, and runs that copy against a real API server:
// `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/scaffold`.
package scaffold

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const root = "../../.."

var (
	server = &envtest.Environment{}
	api    client.Client
)

func TestMain(m *testing.M) {
	os.Exit(shared.Run(m, server, scheme.Scheme, func(_ context.Context, _ *rest.Config, c client.Client) (<-chan error, error) {
		api = c
		return nil, nil
	}))
}

// checkout is a copy of the project without what was built.
type checkout struct {
	t   *testing.T
	dir string
}

func copyCheckout(t *testing.T) checkout {
	t.Helper()
	c := checkout{t: t, dir: t.TempDir()}
	shared.Check(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "bin", "build", "dist"}, name) {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(c.dir, name), 0o750)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(c.dir, name), text, info.Mode().Perm())
	}))
	return c
}

// command is one that runs in the copy; it knows no cluster.
func (c checkout) command(name string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(c.t.Context(), name, arguments...)
	command.Dir = c.dir
	command.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "KUBECONFIG=/dev/null", "CGO_ENABLED=0")
	return command
}

// run runs a command and returns what it printed.
func (c checkout) run(name string, arguments ...string) string {
	c.t.Helper()
	command := c.command(name, arguments...)
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(arguments, " "), err, out, problems.String())
	}
	if strings.Contains(problems.String(), "level=error") {
		c.t.Errorf("%s %s complains:\n%s", name, strings.Join(arguments, " "), problems.String())
	}
	return string(out)
}

// tool is the path of a pinned tool.
func (c checkout) tool(name string) string {
	c.t.Helper()
	return strings.TrimSpace(c.run("hack/tool.sh", name))
}

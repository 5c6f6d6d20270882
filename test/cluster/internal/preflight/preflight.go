// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks that this machine can run the cluster, and installs the
// Debian packages that are missing.
package preflight

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Package is a Debian package and a file of it whose presence shows that it is
// installed.
type Package struct {
	Name, File string
}

// Runtime are the packages that a running cluster needs.
var Runtime = []Package{
	{"iproute2", "/sbin/ip"},
	{"iptables", "/usr/sbin/iptables"},
	{"conntrack", "/usr/sbin/conntrack"},
	{"runc", "/usr/sbin/runc"},
	{"containernetworking-plugins", "/usr/lib/cni/bridge"},
	{"util-linux", "/usr/bin/nsenter"},
}

// Check refuses machines that cannot run the cluster.
func Check() error {
	const instead = "; use a cluster of your own instead: KUBECONFIG=/path/to/kubeconfig make demo"
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the local cluster runs on Linux only, this is %s%s", runtime.GOOS, instead)
	}
	if os.Geteuid() != 0 {
		return errors.New("the local cluster needs root (it makes namespaces and control groups)" + instead)
	}
	return nil
}

// Install installs the packages that are missing and says so on out.
func Install(packages []Package, out io.Writer) error {
	var missing []string
	for _, p := range packages {
		if _, err := os.Stat(p.File); err != nil {
			missing = append(missing, p.Name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing on this machine: %s; install them with its package manager (only Debian's is known here), "+
			"or use a cluster of your own: KUBECONFIG=/path/to/kubeconfig make demo", strings.Join(missing, ", "))
	}
	fmt.Fprintf(out, "installing Debian packages: %s\n", strings.Join(missing, " "))
	install := append([]string{"install", "-y", "-q", "--no-install-recommends"}, missing...)
	if err := aptGet(install...); err == nil {
		return nil
	}
	// The package lists may be missing or old.
	if err := aptGet("update", "-q"); err != nil {
		return err
	}
	return aptGet(install...)
}

func aptGet(args ...string) error {
	cmd := exec.Command("apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w: %s", strings.Join(args, " "), err, lastLines(string(text), 5))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

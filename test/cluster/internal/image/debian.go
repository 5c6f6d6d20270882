// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// busybox is the package of the shell in every image.
const busybox = "busybox-static"

// keyring holds Debian's archive keys of all suites.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// suite fetches packages of one Debian suite, with package lists and a package
// database of its own: the machine's stay as they are.
type suite struct {
	name string
	dir  string
}

// fetch downloads the packages with all they depend on and unpacks them. It
// returns the folder and the version of each package that was asked for.
func (s suite) fetch(packages []string) (root string, versions map[string]string, err error) {
	if err := s.configure(); err != nil {
		return "", nil, err
	}
	if err := s.aptGet("update"); err != nil {
		return "", nil, err
	}
	archives := filepath.Join(s.dir, "cache", "archives")
	if err := os.RemoveAll(archives); err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(filepath.Join(archives, "partial"), 0o755); err != nil {
		return "", nil, err
	}
	install := append([]string{"install", "--download-only", "--no-install-recommends"}, packages...)
	if err := s.aptGet(install...); err != nil {
		return "", nil, err
	}
	root = filepath.Join(s.dir, "root")
	if err := os.RemoveAll(root); err != nil {
		return "", nil, err
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	if err != nil {
		return "", nil, err
	}
	versions = map[string]string{}
	for _, f := range files {
		if out, err := exec.Command("dpkg-deb", "--extract", f, root).CombinedOutput(); err != nil {
			return "", nil, fmt.Errorf("unpacking %s: %w: %s", f, err, out)
		}
		out, err := exec.Command("dpkg-deb", "--show", "--showformat=${Package} ${Version}", f).Output()
		if err != nil {
			return "", nil, fmt.Errorf("reading %s: %w", f, err)
		}
		if name, version, ok := strings.Cut(string(out), " "); ok {
			versions[name] = version
		}
	}
	return root, versions, nil
}

// configure writes the suite's own sources and empty package database.
func (s suite) configure() error {
	mirror, err := mirror()
	if err != nil {
		return err
	}
	for _, sub := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(s.dir, sub), 0o755); err != nil {
			return err
		}
	}
	source := fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, mirror, s.name)
	if err := os.WriteFile(filepath.Join(s.dir, "sources.list"), []byte(source), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "status"), nil, 0o644)
}

func (s suite) aptGet(args ...string) error {
	options := []string{
		"-q", "-y",
		"-o", "Dir::Etc::sourcelist=" + filepath.Join(s.dir, "sources.list"),
		"-o", "Dir::Etc::sourceparts=-",
		"-o", "Dir::Etc::preferences=-",
		"-o", "Dir::Etc::preferencesparts=-",
		"-o", "Dir::State::lists=" + filepath.Join(s.dir, "lists"),
		"-o", "Dir::State::status=" + filepath.Join(s.dir, "status"),
		"-o", "Dir::State::extended_states=" + filepath.Join(s.dir, "extended_states"),
		"-o", "Dir::Cache=" + filepath.Join(s.dir, "cache"),
		"-o", "Dir::Log=" + s.dir,
		"-o", "Debug::NoLocking=1",
		"-o", "Acquire::Languages=none",
		// The folder may be one that only this user can read.
		"-o", "APT::Sandbox::User=root",
	}
	cmd := exec.Command("apt-get", append(options, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("apt-get %s from Debian %s: %w: %s", strings.Join(args, " "), s.name, err, bytes.TrimSpace(out))
	}
	return nil
}

// mirror is the Debian mirror that this machine uses for its own packages.
func mirror() (string, error) {
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "", fmt.Errorf("which Linux is this: %w", err)
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", errors.New("images are built from Debian packages, which needs apt-get; " +
			"use a cluster of your own instead: KUBECONFIG=/path/to/kubeconfig make demo")
	}
	out, err := exec.Command("apt-get", "indextargets", "--format", "$(CREATED_BY) $(RELEASE) $(REPO_URI)").Output()
	if err != nil {
		return "", fmt.Errorf("asking apt-get for this machine's mirror: %w", err)
	}
	if m := findMirror(string(out), codename(string(release))); m != "" {
		return m, nil
	}
	return "", errors.New("this machine's apt sources name no Debian mirror; images are built from Debian packages")
}

// findMirror takes the address of the lines "CREATED_BY RELEASE REPO_URI" whose
// release is the machine's own: that is not the security archive.
func findMirror(targets, codename string) string {
	lines := bufio.NewScanner(strings.NewReader(targets))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) == 3 && f[0] == "Packages" && f[1] == codename {
			return f[2]
		}
	}
	return ""
}

func codename(osRelease string) string {
	for _, line := range strings.Split(osRelease, "\n") {
		if value, ok := strings.CutPrefix(line, "VERSION_CODENAME="); ok {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// upstreamVersion strips what Debian adds: "5:7.0.15-1~deb12u5" is 7.0.15.
func upstreamVersion(version string) string {
	if _, after, ok := strings.Cut(version, ":"); ok {
		version = after
	}
	if i := strings.LastIndexByte(version, '-'); i >= 0 {
		version = version[:i]
	}
	if i := strings.IndexAny(version, "+~"); i >= 0 {
		version = version[:i]
	}
	return version
}

// minor is the first two parts of a version.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

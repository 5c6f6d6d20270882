// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package state says where the cluster keeps what on disk.
package state

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// ControlPlane is the name of the control plane's member.
const ControlPlane = "control-plane"

// Dirs are the folders of one cluster. Everything the cluster writes is below
// these two, so that removing them removes every trace of it.
type Dirs struct {
	// Name of the cluster. Clusters of different names can run side by side.
	Name string
	// Cache outlives the cluster: built tools and image archives.
	Cache string
	// State is the cluster itself.
	State string
	// Project is the checkout whose hack/tool.sh builds the tools.
	Project string
}

// FromEnvironment finds the folders: the cache in $MIDDLEWARE_OPERATOR_CACHE, else
// in the user's cache folder; the checkout in $MIDDLEWARE_OPERATOR_PROJECT, else
// upwards from the working directory. The cluster's
// name is $MIDDLEWARE_OPERATOR_CLUSTER, else "local".
func FromEnvironment() (Dirs, error) {
	cache := os.Getenv("MIDDLEWARE_OPERATOR_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return Dirs{}, fmt.Errorf("finding the cache folder: %w; set MIDDLEWARE_OPERATOR_CACHE", err)
		}
		cache = filepath.Join(user, "middleware-operator")
	}
	cache, err := filepath.Abs(cache)
	if err != nil {
		return Dirs{}, err
	}
	project, err := findProject()
	if err != nil {
		return Dirs{}, err
	}
	name := cmp.Or(os.Getenv("MIDDLEWARE_OPERATOR_CLUSTER"), "local")
	if !validName.MatchString(name) {
		return Dirs{}, fmt.Errorf("MIDDLEWARE_OPERATOR_CLUSTER is %q; a cluster's name is one to eight small letters and digits", name)
	}
	return Dirs{Name: name, Cache: cache, State: filepath.Join(cache, "clusters", name), Project: project}, nil
}

// validName keeps the name of the network interface within the kernel's 15 bytes.
var validName = regexp.MustCompile(`^[a-z0-9]{1,8}$`)

func findProject() (string, error) {
	if p := os.Getenv("MIDDLEWARE_OPERATOR_PROJECT"); p != "" {
		return p, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "tool.sh")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("not inside a checkout of the project; run hack/cluster.sh instead")
		}
	}
}

// Member is the folder of the control plane or of one node.
func (d Dirs) Member(name string) string { return filepath.Join(d.State, "members", name) }

// Members are the names of all members that have a folder.
func (d Dirs) Members() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(d.State, "members"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Images is where the archives of built images are kept across clusters.
func (d Dirs) Images() string { return filepath.Join(d.Cache, "images") }

// Loaded is where the archives given to load-image are kept, so that a node that
// starts later has those images too.
func (d Dirs) Loaded() string { return filepath.Join(d.State, "loaded") }

// Kubeconfig is the administrator's.
func (d Dirs) Kubeconfig() string { return filepath.Join(d.State, "kubeconfig") }

// PKI holds certificates and keys of the whole cluster.
func (d Dirs) PKI() string { return filepath.Join(d.State, "pki") }

// AuditLog is the API server's.
func (d Dirs) AuditLog() string { return d.Log(ControlPlane, "audit") }

// Log is the log of a program of a member.
func (d Dirs) Log(member, program string) string {
	return filepath.Join(d.Member(member), "logs", program+".log")
}

// Lock takes the cluster's lock, waiting for another command that holds it, and
// returns what releases it. The kernel releases it too when the process ends.
func (d Dirs) Lock(waiting func()) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(d.State), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(d.State+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	fd := int(f.Fd())
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		waiting()
		err = syscall.Flock(fd, syscall.LOCK_EX)
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	return func() { _ = f.Close() }, nil
}

// SafeName turns an image name into one for a file.
func SafeName(name string) string {
	return strings.NewReplacer("/", "_", ":", "_", "@", "_").Replace(name)
}

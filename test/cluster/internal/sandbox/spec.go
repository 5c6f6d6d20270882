// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs the programs of one member of the cluster (the control
// plane or a node) in network, process, mount and host name namespaces of their
// own.
//
// The first process of the namespaces (Init) is a small supervisor. Every other
// process of the member descends from it or lives in its process namespace, so
// ending that one process ends all of them at once: programs, containers, shims.
// Mounts, network links and routes live in the member's namespaces and vanish with
// them. Nothing has to be put back one by one, whatever happened before.
package sandbox

// Spec is what a member's namespaces hold. It is written to spec.json in the
// member's folder, which is mounted at MemberDir inside.
type Spec struct {
	// Hostname inside.
	Hostname string `json:"hostname"`
	// Binds are mounted in this order; /run inside is an empty file system, /var
	// is the member's own folder var.
	Binds []Bind `json:"binds"`
	// Network are lines for `ip -batch`.
	Network []string `json:"network"`
	// Sysctls by path below /proc/sys.
	Sysctls map[string]string `json:"sysctls"`
	// Programs run until the member is stopped and are started again when they end.
	Programs []Program `json:"programs"`
}

// Bind shows a folder of the machine under another path inside.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Program is one process; its output goes to logs/NAME.log of the member.
type Program struct {
	Name string   `json:"name"`
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"`
	// WaitFor is a Unix socket that must accept connections before the program is
	// started; empty for none.
	WaitFor string `json:"waitFor,omitempty"`
}

// MemberDir is where a member sees its own folder.
const MemberDir = "/run/member"

// Files and folders of a member's folder.
const (
	specFile   = "spec.json"
	recordFile = "process.json"
	statusFile = "status.json"
	logDir     = "logs"
	varDir     = "var"
)

// ProgramStatus is what the supervisor reports of a program.
type ProgramStatus struct {
	Running bool `json:"running"`
	// Restarts counts how often it ended and was started again.
	Restarts int `json:"restarts"`
	// LastExit says how it ended last; empty if it never did.
	LastExit string `json:"lastExit,omitempty"`
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"middleware.hc.cn/operator/test/measure"
)

// contender is an operator that is measured.
type contender struct {
	name string
	// dependents is the watch's watchDependentResources; empty leaves it out.
	dependents string
	// driftOnly leaves out what does not differ from another contender.
	driftOnly bool
	// settleOnly: it can do nothing else.
	settleOnly bool
	binary     func(options) string
	arguments  func(o options, watchesFile string, a addresses) []string
}

// addresses are those at which a contender serves.
// pprof is empty where no profiles are wanted.
type addresses struct{ metrics, health, pprof string }

const (
	ours   = "middleware-operator"
	theirs = "helm-operator"
)

var contenders = []contender{
	{
		name:   ours,
		binary: func(o options) string { return o.manager },
		arguments: func(o options, watchesFile string, a addresses) []string {
			arguments := []string{"run", "--watches-file=" + watchesFile, "--controllers=*,-rediscluster,-application", "--leader-elect=false",
				"--max-concurrent-reconciles=" + strconv.Itoa(o.workers),
				"--metrics-bind-address=" + a.metrics, "--metrics-secure=false", "--health-probe-bind-address=" + a.health}
			if a.pprof != "" {
				arguments = append(arguments, "--pprof-bind-address="+a.pprof)
			}
			return arguments
		},
	},
	{name: theirs, binary: helmOperatorBinary, arguments: helmOperatorArguments},
	// helm-operator v0.9.1's binary hands a watch's watchDependentResources on as "skip dependent watches", so that false turns
	// the watches of children on.
	{name: theirs + "-watching", dependents: "false", driftOnly: true, binary: helmOperatorBinary, arguments: helmOperatorArguments},
	writerOf(sevenWrites),
	writerOf(fiveWrites),
}

func helmOperatorBinary(o options) string { return o.helmOperator }

// helmOperatorArguments leave the period to the program's default, one minute. A period or a number of workers in the watches file
// would be ignored by v0.9.1.
func helmOperatorArguments(o options, watchesFile string, a addresses) []string {
	return []string{"run", "--watches-file=" + watchesFile, "--max-concurrent-reconciles=" + strconv.Itoa(o.workers),
		"--metrics-bind-address=" + a.metrics, "--health-probe-bind-address=" + a.health}
}

// operator is a running contender.
type operator struct {
	*measure.Program
	contender
	user    string
	metrics string
	pprof   string
}

// launch describes how a contender is started; it can be started again after its end.
type launch struct {
	contender
	options    options
	user       string // whose requests are its requests
	kubeconfig string
	namespace  string
	project    string // directory of the watches file
	watches    string
	logs       string
}

// prepare makes a user, a namespace and a project for a contender.
func (s *server) prepare(ctx context.Context, o options, c contender) (launch, error) {
	l := launch{contender: c, options: o}
	var err error
	if l.namespace, err = s.newNamespace(ctx); err != nil {
		return l, err
	}
	l.user = l.namespace + "-operator"
	if l.kubeconfig, err = s.NewUser(l.user); err != nil {
		return l, err
	}
	l.project = filepath.Join(s.Directory, l.namespace)
	l.logs = filepath.Join(o.logs, l.namespace+".log")
	l.watches, err = writeProject(l.project, c.dependents)
	return l, err
}

// start starts the contender for its namespace and waits until it says that it is healthy.
func (l launch) start(ctx context.Context) (*operator, error) {
	a, err := freeAddresses()
	if err != nil {
		return nil, err
	}
	if l.options.profiles == "" || l.name != ours { // helm-operator serves no profiles
		a.pprof = ""
	}
	binary, err := filepath.Abs(l.binary(l.options))
	if err != nil {
		return nil, err
	}
	command := exec.Command(binary, l.arguments(l.options, l.watches, a)...) //nolint:gosec // whoever runs the bench names the binary
	command.Dir = l.project
	command.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig, "WATCH_NAMESPACE="+l.namespace)
	program, err := measure.Start(ctx, command, l.logs, a.health)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	return &operator{Program: program, contender: l.contender, user: l.user, metrics: a.metrics, pprof: a.pprof}, nil
}

// freeAddresses finds ports that nobody uses now.
func freeAddresses() (addresses, error) {
	list, err := measure.FreeAddresses(3)
	if err != nil {
		return addresses{}, err
	}
	return addresses{metrics: list[0], health: list[1], pprof: list[2]}, nil
}

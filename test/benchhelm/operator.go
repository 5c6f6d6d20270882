// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// contender is an operator that is measured.
type contender struct {
	name string
	// dependents is the watch's watchDependentResources; empty leaves it out.
	dependents string
	// driftOnly leaves out what does not differ from another contender.
	driftOnly bool
	binary    func(options) string
	arguments func(o options, watchesFile string, a addresses) []string
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
	contender
	user    string
	metrics string
	pprof   string
	command *exec.Cmd
	ended   chan struct{} // closed when it has ended
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
	if l.kubeconfig, err = s.newUser(l.user); err != nil {
		return l, err
	}
	l.project = filepath.Join(s.directory, l.namespace)
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
	log, err := os.OpenFile(l.logs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(binary, l.arguments(l.options, l.watches, a)...) //nolint:gosec // whoever runs the bench names the binary
	command.Dir = l.project
	command.Env = append(os.Environ(), "KUBECONFIG="+l.kubeconfig, "WATCH_NAMESPACE="+l.namespace)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return nil, err
	}
	o := &operator{contender: l.contender, user: l.user, metrics: a.metrics, pprof: a.pprof, command: command, ended: make(chan struct{})}
	go func() {
		_ = command.Wait() // how it ended is in its log
		close(o.ended)
	}()
	if err := o.awaitHealth(ctx, a.health); err != nil {
		o.kill()
		return nil, fmt.Errorf("%w (its log is %s)", err, l.logs)
	}
	return o, nil
}

func (o *operator) awaitHealth(ctx context.Context, address string) error {
	client := http.Client{Timeout: time.Second}
	for range 600 {
		response, err := client.Get("http://" + address + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-o.ended:
			return fmt.Errorf("%s ended: %v", o.name, o.command.ProcessState)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s is not ready after a minute", o.name)
}

func (o *operator) pid() int { return o.command.Process.Pid }

// kill ends the operator as a crash would; it may have ended already.
func (o *operator) kill() {
	_ = o.command.Process.Kill()
	<-o.ended
}

// freeAddresses finds ports that nobody uses now.
func freeAddresses() (addresses, error) {
	var list [3]string
	for i := range list {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return addresses{}, err
		}
		defer func() { _ = listener.Close() }()
		list[i] = listener.Addr().String()
	}
	return addresses{metrics: list[0], health: list[1], pprof: list[2]}, nil
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"os"
	"strconv"
	"strings"
)

// Environment looks up an environment variable, as os.LookupEnv does.
type Environment func(name string) (value string, set bool)

// Get returns the variable's value, empty when it is not set.
func (e Environment) Get(name string) string {
	value, _ := e(name)
	return value
}

// inCluster reports whether the operator runs in a pod.
func (e Environment) inCluster() bool { return e.Get("KUBERNETES_SERVICE_HOST") != "" }

// namespaceFile is where a kubelet tells a pod its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// namespace is the one the operator runs in, empty outside of a cluster.
func (e Environment) namespace() string {
	if namespace := e.Get("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	text, err := os.ReadFile(namespaceFile)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// serviceAccount is the operator's own, as kubectl's --serviceaccount wants it; outside of a cluster that of config/.
func (e Environment) serviceAccount() string {
	return cmp.Or(e.namespace(), "middleware-operator-system") + ":" + cmp.Or(e.Get("POD_SERVICE_ACCOUNT"), "middleware-operator")
}

// MemoryLimit is Go's GOMEMLIMIT in bytes that follows from the container's limit, which the variable MEMORY_LIMIT tells: a
// tenth stays for what Go does not count. It is 0 when no limit is known, or when GOMEMLIMIT says what it is to be.
func (e Environment) MemoryLimit() int64 {
	if _, set := e("GOMEMLIMIT"); set {
		return 0
	}
	limit, err := strconv.ParseInt(e.Get("MEMORY_LIMIT"), 10, 64)
	if err != nil {
		return 0
	}
	return max(0, limit/10*9)
}

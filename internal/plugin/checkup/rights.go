// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package checkup is what `kubectl middleware check` finds: whether the cluster has what the operator needs, and which commands of the
// plugin its user may run. It is pure.
package checkup

import "strings"

// Right is what a command does with a resource.
type Right struct {
	// Command is the command of the plugin.
	Command string
	Group   string
	// Resource is in the plural, with its subresource: pods/log.
	Resource string
	Verb     string
	// Optional is what is left out without the right; empty: the command cannot do without it.
	Optional string
	// ClusterWide reports whether the resource is in no namespace, or in the operator's.
	ClusterWide bool
}

const (
	redisGroup   = "redis.middleware.hc.cn"
	metricsGroup = "metrics.k8s.io"
)

// chartKinds are the other kinds of the operator: group and plural.
var chartKinds = [][2]string{
	{"controller.controller.daocloud.io", "applications"}, {"appcontroller.middleware.hc.cn", "apps"}, {"stable.example.com", "crontabs"},
	{"k8s.io", "foobars"},
}

// Rights are those that the commands use, and no others: docs/plugin.md has the same.
func Rights() []Right {
	all := []Right{
		{Command: "status", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		{Command: "status", Group: redisGroup, Resource: "redisclusters", Verb: "list", Optional: "the list, and completion"},
		{Command: "status", Resource: "pods", Verb: "list", Optional: "memory limits, zones, restarts"},
		{Command: "status", Resource: "persistentvolumeclaims", Verb: "list", Optional: "volumes"},
		{Command: "status", Resource: "events", Verb: "list", Optional: "events"},
		{Command: "status", Group: metricsGroup, Resource: "pods", Verb: "list", Optional: "the memory in use"},
	}
	for _, kind := range chartKinds {
		all = append(all, Right{Command: "status", Group: kind[0], Resource: kind[1], Verb: "get", Optional: "that kind"},
			Right{Command: "status", Group: kind[0], Resource: kind[1], Verb: "list", Optional: "that kind in the list"})
	}
	all = append(all,
		Right{Command: "plan", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "plan", Group: redisGroup, Resource: "redisclusters", Verb: "update", Optional: "the dry run of a change"},
		Right{Command: "plan", Group: redisGroup, Resource: "redisclusters", Verb: "create", Optional: "the dry run of a new one"},
		Right{Command: "plan", Resource: "configmaps", Verb: "get", Optional: "settings of a ConfigMap"},
		Right{Command: "pause, resume", Group: redisGroup, Resource: "redisclusters", Verb: "patch"},
	)
	for _, kind := range chartKinds {
		all = append(all, Right{Command: "pause, resume", Group: kind[0], Resource: kind[1], Verb: "patch", Optional: "that kind"})
	}
	return append(all,
		Right{Command: "restart", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "restart", Group: redisGroup, Resource: "redisclusters", Verb: "update"},
		Right{Command: "failover", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "failover", Group: redisGroup, Resource: "redisclusters", Verb: "patch"},
		Right{Command: "failover", Resource: "events", Verb: "list", Optional: "why it was refused"},
		Right{Command: "fence, unfence", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "fence, unfence", Group: redisGroup, Resource: "redisclusters", Verb: "patch"},
		Right{Command: "backup", Group: redisGroup, Resource: "redisbackupschedules", Verb: "list"},
		Right{Command: "backup", Group: redisGroup, Resource: "redisbackups", Verb: "create"},
		Right{Command: "restore", Group: redisGroup, Resource: "redisbackups", Verb: "get"},
		Right{Command: "restore", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "restore", Group: redisGroup, Resource: "redisclusters", Verb: "create", Optional: "anything but --dry-run"},
		Right{Command: "cli", Group: redisGroup, Resource: "redisclusters", Verb: "get", Optional: "choosing a master, and completion"},
		Right{Command: "cli", Resource: "pods", Verb: "get"},
		Right{Command: "cli", Resource: "pods/exec", Verb: "create"},
		Right{Command: "top", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "top", Resource: "pods", Verb: "get"},
		Right{Command: "top", Resource: "pods", Verb: "list"},
		Right{Command: "top", Resource: "pods/exec", Verb: "create"},
		Right{Command: "keys", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "keys", Resource: "pods", Verb: "get"},
		Right{Command: "keys", Resource: "pods", Verb: "list"},
		Right{Command: "keys", Resource: "pods/exec", Verb: "create"},
		Right{Command: "logs", Resource: "pods", Verb: "list"},
		Right{Command: "logs", Resource: "pods/log", Verb: "get"},
		Right{Command: "report", Group: redisGroup, Resource: "redisclusters", Verb: "get"},
		Right{Command: "report", Resource: "pods", Verb: "list", Optional: "pods and logs"},
		Right{Command: "report", Resource: "pods/log", Verb: "get", Optional: "logs"},
		Right{Command: "report", Resource: "persistentvolumeclaims", Verb: "list", Optional: "them"},
		Right{Command: "report", Resource: "services", Verb: "list", Optional: "them"},
		Right{Command: "report", Resource: "configmaps", Verb: "list", Optional: "them"},
		Right{Command: "report", Resource: "events", Verb: "list", Optional: "them"},
		Right{Command: "report", Group: "apps", Resource: "statefulsets", Verb: "list", Optional: "them"},
		Right{Command: "report", Group: "apps", Resource: "deployments", Verb: "list", Optional: "them"},
		Right{Command: "report", Group: "batch", Resource: "jobs", Verb: "list", Optional: "them"},
		Right{Command: "report", Group: "policy", Resource: "poddisruptionbudgets", Verb: "list", Optional: "them"},
		Right{Command: "report", Group: "networking.k8s.io", Resource: "networkpolicies", Verb: "list", Optional: "them"},
		Right{Command: "check", Group: "apps", Resource: "deployments", Verb: "list", Optional: "whether the operator runs", ClusterWide: true},
		Right{Command: "check", Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations", Verb: "list",
			Optional: "webhooks", ClusterWide: true},
		Right{Command: "check", Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Verb: "list",
			Optional: "webhooks", ClusterWide: true},
		Right{Command: "check", Group: "storage.k8s.io", Resource: "storageclasses", Verb: "list", Optional: "storage", ClusterWide: true},
		Right{Command: "check", Group: "rbac.authorization.k8s.io", Resource: "rolebindings", Verb: "list",
			Optional: "whether the operator may keep Secrets in the namespace"},
	)
}

// String is the right in the words of a Role: list pods.metrics.k8s.io.
func (r Right) String() string {
	resource, sub, has := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		resource += "." + r.Group
	}
	if has {
		resource += "/" + sub
	}
	return r.Verb + " " + resource
}

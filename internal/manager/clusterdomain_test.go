// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
)

// TestSearchedDomain: the search path of a pod tells the cluster's domain, and nothing else does.
func TestSearchedDomain(t *testing.T) {
	for name, tt := range map[string]struct{ conf, want string }{
		"a pod": {"search ops.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n",
			"cluster.local"},
		"another domain": {"nameserver 10.96.0.10\nsearch ops.svc.k8s.example.com svc.k8s.example.com k8s.example.com example.com\n",
			"k8s.example.com"},
		"dots at the end, and tabs": {"search\tops.svc.cluster.local. svc.cluster.local.", "cluster.local"},
		"the node's names":          {"search corp.example.com example.com\n", ""},
		"a service of a company":    {"search svc.example.com\n", ""},
		"another namespace":         {"search shop.svc.cluster.local svc.cluster.local\n", ""},
		"the last line counts":      {"search ops.svc.old.local\nsearch ops.svc.new.local\n", "new.local"},
		"also where it says less":   {"search ops.svc.old.local\nsearch example.com\n", ""},
		"no domain":                 {"search ops.svc. ops.svc.A_B ops.svc.-x\n", ""},
		"a comment":                 {"# search ops.svc.cluster.local\n;search ops.svc.cluster.local\n", ""},
		"nothing":                   {"", ""},
		"no end":                    {"search " + strings.Repeat("x", 1<<20) + " ops.svc.cluster.local", ""},
	} {
		if got := searchedDomain(strings.NewReader(tt.conf), "ops"); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := searchedDomain(strings.NewReader("search .svc.cluster.local"), ""); got != "" {
		t.Errorf("without a namespace: %q", got)
	}
}

// TestClusterDomain: the flag wins, and outside of a cluster nothing is guessed.
func TestClusterDomain(t *testing.T) {
	for flag, want := range map[string]string{"": "", "example.com": "example.com", "example.com.": "example.com"} {
		o := DefaultOptions()
		o.RedisCluster.ClusterDomain = flag
		if got := o.clusterDomain(environment(nil)); got != want {
			t.Errorf("--cluster-domain=%s: %q, want %q", flag, got, want)
		}
	}
}

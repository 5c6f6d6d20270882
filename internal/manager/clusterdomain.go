// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// resolvConf is where a kubelet tells a pod how names are resolved.
const resolvConf = "/etc/resolv.conf"

// clusterDomain is the DNS domain of the Kubernetes cluster: what --cluster-domain says, else
// what the pod's own search path says; empty when neither is known.
func (o Options) clusterDomain(env Environment) string {
	if o.RedisCluster.ClusterDomain != "" || !env.inCluster() {
		return strings.TrimSuffix(o.RedisCluster.ClusterDomain, ".")
	}
	file, err := os.Open(resolvConf)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // it was only read
	return searchedDomain(file, env.namespace())
}

// searchedDomain finds DOMAIN in a search path that holds NAMESPACE.svc.DOMAIN, as the kubelet
// writes it for pods of the namespace. Of several search lines the last counts (resolv.conf(5)).
func searchedDomain(conf io.Reader, namespace string) string {
	const longest = 64 << 10
	text, err := io.ReadAll(io.LimitReader(conf, longest))
	if err != nil || namespace == "" {
		return ""
	}
	domain := ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != "search" {
			continue
		}
		domain = ""
		for _, word := range words[1:] {
			found, is := strings.CutPrefix(strings.TrimSuffix(word, "."), namespace+".svc.")
			if is && domain == "" && len(validation.IsDNS1123Subdomain(found)) == 0 {
				domain = found
			}
		}
	}
	return domain
}

func validateClusterDomain(o Options) []error {
	domain := o.RedisCluster.ClusterDomain
	if domain == "" {
		return nil
	}
	if reasons := validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, ".")); len(reasons) > 0 {
		return []error{
			fmt.Errorf("--cluster-domain: %q is not a DNS domain; give one such as cluster.local: %s", domain, strings.Join(reasons, "; "))}
	}
	return nil
}

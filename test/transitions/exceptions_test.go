// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transitions

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/test/admit"
)

// changeRules are the fields by which a change may be refused although a new resource may have the value, with the reason.
var changeRules = map[string]map[string]string{
	"Application": {
		"spec.selector":          "it says which Deployment is the Application's",
		"spec.template.metadata": "its name is the Deployment's",
		"spec.template.spec":     "its selector, which Kubernetes never changes",
	},
	"RedisCluster": {
		"spec.auth.enabled":                             "instances with and without a password do not replicate from each other",
		"spec.bootstrap":                                "it is what a new cluster begins with",
		"spec.modules":                                  "without a replica an instance with data of the module does not start without it",
		"spec.pod[0].middlewareImage":                   "an older engine does not read a newer one's files",
		"spec.pod[0].overlay.securityContext":           "files belong to the user that wrote them",
		"spec.service.ipFamilies[0]":                    "the first family of a Service never changes",
		"spec.pod[0].volumes.type":                      "data stays where it is",
		"spec.pod[0].volumes.persistentVolumeClaimName": "data stays where it is",
		"spec.storage":                                  "one that was set by default stays, until a manifest says null, and two places of the data are refused",
		"spec.storage.size":                             "a claim does not shrink",
		"spec.storage.storageClassName":                 "a claim keeps its class",
		"spec.tls":                                      "instances with and without TLS do not reach each other",
		"spec.tls.mode":                                 "clients move between the stages",
		"spec.tls.secretName":                           "what the Secrets hold is changed instead",
		"spec.updateStrategy.assignStrategies":          "each new master has an entry",
		"spec.version":                                  "an older engine does not read a newer one's files",
	},
}

// ofTheServer reports whether a refusal is one of the API server's own that name no field: a number that no 32 bits hold, a fraction.
// The path is in the text.
func ofTheServer(r admit.Refusal) bool {
	return r.Field == "<nil>" && (strings.Contains(r.Message, " in spec.") || strings.Contains(r.Message, `"spec.`))
}

// kept are fields that keep their value when a manifest leaves them out, against what a new resource gets.
var kept = []struct {
	kind, field string
	reason      string
}{
	{"FooBar", "image", "an image that is left out stays as it is (ADR 0034)"},
	{"RedisCluster", "repository", "an image that is left out stays as it is (ADR 0034)"},
	{"RedisCluster", "version", "an image that is left out stays as it is (ADR 0034)"},
}

// asIfNew is the spec of a new resource, with what the present one may have kept.
func (c *chain) asIfNew(fresh map[string]any) map[string]any {
	spec, _, _ := unstructured.NestedMap(fresh, "spec")
	for _, k := range kept {
		if named, _ := c.manifest[k.field].(string); k.kind == c.kind.Kind && named == "" {
			spec[k.field] = c.spec()[k.field]
		}
	}
	return spec
}

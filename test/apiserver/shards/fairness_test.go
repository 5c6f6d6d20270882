// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

var flowSchemas = regexp.MustCompile("(?s)```yaml\n(apiVersion: flowcontrol.apiserver.k8s.io/v1\n.*?)```")

// What the documentation has of API Priority and Fairness is taken by an API server, and puts what the operator asks for where it says.
func TestFlowSchemasOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile(root + "/docs/sharing.md")
	shared.Check(t, err)
	block := flowSchemas.FindSubmatch(page)
	if block == nil {
		t.Fatal("there are no FlowSchemas")
	}
	for text := range strings.SplitSeq(string(block[1]), "---\n") {
		schema := &flowcontrolv1.FlowSchema{}
		shared.Check(t, yaml.UnmarshalStrict([]byte(text), schema))
		shared.Check(t, api.Create(t.Context(), schema))
		t.Cleanup(func() { shared.Check(t, api.Delete(context.Background(), schema)) })
	}

	as := rest.CopyConfig(admin)
	as.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:middleware-operator-system:middleware-operator",
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:middleware-operator-system", "system:authenticated"}}
	asked, err := rest.HTTPClientFor(as)
	shared.Check(t, err)
	for path, want := range map[string][2]string{ // a FlowSchema, and its priority level
		"/apis/redis.middleware.hc.cn/v1alpha1/redisclusters": {"middleware-operator", "workload-high"},
		"/api/v1/namespaces/default/secrets/any":              {"middleware-operator", "workload-high"},
		"/apis/coordination.k8s.io/v1/namespaces/middleware-operator-system/leases/middleware-operator": {"leases-of-middleware-operator",
			"leader-election"},
	} {
		shared.Eventually(t, path, func() string {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, admin.Host+path, http.NoBody)
			shared.Check(t, err)
			answer, err := asked.Do(request)
			shared.Check(t, err)
			shared.Check(t, answer.Body.Close())
			schema, level := &flowcontrolv1.FlowSchema{}, &flowcontrolv1.PriorityLevelConfiguration{}
			shared.Check(t, api.Get(t.Context(), client.ObjectKey{Name: want[0]}, schema))
			shared.Check(t, api.Get(t.Context(), client.ObjectKey{Name: want[1]}, level))
			if got := answer.Header; types.UID(got.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)) != schema.UID ||
				types.UID(got.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)) != level.UID {
				return "it is in another queue" // the API server learns of a FlowSchema some time after it is made
			}
			return ""
		})
	}
}

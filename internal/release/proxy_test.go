// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-lib/proxy"
	corev1 "k8s.io/api/core/v1"
)

func TestProxyVariables(t *testing.T) {
	for _, name := range proxy.ProxyEnvNames {
		t.Setenv(name, "")
	}
	t.Setenv("HTTP_PROXY", "http://proxy:3128")
	t.Setenv("NO_PROXY", ".svc,.cluster.local")
	cluster := []corev1.EnvVar{}
	for _, variable := range proxy.ReadProxyVarsFromEnv() {
		if variable.Value != "" {
			cluster = append(cluster, variable)
		}
	}
	type m = map[string]any
	type l = []any
	http := l{m{"name": "HTTP_PROXY", "value": "http://proxy:3128"}, m{"name": "http_proxy", "value": "http://proxy:3128"}}
	no := l{m{"name": "NO_PROXY", "value": ".svc,.cluster.local"}, m{"name": "no_proxy", "value": ".svc,.cluster.local"}}
	own := m{"name": "http_proxy", "value": "http://mine:8080"}
	for name, tc := range map[string]struct {
		values m
		list   string
		proxy  []corev1.EnvVar
		want   m
	}{
		"no variables, so nothing changes":   {m{"text": "x"}, "env", nil, m{"text": "x"}},
		"a chart that does not ask for them": {m{"text": "x"}, "", cluster, m{"text": "x"}},
		"an author who set none":             {m{}, "env", cluster, m{"env": append(append(l{}, http...), no...)}},
		"an author's own stay":               {m{"env": l{own}}, "env", cluster, m{"env": append(l{own}, no...)}},
		"an author who takes them elsewhere": {m{"envFrom": l{m{"configMapRef": m{"name": "proxy"}}}}, "env", cluster,
			m{"envFrom": l{m{"configMapRef": m{"name": "proxy"}}}}},
		"an author who wrote something else":    {m{"env": "x"}, "env", cluster, m{"env": "x"}},
		"an author who wrote something odd":     {m{"env": l{"x"}}, "env", cluster, m{"env": append(append(l{"x"}, http...), no...)}},
		"no variables, and an author's own env": {m{"env": l{own}}, "env", nil, m{"env": l{own}}},
	} {
		t.Run(name, func(t *testing.T) {
			withProxy(tc.values, tc.list, tc.proxy)
			if diff := cmp.Diff(tc.want, tc.values); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

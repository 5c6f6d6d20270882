// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// FuzzObject decodes a whole spec, and a ConfigMap of the user's: it is refused with the path of a field, or it renders.
func FuzzObject(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "config", "samples", "redis_*_rediscluster*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		encoded, err := json.Marshal(readCluster(f, file).Spec)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(encoded), "maxmemory 1gb\nappendonly yes\n")
	}
	for _, spec := range []string{
		"{}", "null", `{"replicas":2147483647,"shards":2147483647}`, `{"replicas":-2147483648}`, `{"shards":0}`,
		`{"replicas":6,"shards":3,"storage":{"size":"-1"}}`, `{"storage":{"size":"1e2147483647"}}`, `{"pod":[{},{}]}`,
		`{"pod":[{"volumes":{"type":"hostPath"}}]}`, `{"updateStrategy":{"type":"AssignReceive","assignStrategies":[{"slots":-1,"toShard":-1}]}}`,
		`{"updateStrategy":{"pipeline":"99999999999999999999"}}`, `{"version":"@","repository":"//"}`, `{"auth":{"previousPasswordFor":"-1h"}}`,
		`{"auth":{"previousPasswordFor":"9999999h"},"modules":[{"name":"json","args":["a\nb"]}]}`,
		`{"pod":[{"env":[{"name":"MAXMEMORY","value":"99999999999999999999gb"}],"resources":{"limits":{"memory":"-1"}}}]}`,
		`{"config":{"maxmemory":"18446744073709551616","save":"","client-output-buffer-limit":"x"}}`,
		`{"pod":[{"overlay":{"containers":[{"name":"redis","livenessProbe":{"periodSeconds":-1}}],"securityContext":{"runAsUser":-1}}}]}`,
		`{"pod":[{"overlay":{"initContainers":[{"name":"a","image":"a","restartPolicy":"Always"}],"volumes":[{"name":"v","emptyDir":{}}]}}]}`,
		`{"pod":[{"overlay":{"dnsPolicy":"None","dnsConfig":{"nameservers":["::1"]},"hostAliases":[{"ip":"::1"}]}}],"service":{"ipFamilies":["IPv6"]}}`,
		`{"pod":[{"affinity":{"podAffinity":{}},"tolerations":[{"tolerationSeconds":-1}],"middlewareImage":":"}]}`,
	} {
		f.Add(spec, "save 60 1 # x\n\x00\nuser default on\n")
	}
	c := loadChart(f)
	f.Fuzz(func(t *testing.T, text, config string) {
		var object map[string]any
		cr := &v1alpha1.RedisCluster{}
		cr.Name, cr.Namespace = "cache", "shop"
		if json.Unmarshal([]byte(text), &object) != nil || len(rules.Quantities[v1alpha1.RedisClusterSpec](object)) > 0 ||
			yaml.UnmarshalStrict([]byte(text), &cr.Spec) != nil {
			return
		}
		_ = admission.Validate(cr, admission.Options{}) // one that came past the webhook has no defaults
		admission.Default(cr)
		refused := admission.Validate(cr, admission.Options{})
		_ = admission.Warnings(cr)
		_ = admission.ValidateUpdate(&v1alpha1.RedisCluster{}, cr, admission.Options{})
		for _, mistake := range refused {
			if !strings.HasPrefix(mistake.Field, "spec") {
				t.Errorf("%s: %v names no field", text, mistake)
			}
		}
		if len(refused) > 0 {
			return
		}
		settings, _ := redisconf.ParseConfig(config)
		topology := cr.Spec.Topology()
		if len(topology) > 3 {
			topology = topology[:3] // the rest is the same
		}
		if _, err := render(c, cr, topology, settings); err != nil {
			t.Errorf("%s is accepted and does not render: %v", text, err)
		}
	})
}

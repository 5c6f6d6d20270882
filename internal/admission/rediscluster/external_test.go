// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// How clients outside may be let in, also for objects that came past the schema.
func TestExternal(t *testing.T) {
	const at, invalid = "spec.external.", ": Invalid value"
	balancer := func(text string) string { return "external: {type: LoadBalancer, " + text + "}" }
	ports := func(text string) string { return "external: {type: NodePort, host: nodes.example.com, " + text + "}" }
	for _, tt := range []struct{ spec, want string }{
		{"external: {type: LoadBalancer}", ""},
		{"external: {type: NodePort, host: 192.0.2.1}", ""},
		{"external: {type: NodePort, host: '2001:db8::1'}", ""},
		{balancer("host: redis.example.com, firstPort: 64525, replicas: 10, sourceRanges: [192.0.2.0/24, '2001:db8::/32']"), ""},
		{balancer("annotations: {service.beta.kubernetes.io/aws-load-balancer-type: external}, resources: {limits: {memory: 1Gi}}"), ""},
		{"replicas: 100, shards: 50, external: {type: LoadBalancer}", ""},
		{"replicas: 30, shards: 3, external: {type: LoadBalancer}", ""},
		{"tls: {secretName: a}, " + balancer("tls: {secretName: b}"), ""},
		{"tls: {secretName: a, mode: Disabled}, " + balancer(""), ""},
		{"networkPolicy: {enabled: false}, " + balancer("sourceRanges: [192.0.2.0/24]"), ""},
		{"networkPolicy: {enabled: false}, " + ports(""), ""},

		{"external: {mode: Gateway}", at + "type: Required value: write LoadBalancer or NodePort"},
		{"external: {type: ClusterIP}", at + "type: Unsupported value"},
		{balancer("mode: Names"), at + "mode: Unsupported value"},
		{"external: {type: NodePort}", at + "host: Required value: say where clients reach the nodes"},
		{balancer("host: 'redis.example.com:7000'"), at + "host" + invalid},
		{balancer("host: Redis"), at + "host" + invalid},
		{balancer("host: 'fe80::1%eth0'"), at + "host" + invalid},
		{balancer("host: 0.0.0.0"), at + "host" + invalid},
		{balancer("host: \"a\\nb\""), at + "host" + invalid},
		{ports("firstPort: 64526"), at + "firstPort" + invalid},
		{ports("firstPort: 0"), at + "firstPort" + invalid},
		{ports("replicas: 11"), at + "replicas" + invalid},
		{ports("sourceRanges: [192.0.2.1]"), at + "sourceRanges[0]" + invalid},
		{ports("sourceRanges: [192.0.2.1/24]"), at + "sourceRanges[0]" + invalid},
		{ports("sourceRanges: [192.0.2.0/24, 192.0.2.0/24]"), at + "sourceRanges[1]: Duplicate value"},
		{"networkPolicy: {enabled: false}, " + ports("sourceRanges: [192.0.2.0/24]"),
			at + "sourceRanges: Forbidden: of NodePort the NetworkPolicy"},
		{"tls: {secretName: a, mode: Both}, " + balancer("tls: {secretName: b}"), "spec.external: Forbidden: gateways know one kind"},
		{ports("tls: {}"), at + "tls.secretName: Required value"},
		{"tls: {secretName: a}, " + ports(""), at + "tls.secretName: Required value: spec.tls encrypts connections inside"},
		{ports("annotations: {meta.helm.sh/release-name: a}"), at + "annotations[meta.helm.sh/release-name]: Forbidden"},
		{ports("annotations: {kubectl.kubernetes.io/restartedAt: a}"), at + "annotations[kubectl.kubernetes.io/restartedAt]: Forbidden"},
		{ports("resources: {limits: {memory: -1}}"), at + "resources.limits[memory]" + invalid},
		{"replicas: 102, shards: 51, " + ports(""), "spec.replicas: Invalid value: 102: must be at most 100 with spec.external"},
		{"replicas: 31, shards: 3, " + ports(""), "spec.replicas: Invalid value: 31: makes 11 instances of a shard"},
	} {
		got := strings.Join(sentences(Validate(cluster(t, "{"+tt.spec+"}"), Options{})), "; ")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.spec, got, tt.want)
		}
	}
}

// It may be asked for, changed and given up while the cluster runs, and who leaves a door open is told.
func TestExternalChanges(t *testing.T) {
	without := cluster(t, "{}")
	with := cluster(t, "external: {type: LoadBalancer}")
	other := cluster(t, "external: {type: NodePort, host: a, firstPort: 30000, replicas: 3, tls: {secretName: b}}")
	all := []*v1alpha1.RedisCluster{without, with, other, without}
	for i, before := range all[:len(all)-1] {
		if refused := ValidateUpdate(before, all[i+1], Options{}); len(refused) > 0 {
			t.Errorf("change %d: %v", i, refused)
		}
	}
	if e := with.Spec.External; e.Mode != v1alpha1.ExternalModeGateway || *e.Replicas != 2 {
		t.Errorf("defaults: %+v", e)
	}
	for spec, want := range map[string]string{
		"external: {type: LoadBalancer}":                         "spec.external.tls: without it",
		"external: {type: LoadBalancer, tls: {secretName: a}}":   "",
		"auth: {enabled: false}, external: {type: LoadBalancer}": "spec.external: whoever reaches the gateways has all rights",
	} {
		told := strings.Join(Warnings(cluster(t, "{"+spec+"}")), "; ")
		if want == "" && strings.Contains(told, "spec.external") || !strings.Contains(told, want) {
			t.Errorf("%s: %q", spec, told)
		}
	}
}

// Who has external-dns give the gateways a name is to tell clients that name.
func TestNameOfExternalDNS(t *testing.T) {
	for external, want := range map[string]string{
		`host: redis.example.com, annotations: {external-dns.alpha.kubernetes.io/hostname: "redis.example.com"}`:        "",
		`host: b.example.com, annotations: {external-dns.alpha.kubernetes.io/hostname: "a.example.com, b.example.com"}`: "",
		`host: redis.example.com`: "",
		`annotations: {external-dns.alpha.kubernetes.io/hostname: redis.example.com}`:                  "the name redis.example.com, and clients are told another address; set host to it",
		`host: 192.0.2.1, annotations: {external-dns.alpha.kubernetes.io/hostname: redis.example.com}`: "spec.external.host: ",
		`annotations: {external-dns.alpha.kubernetes.io/hostname: ` + strings.Repeat("a", 5000) + `}`:  "spec.external.host: ",
	} {
		cr := cluster(t, `{external: {type: LoadBalancer, tls: {secretName: a}, `+external+`}}`)
		told := strings.Join(Warnings(cr), "; ")
		if want == "" && told != "" || !strings.Contains(told, want) || len(told) > 300 {
			t.Errorf("%s: %q", external, told)
		}
		allowed := Options{ServiceAnnotationDomains: []string{"external-dns.alpha.kubernetes.io"}}
		if refused := Validate(cr, allowed); len(refused) > 0 {
			t.Errorf("%s: %v", external, refused)
		}
	}
}

// Clients outside are let in when TLS has been switched, and not in between.
func TestExternalWhileTLSIsSwitched(t *testing.T) {
	const secured, out = "tls: {secretName: a, mode: Required}", "external: {type: LoadBalancer, tls: {secretName: b}}"
	for name, tt := range map[string]struct {
		before, after string
		reached       v1alpha1.TLSMode
		refused       bool
	}{
		"not yet":                {secured, secured + ", " + out, v1alpha1.TLSBoth, true},
		"switched":               {secured, secured + ", " + out, v1alpha1.TLSRequired, false},
		"before it has formed":   {secured, secured + ", " + out, "", false},
		"together with the mode": {"tls: {secretName: a, mode: Both}", secured + ", " + out, v1alpha1.TLSBoth, true},
		"as it was":              {secured + ", " + out, secured + ", " + out, v1alpha1.TLSBoth, false},
		"never any":              {"", out, "", false},
	} {
		before, after := cluster(t, "{"+tt.before+"}"), cluster(t, "{"+tt.after+"}")
		if tt.reached != "" {
			before.Status.TLS = &v1alpha1.TLSStatus{Mode: tt.reached}
		}
		got := strings.Join(sentences(ValidateUpdate(before, after, Options{})), "; ")
		if strings.Contains(got, "spec.external: Forbidden: TLS is being switched") != tt.refused || !tt.refused && got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

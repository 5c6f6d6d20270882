// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Whoever brings charts of their own need not install our CRDs; what was asked for by name is never left out.
func TestControllersOfKindsThatAreNotServed(t *testing.T) {
	own := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(own, meta.RESTScopeNamespace)
	site := controller{name: "site", gvk: own}
	missing := controller{
		name: "rediscluster", gvk: schema.GroupVersionKind{Group: "redis.middleware.hc.cn", Version: "v1alpha1", Kind: "RedisCluster"}}
	optional := missing
	optional.optional = true
	for name, tc := range map[string]struct {
		asked   []controller
		want    []string
		refused string
	}{
		"all served":                  {[]controller{site}, []string{"site"}, ""},
		"one that * turned on":        {[]controller{optional, site}, []string{"site"}, ""},
		"one that was named":          {[]controller{missing, site}, nil, "install its CRD"},
		"none of those * turned on":   {[]controller{optional}, nil, "install its CRD"},
		"asked twice, answered alike": {[]controller{site, site}, []string{"site", "site"}, ""},
	} {
		found, err := served(t.Context(), &rememberedMapper{RESTMapper: mapper}, tc.asked)
		if diff := cmp.Diff(tc.want, names(found)); diff != "" || (err != nil) != (tc.refused != "") {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if err != nil && !strings.Contains(err.Error(), tc.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWebhooksAuto(t *testing.T) {
	pod := Environment(func(name string) (string, bool) {
		return "10.0.0.1", name == "KUBERNETES_SERVICE_HOST"
	})
	outside := Environment(func(string) (string, bool) { return "", false })
	ours, theirs := []controller{{admission: true}}, []controller{{}}
	for _, tc := range []struct {
		mode        WebhookMode
		env         Environment
		controllers []controller
		want        WebhookMode
	}{
		{WebhooksAuto, pod, ours, WebhooksOn},
		{WebhooksAuto, pod, theirs, WebhooksOff}, // their roles know no webhook configurations
		{WebhooksAuto, outside, ours, WebhooksOff},
		{WebhooksOn, outside, theirs, WebhooksOn},
		{WebhooksOff, pod, ours, WebhooksOff},
	} {
		if got := (Options{Webhooks: WebhookOptions{Mode: tc.mode}}).webhookMode(tc.env, tc.controllers); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

func TestFlagsOfHelmOperatorAreTaken(t *testing.T) {
	o := DefaultOptions()
	flags := newFlagSet()
	for _, group := range o.Flags(func(string) (string, bool) { return "", false }) {
		flags.AddFlagSet(group.FlagSet)
	}
	scaffold := []string{"--leader-elect", "--leader-election-id=x", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8443",
		"--metrics-require-rbac", "--metrics-secure",
		"--reconcile-period=2m", "--metrics-addr=:9090", "--enable-leader-election=false", "--suppress-override-values", "--enable-http2",
		"--max-concurrent-reconciles=3"}
	if err := flags.Parse(scaffold); err != nil {
		t.Fatal(err)
	}
	if o.ReconcilePeriod.String() != "2m0s" || o.Serving.MetricsAddress != ":9090" || o.LeaderElection.Enabled ||
		o.Concurrency.For("site") != 3 {
		t.Errorf("got %+v", o)
	}
}

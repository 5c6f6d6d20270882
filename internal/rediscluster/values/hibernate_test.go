// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// A StatefulSet says how many instances are to start again, as long as it asks for none.
func TestHibernatedStatefulSetSaysHowMany(t *testing.T) {
	c, cr := loadChart(t), &v1alpha1.RedisCluster{}
	cr.Name, cr.Namespace = "cache", "default"
	for _, asleep := range []bool{true, false} {
		v := values.Build(cr, v1alpha1.Topology{2, 3, 2}, redisconf.AskedFor(cr, nil), redisconf.TLSFor(cr))
		v["hibernated"] = asleep
		rendered, err := c.Render(v, chart.Release{Name: cr.Name, Namespace: cr.Namespace, Revision: 1, IsInstall: true}, chart.Capabilities{})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range rendered.Objects {
			if object.GetName() != "cache-1" {
				continue
			}
			asks, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas")
			says := object.GetAnnotations()[values.AnnotationHibernated]
			if zero := asks == int64(0) || asks == float64(0); zero != asleep || (says == "3") != asleep || !asleep && says != "" {
				t.Errorf("asleep %t: it asks for %v, and says %q", asleep, asks, says)
			}
		}
	}
}

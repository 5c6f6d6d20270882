// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func TestExternalAccess(t *testing.T) {
	const address = "redis.example.com:7000"
	reached := Outside{Known: true, Address: address, Map: "m"}
	ready := []snapshot.Gateway{{Pod: "g-0", Ready: true, Map: "m"}, {Pod: "g-1", Waiting: "container backup: CrashLoopBackOff"}}
	for name, tt := range map[string]struct {
		gateways  []snapshot.Gateway
		outside   Outside
		situation plan.Situation
		forming   bool
		nodePort  bool
		balancer  *string
		since     time.Time
		status    metav1.ConditionStatus
		reason    string
		message   string
	}{
		"reached": {gateways: ready, outside: reached, status: "True", reason: "Available", message: "connect to " + address},
		"no balancer": {gateways: ready, outside: reached, balancer: ptr.To(""), status: "False", reason: "AddressPending",
			message: "Service c-gateway has no address"},
		"no ports": {nodePort: true, outside: Outside{Known: true}, status: "False", reason: "AddressPending",
			message: "Service c-gateway has no node ports yet"},
		"forming":    {forming: true, outside: reached, status: "False", reason: "NotBegun", message: "when the cluster has formed"},
		"no gateway": {outside: reached, status: "False", reason: "NotRunning", message: "the Deployment has no pod"},
		"it crashes": {gateways: ready[1:], outside: reached, status: "False", reason: "NotRunning",
			message: "pod g-1 is not ready: container backup: CrashLoopBackOff"},
		"withheld": {outside: Outside{Known: true, Address: address, Map: "m", Withheld: "no label"}, status: "False", reason: "Withheld",
			message: "no label"},
		"a change is withheld": {gateways: ready, outside: Outside{Known: true, Address: address, Map: "m", Withheld: "no label"}, status: "True",
			reason: "Available", message: "go on as they were: no label"},
		"refused": {gateways: ready, outside: Outside{Known: true, Map: "m", Refused: "a port is taken"}, status: "False", reason: "Refused",
			message: "a port is taken"},
		"behind": {gateways: []snapshot.Gateway{{Pod: "g-0", Ready: true, Map: "l"}}, outside: reached, since: now.Add(-plan.ServedWithin),
			status: "False", reason: "Behind", message: "gateway g-0: its map"},
		"behind for a moment": {gateways: []snapshot.Gateway{{Pod: "g-0", Ready: true, Map: "l"}}, outside: reached, since: now, status: "True",
			reason: "Available"},
		"some are not known": {gateways: ready, outside: reached, since: now.Add(-time.Hour), status: "True", reason: "Available"},
		"hibernated":         {situation: plan.Hibernated, outside: reached, status: "False", reason: "Hibernated", message: "spec.hibernate"},
	} {
		s := healthy()
		s.Formed = !tt.forming
		s.External = &snapshot.External{Gateways: tt.gateways, Since: tt.since,
			Service: &snapshot.ExternalService{Host: ptr.Deref(tt.balancer, "192.0.2.1")}}
		c := cluster()
		c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalLoadBalancer}
		if tt.nodePort {
			c.Spec.External.Type = v1alpha1.ExternalNodePort
		}
		p := Reconciliation{Snapshot: s, Outside: tt.outside, Decision: plan.Decision{Situation: tt.situation, Step: plan.None{},
			Outside: &snapshot.Outside{Instances: v1alpha1.Topology{2, 2, 2}}}}
		is := Compute(c, p, now)
		got := meta.FindStatusCondition(is.Conditions, v1alpha1.ConditionExternalAccess)
		if got == nil || got.Status != tt.status || got.Reason != tt.reason || !strings.Contains(got.Message, tt.message) {
			t.Errorf("%s: %+v", name, got)
		}
		c.Status = is
		p.Outside = Outside{} // the spec is not valid
		if again := Compute(c, p, now); !cmp.Equal(again.External, is.External) ||
			!cmp.Equal(meta.FindStatusCondition(again.Conditions, v1alpha1.ConditionExternalAccess), got) {
			t.Errorf("%s: what is known of before does not stay: %+v", name, again.External)
		}
		c.Spec.External = nil
		gone := Compute(c, p, now)
		if gone.External != nil || meta.FindStatusCondition(gone.Conditions, v1alpha1.ConditionExternalAccess) != nil {
			t.Errorf("%s: it stays when nobody outside is let in: %+v", name, gone.External)
		}
	}
}

// The status holds whom gateways were told of, whom they serve, and who is leaving.
func TestExternalIsWrittenDown(t *testing.T) {
	s, c := healthy(), cluster()
	s.External = &snapshot.External{Gateways: []snapshot.Gateway{{Pod: "g-0", Ready: true, Map: "m"}}}
	c.Spec.External = &v1alpha1.External{Type: v1alpha1.ExternalLoadBalancer}
	until := now.Add(time.Minute + time.Millisecond)
	out := &snapshot.Outside{Instances: v1alpha1.Topology{2, 2, 2}, Leaving: []snapshot.Leaving{{Shard: 3, Ordinal: 1, Until: until}}}
	is := Compute(c, Reconciliation{Snapshot: s, Outside: Outside{Known: true, Address: "h:7000", Map: "m"},
		Decision: plan.Decision{Step: plan.None{}, Outside: out}}, now)
	want := &v1alpha1.ExternalStatus{Addresses: []string{"h:7000"}, Instances: []int32{2, 2, 2}, Served: []int32{2, 2, 2},
		Leaving: []v1alpha1.ExternalLeaving{{Name: "c-3-1", Until: metav1.NewTime(now.Add(time.Minute).UTC())}}}
	if diff := cmp.Diff(want, is.External); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

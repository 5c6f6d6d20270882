// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package networkpolicy tests what the operator itself may reach.
package networkpolicy

import (
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
)

// The ports of Redis, on which the operator logs in with passwords, are reached at pods of RedisClusters only; what is reached
// everywhere are DNS and the usual ports of API servers.
func TestPasswordsLeaveForInstancesOnly(t *testing.T) {
	text, err := os.ReadFile("operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policy networkingv1.NetworkPolicy
	if err := yaml.UnmarshalStrict(text, &policy); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, rule := range policy.Spec.Egress {
		to := "everything"
		for i, peer := range rule.To {
			if i == 0 {
				to = ""
			}
			to += metav1.FormatLabelSelector(peer.PodSelector) + " in " + metav1.FormatLabelSelector(peer.NamespaceSelector)
		}
		for _, port := range rule.Ports {
			got[port.Port.String()+"/"+string(*port.Protocol)] = to
		}
	}
	instances := v1alpha1.LabelCluster + " in <none>" + v1alpha1.LabelRelay + " in <none>"
	want := map[string]string{strconv.Itoa(int(v1alpha1.PortRedis)) + "/TCP": instances,
		strconv.Itoa(int(v1alpha1.PortRedisTLS)) + "/TCP": instances,
		strconv.Itoa(backupjob.StatusPort) + "/TCP": v1alpha1.LabelArchive + " in <none>" + v1alpha1.LabelGateway +
			" in <none>app.kubernetes.io/managed-by=middleware-operator,app.kubernetes.io/name in (redisbackup,redisrestore) in <none>", "53/TCP": "everything", "53/UDP": "everything",
		"443/TCP": "everything", "6443/TCP": "everything", "8443/TCP": "everything", "16443/TCP": "everything"}
	if diff := cmp.Diff(want, got); diff != "" || len(policy.Spec.PolicyTypes) != 2 {
		t.Errorf("%v (-want +got):\n%s", policy.Spec.PolicyTypes, diff)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"middleware.hc.cn/operator/internal/apply"
)

// newGoneKind names a kind that no API server knows.
func newGoneKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "gone." + group, Version: "v1", Kind: "Gone"}
}

// grant gives a user of a namespace's name a Role, and returns the configuration to act as it.
func grant(t *testing.T, namespace, rules string) *rest.Config {
	t.Helper()
	for _, object := range manifests(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: op, namespace: `+namespace+
		`}, rules: `+rules+`}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: op, namespace: `+namespace+
		`}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: op}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: op-`+namespace+`}]}`) {
		check(t, api.Create(context.Background(), object))
	}
	as := rest.CopyConfig(admin)
	as.Impersonate.UserName = "op-" + namespace
	return as
}

func TestReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		rules   string // of the operator; everything if empty
		given   string // what there is before
		desired string
		reason  string
		final   bool
		says    string
	}{
		"no right to patch": {rules: `[{apiGroups: [""], resources: [configmaps], verbs: [create, get]}]`, desired: config,
			reason: apply.ReasonForbidden, final: true, says: "the operator may not patch ConfigMap "},
		"no right to create": {rules: `[{apiGroups: [""], resources: [configmaps], verbs: [patch, get]}]`, desired: config,
			reason: apply.ReasonForbidden, final: true, says: "the operator may not create ConfigMap "},
		"rights that the operator lacks": {rules: `[{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create, patch, get]}]`,
			desired: `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: web}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`,
			reason:  apply.ReasonForbidden, final: true, says: "the operator may not escalate Role "},
		"a quota": {
			given:   `{apiVersion: v1, kind: ResourceQuota, metadata: {name: quota}, spec: {hard: {count/configmaps: "0"}}, status: {hard: {count/configmaps: "0"}, used: {count/configmaps: "0"}}}`,
			desired: config, reason: apply.ReasonQuotaExceeded, says: "exceeded quota"},
		"a limit range": {given: `{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: PersistentVolumeClaim, max: {storage: 1Gi}}]}}`,
			desired: claim("a", "2Gi"), reason: apply.ReasonRejected, final: true, says: "maximum storage usage"},
		"an unknown kind": {desired: `{apiVersion: gone.` + group + `/v1, kind: Gone, metadata: {name: web}}`,
			reason: apply.ReasonUnknownKind, says: "Gone"},
		"no such namespace": {desired: strings.Replace(config, "name: web", "namespace: nowhere, name: web", 1),
			reason: apply.ReasonNoNamespace, says: "nowhere"},
		"an unknown field is pruned, a wrong type is not": {desired: `{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {text: 1}}`,
			reason: apply.ReasonRejected, final: true, says: "ConfigMap "},
		"two elements of one key": {desired: deployment("", `ports: [{name: a, containerPort: 80}, {name: b, containerPort: 80}]`, ""),
			reason: apply.ReasonRejected, final: true, says: "different elements of one key (containerPort: 80, protocol: TCP)"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			as := admin
			if tc.rules != "" {
				as = grant(t, namespace, tc.rules)
			}
			if tc.given != "" {
				given := manifests(t, tc.given)[0]
				given.SetNamespace(namespace)
				status := given.DeepCopy()
				check(t, api.Create(context.Background(), given))
				if status.Object["status"] != nil {
					given.Object["status"] = status.Object["status"]
					check(t, api.Status().Update(context.Background(), given))
				}
			}
			owner := newOwner(t, "Web", namespace, "web")
			var err error
			eventually(t, "the refusal", func() bool { // admission and authorization have caches of their own
				if _, err = newOperator(t, as).Apply(context.Background(), owner, manifests(t, tc.desired)); err == nil {
					check(t, api.Delete(context.Background(), read(t, namespace, tc.desired)))
				}
				reason, _ := apply.Reason(err)
				return reason == tc.reason && strings.Contains(err.Error(), tc.says) || err != nil && tc.rules == ""
			})
			if reason, final := apply.Reason(err); reason != tc.reason || final != tc.final || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %s (final: %v): %v", reason, final, err)
			}
		})
	}
}

func TestReasonInANamespaceThatIsDeleted(t *testing.T) {
	namespace := newNamespace(t)
	owner, op := newOwner(t, "Web", namespace, "web"), newOperator(t, admin)
	check(t, api.Delete(context.Background(), manifests(t, `{apiVersion: v1, kind: Namespace, metadata: {name: `+namespace+`}}`)[0]))
	_, err := op.Apply(context.Background(), owner, manifests(t, config))
	if reason, final := apply.Reason(err); reason != apply.ReasonNamespaceDeleted || final {
		t.Errorf("got %s (final: %v): %v", reason, final, err)
	}
}

func TestPruneWithoutTheRight(t *testing.T) {
	namespace := newNamespace(t)
	owner := newOwner(t, "Web", namespace, "web")
	change := newOperator(t, admin).mustApply(t, owner, config)
	op := newOperator(t, grant(t, namespace, `[{apiGroups: [""], resources: [configmaps], verbs: [get]}]`))
	eventually(t, "the refusal", func() bool {
		_, err := op.Prune(context.Background(), owner, []apply.Ref{change.Ref}, nil)
		reason, final := apply.Reason(err)
		return reason == apply.ReasonForbidden && final && strings.HasPrefix(err.Error(), "the operator may not delete ConfigMap ")
	})
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/release"
)

var (
	resourceVerbs = []string{"list", "watch", "patch"}
	childVerbs    = []string{"get", "list", "watch", "create", "patch", "delete"}
	crdVerbs      = []string{"get", "create"}
	eventVerbs    = []string{"create", "patch"}
	rbacKinds     = []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
	rbacGroup     = rbacv1.GroupName
)

// Rules are the rights the operator's service account needs for the kinds of the report: resources, their status and finalizers,
// the kinds of their charts, events. Nothing is a wildcard.
func (r *Report) Rules() []rbacv1.PolicyRule {
	own := map[string][]string{}
	children := map[string][]string{}
	var crds, hooks, workloads bool
	for _, k := range r.Kinds {
		crds, hooks = crds || k.crds, hooks || k.hooks
		own[k.gvk.Group] = append(own[k.gvk.Group], k.resource.resource)
		for gk, info := range k.kinds {
			children[gk.Group] = append(children[gk.Group], info.resource)
			workloads = workloads || release.RunsPods(gk)
		}
	}
	var rules []rbacv1.PolicyRule
	for _, group := range slices.Sorted(maps.Keys(own)) {
		resources := distinct(own[group])
		var finalizers, status []string
		for _, resource := range resources {
			finalizers, status = append(finalizers, resource+"/finalizers"), append(status, resource+"/status")
		}
		// Children may block the deletion of their owner only for whoever may update its finalizers.
		rules = append(rules, rule(group, resources, resourceVerbs), rule(group, status, []string{"patch"}),
			rule(group, finalizers, []string{"update"}))
	}
	for _, group := range slices.Sorted(maps.Keys(children)) {
		rules = append(rules, rule(group, distinct(children[group]), childVerbs))
	}
	if workloads { // why their pods do not run
		rules = append(rules, rule("", []string{"events", "pods"}, []string{"list"}))
	}
	if hooks { // whether the namespace ends, so that no hook can run
		rules = append(rules, rule("", []string{"namespaces"}, []string{"get"}))
	}
	if crds {
		rules = append(rules, rule(crdKind.Group, []string{"customresourcedefinitions"}, crdVerbs))
	}
	return append(rules, rbacv1.PolicyRule{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: eventVerbs})
}

func rule(group string, resources, verbs []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

func distinct(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// ClusterRole is Rules as a ClusterRole of a name, in YAML, with what they cannot tell in comments.
func (r *Report) ClusterRole(name string) ([]byte, error) {
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "middleware-operator"}},
		Rules:      r.Rules(),
	}
	encoded, err := yaml.Marshal(role)
	if err != nil {
		return nil, fmt.Errorf("encode the ClusterRole: %w", err)
	}
	var comments strings.Builder
	comments.WriteString("# What the operator needs for the charts of the watches file. Helm's history needs get, list, create, update\n" +
		"# and delete of secrets besides, which is given by namespace.\n")
	for _, k := range r.Kinds {
		if grants := k.grants(); grants != "" {
			fmt.Fprintf(&comments,
				"# %s: its chart makes %s. Kubernetes lets the operator grant only what it has itself: add the rights that they grant.\n", k.Kind,
				grants)
		}
		if k.lookup {
			fmt.Fprintf(&comments, "# %s: its chart calls lookup. Add get and list of what it looks up.\n", k.Kind)
		}
	}
	return append([]byte(comments.String()), encoded...), nil
}

// grants names the kinds of the chart that give rights to someone.
func (k *KindReport) grants() string {
	var kinds []schema.GroupKind
	for gk := range k.kinds {
		if gk.Group == rbacGroup && slices.Contains(rbacKinds, gk.Kind) {
			kinds = append(kinds, gk)
		}
	}
	var names []string
	for _, gk := range sortedKinds(kinds) {
		names = append(names, gk.Kind)
	}
	return strings.Join(names, ", ")
}

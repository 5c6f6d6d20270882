// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

const (
	managerRole     = "ClusterRole middleware-operator-manager"
	clusterRole     = "ClusterRole middleware-operator-cluster"
	certificateRole = "ClusterRole middleware-operator-certificate"
	namespaceRole   = "ClusterRole middleware-operator-namespace"
	ownCertificate  = "Role middleware-operator-certificate"
	ownRole         = "Role middleware-operator"

	applying = "internal/apply/"
	children = "apps/deployments apps/statefulsets batch/jobs batch/cronjobs /services /configmaps networking.k8s.io/ingresses " +
		"networking.k8s.io/networkpolicies gateway.networking.k8s.io/httproutes cert-manager.io/certificates autoscaling/horizontalpodautoscalers policy/poddisruptionbudgets"
)

// callers are what the operator's roles grant, and the code that asks for it: verbs on resources (group/resource), and a piece of
// code that stands in a file. What is read from a cache needs list and watch, and no get. Server-side apply needs patch, and
// create where the object does not exist.
var callers = []struct{ role, resources, verbs, file, code string }{
	{managerRole, "redis.middleware.hc.cn/redisclusters", "list watch", "internal/rediscluster/setup.go",
		"client.Object(&v1alpha1.RedisCluster{})"},
	{managerRole, "redis.middleware.hc.cn/redisclusters", "patch", "internal/rediscluster/act/delete.go",
		"a.Client.Patch(ctx, changed, patch)"},
	{managerRole, "redis.middleware.hc.cn/redisclusters", "create", "internal/redisbackup/schedule/reconciler.go",
		"r.live.Create(ctx, throwaway)"},
	{managerRole, "redis.middleware.hc.cn/redisclusters", "delete", "internal/redisbackup/schedule/reconciler.go", "r.live.Delete(ctx, c,"},
	{managerRole, "redis.middleware.hc.cn/redisbackupschedules/finalizers", "update", "internal/redisbackup/schedule/throwaway.go",
		"metav1.NewControllerRef(s, kind)"},
	{managerRole, "redis.middleware.hc.cn/redisclusters/status", "patch", "internal/rediscluster/reconciler.go", "r.client.Status().Patch("},
	{managerRole, "redis.middleware.hc.cn/redisbackups", "list watch", "internal/redisbackup/setup.go",
		"client.Object(backup), metrics.Enqueue("},
	{managerRole, "redis.middleware.hc.cn/redisbackups", "patch", "internal/redisbackup/reconciler.go", "r.live.Patch(ctx, changed, patch)"},
	{managerRole, "redis.middleware.hc.cn/redisbackups", "create", "internal/redisbackup/schedule/reconciler.go",
		"r.live.Create(ctx, backup)"},
	{managerRole, "redis.middleware.hc.cn/redisbackups", "delete", "internal/redisbackup/schedule/reconciler.go", "r.live.Delete(ctx, b,"},
	{managerRole, "redis.middleware.hc.cn/redisbackupschedules", "list watch", "internal/redisbackup/schedule/setup.go",
		"client.Object(schedule), metrics.Enqueue("},
	{managerRole, "redis.middleware.hc.cn/redisbackupschedules/status", "patch", "internal/redisbackup/schedule/reconciler.go",
		"r.live.Status().Patch("},
	{managerRole, "redis.middleware.hc.cn/redisbackups/status", "patch", "internal/redisbackup/reconciler.go", "r.live.Status().Patch("},
	{managerRole, "redis.middleware.hc.cn/redisbackups/finalizers", "update", "internal/redisbackup/job.go",
		"metav1.NewControllerRef(backup, kind)"},
	{managerRole, "controller.controller.daocloud.io/applications", "list watch", "internal/application/add.go",
		"client.Object(application), metrics.Enqueue("},
	{managerRole, "controller.controller.daocloud.io/applications/status", "patch", "internal/application/reconciler.go",
		"r.writer.Status().Patch("},
	{managerRole, "appcontroller.middleware.hc.cn/apps stable.example.com/crontabs k8s.io/foobars", "list watch",
		"internal/release/add.go", "source.Kind(mgr.GetCache(), client.Object(kindOf(w.GroupVersionKind))"},
	{managerRole, "appcontroller.middleware.hc.cn/apps stable.example.com/crontabs k8s.io/foobars", "patch",
		"internal/release/report.go", "r.live.Patch(ctx, cr,"}, // finalizers
	{managerRole, "appcontroller.middleware.hc.cn/apps/status stable.example.com/crontabs/status k8s.io/foobars/status", "patch",
		"internal/release/report.go", "w.client.Status().Patch("},
	// Asked for by the admission plugin OwnerReferencesPermissionEnforcement, not by a request.
	{managerRole, "redis.middleware.hc.cn/redisclusters/finalizers controller.controller.daocloud.io/applications/finalizers " +
		"appcontroller.middleware.hc.cn/apps/finalizers stable.example.com/crontabs/finalizers k8s.io/foobars/finalizers", "update",
		applying + "ownership.go", "BlockOwnerDeletion: ptr.To(true)"},

	{managerRole, children, "list watch", "internal/manager/caches.go", "cache.New(mgr.GetConfig()"},
	{managerRole, children, "get", applying + "apply.go", "from.Get(ctx,"},
	{managerRole, children, "create patch", applying + "apply.go", "a.client.Apply(ctx,"},
	{managerRole, children, "delete", applying + "prune.go", "a.client.Delete(ctx, live,"},
	{managerRole, "/configmaps", "get", "internal/rediscluster/observe/config.go", "reads.Get("},

	{managerRole, "/pods /persistentvolumeclaims", "list watch", "internal/rediscluster/observe/observe.go", "o.Children.List(ctx, &pods,"},
	{managerRole, "/pods /persistentvolumeclaims", "delete", "internal/rediscluster/act/lost.go", "a.Client.Delete(ctx, object,"},
	{managerRole, "cert-manager.io/certificates", "get", "internal/rediscluster/observe/issued.go", "o.Secrets.Get("},
	{managerRole, "cert-manager.io/certificates", "delete", "internal/rediscluster/act/certificate.go", "a.Client.Delete(ctx, certificate,"},
	{managerRole, "redis.middleware.hc.cn/redisclusters", "list", "internal/rediscluster/act/certificate.go", "a.Client.List(ctx, &clusters,"},
	{managerRole, "apps/replicasets", "get", "internal/rediscluster/observe/deployed.go", "o.Secrets.Get("},
	{managerRole, "/pods/status", "patch", "internal/rediscluster/act/gate.go", "a.Client.Status().Patch("},
	{managerRole, "/pods/eviction", "create", "internal/rediscluster/act/restart.go", `SubResource("eviction").Create(`},
	{managerRole, "/persistentvolumeclaims", "get", "internal/rediscluster/act/storage.go", "a.Client.Get("},
	{managerRole, "/persistentvolumeclaims", "create", "internal/rediscluster/act/restore.go", "a.Client.Create(ctx, claim)"},
	{managerRole, "/persistentvolumeclaims", "patch", "internal/rediscluster/act/storage.go", "a.Client.Patch("},
	{managerRole, "/events", "list", "internal/release/diagnose.go", `"involvedObject.uid"`},
	// A series of the same Event is patched.
	{managerRole, "events.k8s.io/events", "create patch", "internal/rediscluster/setup.go", "mgr.GetEventRecorder("},

	{clusterRole, "authentication.k8s.io/tokenreviews authorization.k8s.io/subjectaccessreviews", "create",
		"internal/manager/manager.go", "filters.WithAuthenticationAndAuthorization"},

	{certificateRole,
		"admissionregistration.k8s.io/validatingwebhookconfigurations admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"list watch", "internal/webhook/certs/keeper.go", "watch(c, own.GetCache(), &admissionregistrationv1.MutatingWebhookConfiguration{}"},
	{certificateRole,
		"admissionregistration.k8s.io/validatingwebhookconfigurations admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"get", "internal/webhook/certs/keeper.go", "k.client.Get(ctx, types.NamespacedName{Name: k.Configuration}"},
	{certificateRole,
		"admissionregistration.k8s.io/validatingwebhookconfigurations admissionregistration.k8s.io/mutatingwebhookconfigurations",
		"update", "internal/webhook/certs/keeper.go", "k.client.Update(ctx, object)"},
	{ownCertificate, "/secrets", "list watch", "internal/webhook/certs/keeper.go", "watch(c, own.GetCache(), &corev1.Secret{}"},
	{ownCertificate, "/secrets", "get", "internal/webhook/certs/keeper.go", "k.client.Get(ctx, k.Secret,"},
	{ownCertificate, "/secrets", "create", "internal/webhook/certs/keeper.go", "k.client.Create(ctx, secret)"},
	{ownCertificate, "/secrets", "update", "internal/webhook/certs/keeper.go", "k.client.Update(ctx, secret)"},

	// The lock of client-go gets, creates and updates; it tells who leads in an Event of the older kind.
	{ownRole, "coordination.k8s.io/leases", "get create update", "internal/manager/lease.go", "resourcelock.NewWithLabels("},
	{ownRole, "/pods", "get", "internal/manager/controllers.go", "mgr.GetAPIReader().Get("},
	{ownRole, "/events", "create", "internal/manager/lease.go", "StartRecordingToSink("},

	{namespaceRole, "/secrets", "get", "internal/rediscluster/access/reader.go", "r.Client.Get("},
	{namespaceRole, "/secrets", "list", "internal/rediscluster/byname/watches.go", "from.List(ctx, options)"},
	{namespaceRole, "/secrets", "watch", "internal/rediscluster/byname/watches.go", "from.Watch(ctx, options)"},
	{namespaceRole, "/serviceaccounts", "get", "internal/rediscluster/access/usable.go", "r.Client.Get("},
	{namespaceRole, "/secrets", "create", "internal/rediscluster/act/auth.go", "a.Client.Create(ctx, secret)"},
	{namespaceRole, "/secrets", "update", "internal/rediscluster/act/auth.go", "a.Client.Update(ctx, secret)"},
	{namespaceRole, "/secrets", "patch", "internal/rediscluster/act/delete.go", "a.Client.Patch(ctx, child, patch)"}, // without its owner
	{namespaceRole, "/secrets", "delete", "internal/release/history.go", "r.live.Delete(ctx, secret,"},
}

// Whatever the operator's roles grant is asked for by the code that callers names, and nothing that it asks for is missing. That
// nothing is called which is not granted is what test/apiserver shows: there the operator has these roles and no others.
func TestEveryRightHasItsCaller(t *testing.T) {
	const repository = "../.."
	want := map[string]bool{}
	for _, c := range callers {
		text, err := os.ReadFile(filepath.Join(repository, c.file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), c.code) {
			t.Errorf("%s has no %q, for which %s grants %s on %s: correct the row, or take the right away", c.file, c.code, c.role, c.verbs,
				c.resources)
		}
		for resource := range strings.FieldsSeq(c.resources) {
			for verb := range strings.FieldsSeq(c.verbs) {
				want[fmt.Sprintf("%s: %s %s", c.role, verb, resource)] = true
			}
		}
	}
	m := load(t)
	bound := map[string]bool{}
	for _, b := range m.clusterRoleBindings {
		bound["ClusterRole "+b.RoleRef.Name] = true
	}
	for _, b := range m.roleBindings {
		bound[b.RoleRef.Kind+" "+b.RoleRef.Name] = true
	}
	got := map[string]bool{}
	for role, rules := range m.rules() {
		if bound[role] { // the others are for people and scrapers
			maps.Copy(got, rights(role, rules))
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("called (-) and granted (+) differ:\n%s", diff)
	}
}

// rights are what rules grant, one by one.
func rights(role string, rules []rbacv1.PolicyRule) map[string]bool {
	all := map[string]bool{}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all[fmt.Sprintf("%s: %s %s/%s", role, verb, group, resource)] = true
				}
			}
		}
	}
	return all
}

// Each kind of child that may be made is made by a chart that ships.
func TestEveryKindOfChildIsMade(t *testing.T) {
	files, err := filepath.Glob("../../helm-charts/*/templates/*")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if kind, ok := strings.CutPrefix(strings.TrimSpace(line), "kind: "); ok {
				made[strings.ToLower(kind)] = true
			}
		}
	}
	for resource := range strings.FieldsSeq(children) {
		_, plural, _ := strings.Cut(resource, "/")
		if !made[strings.TrimSuffix(plural, "s")] && !made[strings.TrimSuffix(plural, "es")] && !made[strings.TrimSuffix(plural, "ies")+"y"] {
			t.Errorf("no chart makes %s", resource)
		}
	}
}

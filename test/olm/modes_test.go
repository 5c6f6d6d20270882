// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	crontabv1beta1 "middleware.hc.cn/operator/api/crontab/v1beta1"
	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// The operator is installed from the catalog in each mode that the bundle declares. All five kinds become Ready under the
// rights that the bundle gives; what is outside of the mode's namespaces is left alone; and an uninstallation leaves nothing.
func TestInstallModes(t *testing.T) {
	serve(t, given.current)
	for _, mode := range []struct {
		name string
		// operator is where the operator is installed, targets are the namespaces that it works in; none means all.
		operator string
		targets  []string
		// serves are namespaces in which it is to work, ignores one in which it is not.
		serves  []string
		ignores string
	}{
		{"AllNamespaces", "mode-all", nil, []string{"mode-all-team"}, ""},
		{"OwnNamespace", "mode-own", []string{"mode-own"}, []string{"mode-own"}, "mode-own-other"},
		{"SingleNamespace", "mode-single", []string{"mode-single-team"}, []string{"mode-single-team"}, "mode-single"},
		{"MultiNamespace", "mode-multi", []string{"mode-multi-a", "mode-multi-b"}, []string{"mode-multi-a", "mode-multi-b"}, "mode-multi"},
	} {
		t.Run(mode.name, func(t *testing.T) {
			made := map[string]bool{}
			for _, namespace := range append([]string{mode.operator, mode.ignores}, mode.serves...) {
				if namespace != "" && !made[namespace] {
					made[namespace] = true
					namespaceOf(t, namespace)
				}
			}
			group(t, mode.operator, mode.targets...)
			installed := subscribe(t, mode.operator)
			installed.succeeded(given.current)
			wantRights(t, mode.operator, mode.targets, mode.ignores)
			var objects []client.Object
			for i, namespace := range mode.serves {
				installed.enable(namespace)
				objects = append(objects, applySamples(t, namespace, i == 0)...)
			}
			if mode.ignores != "" {
				ignored := applySample(t, mode.ignores, "k8s_v1_foobar.yaml", &foobarv1.FooBar{}).(*foobarv1.FooBar)
				defer func() { // by now it had all the time of the others
					if err := live.Get(t, ignored); err != nil || len(ignored.Status.Conditions) > 0 {
						t.Errorf("a FooBar outside of the operator's namespaces has conditions %v (%v)", ignored.Status.Conditions, err)
					}
				}()
			}
			for _, o := range objects {
				live.Ready(t, o)
			}
			for _, o := range objects {
				if err := live.Kube.Delete(t.Context(), o); err != nil {
					t.Error(err)
				}
			}
			for _, o := range objects {
				gone(t, o)
			}
			installed.remove(given.current)
		})
	}
}

// applySamples applies a sample of each kind; without redis the four quick ones.
func applySamples(t *testing.T, namespace string, redis bool) []client.Object {
	t.Helper()
	objects := []client.Object{
		applySample(t, namespace, "appcontroller_v1alpha1_app.yaml", &appv1alpha1.App{}),
		applySample(t, namespace, "controller_v1_application.yaml", &applicationv1.Application{}),
		applySample(t, namespace, "stable_v1beta1_crontab.yaml", &crontabv1beta1.CronTab{}),
		applySample(t, namespace, "k8s_v1_foobar.yaml", &foobarv1.FooBar{}),
	}
	if redis {
		objects = append(objects, applySample(t, namespace, "redis_v1alpha1_rediscluster_full.yaml", &redisv1alpha1.RedisCluster{}))
	}
	return objects
}

func applySample(t *testing.T, namespace, file string, into client.Object) client.Object {
	t.Helper()
	live.Sample(t, file, into)
	into.SetNamespace(namespace)
	live.Create(t, into)
	return into
}

// wantRights asks the API server what the operator may do: it must not read Secrets that nobody gave it, and in a mode of few
// namespaces it may do nothing in others.
func wantRights(t *testing.T, operator string, targets []string, outside string) {
	t.Helper()
	user := "system:serviceaccount:" + operator + ":middleware-operator"
	may := func(verb, group, resource, namespace string) bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace}}}
		live.Create(t, review)
		return review.Status.Allowed
	}
	for _, verb := range []string{"get", "list", "create", "update", "delete"} {
		if may(verb, "", "secrets", "") {
			t.Errorf("the operator may %s Secrets of the whole cluster", verb)
		}
	}
	if everywhere := may("create", "apps", "statefulsets", ""); everywhere != (len(targets) == 0) {
		t.Errorf("the operator may create StatefulSets in all namespaces: %v", everywhere)
	}
	// OLM grants what the bundle asks for in the operator's own namespace too.
	if outside != "" && outside != operator && may("create", "apps", "statefulsets", outside) {
		t.Errorf("the operator may create StatefulSets in %s", outside)
	}
}

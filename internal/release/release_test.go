// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/watches"
)

var (
	now        = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	deployment = apply.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Namespace: "shop",
		Name: "web", UID: "u"}
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestReadiness(t *testing.T) {
	const route = "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {generation: 2, namespace: shop}, spec: {parentRefs: [{name: g}]}, status: {parents: "
	const taken = "conditions: [{type: Accepted, status: 'True', observedGeneration: 2}, {type: ResolvedRefs, status: 'True', observedGeneration: 2}]"
	const deployment, statefulSet = "{apiVersion: apps/v1, kind: Deployment, ", "{apiVersion: apps/v1, kind: StatefulSet, "
	for _, tc := range []struct {
		name, object string
		want         readiness
	}{
		{"a new Deployment", deployment + "metadata: {generation: 1}}", waiting("is new")},
		{"a Deployment nobody looked at", deployment + "metadata: {generation: 2}, status: {observedGeneration: 1}}",
			waiting("has not been looked at by its controller since it changed")},
		{"a Deployment that starts",
			deployment +
				"metadata: {generation: 1}, spec: {replicas: 3}, status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: 1}}", waiting("1 of 3 pods are available")},
		{"a Deployment that rolls",
			deployment + "spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 3, updatedReplicas: 2, availableReplicas: 2}}",
			waiting("1 pods of a former version still run")},
		{"a Deployment of none", deployment + "spec: {replicas: 0}, status: {observedGeneration: 1}}", isReady},
		{"a Deployment past its deadline",
			deployment +
				"status: {observedGeneration: 1, conditions: [{type: Progressing, status: 'False', reason: ProgressDeadlineExceeded, message: it took too long}]}}", broken("does not come up: it took too long")},
		{"a Deployment over quota",
			deployment + "status: {observedGeneration: 1, conditions: [{type: ReplicaFailure, status: 'True', message: exceeded quota}]}}",
			broken("cannot make pods: exceeded quota")},
		{"a StatefulSet that starts", statefulSet + "spec: {replicas: 2}, status: {observedGeneration: 1, readyReplicas: 1}}",
			waiting("1 of 2 pods are ready")},
		{"a StatefulSet that waits for a person",
			statefulSet + "spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {readyReplicas: 2, updatedReplicas: 0}}", isReady},
		{"a StatefulSet that rolls", statefulSet + "spec: {replicas: 2}, status: {readyReplicas: 2, updatedReplicas: 1}}",
			waiting("1 of 2 pods are of the current version")},
		{"a DaemonSet",
			"{apiVersion: apps/v1, kind: DaemonSet, status: {desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 2}}",
			waiting("2 of 3 pods are available")},
		{"a Job that runs", "{apiVersion: batch/v1, kind: Job, spec: {completions: 2}, status: {succeeded: 1}}",
			waiting("is running, 1 of 2 pods succeeded")},
		{"a Job that failed", "{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: 'True', message: backoff limit}]}}",
			broken("failed: backoff limit")},
		{"a Job that completed", "{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: 'True'}]}}", isReady},
		{"a CronJob", "{apiVersion: batch/v1, kind: CronJob}", isReady},
		{"a Service", "{apiVersion: v1, kind: Service, spec: {type: ClusterIP}}", isReady},
		{"a balancer without an address", "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}}", waiting("has no load balancer address")},
		{"a claim", "{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}", waiting("is not bound to a volume")},
		{"an autoscaler without metrics",
			"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, status: {conditions: [{type: ScalingActive, status: 'False'}, {type: AbleToScale, status: 'True'}]}}", isReady},
		{"a route nobody answered", route + "[]}}", waiting("has no answer from Gateway shop/g: is it there, and does a controller run it?")},
		{"a route that another Gateway took", route + "[{parentRef: {name: g, namespace: infra}, " + taken + "}]}}",
			waiting("has no answer from Gateway shop/g: is it there, and does a controller run it?")},
		{"a route that was taken", route + "[{parentRef: {name: g, namespace: shop, kind: Gateway}, " + taken + "}]}}", isReady},
		{"a route that one of two controllers took",
			route + "[{parentRef: {name: g}, conditions: [{type: Accepted, status: 'False'}]}, {parentRef: {name: g}, " + taken + "}]}}", isReady},
		{"a route that changed since",
			route + "[{parentRef: {name: g}, conditions: [{type: Accepted, status: 'True', observedGeneration: 1}]}]}}",
			waiting("has no answer from Gateway shop/g since it changed")},
		{"a route without its Services",
			route + "[{parentRef: {name: g}, conditions: [{type: Accepted, status: 'True'}, {type: ResolvedRefs, status: 'False', reason: BackendNotFound, message: no web}]}]}}",
			waiting("is not accepted by Gateway shop/g: BackendNotFound: no web")},
		{"a route whose status makes no sense", route + "[7, {parentRef: 7}]}}",
			waiting("has no answer from Gateway shop/g: is it there, and does a controller run it?")},
		{"a ConfigMap", "{apiVersion: v1, kind: ConfigMap}", isReady},
		{"another kind that is not ready",
			"{apiVersion: a/v1, kind: B, status: {conditions: [{type: Ready, status: 'False', reason: Broken, message: no disk}]}}",
			waiting("Ready is False: Broken no disk")},
		{"another kind that gave up",
			"{apiVersion: a/v1, kind: B, status: {conditions: [{type: Stalled, status: 'True', reason: Bad, message: no disk}]}}",
			broken("Bad: no disk")},
		{"another kind without conditions", "{apiVersion: a/v1, kind: B}", isReady},
		{"a child that goes", "{apiVersion: v1, kind: Service, metadata: {deletionTimestamp: '2026-11-21T10:00:00Z'}}",
			waiting("is being deleted")},
	} {
		if got := readinessOf(parse(t, tc.object)); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
	}
	if got := readinessOf(nil); got.progress != inProgress {
		t.Errorf("a child that is not visible is not ready: %+v", got)
	}
}

func TestStatusKeepsWhatOthersWrote(t *testing.T) {
	cr := parse(t, `{apiVersion: a/v1, kind: B, metadata: {name: web, namespace: shop, generation: 2}, status: {theirs: 1, old: x,
		conditions: [{type: Theirs, status: 'True', reason: R, message: m, lastTransitionTime: '2026-01-01T00:00:00Z'}]}}`)
	pods := parse(t,
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 1}}")
	done := effect{step: Nothing{}, deployed: Deployed{Name: "web", Revision: 2, Digest: "d"},
		inventory: []apply.Known{{Ref: deployment, Fields: "f"}},
		children:  []Child{{Ref: deployment, Object: pods}}}
	more := extras{fields: map[string]any{"url": "http://web", "old": nil, "inventory": "forged"},
		conditions: []metav1.Condition{{Type: "Complete", Status: metav1.ConditionFalse, Reason: "Running"}}}
	status, err := computeStatus(cr, done, more, 2, now)
	if err != nil {
		t.Fatal(err)
	}
	list := conditions.Read(&unstructured.Unstructured{Object: map[string]any{"status": status}})
	delete(status, "conditions")
	want := map[string]any{"theirs": int64(1), "url": "http://web", "observedGeneration": int64(2),
		"deployedRelease": map[string]any{"name": "web", "revision": int64(2), "digest": "d"},
		"inventory": []any{
			map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "u", "fields": "f"}}}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
	ready := meta.FindStatusCondition(list, "Ready")
	if ready == nil || ready.Status != metav1.ConditionFalse || ready.Message != "Deployment web 1 of 2 pods are available" {
		t.Errorf("Ready names the child and why: %+v", ready)
	}
	if meta.FindStatusCondition(list, "Theirs") == nil || meta.FindStatusCondition(list, "Complete") == nil ||
		!meta.IsStatusConditionTrue(list, "Deployed") {
		t.Errorf("conditions of others and of the kind are there: %+v", list)
	}
	if cr.Object["status"].(map[string]any)["old"] != "x" {
		t.Error("the resource that was passed must not change")
	}
	cr.Object["status"] = status
	if err := conditions.Write(cr, list); err != nil {
		t.Fatal(err)
	}
	again, err := computeStatus(cr, done, more, 2, now.Add(time.Hour))
	if diff := cmp.Diff(cr.Object["status"], any(again)); err != nil || diff != "" {
		t.Errorf("nothing new gives the same status: %v %s", err, diff)
	}
}

func TestClassify(t *testing.T) {
	kind := schema.GroupKind{Kind: "Service"}
	for _, tc := range []struct {
		err    error
		reason string
		final  bool
	}{
		{&chart.Error{Stage: chart.StageValues, Err: errors.New("x")}, ReasonRenderFailed, true},
		{errors.Join(&apply.NotOursError{}), ReasonNotOurs, true},
		{&apply.ImmutableError{Err: errors.New("x")}, ReasonImmutable, true},
		{apierrors.NewInvalid(kind, "web", nil), ReasonRejected, true},
		{apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("exceeded quota")), apply.ReasonQuotaExceeded, false},
		{apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("denied by policy")), ReasonRejected, true},
		{apierrors.NewForbidden(schema.GroupResource{}, "web", errors.New("create not allowed while custom resource definition is terminating")),
			apply.ReasonUnknownKind, false},
		{errors.New("connection refused"), ReasonReconcileError, false},
	} {
		if got := classify(tc.err); got.reason != tc.reason || got.final != tc.final {
			t.Errorf("%v: got %+v", tc.err, got)
		}
	}
	if classify(nil) != nil {
		t.Error("no error is no failure")
	}
}

func TestInventoryBelievesOnlyWhereTheWatchLets(t *testing.T) {
	cr := parse(t, `{apiVersion: a/v1, kind: B, metadata: {name: web, namespace: shop}, status: {inventory: [
		{group: apps, version: v1, kind: Deployment, namespace: shop, name: web, uid: u},
		{version: v1, kind: Secret, namespace: kube-system, name: root}, {version: v1, kind: Node, name: node-1}, nonsense]}}`)
	for _, tc := range []struct {
		allow watches.Allow
		want  []string
	}{
		{watches.Allow{}, []string{"Deployment shop/web"}},
		{watches.Allow{ClusterScoped: true}, []string{"Deployment shop/web", "Node node-1"}},
		{watches.Allow{Namespaces: []string{"kube-system"}}, []string{"Deployment shop/web", "Secret kube-system/root"}},
		{watches.Allow{Namespaces: []string{"*"}, ClusterScoped: true},
			[]string{"Deployment shop/web", "Secret kube-system/root", "Node node-1"}},
	} {
		var got []string
		for _, known := range readInventory(cr, tc.allow) {
			got = append(got, known.String())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%+v: %s", tc.allow, diff)
		}
	}
	if got := firstOf([]string{"a.", "b", "c"}); !strings.HasPrefix(got, "a (and 2 more") {
		t.Errorf("got %q", got)
	}
}

func TestLookupsThatSayTheSameNeedNoRendering(t *testing.T) {
	answers := map[string]map[string]any{"a": {"data": "1"}}
	lookup := func(_, _, _, name string) (map[string]any, error) {
		if name == "broken" {
			return nil, errors.New("connection refused")
		}
		return answers[name], nil
	}
	var l looked
	noting := l.note(lookup)
	for _, name := range []string{"a", "b", "broken"} {
		// what failed is not noted: its rendering failed too
		if _, err := noting("v1", "Secret", "shop", name); (err != nil) != (name == "broken") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if same, err := l.same(lookup); !same || err != nil {
		t.Errorf("the same answers: %v, %v", same, err)
	}
	answers["b"] = map[string]any{"data": "2"}
	if same, _ := l.same(lookup); same {
		t.Error("an object that came is another answer")
	}
	if same, err := l.same(func(_, _, _, _ string) (map[string]any, error) { return nil, errAway }); same || !errors.Is(err, errAway) {
		t.Errorf("no answer is not the same: %t, %v", same, err)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// threeObjects is what most charts consist of. The Service is headless: the API server has 254 addresses for the others.
const threeObjects = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: %[1]s}}
---
{apiVersion: v1, kind: Service, metadata: {name: %[1]s}, spec: {clusterIP: None, selector: {app: %[1]s}, ports: [{name: http, port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: 1, selector: {matchLabels: {app: %[1]s}},
  template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: web, image: "web:1"}]}}}}`

// BenchmarkInstall makes the three objects of a new owner: one after another, as Apply does, or at the same time; by one
// worker, or by four, as a busy operator has.
//
//	KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/apply/ -run '^$' -bench Install -benchtime 200x
func BenchmarkInstall(b *testing.B) {
	for _, workers := range []int{1, 4} {
		for name, atOnce := range map[string]bool{"one after another": false, "at the same time": true} {
			b.Run(fmt.Sprintf("%d workers/%s", workers, name), func(b *testing.B) {
				namespace, op := newNamespace(b), newOperator(b, admin)
				owners := make([]*unstructured.Unstructured, b.N)
				for i := range owners {
					owners[i] = newOwner(b, "Web", namespace, fmt.Sprintf("web-%d", i))
				}
				b.ResetTimer()
				group := errgroup.Group{}
				group.SetLimit(workers)
				for _, owner := range owners {
					group.Go(func() error { return install(b, op, owner, atOnce) })
				}
				check(b, group.Wait())
				b.ReportMetric(float64(op.requests.Load())/float64(b.N), "requests/op")
			})
		}
	}
}

func install(b *testing.B, op operator, owner *unstructured.Unstructured, atOnce bool) error {
	objects := manifests(b, fmt.Sprintf(threeObjects, owner.GetName()))
	if !atOnce {
		_, err := op.Apply(context.Background(), owner, objects)
		return err
	}
	group := errgroup.Group{}
	for i := range objects {
		group.Go(func() error {
			_, err := op.Apply(context.Background(), owner, objects[i:i+1])
			return err
		})
	}
	return group.Wait()
}

// BenchmarkIdle compares three children with the cache: what every reconciliation costs that finds nothing to do.
func BenchmarkIdle(b *testing.B) {
	namespace, op := newNamespace(b), newOperator(b, admin)
	owner := newOwner(b, "Web", namespace, "web")
	check(b, install(b, op, owner, false))
	shown := frozenCache{}
	for _, object := range manifests(b, fmt.Sprintf(threeObjects, "web")) {
		shown[object.GetKind()] =
			read(b, namespace, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: web}}`, object.GetAPIVersion(), object.GetKind()))
	}
	idle := newOperatorWith(b, admin, shown)
	_, err := idle.Apply(context.Background(), owner, manifests(b, fmt.Sprintf(threeObjects, "web")))
	check(b, err)
	before := idle.requests.Load()
	b.ReportAllocs()
	for b.Loop() {
		drift, err := idle.Drifted(context.Background(), owner)
		if err != nil || len(drift.Refs) > 0 {
			b.Fatal(drift, err)
		}
	}
	b.ReportMetric(float64(idle.requests.Load()-before), "requests")
}

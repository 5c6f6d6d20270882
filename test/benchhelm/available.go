// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// availability stands in for the Deployment controller and the kubelets, which do not run here: it reports every Deployment as
// available as soon as it sees it. Without it no custom resource would ever become ready, and an operator that looks at its
// children would have less to do than in a cluster.
type availability struct {
	server    *server
	namespace string

	mutex sync.Mutex
	// waiting are the generations to report, by the Deployment's name.
	waiting map[string]int64
	wake    chan struct{}
}

func (s *server) newAvailability(namespace string) *availability {
	return &availability{server: s, namespace: namespace, waiting: map[string]int64{}, wake: make(chan struct{}, 1)}
}

// seen takes note of a Deployment that is to be reported.
func (a *availability) seen(deployment *unstructured.Unstructured) {
	observed, _, _ := unstructured.NestedInt64(deployment.Object, "status", "observedGeneration")
	if observed == deployment.GetGeneration() {
		return
	}
	a.mutex.Lock()
	a.waiting[deployment.GetName()] = deployment.GetGeneration()
	a.mutex.Unlock()
	select {
	case a.wake <- struct{}{}:
	default: // it is awake
	}
}

// run reports Deployments until the context ends. One that is gone meanwhile is seen again when it is back.
func (a *availability) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
		}
		a.mutex.Lock()
		batch := a.waiting
		a.waiting = map[string]int64{}
		a.mutex.Unlock()
		var names []string
		for name := range batch {
			names = append(names, name)
		}
		_ = inParallel(names, func(_ int, name string) error {
			_, err := a.server.dynamic.Resource(deployments).Namespace(a.namespace).Patch(ctx, name, mergePatch, available(batch[name]),
				metav1.PatchOptions{FieldManager: "deployment-controller"}, "status")
			return err
		})
	}
}

// available is the status of a Deployment whose only replica runs.
func available(generation int64) []byte {
	return fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,`+
		`"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"},`+
		`{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`, generation)
}

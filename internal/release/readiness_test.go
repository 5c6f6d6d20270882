// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import "testing"

// The borders of what is ready, kind by kind.
func TestReadinessAtItsBorders(t *testing.T) {
	const deployment, statefulSet, daemonSet = "{apiVersion: apps/v1, kind: Deployment, ", "{apiVersion: apps/v1, kind: StatefulSet, ",
		"{apiVersion: apps/v1, kind: DaemonSet, "
	const oneOfOne = "observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1"
	const jobs, services = "{apiVersion: batch/v1, kind: Job, ", "{apiVersion: v1, kind: Service, spec: {type: LoadBalancer}, "
	const scaler, other = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, ", "{apiVersion: a/v1, kind: B, "
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, "
	const route = "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {generation: 2, namespace: shop}, spec: {parentRefs: "
	const yes, old = "conditions: [{type: Accepted, status: 'True', observedGeneration: 2}, {type: ResolvedRefs, status: 'True', observedGeneration: 2}]",
		"conditions: [{type: Accepted, status: 'True', observedGeneration: 2}, {type: ResolvedRefs, status: 'True', observedGeneration: 1}]"
	const no = "conditions: [{type: Accepted, status: 'False', reason: R, message: m}]"
	for object, want := range map[string]readiness{
		deployment + "status: {" + oneOfOne +
			", conditions: [{type: Progressing, status: 'True', reason: NewReplicaSetAvailable}]}}": isReady,
		deployment + "status: {" + oneOfOne +
			", conditions: [{type: ReplicaFailure, status: 'False'}]}}": isReady,
		deployment + "spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, updatedReplicas: 1, availableReplicas: 2}}": waiting("1 of 2 pods are of the current version"),
		deployment + "spec: {replicas: many}, status: {" + oneOfOne +
			"}}": isReady,
		statefulSet +
			"status: {readyReplicas: 1, updatedReplicas: 1}}": isReady,
		statefulSet + "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 2}}}, status: {readyReplicas: 3, updatedReplicas: 1}}": isReady,
		statefulSet + "spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {readyReplicas: 3, updatedReplicas: 1}}": waiting(
			"1 of 2 pods are of the current version"),
		daemonSet + "status: {}}": waiting("is new"),
		daemonSet +
			"status: {desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}": waiting("1 of 2 pods are of the current version"),
		daemonSet + "status: {desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}":                isReady,
		daemonSet + "spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 2, numberAvailable: 2}}": isReady,
		jobs +
			"status: {conditions: [{type: Failed, status: 'False'}, {type: Complete, status: 'False'}]}}": waiting(
			"is running, 0 of 1 pods succeeded"),
		jobs + "status: {conditions: [{type: Suspended, status: 'True'}]}}": waiting("is suspended"),
		jobs +
			"status: {conditions: [{type: Suspended, status: 'False'}]}}": waiting("is running, 0 of 1 pods succeeded"),
		services + "status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}}": isReady,
		scaler + "status: {}}": isReady,
		scaler + "status: {conditions: [{type: AbleToScale, status: 'False', message: m}]}}": waiting("cannot scale: m"),
		claim + "status: {phase: Bound}}": isReady,
		claim +
			"status: {phase: Lost}}": broken("has lost its volume"),
		other + "status: {conditions: [{type: Stalled, status: 'False'}]}}":                      isReady,
		other + "status: {conditions: [{type: Failed, status: 'True', reason: R, message: m}]}}": broken("R: m"),
		other +
			"status: {conditions: [{type: Available, status: 'Unknown', reason: R, message: m}]}}": waiting("Available is Unknown: R m"),
		other + "status: {conditions: [{type: Ready, status: 'True'}, {type: Available, status: 'False'}]}}":                  isReady,
		other + "metadata: {generation: 2}, status: {observedGeneration: 2}}":                                                 isReady,
		"{apiVersion: v1, kind: ConfigMap, status: {conditions: [{type: Ready, status: 'False'}]}}":                           isReady,
		route + "[{name: g}]}, status: {parents: [{parentRef: {name: g}, " + yes + "}, {parentRef: {name: g}, " + no + "}]}}": isReady,
		route + "[{name: g}]}, status: {parents: [{parentRef: {name: g}, " + old +
			"}]}}": waiting("has no answer from Gateway shop/g since it changed"),
		route + "[{name: g}]}, status: {parents: [{parentRef: {name: g}, conditions: [{type: Accepted, status: 'True'}]}]}}": waiting("has no answer from Gateway shop/g since it changed"),
		route + "[{name: g}, {name: h}]}, status: {parents: [{parentRef: {name: g}, " + yes +
			"}]}}": waiting("has no answer from Gateway shop/h: is it there, and does a controller run it?"),
		route + "[{name: g, sectionName: a, port: 80}]}, status: {parents: [{parentRef: {name: g, port: 80}, " + yes +
			"}]}}": waiting("has no answer from Gateway shop/g: is it there, and does a controller run it?"),
		route + "[{name: g, port: 80}]}, status: {parents: [{parentRef: {name: g, port: 443}, " + yes +
			"}]}}": waiting("has no answer from Gateway shop/g: is it there, and does a controller run it?"),
		route + "[{name: s, kind: Service}]}, status: {parents: [{parentRef: {name: s, kind: Service}, " + yes + "}]}}": isReady,
	} {
		if got := readinessOf(parse(t, object)); got != want {
			t.Errorf("%s: got %+v, want %+v", object, got, want)
		}
	}
}

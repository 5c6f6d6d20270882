// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
)

// What an API server says of a custom resource of the benchmarks' chart, and of what it owns, as of an operator that has settled it.
// NAME and UID differ from object to object.
var cachedObjects = map[string]string{
	"custom resource": `{"apiVersion":"bench.middleware.hc.cn/v1","kind":"Web","metadata":{"creationTimestamp":"2026-11-28T23:48:00Z",
"finalizers":["middleware.hc.cn/uninstall"],"generation":1,"managedFields":[
{"apiVersion":"bench.middleware.hc.cn/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{".":{},
"v:\"middleware.hc.cn/uninstall\"":{}}}},"manager":"middleware-operator","operation":"Update","time":"2026-11-28T23:48:00Z"},
{"apiVersion":"bench.middleware.hc.cn/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:text":{}}},"manager":"bench",
"operation":"Update","time":"2026-11-28T23:48:00Z"}],"name":"NAME","namespace":"bench","resourceVersion":"RV","uid":"UID"},
"spec":{"text":"hello"},"status":{"conditions":[
{"lastTransitionTime":"2026-11-28T23:48:01Z","message":"","observedGeneration":1,"reason":"Settled","status":"True","type":"Ready"},
{"lastTransitionTime":"2026-11-28T23:48:01Z","message":"","observedGeneration":1,"reason":"Initialized","status":"True","type":"Initialized"},
{"lastTransitionTime":"2026-11-28T23:48:01Z","message":"Install complete","observedGeneration":1,"reason":"InstallSuccessful","status":"True","type":"Deployed"},
{"lastTransitionTime":"2026-11-28T23:48:01Z","message":"","observedGeneration":1,"reason":"Settled","status":"False","type":"Reconciling"}],
"deployedRelease":{"chart":"web-1.0.0","chartDigest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
"digest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","name":"NAME","revision":1,"version":"1.0.0"},
"inventory":[{"kind":"ServiceAccount","name":"NAME","uid":"UID","version":"v1"},{"kind":"Service","name":"NAME","uid":"UID","version":"v1"},
{"group":"apps","kind":"Deployment","name":"NAME","uid":"UID","version":"v1"}],"observedGeneration":1}}`,
	"service": `{"apiVersion":"v1","kind":"Service","metadata":` + metadataOfChild + `,
"spec":{"clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1"],
"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{"name":"http","port":80,"protocol":"TCP",
"targetPort":"http"}],"selector":{"app.kubernetes.io/instance":"NAME","app.kubernetes.io/name":"web"},"sessionAffinity":"None",
"type":"ClusterIP"},"status":{"loadBalancer":{}}}`,
	"deployment": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":` + metadataOfChild + `,
"spec":{"progressDeadlineSeconds":600,"replicas":1,
"revisionHistoryLimit":10,"selector":{"matchLabels":{"app.kubernetes.io/instance":"NAME","app.kubernetes.io/name":"web"}},
"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"},"template":{"spec":{}}},"status":{
"availableReplicas":1,"conditions":[{"lastTransitionTime":"2026-11-28T23:48:01Z","lastUpdateTime":"2026-11-28T23:48:01Z",
"message":"Deployment has minimum availability.","reason":"MinimumReplicasAvailable","status":"True","type":"Available"},
{"lastTransitionTime":"2026-11-28T23:48:01Z","lastUpdateTime":"2026-11-28T23:48:01Z",
"message":"ReplicaSet has successfully progressed.","reason":"NewReplicaSetAvailable","status":"True","type":"Progressing"}],
"observedGeneration":1,"readyReplicas":1,"replicas":1,"updatedReplicas":1}}`,
}

const metadataOfChild = `{"creationTimestamp":"2026-11-28T23:48:00Z","generation":1,"labels":{"app.kubernetes.io/instance":"NAME",
"app.kubernetes.io/managed-by":"middleware-operator","app.kubernetes.io/name":"web","app.kubernetes.io/version":"1",
"helm.sh/chart":"web-1.0.0"},"managedFields":[{"apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{
"f:app.kubernetes.io/instance":{}},"f:ownerReferences":{"k:{\"uid\":\"UID\"}":{}}},"f:spec":{"f:replicas":{},"f:selector":{},
"f:template":{"f:spec":{"f:securityContext":{"f:runAsNonRoot":{}}}}}},"manager":"middleware-operator","operation":"Apply",
"time":"2026-11-28T23:48:01Z"},{"apiVersion":"apps/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:replicas":{}}},
"manager":"kube-controller-manager","operation":"Update","subresource":"status","time":"2026-11-28T23:48:01Z"}],"name":"NAME",
"namespace":"bench","ownerReferences":[{"apiVersion":"bench.middleware.hc.cn/v1","blockOwnerDeletion":true,"controller":true,
"kind":"Web","name":"NAME","uid":"UID"}],"resourceVersion":"RV","uid":"UID"}`

// BenchmarkKept: the bytes that a cache keeps of an object.
func BenchmarkKept(b *testing.B) {
	for what, text := range cachedObjects {
		transform := toolscache.TransformFunc(CompactChild)
		if what == "custom resource" {
			transform = compactResource
		}
		b.Run(strings.ReplaceAll(what, " ", "_"), func(b *testing.B) {
			kept := make([]any, 0, b.N)
			before := live()
			for b.Loop() {
				n := len(kept)
				object := &unstructured.Unstructured{}
				named := strings.NewReplacer("NAME", fmt.Sprintf("web-%05d", n), "UID", fmt.Sprintf("00000000-0000-4000-8000-%012d", n),
					"RV", fmt.Sprint(100000+n)).Replace(text)
				if err := object.UnmarshalJSON([]byte(named)); err != nil {
					b.Fatal(err)
				}
				whole, err := transform(object)
				if err != nil {
					b.Fatal(err)
				}
				kept = append(kept, whole)
			}
			b.ReportMetric(float64(live()-before)/float64(len(kept)), "B/object")
			runtime.KeepAlive(kept)
		})
	}
}

func live() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

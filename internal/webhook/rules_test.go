// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/admission/images"
	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/internal/webhook"
	"middleware.hc.cn/operator/test/admit"
)

var (
	app         = schema.GroupVersionKind{Group: "appcontroller.middleware.hc.cn", Version: "v1alpha1", Kind: "App"}
	application = schema.GroupVersionKind{Group: "controller.controller.daocloud.io", Version: "v1", Kind: "Application"}
	cluster     = schema.GroupVersionKind{Group: "redis.middleware.hc.cn", Version: "v1alpha1", Kind: "RedisCluster"}
)

func newServer(t *testing.T) *admit.Server {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := manager.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	server, err := admit.NewServer(scheme, webhook.Options{Images: images.BuiltIn()})
	if err != nil {
		t.Fatal(err)
	}
	return server
}

// object is one with a spec in YAML.
func object(t *testing.T, gvk schema.GroupVersionKind, spec string) map[string]any {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: x, namespace: ns}, spec: %s}",
		gvk.GroupVersion(), gvk.Kind, spec)))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]any{}
	if err := utiljson.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// What a default does not concern stays as it was written, although a default is set beside it: who applies the manifest again
// changes nothing.
func TestDefaultingLeavesTheRestAsItIs(t *testing.T) {
	server := newServer(t)
	for _, tt := range []struct {
		gvk        schema.GroupVersionKind
		spec, want string
	}{
		{app, "{image: 'a:1', ports: [{name: a, containerPort: 80, protocol: TCP}], resources: {limits: {cpu: 1000m, memory: 1024Mi}}, env: []}",
			"{image: 'a:1', ports: [{name: a, containerPort: 80, protocol: TCP, servicePort: 80}], " +
				"resources: {limits: {cpu: 1000m, memory: 1024Mi}}, env: [], replicas: 1, service: {enabled: true, type: ClusterIP}, " +
				"ingress: {enabled: false, path: /, pathType: Prefix}}"},
		{cluster, "{storage: {size: 1024Mi}, pod: [{resources: {}, volumes: {type: pvc}}], version: 8.0.6}",
			"{storage: {size: 1024Mi, retain: Retain}, pod: [{resources: {}, updateStrategy: {type: RollingUpdate}}], version: 8.0.6, " +
				"repository: docker.io/library/redis, replicas: 6, finalizers: foreground, auth: {enabled: true, previousPasswordFor: 1h}, " +
				"antiAffinity: Preferred, spreadMasters: true, networkPolicy: {enabled: true}, podDisruptionBudget: {enabled: true}, " +
				"updateStrategy: {type: AutoReceive, pipeline: '100'}, pause: false, hibernate: false}"},
	} {
		stored, _, refused, err := server.Admit(t.Context(), tt.gvk, nil, object(t, tt.gvk, tt.spec))
		if err != nil || len(refused) > 0 {
			t.Fatalf("%s: %v %v", tt.spec, refused, err)
		}
		if diff := cmp.Diff(object(t, tt.gvk, tt.want), stored); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.spec, diff)
		}
	}
}

// A field that the operator would say that it does not know is refused, with its path, where the schema takes anything.
func TestUnknownFieldsOfPods(t *testing.T) {
	const spec = "{selector: {matchLabels: {a: b}}, template: {spec: {template: {metadata: {labels: {a: b}}, " +
		"spec: {noSuchField: 1, containers: [{name: a, image: 'a:1'}]}}}}}"
	_, _, refused, err := newServer(t).Admit(t.Context(), application, nil, object(t, application, spec))
	if err != nil || len(refused) != 1 || refused[0].Field != "spec.template.spec.template.spec.noSuchField" {
		t.Errorf("refused with %v (%v), want the field", refused, err)
	}
}

// What the schema takes and the Go type does not is refused with the field's path. What is stored so all the same can be repaired, and
// its labels can change.
func TestUnreadableFields(t *testing.T) {
	server := newServer(t)
	unreadable, good := object(t, app, "{image: 'a:1', probes: {port: 1099511627776}}"), object(t, app, "{image: 'a:1', probes: {port: 80}}")
	_, _, refused, err := server.Admit(t.Context(), app, nil, unreadable)
	if err != nil || len(refused) != 1 || refused[0].Field != "spec.probes.port" {
		t.Errorf("refused with %v (%v), want spec.probes.port", refused, err)
	}
	if _, _, refused, err := server.Admit(t.Context(), app, unreadable, good); err != nil || len(refused) > 0 {
		t.Errorf("the repair is refused: %v %v", refused, err)
	}
	bad := object(t, app, "{image: 'a b', probes: {port: 80}}")
	if _, _, refused, _ := server.Admit(t.Context(), app, unreadable, bad); len(refused) != 1 || refused[0].Field != "spec.image" {
		t.Errorf("another mistake is refused with %v", refused)
	}
	labelled := runtime.DeepCopyJSON(unreadable)
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"a": "b"}
	stored := runtime.DeepCopyJSON(unreadable)
	server.Definitions[app].Complete(stored)
	if _, _, refused, err := server.Admit(t.Context(), app, stored, labelled); err != nil || len(refused) > 0 {
		t.Errorf("a label is refused: %v %v", refused, err)
	}
}

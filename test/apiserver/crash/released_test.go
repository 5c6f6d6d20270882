// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
)

// record is the version whose state is written down, instead of being compared with (make release-state).
var record = flag.String("record", "", "write the state that this version of the operator leaves into testdata/released")

// owners are the kinds of custom resources here, each with its sample.
var owners = map[string]schema.GroupVersionKind{
	"appcontroller_v1alpha1_app_full.yaml": {Group: "appcontroller.middleware.hc.cn", Version: "v1alpha1", Kind: "App"},
	"controller_v1_application_full.yaml":  {Group: "controller.controller.daocloud.io", Version: "v1", Kind: "Application"},
	"k8s_v1_foobar_full.yaml":              {Group: "k8s.io", Version: "v1", Kind: "FooBar"},
	"stable_v1beta1_crontab_full.yaml":     {Group: "stable.example.com", Version: "v1beta1", Kind: "CronTab"},
}

// releasedWorld is all that the operator makes of the samples.
func releasedWorld(namespace string) crash.World {
	w := crash.World{API: api, Namespaces: []string{namespace}}
	for _, kind := range owners {
		w.Kinds = append(w.Kinds, kind)
	}
	for _, kind := range append(kinds, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"},
		schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
		schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
		schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}) {
		if kind.Kind != "ServiceAccount" {
			w.Kinds = append(w.Kinds, kind)
		}
	}
	return w
}

// TestUpgradeFromReleases: an operator that finds what a former release left of Apps, Applications, CronTabs and FooBars takes it over
// as it is: no pod template changes, and nothing is made anew or lost.
func TestUpgradeFromReleases(t *testing.T) {
	if *record != "" {
		recordRelease(t)
		return
	}
	files, err := filepath.Glob("testdata/released/*.yaml")
	check(t, err)
	if len(files) == 0 {
		t.Fatal("there is no recorded state")
	}
	namespaces, before := make([]string, len(files)), make([]map[string]string, len(files))
	for i, file := range files {
		namespaces[i] = namespaceOf(t, strings.TrimSuffix(filepath.Base(file), ".yaml"))
		environment.Restore(t, api, namespaces[i], file)
		before[i] = whatThereIs(t, releasedWorld(namespaces[i]))
	}
	stop := operate(t, namespaces...)
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			world := releasedWorld(namespaces[i])
			for _, kind := range owners {
				awaitPaused(t, kind, namespaces[i], "True")
				awaitPaused(t, kind, namespaces[i], "False") // it has been looked at without a pause
			}
			now := whatThereIs(t, world)
			for name, was := range before[i] { // a release whose chart has changed has a further revision
				if diff := cmp.Diff(was, now[name]); diff != "" {
					t.Errorf("%s (-released +now):\n%s", name, diff)
				}
			}
			check(t, world.Clear(context.Background()))
		})
	}
	stop()
}

// namespaceOf makes the namespace of the state of a version. What a chart renders depends on the name.
func namespaceOf(t *testing.T, version string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "released-" + strings.ReplaceAll(version, ".", "-")}}
	check(t, api.Create(t.Context(), namespace))
	return namespace.Name
}

// whatThereIs are the pod templates with the UIDs of what they are of, and the names of all objects.
func whatThereIs(t *testing.T, world crash.World) map[string]string {
	t.Helper()
	all := environment.Templates(t, world)
	objects, err := world.Objects(t.Context())
	check(t, err)
	for _, object := range objects {
		all[object.GetKind()+" "+object.GetName()] = string(object.GetUID())
	}
	return all
}

// operate runs the whole operator for some namespaces.
func operate(t *testing.T, namespaces ...string) (stop func()) {
	t.Helper()
	o := environment.Options()
	o.Namespaces = namespaces
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, admin, o, environment.Nowhere) }()
	return func() {
		cancel()
		check(t, <-ended)
	}
}

// awaitPaused pauses the resource of a kind, or ends its pause, and waits until the operator says so.
func awaitPaused(t *testing.T, kind schema.GroupVersionKind, namespace, status string) {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	check(t, api.List(t.Context(), list, client.InNamespace(namespace)))
	if len(list.Items) != 1 {
		t.Fatalf("there are %d of %s", len(list.Items), kind.Kind)
	}
	object := &list.Items[0]
	environment.Change(t, api, object, func(o *unstructured.Unstructured) {
		annotations := o.GetAnnotations()
		delete(annotations, "middleware.hc.cn/pause")
		if status == "True" {
			annotations = map[string]string{"middleware.hc.cn/pause": "true"}
			for name, value := range o.GetAnnotations() {
				annotations[name] = value
			}
		}
		o.SetAnnotations(annotations)
	})
	environment.Eventually(t, kind.Kind+" is paused: "+status, func() string {
		environment.Get(t, api, object)
		if c := meta.FindStatusCondition(conditions.Read(object), "Paused"); c == nil || string(c.Status) != status {
			return inStatus(object)
		}
		return ""
	})
}

// inStatus is the text of a status.
func inStatus(object *unstructured.Unstructured) string {
	text, err := yaml.Marshal(object.Object["status"])
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// recordRelease writes down what the operator leaves of the samples when they are ready.
func recordRelease(t *testing.T) {
	t.Helper()
	namespace := namespaceOf(t, *record)
	stop := operate(t, namespace)
	for sample := range owners {
		text, err := os.ReadFile(filepath.Join(root, "config", "samples", sample))
		check(t, err)
		object := &unstructured.Unstructured{}
		check(t, yaml.Unmarshal(text, &object.Object))
		object.SetNamespace(namespace)
		check(t, api.Create(t.Context(), object))
		environment.Eventually(t, sample+" is Ready", func() string {
			environment.Get(t, api, object)
			if !meta.IsStatusConditionTrue(conditions.Read(object), "Ready") {
				return inStatus(object)
			}
			return ""
		})
	}
	stop()
	environment.Record(t, releasedWorld(namespace), filepath.Join("testdata", "released", *record+".yaml"))
}

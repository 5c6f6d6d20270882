// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/pause"
	"middleware.hc.cn/operator/internal/plugin"
	"middleware.hc.cn/operator/internal/plugin/overview"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// formed makes a RedisCluster whose status is that of three shards that serve, and the pod of its first instance.
func formed(t *testing.T, namespace string) *v1alpha1.RedisCluster {
	t.Helper()
	ctx := context.Background()
	cr := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: namespace}}
	cr.Spec.Shards = ptr.To[int32](3)
	shared.Check(t, api.Create(ctx, cr))
	cr.Status.Phase, cr.Status.Reason, cr.Status.Slots, cr.Status.ObservedGeneration = v1alpha1.PhaseRunning, "all serve", 16384, cr.Generation
	cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFormed, Status: "True", Reason: "Formed",
		LastTransitionTime: metav1.Now()}}
	for shard, slots := range []string{"0-5460", "5461-10922", "10923-16383"} {
		for ordinal, role := range []string{"master", "slave"} {
			node := v1alpha1.NodeStatus{Name: fmt.Sprintf("cache-%d-%d", shard, ordinal), Type: role, Shard: int32(shard), Status: "True",
				Reason: "Serving", NodeID: strings.Repeat(fmt.Sprint(2*shard+ordinal), 40),
				MasterNodeID: strings.Repeat(fmt.Sprint(2*shard), 40), LastTransitionTime: metav1.Now()}
			if ordinal == 0 {
				node.Slots = slots
			}
			cr.Status.Nodes = append(cr.Status.Nodes, node)
		}
	}
	shared.Check(t, api.Status().Update(ctx, cr))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cache-0-0", Namespace: namespace,
		Labels: map[string]string{v1alpha1.LabelCluster: "cache", corev1.LabelTopologyZone: "zone-a"}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "redis", Image: "redis"}}}}
	shared.Check(t, api.Create(ctx, pod))
	event := func(name, kind string, about types.UID, reason, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Type: corev1.EventTypeWarning, Reason: reason,
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name, UID: about}, Message: message,
			LastTimestamp: metav1.Now()}
	}
	for _, e := range []*corev1.Event{event("cache", "RedisCluster", cr.UID, "Mine", "of the cluster"),
		event("cache-0-0", "Pod", pod.UID, "BackOff", "of its pod \x1b[2J"), event("other", "Pod", "other", "Foreign", "of another pod")} {
		shared.Check(t, api.Create(ctx, e))
	}
	return cr
}

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestStatus(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	formed(t, namespace)
	viewer := user(t, "viewer-"+namespace, namespace, "status")
	out, err := run(viewer, "", "status", "cache", "-n", namespace, "--width=160")
	shared.Check(t, err)
	contains(t, out, "RedisCluster "+namespace+"/cache", "Running", "all serve", "shard 2  5461 slots: 10923-16383", "cache-0-0  master",
		"zone-a", "Mine", "BackOff", "Nothing is wrong")
	if strings.Contains(out, "Foreign") || strings.Contains(out, "\x1b") || strings.Contains(out, "not shown") {
		t.Errorf("got\n%s", out)
	}
	if out, err = run(viewer, "", "status", "cache", "-n", namespace, "-o", "json"); err != nil {
		t.Fatal(err)
	}
	var model overview.Cluster
	shared.Check(t, json.Unmarshal([]byte(out), &model))
	if len(model.Shards) != 3 || len(model.Shards[0].Instances) != 2 || model.Shards[0].Count != 5461 {
		t.Errorf("got %+v", model)
	}
	out, err = run(viewer, "", "status", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "RedisCluster  cache")
	_, err = run(viewer, "", "status", "none", "-n", namespace)
	if err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a RedisCluster that is not there: %v", err)
	}
}

// Who may read nothing but RedisClusters sees them, and what is left out.
func TestStatusWithFewRights(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	formed(t, namespace)
	few := user(t, "few-"+namespace, namespace, "plan")
	out, err := run(few, "", "status", "cache", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "shard 0", "cache-0-0", "not shown: pods: you may not", "not shown: events: you may not")
	if _, err := run(few, "", "status", "-n", namespace); err == nil || !strings.Contains(err.Error(), "nothing could be read") {
		t.Errorf("the list: %v", err)
	}
}

// version is that of an object which a command must not change.
func version(t *testing.T, o client.Object) string {
	t.Helper()
	shared.Get(t, api, o)
	return o.GetResourceVersion()
}

const scaled = `apiVersion: redis.middleware.hc.cn/v1alpha1
kind: RedisCluster
metadata: {name: cache}
spec: {shards: %d, replicas: %d}
`

func TestPlan(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	cr := formed(t, namespace)
	writer := user(t, "writer-"+namespace, namespace, "plan")
	before := version(t, cr)
	out, err := run(writer, fmt.Sprintf(scaled, 4, 8), "plan", "-f", "-", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "Slots that move: 4096", "from cache-0-0 to cache-3-0", "cache-3-0, cache-3-1", "spec.shards: 3 → 4",
		"Nothing was written")
	out, err = run(writer, fmt.Sprintf(scaled, 3, 6), "plan", "-f", "-", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "stays as it is")
	out, err = run(writer, fmt.Sprintf(scaled, 9, 6), "plan", "-f", "-", "-n", namespace)
	if !errors.Is(err, plugin.ErrFound) {
		t.Errorf("what is refused ends with %v", err)
	}
	contains(t, out, "is refused", "shards must not be larger than replicas")
	out, err = run(writer, strings.Replace(fmt.Sprintf(scaled, 3, 6), "cache", "second", 1), "plan", "-f", "-", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "second  is made", "StatefulSet second-0 is made")
	if after := version(t, cr); after != before {
		t.Errorf("the plan changed the object: %s became %s", before, after)
	}
	if shared.Get(t, api, &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "second", Namespace: namespace}}) {
		t.Error("the plan made an object")
	}
	viewer := user(t, "reader-"+namespace, namespace, "status")
	out, err = run(viewer, fmt.Sprintf(scaled, 4, 8), "plan", "-f", "-", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "was not asked in a dry run", "Slots that move: 4096")
}

func TestPause(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	cr := formed(t, namespace)
	app := &appv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: namespace, Annotations: map[string]string{"mine": "stays"}}}
	app.Spec.Image, app.Spec.Ports = "nginx", []appv1alpha1.Port{{Name: "http", ContainerPort: 80}}
	shared.Check(t, api.Create(context.Background(), app))
	steers := user(t, "steers-"+namespace, namespace, "pause, resume")
	for _, tt := range []struct {
		verb, said string
		paused     bool
	}{{"pause", "is paused", true}, {"resume", "goes on", false}} {
		out, err := run(steers, "", tt.verb, "cache", "-n", namespace)
		shared.Check(t, err)
		contains(t, out, "RedisCluster "+namespace+"/cache "+tt.said)
		_, err = run(steers, "", tt.verb, "app/web", "-n", namespace)
		shared.Check(t, err)
		shared.Get(t, api, cr)
		shared.Get(t, api, app)
		if cr.Spec.Pause != tt.paused || *cr.Spec.Shards != 3 || pause.Asked(app) != tt.paused || app.Annotations["mine"] != "stays" {
			t.Errorf("%s: spec.pause %t, annotations %v", tt.verb, cr.Spec.Pause, app.Annotations)
		}
	}
	if _, err := run(steers, "", "pause", "secret/x", "-n", namespace); err == nil || !strings.Contains(err.Error(), "none of the kinds") {
		t.Errorf("another kind: %v", err)
	}
}

func TestRestart(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	cr := formed(t, namespace)
	restarts := user(t, "restarts-"+namespace, namespace, "restart")
	out, err := run(restarts, "", "restart", "cache", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "its instances restart, one at a time\n",
		"kubectl middleware status cache -n "+namespace+" --watch --kubeconfig="+restarts)
	shared.Get(t, api, cr)
	if cr.Spec.Template().Annotations["restartedAt"] == "" || *cr.Spec.Shards != 3 {
		t.Errorf("got %+v", cr.Spec)
	}
	if refused := admission.Validate(cr, admission.Options{}); len(refused) > 0 {
		t.Errorf("the operator refuses what was written: %v", refused)
	}
	viewer := user(t, "looks-"+namespace, namespace, "status")
	if _, err := run(viewer, "", "restart", "cache", "-n", namespace); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("without the right: %v", err)
	}
}

func TestBackup(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	formed(t, namespace)
	saves := user(t, "saves-"+namespace, namespace, "backup")
	_, err := run(saves, "", "backup", "cache", "-n", namespace)
	if err == nil || !strings.Contains(err.Error(), "has no RedisBackupSchedule") {
		t.Errorf("without a schedule: %v", err)
	}
	store := v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Endpoint: "https://s3.example", Bucket: "backups", CredentialsSecretName: "keys"}}
	schedule := &v1alpha1.RedisBackupSchedule{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: namespace}}
	schedule.Spec.Schedule, schedule.Spec.Cluster, schedule.Spec.Store = "0 3 * * *", "cache", store
	schedule.Spec.MaxBytesPerSecond = "50M"
	shared.Check(t, api.Create(context.Background(), schedule))
	out, err := run(saves, "", "backup", "cache", "-n", namespace, "--name=before-upgrade")
	shared.Check(t, err)
	contains(t, out, "before-upgrade is made")
	made := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Name: "before-upgrade", Namespace: namespace}}
	if !shared.Get(t, api, made) || made.Spec.Cluster != "cache" || made.Spec.Store.S3 == nil || made.Spec.Store.S3.Bucket != "backups" ||
		made.Spec.MaxBytesPerSecond != "50M" {
		t.Errorf("got %+v", made.Spec)
	}
	shared.Check(t, api.Create(context.Background(), &v1alpha1.RedisBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "weekly", Namespace: namespace}, Spec: schedule.Spec}))
	_, err = run(saves, "", "backup", "cache", "-n", namespace)
	if err == nil || !strings.Contains(err.Error(), "say which with --schedule") {
		t.Errorf("two schedules: %v", err)
	}
}

func TestCheck(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	viewer := user(t, "checks-"+namespace, namespace, "status", "check")
	out, err := run(viewer, "", "check", "-n", namespace, "--width=160")
	shared.Check(t, err) // what may not be read is unknown, and the kinds are there
	contains(t, out, "ok       RedisCluster.redis.middleware.hc.cn v1alpha1", "unknown  could not be read",
		"status: you have all that it uses", "pause, resume: you may not patch redisclusters.redis.middleware.hc.cn",
		"no RoleBinding of the operator to middleware-operator-namespace")
	everything, err := server.AddUser(root, nil)
	shared.Check(t, err)
	out, err = run(kubeconfigOf(t, everything), "", "check", "-n", namespace)
	if !errors.Is(err, plugin.ErrFound) {
		t.Errorf("there is no operator: %v", err)
	}
	contains(t, out, "missing  no Deployment with the label", "--serviceaccount=middleware-operator-system:middleware-operator --kubeconfig=")
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// answer does what the operator does with a request for a switchover, once there is one: the instance becomes the master, or an Event
// says why not.
func answer(t *testing.T, cr *v1alpha1.RedisCluster, refused string) {
	t.Helper()
	ctx := context.Background()
	for cr.Annotations[v1alpha1.AnnotationSwitchover] != "cache-1-1" {
		time.Sleep(50 * time.Millisecond)
		shared.Get(t, api, cr)
	}
	if refused != "" {
		shared.Check(t, api.Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "end-", Namespace: cr.Namespace},
			Type: "Warning", Reason: "EndSwitchover", Message: refused, LastTimestamp: metav1.Now(),
			InvolvedObject: corev1.ObjectReference{Kind: "RedisCluster", Namespace: cr.Namespace, Name: cr.Name, UID: cr.UID}}))
	}
	delete(cr.Annotations, v1alpha1.AnnotationSwitchover)
	shared.Check(t, api.Update(ctx, cr))
	if refused == "" {
		for i := range cr.Status.Nodes {
			if node := &cr.Status.Nodes[i]; node.Shard == 1 {
				node.Type = map[bool]string{true: "master", false: "slave"}[node.Name == "cache-1-1"]
			}
		}
		shared.Check(t, api.Status().Update(ctx, cr))
	}
}

func TestFailover(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	cr := formed(t, namespace)
	steers := user(t, "fails-over-"+namespace, namespace, "failover")
	for _, tt := range []struct{ refused, said string }{{"more masters would be on \x1b[2Jnode-2", "more masters would be on"},
		{"", "RedisCluster " + namespace + "/cache: cache-1-1 is the master of shard 1"}} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			answer(t, cr.DeepCopy(), tt.refused)
		}()
		out, err := run(steers, "", "failover", "cache", "cache-1-1", "-n", namespace)
		<-done
		if tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.said) || strings.Contains(plugin.Told(err), "\x1b")) {
			t.Errorf("refused: %v", err)
		}
		if tt.refused == "" {
			shared.Check(t, err)
			contains(t, out, tt.said)
		}
	}
	_, err := run(steers, "", "failover", "cache", "cache-0-1", "-n", namespace, "--wait=1s")
	takesBack := "kubectl annotate rediscluster cache -n " + namespace + " redis.middleware.hc.cn/switchover-"
	if err == nil || !strings.Contains(err.Error(), takesBack) {
		t.Errorf("without an operator: %v", err)
	}
	if _, err := run(steers, "", "failover", "cache", "cache-9-1", "-n", namespace); err == nil ||
		!strings.Contains(err.Error(), "none of its instances") {
		t.Errorf("nobody: %v", err)
	}
}

// An instance is fenced and unfenced beside others, with the rights that `check` names.
func TestFence(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	cr := formed(t, namespace)
	fences := user(t, "fences-"+namespace, namespace, "fence, unfence")
	for _, tt := range []struct{ command, instance, annotation string }{
		{"fence", "cache-0-1", "cache-0-1"}, {"fence", "cache-1-1", "cache-0-1,cache-1-1"}, {"unfence", "cache-0-1", "cache-1-1"},
		{"unfence", "", ""}} {
		out, err := run(fences, "", strings.Fields(tt.command+" cache "+tt.instance+" -n "+namespace)...)
		shared.Check(t, err)
		contains(t, out, map[bool]string{true: "no instance is fenced", false: tt.annotation}[tt.annotation == ""])
		shared.Get(t, api, cr)
		if is, set := cr.Annotations[v1alpha1.AnnotationFenced]; is != tt.annotation || set != (is != "") {
			t.Errorf("%v: the annotation is %q", tt, is)
		}
	}
	if _, err := run(fences, "", "fence", "cache", "cache-9-1", "-n", namespace); err == nil ||
		!strings.Contains(err.Error(), "none of its instances") {
		t.Errorf("nobody: %v", err)
	}
}

func TestRestore(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	cr := formed(t, namespace)
	cr.Spec.Pause, cr.Spec.Config = true, map[string]string{"maxmemory-policy": "allkeys-lru"}
	shared.Check(t, api.Update(context.Background(), cr))
	backup := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: namespace}}
	backup.Spec.Cluster = "cache"
	backup.Spec.Store.S3 = &v1alpha1.S3Store{Endpoint: "https://s3.example", Bucket: "backups", CredentialsSecretName: "keys"}
	shared.Check(t, api.Create(context.Background(), backup))
	restores := user(t, "restores-"+namespace, namespace, "restore")
	if _, err := run(restores, "", "restore", "monday", "--to=again", "-n", namespace); err == nil ||
		!strings.Contains(err.Error(), "only one that is Completed") {
		t.Errorf("before it is taken: %v", err)
	}
	backup.Status.Phase = v1alpha1.BackupCompleted
	shared.Check(t, api.Status().Update(context.Background(), backup))
	out, err := run(restores, "", "restore", "monday", "--to=again", "-n", namespace, "--dry-run")
	shared.Check(t, err)
	contains(t, out, "kind: RedisCluster", "name: again", "redisBackup: monday", "maxmemory-policy: allkeys-lru")
	made := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "again", Namespace: namespace}}
	if shared.Get(t, api, made) {
		t.Fatal("a dry run has made it")
	}
	out, err = run(restores, "", "restore", "monday", "--to=again", "-n", namespace)
	shared.Check(t, err)
	contains(t, out, "RedisCluster "+namespace+"/again is made", "kubectl middleware status again")
	if !shared.Get(t, api, made) || made.Restore() == nil || made.Restore().RedisBackup != "monday" || made.Spec.Pause ||
		ptr.Deref(made.Spec.Shards, 0) != 3 || made.Spec.Config["maxmemory-policy"] != "allkeys-lru" {
		t.Errorf("got %+v", made.Spec)
	}
	before := version(t, cr)
	if _, err := run(restores, "", "restore", "monday", "--to=cache", "-n", namespace); err == nil ||
		!strings.Contains(err.Error(), "exists: a backup is restored into a new one") || version(t, cr) != before {
		t.Errorf("over one that exists: %v", err)
	}
	if _, err := run(restores, "", "restore", "monday", "--to=third", "--like=gone", "-n", namespace); err == nil ||
		!strings.Contains(err.Error(), "is gone: name another one with --like") {
		t.Errorf("like one that is gone: %v", err)
	}
}

// The page is served with the rights of status, at the address that is printed, until the command is interrupted.
func TestWeb(t *testing.T) {
	namespace := shared.NewNamespace(t, api, "plugin")
	formed(t, namespace)
	viewer := user(t, "looks-on-"+namespace, namespace, "status")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		root := plugin.New(plugin.Environment{In: strings.NewReader(""), Out: out, Err: out,
			Lookup: func(string) (string, bool) { return "", false }})
		root.SetArgs([]string{"--kubeconfig=" + viewer, "web", "-n", namespace})
		err := root.ExecuteContext(ctx)
		_ = out.CloseWithError(io.EOF)
		ended <- err
	}()
	lines := bufio.NewScanner(printed)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	url := lines.Text()
	go func() { _, _ = io.Copy(io.Discard, printed) }()
	for path, want := range map[string]string{
		"": "<title>kubectl middleware</title>", "list": `"name":"cache"`,
		"object?kind=RedisCluster&name=cache&namespace=" + namespace: `"slots":"5461-10922"`,
		"object?kind=RedisCluster&name=none&namespace=" + namespace:  "not found",
		"object?kind=Secret&name=x&namespace=" + namespace:           "none of the kinds",
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, http.NoBody)
		shared.Check(t, err)
		answer, err := http.DefaultClient.Do(request)
		shared.Check(t, err)
		body, err := io.ReadAll(answer.Body)
		shared.Check(t, err)
		shared.Check(t, answer.Body.Close())
		contains(t, string(body), want)
	}
	end()
	if err := <-ended; err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

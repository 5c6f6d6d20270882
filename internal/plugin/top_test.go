// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// one is an API server with one RedisCluster.
type one struct {
	client.Client
	cluster v1alpha1.RedisCluster
}

func (o one) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) (err error) {
	into.(*unstructured.Unstructured).Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&o.cluster)
	return err
}

// List lists the pods of the instances in the status.
func (o one) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	pods := list.(*corev1.PodList)
	for _, node := range o.cluster.Status.Nodes {
		shard, _, _ := o.cluster.InstanceOf(node.Name)
		pods.Items = append(pods.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: node.Name,
			Labels: map[string]string{v1alpha1.LabelCluster: o.cluster.Name}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1",
				Kind: "StatefulSet", Name: o.cluster.ShardName(shard), Controller: ptr.To(true)}}},
			Status: corev1.PodStatus{PodIP: strings.TrimSuffix(node.Instance, ":6379")}})
	}
	return nil
}

// serving is a connection to that server.
func serving(server one) *cluster {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("RedisCluster"), meta.RESTScopeNamespace)
	return &cluster{Client: server, read: read.Reader{Reader: server, Mapper: mapper, Now: time.Now}}
}

// What servers and the shell of a pod write is figures or an error, and none of it reaches the terminal as it is.
func TestTopShowsNothingAsItIs(t *testing.T) {
	server := one{cluster: v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}}
	server.cluster.Status.Nodes = []v1alpha1.NodeStatus{
		{Name: "cache-0-0", Type: "master", Status: "True", Instance: "10.0.0.1:6379"}, {Name: "cache-0-1", Type: "slave", Instance: "not yet"}}
	to := serving(server)
	for script, want := range map[string]string{
		"for a; do case $a in @*) echo \"$a 10.0.0.1 6379\";; esac; done; echo connected_clients:7; printf '\\033[2J' >&2": "  cache-0-0  master   -      -       -   7        -",
		"printf '\\033[2J' >&2; exit 3": "ask from cache-0-0: exit status 3: ?[2J",
		"yes":                           "",
	} {
		kubectl := filepath.Join(t.TempDir(), "kubectl")
		content := "#!/bin/sh\n" + strings.Replace(script, "yes", "yes | head -c 20000000", 1) + "\n"
		if err := os.WriteFile(kubectl, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		var out, wrong strings.Builder
		p := newProgram(Environment{In: strings.NewReader(""), Out: &out, Err: &wrong, Lookup: nothing, Kubectl: kubectl})
		model, err := p.load(t.Context(), to, "shop", "cache")
		text := model.Text(terminal.Page{Width: 80})
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) || strings.Contains(text+out.String()+wrong.String(), "\x1b") {
			t.Errorf("%s: %q, %q", script, text, wrong.String())
		}
	}
}

// No server takes the room of others, or ends a line that is the mark of another one.
func TestTheScriptCutsWhatServersSay(t *testing.T) {
	folder := t.TempDir()
	const endless = "#!/bin/sh\ncase $2 in 10.0.0.1) yes x | head -c 1000000;; *) printf 'used_memory:7';; esac\n"
	if err := os.WriteFile(filepath.Join(folder, "redis-cli"), []byte(endless), 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", askEach, "redis-cli", "@mark", "10.0.0.1", "6379", "10.0.0.2", "6379",
		"10.0.0.3", "6379")
	command.Env = []string{"PATH=" + folder + ":/usr/bin:/bin"}
	out, err := command.Output()
	first, rest, _ := strings.Cut(string(out), "\n@mark 10.0.0.2 6379\n")
	if want := "used_memory:7\n@mark 10.0.0.3 6379\nused_memory:7"; err != nil || rest != want || len(first) > 65536+30 {
		t.Errorf("%v: %d bytes, %q", err, len(first), rest)
	}
}

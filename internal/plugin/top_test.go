// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// What servers and the shell of a pod write is figures or an error, and none of it reaches the terminal as it is.
func TestTopShowsNothingAsItIs(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	mapper.Add(v1alpha1.GroupVersion.WithKind("RedisCluster"), meta.RESTScopeNamespace)
	server := one{cluster: v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}}
	server.cluster.Status.Nodes = []v1alpha1.NodeStatus{
		{Name: "cache-0-0", Type: "master", Status: "True", Instance: "10.0.0.1:6379"}, {Name: "cache-0-1", Type: "slave", Instance: "not yet"}}
	to := &cluster{Client: server, read: read.Reader{Reader: server, Mapper: mapper}}
	for script, want := range map[string]string{
		"echo '@ 10.0.0.1 6379'; echo connected_clients:7; printf '\\033[2J' >&2": "  cache-0-0  master   -      -       -   7        -",
		"printf '\\033[2J' >&2; exit 3":                                           "ask from cache-0-0: exit status 3: ?[2J",
		"yes":                                                                     "",
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

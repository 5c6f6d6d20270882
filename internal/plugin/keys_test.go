// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// Each master is asked in its own pod; what servers and shells write is figures, quoted names or an error, and none of it reaches the
// terminal as it is.
func TestKeysOfMasters(t *testing.T) {
	server := one{cluster: v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}}}
	server.cluster.Status.Nodes = []v1alpha1.NodeStatus{{Name: "cache-1-1", Shard: 1, Type: "master", Status: "True"},
		{Name: "cache-0-0", Type: "master", Status: "True"}, {Name: "cache-0-1", Type: "slave", Status: "True"},
		{Name: "cache-2-0", Shard: 2, Type: "master", Status: "False"}, {Name: "others-3-0", Shard: 3, Type: "master", Status: "True"}}
	const answers = `while read -r a b c; do
case $a in
ECHO) echo "\"$b\"" ;;
DBSIZE) echo '(integer) 1' ;;
SCAN) printf '1) "0"\n2) 1) "key of %s"\n' "$pod" ;;
MEMORY) case $pod in cache-0-0) echo '(integer) 56' ;; *) echo '(integer) 3000' ;; esac ;;
TYPE) echo string ;;
esac
done`
	for script, want := range map[string][]string{
		answers: {"2 of 2 keys", "shard 2: no master of it serves", `"key of cache-1-1"  2.9Ki  string  1`, `"key of cache-0-0"`},
		`case $pod in cache-0-0) printf '\033[2J' >&2; exit 3 ;; esac
` + answers: {"1 of 1 keys", "shard 0: ", "?[2J"},
		`printf '\033[2J' >&2; exit 3`: {"EOF: ?[2J"},
	} {
		kubectl := filepath.Join(t.TempDir(), "kubectl")
		const podOf = "#!/bin/sh\nfor a; do case $a in cache-*) pod=$a ;; esac; done\n"
		if err := os.WriteFile(kubectl, []byte(podOf+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := newProgram(Environment{Lookup: nothing, Kubectl: kubectl})
		model, err := p.look(t.Context(), serving(server), "shop", "cache", 5, time.Minute)
		text := model.Text(terminal.Page{Width: 80})
		if err != nil {
			text = terminal.Clean(err.Error())
		}
		for _, want := range want {
			if !strings.Contains(text, want) || strings.Contains(text, "\x1b") {
				t.Errorf("%s: no %q in %q", script, want, text)
			}
		}
	}
}

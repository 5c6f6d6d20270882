// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

var update = flag.Bool("update", false, "write testdata/*.txt anew")

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

// running is a cluster of three shards of two that serves.
func running() *v1alpha1.RedisCluster {
	cr := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "shop", Generation: 1}}
	cr.Spec.Shards = ptr.To[int32](3)
	admission.Default(cr)
	cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionFormed, Status: "True"}}
	for shard, slots := range []string{"0-5460", "5461-10922", "10923-16383"} {
		master := strings.Repeat(fmt.Sprint(shard), 40)
		cr.Status.Nodes = append(cr.Status.Nodes,
			v1alpha1.NodeStatus{Name: fmt.Sprintf("cache-%d-0", shard), Type: "master", NodeID: master, MasterNodeID: master, Slots: slots,
				Shard: int32(shard), Status: "True", Reason: "Serving", Instance: fmt.Sprintf("10.0.0.%d:6379", shard)},
			v1alpha1.NodeStatus{Name: fmt.Sprintf("cache-%d-1", shard), Type: "slave", NodeID: strings.Repeat("abc"[shard:shard+1], 40),
				MasterNodeID: master, Shard: int32(shard), Status: "True", Reason: "Serving", Instance: fmt.Sprintf("10.0.1.%d:6379", shard)})
	}
	return cr
}

// changed is the forecast of a change of that cluster.
func changed(t *testing.T, change func(*v1alpha1.RedisCluster)) Forecast {
	t.Helper()
	c := Change{Before: running(), After: running(), Now: now}
	change(c.After)
	f, err := Of(c)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func scaledOut(cr *v1alpha1.RedisCluster) {
	cr.Spec.Shards, cr.Spec.Replicas = ptr.To[int32](4), ptr.To[int32](8)
}

func newVersion(cr *v1alpha1.RedisCluster) {
	cr.Spec.Version, cr.Spec.Config = "8.2.1", map[string]string{"maxmemory-policy": "allkeys-lru"}
}

func TestScalingOut(t *testing.T) {
	f := changed(t, scaledOut)
	total := 0
	for _, move := range f.Moves {
		total += move.Count
		if move.To != "cache-3-0" {
			t.Errorf("%+v: slots move to the new shard alone", move)
		}
	}
	if total != 4096 || len(f.Moves) != 3 {
		t.Errorf("%d slots move: %+v", total, f.Moves)
	}
	if diff := cmp.Diff([]string{"cache-3-0", "cache-3-1"}, f.Added); diff != "" {
		t.Error(diff)
	}
	if len(f.Restarts)+len(f.Removed)+len(f.Refusals) != 0 {
		t.Errorf("nothing restarts or goes: %+v", f)
	}
}

func TestScalingIn(t *testing.T) {
	before := running()
	before.Spec.Shards, before.Spec.Replicas = ptr.To[int32](4), ptr.To[int32](8)
	before.Status.Nodes[0].Slots = "0-4095"
	before.Status.Nodes = append(before.Status.Nodes, v1alpha1.NodeStatus{Name: "cache-3-0", Type: "master", Shard: 3, Slots: "4096-5460",
		NodeID: strings.Repeat("d", 40), MasterNodeID: strings.Repeat("d", 40)})
	after := before.DeepCopy()
	after.Spec.Shards, after.Spec.Replicas = ptr.To[int32](3), ptr.To[int32](6)
	f, err := Of(Change{Before: before, After: after, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"cache-3-0", "cache-3-1"}, f.Removed); diff != "" {
		t.Error(diff)
	}
	for _, move := range f.Moves {
		if move.From != "cache-3-0" {
			t.Errorf("%+v: only the shard that goes gives slots", move)
		}
	}
	if len(f.Moves) == 0 {
		t.Errorf("no slot moves: %+v", f)
	}
}

// A cluster that is autoscaled from now on keeps its shards, as far as bounds allow that; a dry run does in any case.
func TestAutoscale(t *testing.T) {
	always := []v1alpha1.AutoscaleWindow{{Name: "always", Start: "0 0 * * *", Duration: metav1.Duration{Duration: 48 * time.Hour},
		MinShards: ptr.To[int32](4)}}
	for name, tt := range map[string]struct {
		autoscale v1alpha1.Autoscale
		added     []string
		note      string
	}{
		"within": {v1alpha1.Autoscale{MinShards: 3, MaxShards: 9}, nil, "there are 3 shards to begin with, and from 3 to 9"},
		"more":   {v1alpha1.Autoscale{MinShards: 4, MaxShards: 9}, []string{"cache-3-0", "cache-3-1"}, "there are 4 shards to begin with"},
		"in a window": {v1alpha1.Autoscale{MinShards: 3, MaxShards: 9, Windows: always},
			[]string{"cache-3-0", "cache-3-1"}, "from 4 to 9 as the load asks for them, while the window always is open"},
		"dry run": {v1alpha1.Autoscale{MinShards: 4, MaxShards: 9, Mode: v1alpha1.AutoscaleDryRun}, nil, "is a dry run: there are 3 shards"},
	} {
		t.Run(name, func(t *testing.T) {
			f := changed(t, func(cr *v1alpha1.RedisCluster) { cr.Spec.Shards, cr.Spec.Autoscale = nil, &tt.autoscale })
			if diff := cmp.Diff(tt.added, f.Added); diff != "" || len(f.Refusals)+len(f.Removed) != 0 ||
				!strings.Contains(strings.Join(f.Notes, "\n"), tt.note) || (len(f.Moves) > 0) != (len(tt.added) > 0) {
				t.Errorf("%+v", f)
			}
		})
	}
}

func TestRestartsAndLiveSettings(t *testing.T) {
	if f := changed(t, newVersion); len(f.Restarts) != 6 || len(f.Moves) != 0 {
		t.Errorf("another version restarts all six: %+v", f)
	}
	f := changed(t, func(cr *v1alpha1.RedisCluster) { cr.Spec.Config = map[string]string{"maxmemory-policy": "allkeys-lru"} })
	if len(f.Restarts) != 0 || len(f.Live) != 1 || f.Live[0].Path != "maxmemory-policy" {
		t.Errorf("this setting is set live: %+v", f)
	}
	f = changed(t, func(cr *v1alpha1.RedisCluster) { cr.Spec.Config = map[string]string{"databases": "32"} })
	if len(f.Restarts)+len(f.Refusals) == 0 || len(f.Live) != 0 {
		t.Errorf("this setting is read at the start, or refused: %+v", f)
	}
	f = changed(t, func(cr *v1alpha1.RedisCluster) {
		cr.Spec.Pod = []v1alpha1.PodTemplate{{Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}}}
	})
	if len(f.Restarts) != 6 {
		t.Errorf("other resources restart all six: %+v", f)
	}
	f = changed(t, func(cr *v1alpha1.RedisCluster) {
		cr.Spec.Pod = []v1alpha1.PodTemplate{{Annotations: map[string]string{"restartedAt": "2026-11-24T12:00:00Z"}}}
	})
	if len(f.Restarts) != 6 || len(f.Refusals) != 0 {
		t.Errorf("an annotation of the template restarts all six: %+v", f)
	}
}

func TestRefusals(t *testing.T) {
	f := changed(t, func(cr *v1alpha1.RedisCluster) { cr.Spec.Storage.Size = resource.MustParse("512Mi") })
	if len(f.Refusals) != 1 || !strings.Contains(f.Refusals[0], "spec.storage.size") {
		t.Errorf("a claim never shrinks: %+v", f)
	}
	f = changed(t, func(cr *v1alpha1.RedisCluster) {
		scaledOut(cr)
		cr.Spec.UpdateStrategy.Type = v1alpha1.AssignReceive
		cr.Spec.UpdateStrategy.AssignStrategies = []v1alpha1.AssignStrategy{{Slots: 100, FromReplicas: strings.Repeat("f", 40)}}
	})
	if len(f.Refusals) != 1 || !strings.Contains(f.Refusals[0], "fromReplicas") {
		t.Errorf("nobody has that node ID: %+v", f)
	}
}

func TestWhatIsNotKnownIsSaid(t *testing.T) {
	lost := running()
	lost.Status.Nodes[0].NodeID, lost.Status.Nodes[0].Slots = "", ""
	after := lost.DeepCopy()
	scaledOut(after)
	f, err := Of(Change{Before: lost, After: after, Now: now})
	if err != nil || len(f.Moves) != 0 || !strings.Contains(strings.Join(f.Notes, " "), "which slots move is not known") {
		t.Errorf("%v: %+v", err, f)
	}
	cut := running()
	cut.Status.Nodes[0].Slots = "0,2,4,6…"
	if f, err = Of(Change{Before: cut, After: after, Now: now}); err != nil || !strings.Contains(strings.Join(f.Notes, " "), "more ranges") {
		t.Errorf("%v: %+v", err, f)
	}
}

func TestTexts(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.RedisCluster){
		"scale-out": scaledOut, "version": newVersion, "same": func(*v1alpha1.RedisCluster) {},
		"refused": func(cr *v1alpha1.RedisCluster) { cr.Spec.Storage.Size = resource.MustParse("512Mi") },
	} {
		for _, width := range []int{80, 160} {
			t.Run(fmt.Sprintf("%s at %d columns", name, width), func(t *testing.T) {
				got := changed(t, change).Text(terminal.Page{Width: width})
				path := filepath.Join("testdata", fmt.Sprintf("%s-%d.txt", name, width))
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("write it anew with -update (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

var update = flag.Bool("update", false, "write testdata/*.txt anew")

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// healthy is a cluster of three shards of two that serves.
func healthy() Seen {
	cr := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "shop", Generation: 3, UID: "c1",
		CreationTimestamp: ago(76 * time.Hour)}}
	cr.Status = v1alpha1.RedisClusterStatus{
		ObservedGeneration: 3, Phase: v1alpha1.PhaseRunning, Reason: "all 6 instances serve", Replicas: 6, Shards: 3, Slots: 16384,
		Instances: "6/6", Engine: "redis", CurrentVersion: "8.0.6", TargetVersion: "8.0.6",
		Plan:       &v1alpha1.PlanStatus{Step: "None", Reason: "nothing is left to do"},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: "True"}, {Type: v1alpha1.ConditionFormed, Status: "True"}},
	}
	seen := Seen{Cluster: cr, Now: now, Memory: map[string]resource.Quantity{}}
	for shard, slots := range []string{"0-5460", "5461-10922", "10923-16383"} {
		for ordinal := range 2 {
			seen.add(shard, ordinal, slots)
		}
	}
	return seen
}

// add is one more instance that serves.
func (s *Seen) add(shard, ordinal int, slots string) {
	name := fmt.Sprintf("cache-%d-%d", shard, ordinal)
	node := v1alpha1.NodeStatus{Name: name, Type: "master", Shard: int32(shard), NodeID: strings.Repeat(fmt.Sprint(shard+1), 40),
		Slots: slots, Instance: fmt.Sprintf("10.0.%d.%d:6379", shard, ordinal+1), Hostname: fmt.Sprintf("node-%d", ordinal+1),
		Status: "True", Reason: "Serving"}
	if ordinal > 0 {
		node.Type, node.Slots = "slave", ""
	}
	s.Cluster.Status.Nodes = append(s.Cluster.Status.Nodes, node)
	container := corev1.Container{Name: redisContainer, Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}}}
	s.Pods = append(s.Pods, corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelTopologyZone: "eu-1a"}},
		Spec:       corev1.PodSpec{NodeName: node.Hostname, Containers: []corev1.Container{container}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: redisContainer, RestartCount: int32(shard)}}}})
	storage := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	s.Claims = append(s.Claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-" + name},
		Spec:   corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: storage("1Gi")}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: storage("1Gi")}})
	s.Memory[name] = resource.MustParse(fmt.Sprintf("%dMi", 90+10*shard+ordinal))
}

// scaling is a cluster that gets a fourth shard.
func scaling() Seen {
	seen := healthy()
	seen.add(3, 0, "")
	seen.add(3, 1, "")
	status := &seen.Cluster.Status
	status.Phase, status.Reason, status.Instances = v1alpha1.PhaseScaling, "3072 slots are left to move", "8/8"
	status.Nodes[0].Slots, status.Nodes[6].Slots = "0-4095", "4096-5460"
	status.Plan = &v1alpha1.PlanStatus{Step: "MoveSlots",
		Reason: "2731 slots are left to move: 1366 from cache-1-0 to cache-3-0, 1365 from cache-2-0",
		Moves: []v1alpha1.MoveStatus{{From: "cache-1-0", To: "cache-3-0", Count: 1366, Slots: "9557-10922"},
			{From: "cache-2-0", To: "cache-3-0", Count: 1365, Slots: "15019-16383"}},
		Settings: []v1alpha1.SettingChange{{Name: "maxmemory", From: "100mb", To: "200mb", ApplyMethod: "Live"}}}
	status.Migration = &v1alpha1.MigrationStatus{FromShards: 3, ToShards: 4, Method: v1alpha1.MigrationAtomic, SlotsTotal: 4096,
		SlotsLeft:      2731,
		SlotsPerSecond: 120, EstimatedEndTime: ptr.To(metav1.NewTime(now.Add(23 * time.Second)))}
	status.Autoscale = &v1alpha1.AutoscaleStatus{Shards: 4, Wanted: ptr.To[int32](6),
		Window: "day", MinShards: 4, MaxShards: 9,
		NotBefore: ptr.To(metav1.NewTime(now.Add(50 * time.Second))), Reason: "shard 2 bears more than the target of Memory"}
	status.Rollout = &v1alpha1.RolloutStatus{Updated: 2, Total: 8, LastProgressTime: ago(9 * time.Second)}
	seen.Claims[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	seen.Events = []corev1.Event{{Type: "Normal", Reason: "RecordGoal", Message: "4096 slots are to move, so that 4 shards own them",
		InvolvedObject: corev1.ObjectReference{Kind: "RedisCluster", Name: "cache"}, LastTimestamp: ago(11 * time.Second), Count: 1}}
	return seen
}

// broken is a cluster that has lost a shard, and whose texts mean harm.
func broken() Seen {
	seen := healthy()
	status := &seen.Cluster.Status
	status.Phase, status.Instances, status.Slots = v1alpha1.PhaseFailed, "3/6", 10923
	status.Reason = "slots 0-5460 have no owner \x1b]0;owned\x07 that answers"
	status.Nodes[0] = v1alpha1.NodeStatus{Name: "cache-0-0", Status: "False", Reason: "NotRunning",
		Message: "not scheduled: 0/3 nodes are available: 3 Insufficient memory. \u202epreemption\r\n is not helpful"}
	status.Nodes[1] = v1alpha1.NodeStatus{Name: "cache-0-1", Status: "Unknown", Reason: "NotReached",
		Message: "dial tcp 10.0.0.2:6379: i/o timeout"}
	behind := &status.Nodes[3]
	behind.Status, behind.Reason, behind.Message = "False", "NotInSync", "the replica is not in sync with its master"
	status.Conditions = append(status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionStalled, Status: "True", Reason: "DataLost",
			Message: "volumes of shard 0 have come back empty: mount the data and delete the pods, or give the data up"},
		metav1.Condition{Type: v1alpha1.ConditionMastersSpread, Status: "False", Reason: "NotEnoughNodes",
			Message: "three masters need three nodes"})
	status.Plan = &v1alpha1.PlanStatus{Step: "Wait", Reason: "cache-0-0 does not run", BlockedBy: "snapshot_complete"}
	status.CertificateNotAfter = ptr.To(metav1.NewTime(now.Add(40 * time.Hour)))
	seen.Cluster.Generation, seen.Cluster.Spec.Pause = 4, true
	seen.Claims[0].Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	seen.Memory = nil
	seen.Unread = []Unread{{What: "memory", Why: `you may not: pods.metrics.k8s.io is forbidden: User "eve" cannot list resource "pods"`}}
	seen.Events = []corev1.Event{
		{Type: "Warning", Reason: "FailedScheduling", Message: "0/3 nodes are available\x1b[31m", LastTimestamp: ago(50 * time.Second), Count: 17,
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "cache-0-0"}},
		{Type: "Warning", Reason: "DataLost", Message: "volumes have come back empty", EventTime: metav1.NewMicroTime(now.Add(-time.Hour)),
			InvolvedObject: corev1.ObjectReference{Kind: "RedisCluster", Name: "cache"}}}
	return seen
}

// fresh is a cluster that nobody looks after.
func fresh() Seen {
	return Seen{Now: now, Cluster: &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "shop", Generation: 1,
		CreationTimestamp: ago(3 * time.Minute)}}}
}

func objects() SeenList {
	made := func(kind, namespace, name, content string) unstructured.Unstructured {
		o := unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(content), &o.Object); err != nil {
			panic(err)
		}
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName(name)
		o.SetCreationTimestamp(ago(26 * time.Hour))
		return o
	}
	return SeenList{Now: now, AllNamespaces: true, Objects: []unstructured.Unstructured{
		made("RedisCluster", "shop", "cache", `{"status": {"phase": "Running", "reason": "all 6 instances serve", "conditions": [{"type": "Ready", "status": "True", "reason": "Healthy"}]}}`),
		made("RedisCluster", "shop", "old", `{"spec": {"pause": true}, "status": {"phase": "Paused", "reason": "spec.pause is true", "conditions": [{"type": "Ready", "status": "True"}]}}`),
		made("App", "web", "front", `{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NotReady", "message": "Deployment front: container app: ErrImagePull: no such image\u001b[2J", "lastTransitionTime": "2026-11-24T11:00:00Z"}]}}`),
		made("CronTab", "web", "nightly", `{"status": {"conditions": "of another form"}}`),
		made("FooBar", "web", "once", `{"metadata": {"annotations": {"middleware.hc.cn/pause": "true"}}}`),
	}, Unread: []Unread{{What: "Application", Why: "the cluster has no Application: its CustomResourceDefinition is not installed"}}}
}

// texts are what is shown, by the name of its golden file.
func texts() map[string]func(terminal.Page) string {
	all := map[string]func(terminal.Page) string{}
	for name, seen := range map[string]Seen{"healthy": healthy(), "scaling": scaling(), "broken": broken(), "fresh": fresh()} {
		all[name] = func(page terminal.Page) string { return Of(seen).Text(page, now) }
	}
	list := objects()
	all["list"] = func(page terminal.Page) string { return ListOf(list).Text(page, now) }
	all["object"] = func(page terminal.Page) string { return ObjectOf(&list.Objects[2]).Text(page, now) }
	return all
}

func TestTexts(t *testing.T) {
	for name, text := range texts() {
		for _, width := range []int{80, 160} {
			t.Run(fmt.Sprintf("%s at %d columns", name, width), func(t *testing.T) {
				got := text(terminal.Page{Width: width})
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
				for line := range strings.Lines(got) {
					if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width && !strings.Contains(line, "$ kubectl") {
						t.Errorf("%d columns: %q", n, line)
					}
				}
			})
		}
	}
}

// On a terminal there are colours; test/documents makes a picture of it.
func TestColours(t *testing.T) {
	got := Of(scaling()).Text(terminal.Page{Width: 100, Colour: true}, now)
	path := filepath.Join("testdata", "scaling-colours.txt")
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
}

// What -o json prints has golden files, too; test/browser shows them.
func TestModels(t *testing.T) {
	list := objects()
	for name, model := range map[string]any{"healthy": Of(healthy()), "scaling": Of(scaling()), "broken": Of(broken()), "list": ListOf(list)} {
		got, err := json.MarshalIndent(model, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(path, append(got, '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
			t.Errorf("%s: write it anew with -update (-want +got):\n%s", name, diff)
		}
	}
}

// Without colours there is nothing but what prints; with them, nothing else but them. Either says the same.
func TestNothingOfOthersReachesTheTerminal(t *testing.T) {
	for name, text := range texts() {
		plain, coloured := text(terminal.Page{Width: 80}), text(terminal.Page{Width: 80, Colour: true})
		for _, style := range []terminal.Style{terminal.Good, terminal.Note, terminal.Warn, terminal.Bad, terminal.Head, terminal.Faint,
			"35", "34", "0"} {
			coloured = strings.ReplaceAll(coloured, "\x1b["+string(style)+"m", "")
		}
		if strings.ContainsAny(plain, "\x1b\x07\r\u202e\u009b") {
			t.Errorf("%s: %q", name, plain)
		}
		if diff := cmp.Diff(plain, coloured); diff != "" {
			t.Errorf("%s says something else in colours:\n%s", name, diff)
		}
	}
}

func TestBandSaysWhoOwnsWhat(t *testing.T) {
	seen := healthy()
	seen.Cluster.Status.Nodes[0].Slots = "0-5000"           // the rest has no owner
	seen.Cluster.Status.Nodes[2].Slots = "5461-10922,16383" // the last slot belongs to another shard
	seen.Cluster.Status.Nodes[4].Slots = "10923-16382"      //
	band := Of(seen).band(terminal.Page{Width: 80})
	for _, want := range []string{"0 0000", "!!1", "2222+ 16383"} {
		if !strings.Contains(band, want) {
			t.Errorf("%q is not in %q", want, band)
		}
	}
	seen.Cluster.Status.Nodes[0].Slots = "0-50…" // cut off: not known
	if band := Of(seen).band(terminal.Page{Width: 80}); !strings.Contains(band, "0 !!!!") {
		t.Errorf("%q", band)
	}
}

// A cluster of a thousand instances has a text that a person can look at.
func TestLargestCluster(t *testing.T) {
	seen := healthy()
	for shard := 3; shard < 500; shard++ {
		seen.add(shard, 0, fmt.Sprint(shard))
	}
	for i := range seen.Cluster.Status.Nodes {
		seen.Cluster.Status.Nodes[i].Reason = "NotReached"
	}
	text := Of(seen).Text(terminal.Page{Width: 80}, now)
	if lines := strings.Count(text, "\n"); lines > 1100 {
		t.Errorf("%d lines", lines)
	}
}

// What is to be typed holds no name of the status that is none of an instance.
func TestNoNameIsTypedThatIsNone(t *testing.T) {
	seen := healthy()
	for _, name := range []string{"cache-0-0; rm -rf ~", "$(id)-0-0", "--help", "other-0-0", "cache-0-0\nrm"} {
		for _, reason := range []string{"NotReached", "Unknown", "NotRunning"} {
			seen.Cluster.Status.Nodes = append(seen.Cluster.Status.Nodes, v1alpha1.NodeStatus{Name: name, Status: "False", Reason: reason})
		}
	}
	model := Of(seen)
	for _, finding := range model.Findings {
		t.Errorf("%q: %q", finding.Message, finding.Type)
	}
	for _, shard := range model.Shards {
		if len(shard.Instances) != 2 {
			t.Errorf("shard %d has %d instances", shard.Number, len(shard.Instances))
		}
	}
}

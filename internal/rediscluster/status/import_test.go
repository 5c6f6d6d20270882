// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// What was written down of a cut-over stays; before that, the lag is told as long as it is known.
func TestImporting(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	const address = "redis:6379"
	over := &v1alpha1.ImportStatus{Phase: v1alpha1.ImportCutOver, Address: address, CutOverAt: &metav1.Time{Time: at}}
	followed := &v1alpha1.ImportStatus{Phase: v1alpha1.ImportFollowing, Address: address, Version: "redis 7.0.15"}
	instance := []snapshot.Instance{{Redis: &snapshot.Redis{Offset: 900, MasterLinkUp: true}}}
	source := &snapshot.Import{Shards: []snapshot.ImportShard{{Source: &snapshot.Source{Engine: "redis", Version: "7.0.15", Offset: 1000,
		History: "aa"}}}}
	counted := over.DeepCopy()
	counted.MissedBytes = ptr.To[int64](5)
	since := []snapshot.Instance{{Redis: &snapshot.Redis{FormerHistory: "aa", FormerOffset: 993}}}
	known := with(followed, nil)
	known.Version, known.Slots = "", []string{"0-99", "100-16383"}
	shards := []snapshot.Shard{{}}
	for name, tt := range map[string]struct {
		before *v1alpha1.ImportStatus
		gone   bool
		snap   snapshot.Snapshot
		step   plan.Step
		want   *v1alpha1.ImportStatus
	}{
		"it begins": {snap: snapshot.Snapshot{Import: &snapshot.Import{}},
			want: &v1alpha1.ImportStatus{Phase: v1alpha1.ImportPreparing, Address: address}},
		"it is prepared": {step: plan.KeepFollower{}, want: &v1alpha1.ImportStatus{Phase: v1alpha1.ImportFollowing, Address: address}},
		"it follows": {snap: snapshot.Snapshot{Import: source, Instances: instance, Shards: shards}, want: with(followed,
			ptr.To[int64](100))},
		"nobody answers": {before: with(followed, ptr.To[int64](100)), snap: snapshot.Snapshot{Import: &snapshot.Import{},
			Shards: shards}, want: followed},
		"it takes over": {before: followed, snap: snapshot.Snapshot{Import: &snapshot.Import{}, Shards: shards},
			step: plan.RecordCutOver{Missed: ptr.To[int64](0)}, want: &v1alpha1.ImportStatus{Phase: v1alpha1.ImportCutOver, Address: address,
				Version: "redis 7.0.15", CutOverAt: &metav1.Time{Time: at}, MissedBytes: ptr.To[int64](0)}},
		"two are prepared": {step: plan.KeepFollower{Slots: []slots.Set{slots.Range(0, 99), slots.Range(100, 16383)}}, want: known},
		"that is kept":     {before: known, snap: snapshot.Snapshot{Shards: shards}, want: known},
		"another is named": {before: with(followed, ptr.To[int64](100)), snap: snapshot.Snapshot{Import: &snapshot.Import{Other: "b:1"},
			Shards: shards}, want: with(followed, ptr.To[int64](100))},
		"another is named, and nothing was written down": {snap: snapshot.Snapshot{Import: &snapshot.Import{Other: "b:1"}}},
		"it is counted on": {before: counted, snap: snapshot.Snapshot{Formed: true, Import: source, Instances: since},
			want: missing(over, 7)},
		"that stays":           {before: missing(over, 7), snap: snapshot.Snapshot{Formed: true, Import: source}, want: missing(over, 7)},
		"it took over":         {before: over, snap: snapshot.Snapshot{Import: source, Instances: instance}, want: over},
		"it was removed":       {before: over, gone: true, want: over},
		"there is none":        {gone: true},
		"it was formed before": {snap: snapshot.Snapshot{Formed: true}},
	} {
		cluster := &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{Import: tt.before}}
		if !tt.gone {
			cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: address}}
		}
		got := importing(cluster, Reconciliation{Snapshot: &tt.snap, Decision: plan.Decision{Step: tt.step}}, at)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func missing(is *v1alpha1.ImportStatus, bytes int64) *v1alpha1.ImportStatus {
	is = is.DeepCopy()
	is.MissedBytes = &bytes
	return is
}

func with(is *v1alpha1.ImportStatus, lag *int64) *v1alpha1.ImportStatus {
	is = is.DeepCopy()
	is.LagBytes = lag
	return is
}

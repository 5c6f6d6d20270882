// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// TestSetConfig: what an engine refuses is told, and does not keep the rest from being done; what it shows in other words is
// told too.
func TestSetConfig(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	b.nodes[0].ShowAs("slowlog-max-len", "128")
	settings := map[string]string{"maxmemory": "64mb", "maxmemory-policy": "least-loved", "tcp-backlog": "128", "slowlog-max-len": "64"}
	result, err :=
		b.actor.Do(t.Context(), b.subject,
			plan.SetConfig{Changes: []plan.InstanceConfig{{On: b.targets[0], Engine: "redis 7.0.15", Settings: settings}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range result.Refusals {
		if !strings.Contains(r.Message, "CONFIG SET failed") || strings.Contains(r.Message, b.targets[0].IP) || time.Since(r.At) > time.Hour {
			t.Errorf("refusal %+v", r)
		}
	}
	want := Result{Acted: true, Normalized: []Normalized{{Name: "slowlog-max-len", Value: "64", Shown: "128"}}, Refusals: []snapshot.Refusal{
		{Name: "maxmemory-policy", Value: "least-loved", Engine: "redis 7.0.15"},
		{Name: "tcp-backlog", Value: "128", Engine: "redis 7.0.15", Immutable: true},
	}}
	if diff := cmp.Diff(want, result, cmpopts.IgnoreFields(snapshot.Refusal{}, "Message", "At")); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if b.nodes[0].Setting("maxmemory") != "67108864" || b.nodes[0].Setting("slowlog-max-len") != "64" ||
		b.nodes[1].Setting("maxmemory") != "0" {
		t.Errorf("maxmemory %s, of another instance %s", b.nodes[0].Setting("maxmemory"), b.nodes[1].Setting("maxmemory"))
	}
	var changes []plan.InstanceConfig
	for _, target := range b.targets {
		changes = append(changes, plan.InstanceConfig{On: target, Settings: map[string]string{"tcp-backlog": "128"}})
	}
	if result, err = b.actor.Do(t.Context(), b.subject, plan.SetConfig{Changes: changes}); err != nil || len(result.Refusals) != len(changes) {
		t.Errorf("refusals of each instance: %+v, %v", result.Refusals, err)
	}
}

// TestSetConfigOfAnother: whoever answers at the address by now is told nothing, and a lost
// connection is an error, not a refusal.
func TestSetConfigOfAnother(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	other := b.targets[0]
	other.NodeID = strings.Repeat("f", 40)
	if _, err :=
		b.actor.Do(t.Context(), b.subject,
			plan.SetConfig{Changes: []plan.InstanceConfig{{On: other, Settings: map[string]string{"hz": "20"}}}}); err == nil {
		t.Error("no error")
	}
	b.world.FailNext(b.nodes[0], "CONFIG SET", redistest.Failure{Kind: redistest.DropBefore})
	result, err :=
		b.actor.Do(t.Context(), b.subject,
			plan.SetConfig{Changes: []plan.InstanceConfig{{On: b.targets[0], Settings: map[string]string{"hz": "20"}}}})
	if err == nil || len(result.Refusals) > 0 {
		t.Errorf("%v, %+v", err, result)
	}
	if got := b.nodes[0].Setting("hz"); got != "10" {
		t.Errorf("hz %s", got)
	}
}

// A node that cannot listen now has nothing against a value, whenever it says so; and that it cannot be asked what is in force is told.
func TestSetConfigOfOneThatCannotListen(t *testing.T) {
	refusal := redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR CONFIG SET failed"}
	lost := redistest.Failure{Kind: redistest.DropBefore}
	loading := redistest.Failure{Kind: redistest.ReplyError, Reply: "LOADING Redis is loading the dataset in memory"}
	stranger := redistest.Failure{Kind: redistest.ReplyError, Reply: "NOAUTH Authentication required."}
	for name, answers := range map[string]map[string][]redistest.Failure{
		"it loads":                              {"CONFIG SET": {loading}},
		"it does not know us":                   {"CONFIG SET": {stranger}},
		"it refuses, and then loads":            {"CONFIG SET": {refusal, loading}},
		"it refuses, and then does not know us": {"CONFIG SET": {refusal, stranger}},
		"it refuses, and then is gone":          {"CONFIG SET": {refusal, lost}},
		"it takes it, and then is gone":         {"CONFIG GET": {lost}},
	} {
		b := newBench(t, interceptor.Funcs{})
		for command, failures := range answers {
			for _, failure := range failures {
				b.world.FailNext(b.nodes[0], command, failure)
			}
		}
		result, err := b.actor.Do(t.Context(), b.subject,
			plan.SetConfig{Changes: []plan.InstanceConfig{{On: b.targets[0], Settings: map[string]string{"hz": "20"}}}})
		if err == nil || len(result.Refusals) > 0 || len(result.Normalized) > 0 {
			t.Errorf("%s: %v, %+v", name, err, result)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// following is a bench in which node 2 follows node 0.
func following(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, interceptor.Funcs{})
	b.must(plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[0], Slots: slots.All(), Epoch: 1}}})
	b.meetAll()
	b.must(plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[2], MasterID: b.targets[0].NodeID}}})
	b.world.Run(2 * time.Second)
	return b
}

// A switchover and a promotion are watched until the replica is the master.
func TestSwitchoverIsWatched(t *testing.T) {
	for name, step := range map[string]func(*bench) plan.Step{
		"Switchover": func(b *bench) plan.Step { return plan.Switchover{Master: b.targets[0], Replica: b.targets[2]} },
		"Promote": func(b *bench) plan.Step {
			b.world.Kill(b.nodes[0])
			return plan.Promote{Replica: b.targets[2], Takeover: true}
		},
	} {
		b := following(t)
		b.actor.SwitchoverWithin = time.Minute
		looks := 0
		b.world.OnCommand(func(n *redistest.Node, args []string) {
			if n == b.nodes[2] && strings.EqualFold(strings.Join(args, " "), "CLUSTER NODES") {
				if looks++; looks == 1 { // the first look gets no answer, which says nothing
					b.world.FailNext(n, "CLUSTER NODES", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
				}
				if looks > 2 { // at the second look it is a replica still
					b.world.Run(500 * time.Millisecond)
				}
			}
		})
		b.must(step(b))
		if looks < 2 {
			t.Errorf("%s: looked %d times", name, looks)
		}
		b.world.OnCommand(nil)
		if view := b.view(2); view.Role != redis.RoleMaster {
			t.Errorf("%s: it is not waited until the replica is a %s", name, view.Role)
		}
	}
}

// What a switchover cannot do is told, and before the replica was asked nothing has changed.
func TestSwitchoverTellsWhatFails(t *testing.T) {
	for _, tt := range []struct {
		node    int
		command string
		says    string
	}{
		{0, "CLUSTER MYID", "identify c-0-0"}, {2, "CLUSTER MYID", "identify c-2-0"}, {2, "CLUSTER SAVECONFIG", "c-2-0 cannot take over"},
		{0, "CONFIG SET", "prepare c-0-0"}, {2, "CLUSTER FAILOVER", "switch over to c-2-0"},
	} {
		b := following(t)
		b.world.FailNext(b.nodes[tt.node], tt.command, redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
		failovers := b.told("CLUSTER FAILOVER")
		err := b.do(plan.Switchover{Master: b.targets[0], Replica: b.targets[2]})
		if err == nil || !strings.Contains(err.Error(), tt.says) || len(*failovers) > 0 && tt.command != "CLUSTER FAILOVER" {
			t.Errorf("%s of node %d: %v, told %v", tt.command, tt.node, err, *failovers)
		}
		if view := b.view(0); view.Role != redis.RoleMaster {
			t.Errorf("%s of node %d: the master is a %s", tt.command, tt.node, view.Role)
		}
	}
}

// The request that was decided on is taken away, and none that was made since; annotations of others stay, and what is written next is
// based on that.
func TestEndSwitchover(t *testing.T) {
	for asked, left := range map[string]map[string]string{
		"c-0-1": {"example.com/theirs": "stays"},
		"c-1-1": {"example.com/theirs": "stays", v1alpha1.AnnotationSwitchover: "c-1-1"},
	} {
		b := newBench(t, interceptor.Funcs{})
		b.subject.Cluster.Annotations = map[string]string{"example.com/theirs": "stays", v1alpha1.AnnotationSwitchover: asked}
		if err := b.actor.Client.Update(t.Context(), b.subject.Cluster); err != nil {
			t.Fatal(err)
		}
		b.must(plan.EndSwitchover{Instance: "c-0-1"})
		b.must(plan.AddFinalizer{})
		var after v1alpha1.RedisCluster
		if err := b.actor.Client.Get(t.Context(), client.ObjectKeyFromObject(b.subject.Cluster), &after); err != nil {
			t.Fatal(err)
		}
		for _, annotations := range []map[string]string{after.Annotations, b.subject.Cluster.Annotations} {
			if diff := cmp.Diff(left, annotations); diff != "" {
				t.Errorf("%s is asked for: annotations (-want +got):\n%s", asked, diff)
			}
		}
	}
}

// Certificates are read again by every instance, and one that does not is named.
func TestReloadCertificates(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	told := b.told("CONFIG SET TLS-CERT-FILE")
	b.must(plan.ReloadCertificates{On: b.targets[:2]})
	if len(*told) != 2 {
		t.Errorf("told %v", *told)
	}
	b.world.FailNext(b.nodes[1], "CONFIG SET", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
	if err := b.do(plan.ReloadCertificates{On: b.targets}); err == nil || !strings.Contains(err.Error(), "load the certificate of c-1-0") {
		t.Errorf("error %v", err)
	}
}

// A stage of TLS reaches every instance by one command; when one is not there, nobody is told, and one that refuses is named.
func TestSetTLS(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	told := b.told("CONFIG SET")
	step := plan.SetTLS{}
	for _, target := range b.targets {
		step.Changes = append(step.Changes, plan.InstanceConfig{On: target,
			Settings: map[string]string{"tls-cluster": "yes", "tls-port": "6380"}})
	}
	b.must(step)
	if len(*told) != len(b.targets) {
		t.Errorf("told %v", *told)
	}
	b.world.FailNext(b.nodes[1], "CONFIG SET", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
	if err := b.do(step); err == nil || !strings.Contains(err.Error(), "change TLS of c-1-0") {
		t.Errorf("error %v", err)
	}
	before := len(*told)
	b.world.FailNext(b.nodes[1], "CLUSTER MYID", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
	if err := b.do(step); err == nil || !strings.Contains(err.Error(), "identify c-1-0") || len(*told) != before {
		t.Errorf("error %v, told %v", err, (*told)[before:])
	}
}

// Jobs are cancelled at the instances that were observed; one that does not answer is named.
func TestCancelJobs(t *testing.T) {
	b := newBench(t, interceptor.Funcs{})
	told := b.told("CLUSTER CANCELSLOTMIGRATIONS")
	b.must(plan.CancelJobs{On: b.targets[:2]})
	if len(*told) != 2 {
		t.Errorf("told %v", *told)
	}
	b.world.FailNext(b.nodes[1], "CLUSTER CANCELSLOTMIGRATIONS", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR oops"})
	if err := b.do(plan.CancelJobs{On: b.targets}); err == nil || !strings.Contains(err.Error(), "cancel the migrations of c-1-0") {
		t.Errorf("error %v", err)
	}
}

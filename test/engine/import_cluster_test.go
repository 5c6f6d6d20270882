// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/relay"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// sourceCluster is a cluster that is imported: three masters with a replica each, which announce a name, and applications that write.
type sourceCluster struct {
	*cluster
	stop  context.CancelFunc
	wait  sync.WaitGroup
	wrote atomic.Int64
}

// startSource starts it, with TLS or without, and a user for the import with the rights that it needs, and no other.
func startSource(t *testing.T, e engine, encrypted bool) *sourceCluster {
	t.Helper()
	dir, ca := t.TempDir(), newAuthority(t)
	ca.issue(dir)
	c := startClusterOf(t, newPool(t), 3, 3, 3, func(pool *redis.Pool) *server {
		busPort := freePort(t)
		s := &server{t: t, engine: e, busPort: busPort, settings: clusterMode(busPort)}
		if encrypted {
			s.secured = ca.trusted(certifiedName)
			s.settings = append(s.settings, "--tls-cluster", "yes", "--tls-replication", "yes", "--tls-auth-clients", "optional",
				"--tls-cert-file", dir+"/tls.crt", "--tls-key-file", dir+"/tls.key", "--tls-ca-cert-file", dir+"/ca.crt")
		}
		s.settings = append(s.settings, "--cluster-announce-hostname", "localhost")
		return startWith(t, pool, s)
	})
	source := &sourceCluster{cluster: c, stop: func() {}}
	if encrypted {
		c.tls = ca.clients()
	}
	for i := range c.servers {
		must(t, source.at(i).ACLSetUser(t.Context(), "import",
			append([]string{"reset", "on", ">import-password"}, strings.Fields(redis.RightsToImport)...)...).Err())
	}
	return source
}

func (s *sourceCluster) login() redis.Credentials {
	return redis.Credentials{User: "import", Password: "import-password", TLS: s.servers[0].secured}
}

// at is a client of one server.
func (s *sourceCluster) at(i int) *goredis.Client {
	client := goredis.NewClient(&goredis.Options{Addr: s.servers[i].addr(), Password: password, MaxRetries: -1, Protocol: 2,
		DisableIdentity: true, TLSConfig: s.tls, ReadTimeout: time.Minute})
	s.t.Cleanup(func() { _ = client.Close() }) // the test is over either way
	return client
}

// write begins to write, all over the slots.
func (s *sourceCluster) write() {
	ctx, stop := context.WithCancel(s.t.Context())
	s.stop = stop
	client := s.clientAsking(time.Second)
	for w := range 4 {
		s.wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				tag := fmt.Sprintf("{%d:%d}", w, n%400)
				pipe := client.TxPipeline()
				pipe.Incr(ctx, "counter"+tag)
				pipe.MSet(ctx, "a"+tag, n, "b"+tag, n)
				pipe.RPush(ctx, "list"+tag, n)
				pipe.LTrim(ctx, "list"+tag, -20, -1)
				pipe.Set(ctx, "short:"+tag, n, 50*time.Millisecond)
				if _, err := pipe.Exec(ctx); err == nil {
					s.wrote.Add(1)
				}
				if n%7 == 0 {
					client.Del(ctx, "a"+tag)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// same compares every key of each master with the instance that took its slots over.
func (s *sourceCluster) same(o *operated, owned []slots.Set) {
	s.t.Helper()
	for i := range s.servers {
		view, err := s.node(i).Describe(s.t.Context())
		if err != nil || view.Slots.IsEmpty() {
			continue // it is a replica, or was killed
		}
		for shard, set := range owned {
			if set.Equal(view.Slots) {
				first := o.named(shard, 0)
				eventually(s.t, func() error { // half a second after it took over
					state := o.view(first).ClusterState
					return want(state == redis.ClusterOK, "%s: %s", first.pod.Name, state)
				})
				if keys := compareDumps(o.t, s.at(i), o.direct(first)); keys < 300 {
					o.t.Errorf("only %d keys of shard %d were compared", keys, shard)
				}
			}
		}
	}
}

// importing is a cluster that follows a source, with what its shards begin with.
func importing(t *testing.T, e engine, asked v1alpha1.Topology, source *sourceCluster) (*operated, []slots.Set) {
	t.Helper()
	o := prepared(t, e, asked)
	o.imports(source.servers[0].addr(), source.login())
	whole := &relay.Source{Pool: o.pool, Address: o.source, Login: func(string) redis.Credentials { return o.login }}
	found, err := whole.Shards(t.Context())
	must(t, err)
	var owned []slots.Set
	for _, shard := range found {
		owned = append(owned, shard.Slots)
	}
	if len(owned) != 3 {
		t.Fatalf("the source has shards %v", owned)
	}
	o.follows(v1alpha1.Topology{2, 1, 1}, owned...)
	return o, owned
}

// grown lets the operator work until the cluster has formed, and then until there is the shard that is asked for beside those of the
// source.
func (o *operated) grown() {
	o.t.Helper()
	eventually(o.t, func() error {
		step := o.reconcile()
		return want(meta.IsStatusConditionTrue(o.cluster.Status.Conditions, v1alpha1.ConditionFormed), "%s: %s", step.Name(), step.Why())
	})
	if o.engine.name != "valkey-9.1" { // the others move slots key by key, which takes a minute
		return
	}
	o.beginShard(3, 1, func(int, string) {})
	o.converge()
}

// TestClusterImportsACluster: a new cluster follows another one, with TLS, that is written to, shard by shard, and takes over from all of
// its masters at one moment: every key is there, also when it has another number of shards than the source in the end.
func TestClusterImportsACluster(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		source := startSource(t, e, true)
		typed := everyType(t, source.client(), "one")
		o, owned := importing(t, e, v1alpha1.Topology{2, 1, 1, 1}, source)
		source.write()
		o.following()
		time.Sleep(2 * time.Second) // so that there are streams behind the bases
		if is := o.cluster.Status.Import; is == nil || is.Phase != v1alpha1.ImportFollowing || is.LagBytes == nil || len(is.Slots) != 3 {
			t.Errorf("while it follows: %+v", is)
		}
		o.cluster.Spec.Bootstrap.Import.CutOver = true
		o.until("RecordCutOver")
		t.Logf("%d transactions before", source.wrote.Load())
		if is := o.cluster.Status.Import; is.CutOverAt == nil || is.MissedBytes == nil || *is.MissedBytes > 500 { // pings of replicas
			t.Errorf("after the cut-over: %+v", is)
		}
		source.same(o, owned)
		before := contents(t, source.client(), typed)
		source.stop()
		source.wait.Wait()
		o.grown()
		after := contents(t, o.client(), typed)
		for key, value := range before {
			if after[key] != value {
				t.Errorf("%s is %q, and was %q", key, after[key], value)
			}
		}
		for _, p := range o.pods {
			if view := o.view(p); len(view.Peers) != len(o.pods) {
				t.Errorf("%s knows %d nodes: %+v", p.pod.Name, len(view.Peers), view.Peers)
			}
		}

		// What waited for the end of the pause is counted, and then the relays go.
		for i := range 3 {
			must(t, source.at(i).ClientUnpause(t.Context()).Err())
		}
		must(t, source.client().Set(t.Context(), "afterwards", strings.Repeat("x", 1000), 0).Err())
		missed := func() int64 { return *o.cluster.Status.Import.MissedBytes }
		eventually(t, func() error { o.reconcile(); return want(missed() >= 1000, "%d bytes are missed", missed()) })
		if n := o.client().Exists(t.Context(), "afterwards").Val(); n != 0 {
			t.Error("the cluster still follows the source")
		}
		o.cluster.Status.Import.CutOverAt.Time = time.Now().Add(-time.Minute)
		o.until("EndImport")
		if missed() < 1000 {
			t.Errorf("%d bytes are missed in the end", missed())
		}
	})
}

// TestImportOfAClusterGoesOn: the source fails over while it is followed, a slot moves there and back, and the operator ends when one of
// three shards has taken over.
func TestImportOfAClusterGoesOn(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		source := startSource(t, e, false)
		o, owned := importing(t, e, v1alpha1.Topology{2, 1, 1}, source)
		source.write()
		o.following()

		// A master is lost, and with it the address of the import: the shard is followed at its replica.
		source.servers[0].kill()
		eventually(t, func() error {
			view, err := source.node(3).Describe(t.Context())
			return want(err == nil && view.Slots.Equal(owned[0]), "the replica has not taken over: %v", err)
		})
		wrote := source.wrote.Load()
		eventually(t, func() error { return want(source.wrote.Load() > wrote+50, "nothing is written") })
		o.following()

		// A slot moves: it is waited, then told; and when it is back, all goes on.
		moved := slots.Of(owned[1].Ranges()[0].First)
		complete(t, reshard.Classic, reshard.Options{}, source.move(1, 2, moved))
		eventually(t, func() error {
			step, stalls := o.reconcile().(plan.Stall)
			return want(stalls && step.Cause == "CannotImport" && strings.Contains(step.Reason, "move slots back"), "%v", o.steps)
		})
		complete(t, reshard.Classic, reshard.Options{}, source.move(2, 1, moved))
		eventually(t, func() error {
			step, waits := o.reconcile().(plan.Wait)
			return want(waits && step.BlockedBy == plan.CutOverAsked, "%v", o.steps[max(0, len(o.steps)-5):])
		})

		// Writes are paused, one instance takes over, and the operator ends.
		for _, i := range []int{3, 1, 2} {
			must(t, source.node(i).PauseWrites(t.Context(), time.Minute))
		}
		second := o.named(1, 0)
		eventually(t, func() error {
			there, err := source.node(1).Outside(t.Context())
			must(t, err)
			here, err := o.node(second).Outside(t.Context())
			must(t, err)
			return want(there.At == here.At, "the follower is at %v, and the server at %v", here.At, there.At)
		})
		must(t, o.node(second).Failover(t.Context(), redis.FailoverTakeover))
		o.memory = rediscluster.Memory{}
		o.until("RecordCutOver")
		if is := o.cluster.Status.Import; is.MissedBytes == nil || *is.MissedBytes > 500 { // pings of replicas
			t.Errorf("after the cut-over: %+v", is)
		}
		source.same(o, owned)
		source.stop()
		source.wait.Wait()
	})
}

// TestSourceOfAHalfIsGone: the whole source is lost when one of three shards has taken over. A person who says so gets what the others
// hold, and a cluster.
func TestSourceOfAHalfIsGone(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		source := startSource(t, e, false)
		o, owned := importing(t, e, v1alpha1.Topology{2, 1, 1}, source)
		const keys = 300
		for i := range keys {
			must(t, source.client().Set(t.Context(), fmt.Sprintf("kept:%d", i), i, 0).Err())
		}
		o.following()
		eventually(t, func() error {
			o.reconcile()
			lag := o.cluster.Status.Import.LagBytes
			return want(lag != nil && *lag == 0, "%+v", o.cluster.Status.Import)
		})
		must(t, o.node(o.named(1, 0)).Failover(t.Context(), redis.FailoverTakeover))
		for _, s := range source.servers {
			s.kill()
		}
		var word string
		for _, down := range []time.Duration{45 * time.Second, 90 * time.Second, 2 * time.Minute} {
			eventually(t, func() error {
				step, waits := o.reconcile().(plan.Wait)
				_, word, _ = strings.Cut(step.Why(), "set the annotation "+v1alpha1.AnnotationGiveUpSource+" to ")
				for _, shard := range []int{0, 2} {
					if view := o.view(o.named(shard, 0)); view.MasterLinkDownFor < down {
						return fmt.Errorf("the link of shard %d is down for %s: %s", shard, view.MasterLinkDownFor, step.Why())
					}
				}
				return want(waits && strings.HasSuffix(word, "-0-2") == (down == 2*time.Minute), "%v: %s", o.steps[max(0, len(o.steps)-5):],
					step.Why())
			})
		}
		o.cluster.Annotations = map[string]string{v1alpha1.AnnotationGiveUpSource: word}
		o.until("RecordCutOver")
		if is := o.cluster.Status.Import; is.CutOverAt == nil || is.MissedBytes != nil {
			t.Errorf("after it was given up: %+v", is)
		}
		eventually(t, func() error {
			step := o.reconcile()
			return want(meta.IsStatusConditionTrue(o.cluster.Status.Conditions, v1alpha1.ConditionFormed), "%s: %s", step.Name(), step.Why())
		})
		for shard, set := range owned {
			if view := o.view(o.named(shard, 0)); !view.Slots.Equal(set) {
				t.Errorf("shard %d has slots %s, want %s", shard, view.Slots, set)
			}
		}
		client := o.client()
		for i := range keys {
			if value := client.Get(t.Context(), fmt.Sprintf("kept:%d", i)).Val(); value != fmt.Sprint(i) {
				t.Errorf("kept:%d is %q", i, value)
			}
		}
	})
}

// TestClusterIsCloned: a clone has all shards of a cluster as they were at one moment, while that goes on to be written to.
func TestClusterIsCloned(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		source := startSource(t, e, false)
		ch := startChain(source.cluster)
		o, _ := importing(t, e, v1alpha1.Topology{2, 1, 1}, source)
		o.cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Clone: &v1alpha1.Clone{Name: "source"}}
		o.cluster.Status.Import.Address = o.cluster.SourceAddress()
		before := ch.acknowledged()
		o.until("RecordCutOver")
		took := ch.acknowledged()
		o.until("EndImport")
		eventually(t, func() error { return want(ch.acknowledged()[0] > took[0], "the source does not go on") })
		ch.end()
		eventually(t, func() error {
			step := o.reconcile()
			return want(meta.IsStatusConditionTrue(o.cluster.Status.Conditions, v1alpha1.ConditionFormed), "%s: %s", step.Name(), step.Why())
		})
		ch.wantWhole(t, o.client(), before)
		if is := o.cluster.Status.Import; is.MissedBytes != nil || is.CutOverAt == nil {
			t.Errorf("after it: %+v", is)
		}
	})
}

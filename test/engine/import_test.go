// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/relay"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// outside is a server that is imported, with applications that write to it.
type outside struct {
	*server
	client *goredis.Client
	stop   context.CancelFunc
	wait   sync.WaitGroup
	// wrote are how many writes were acknowledged, last when the last one was.
	wrote, last atomic.Int64
}

// startOutside starts a server with TLS, a user for the import with the rights that it needs, and no other.
func startOutside(t *testing.T, e engine, pool *redis.Pool) *outside {
	t.Helper()
	dir, ca := t.TempDir(), newAuthority(t)
	ca.issue(dir)
	o := &outside{server: startWith(t, pool, &server{t: t, engine: e, secured: ca.trusted(certifiedName), settings: []string{
		"--tls-auth-clients", "optional", "--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-key-file", filepath.Join(dir, "tls.key"),
		"--tls-ca-cert-file", filepath.Join(dir, "ca.crt")}})}
	o.client = goredis.NewClient(&goredis.Options{Addr: o.addr(), Password: password, Protocol: 2, DisableIdentity: true, MaxRetries: -1,
		ReadTimeout: time.Minute, TLSConfig: ca.clients(), PoolSize: 16, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = o.client.Close() })
	must(t, o.client.ACLSetUser(t.Context(), "import",
		append([]string{"reset", "on", ">import-password"}, strings.Fields(redis.RightsToImport)...)...).Err())
	return o
}

func (o *outside) node(pool *redis.Pool) *redis.Node {
	return pool.Node(o.addr(), redis.Credentials{User: "import", Password: "import-password", TLS: o.secured})
}

// write begins to write keys of which many commands need several, in transactions and scripts among them.
func (o *outside) write() {
	ctx, stop := context.WithCancel(o.t.Context())
	o.stop = stop
	for w := range 4 {
		o.wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				a, b := fmt.Sprintf("a:%d:%d", w, n%500), fmt.Sprintf("b:%d:%d", w, n%300)
				pipe := o.client.TxPipeline()
				pipe.Incr(ctx, fmt.Sprintf("counter:%d", w))
				pipe.MSet(ctx, a, n, b, n)
				pipe.RPush(ctx, fmt.Sprintf("list:%d", w), n)
				pipe.LTrim(ctx, fmt.Sprintf("list:%d", w), -50, -1)
				pipe.Set(ctx, fmt.Sprintf("short:%d:%d", w, n%50), n, 50*time.Millisecond)
				if n%10 == 0 {
					pipe.Eval(ctx, "redis.call('SET',KEYS[1],ARGV[1]) return redis.call('RENAME',KEYS[1],KEYS[2])", []string{a + "s", b + "s"}, n)
				}
				if _, err := pipe.Exec(ctx); err == nil {
					o.wrote.Add(1)
					o.last.Store(time.Now().UnixNano())
				} else if ctx.Err() == nil {
					o.t.Errorf("a write to the server fails: %v", err)
				}
				if n%7 == 0 {
					o.client.Del(ctx, a, b)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// relayed starts a relay to the server, with what Kubernetes would have of it, and a cluster that follows it.
func (o *operated) relayed(source *outside) {
	o.imports(source.addr(), redis.Credentials{User: "import", Password: "import-password", TLS: source.secured})
	o.follows(v1alpha1.Topology{2}, slots.All())
}

// imports asks for the data of a server outside.
func (o *operated) imports(address string, login redis.Credentials) {
	o.asksPassword()
	o.source, o.login = address, login
	o.cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: address, PauseSeconds: ptr.To[int32](30)}}
}

// asksPassword makes the operator give all instances a password that is known.
func (o *operated) asksPassword() {
	o.secret = "operated-password"
	o.cluster.Spec.Auth = v1alpha1.Auth{SecretName: "mine"}
	must(o.t, o.kube.Create(o.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: "mine", Labels: map[string]string{v1alpha1.LabelAuth: "true"}},
		Data:       map[string][]byte{v1alpha1.SecretKeyPassword: []byte(o.secret)}}))
}

// follows starts the relays, and the instances as their Jobs would have prepared them: of shards that begin with these slots.
func (o *operated) follows(topology v1alpha1.Topology, owned ...slots.Set) {
	var relays []string
	o.cluster.Status.Import = &v1alpha1.ImportStatus{Phase: v1alpha1.ImportFollowing, Address: o.source}
	for shard, set := range owned {
		relays = append(relays, o.relay(shard, set))
		o.cluster.Status.Import.Slots = append(o.cluster.Status.Import.Slots, set.String())
	}
	o.begin(topology, func(shard int, dir string) {
		if shard < len(owned) {
			must(o.t, archive.Following{Directory: dir, Shard: shard, Slots: owned[shard], MasterID: v1alpha1.ImportMasterID(o.cluster.UID, shard),
				Address: snapshot.Address(relays[shard]), Request: "uid"}.Write())
		}
	})
}

// relay runs the relay of a shard, and returns where.
func (o *operated) relay(shard int, of slots.Set) string {
	t := o.t
	ip := loopback(t)
	listener, err := net.Listen("tcp", snapshot.Address(ip))
	must(t, err)
	source := &relay.Source{Pool: o.pool, Address: o.source, Login: func(string) redis.Credentials { return o.login }, Slots: of}
	r := &relay.Relay{Dial: source.Dial, Check: func(ctx context.Context) error { return archive.Followable(ctx, source) },
		Passwords: func() ([]string, error) { return []string{o.secret}, nil },
		Report:    func(text string) { t.Logf("relay %d: %s", shard, text) }}
	ctx, stop := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { _ = r.Serve(ctx, listener) })
	ended.Go(func() { source.Watch(ctx, r.Drop) })
	t.Cleanup(func() { stop(); ended.Wait() })

	spec := corev1.PodSpec{}
	backupjob.Add(&spec, "image", v1alpha1.BackupStore{}, corev1.ResourceRequirements{}, backupjob.Relay,
		backupjob.Request(string(o.cluster.UID)))
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(o.cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}
	name := metav1.ObjectMeta{Namespace: o.cluster.Namespace, Name: o.cluster.RelayName(shard), OwnerReferences: owner,
		UID: types.UID(fmt.Sprintf("relay-%d", shard)), Labels: map[string]string{v1alpha1.LabelCluster: o.cluster.Name}}
	must(t, o.kube.Create(t.Context(), &corev1.Service{ObjectMeta: name, Spec: corev1.ServiceSpec{ClusterIP: ip}}))
	job := &batchv1.Job{ObjectMeta: name, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}}}
	must(t, o.kube.Create(t.Context(), job))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-x", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}}, Spec: spec}
	must(t, o.kube.Create(t.Context(), pod))
	pod.Status = corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	must(t, o.kube.Status().Update(t.Context(), pod))
	return ip
}

// direct is a client of one instance.
func (o *operated) direct(p *operatedPod) *goredis.Client {
	client := goredis.NewClient(&goredis.Options{Addr: snapshot.Address(p.pod.Status.PodIP), Password: o.secret, Protocol: 2,
		DisableIdentity: true, MaxRetries: -1})
	o.t.Cleanup(func() { _ = client.Close() }) // the test is over either way
	return client
}

// following lets the operator work until the cluster follows the server, and waits for somebody to cut over.
func (o *operated) following() {
	o.t.Helper()
	eventually(o.t, func() error {
		step, waits := o.reconcile().(plan.Wait)
		return want(waits && step.BlockedBy == plan.CutOverAsked, "%v", o.steps)
	})
}

// formed lets the operator work until the one shard of the import has formed, and then until there are those that are asked for beside it.
func (o *operated) formed() {
	o.t.Helper()
	eventually(o.t, func() error {
		step := o.reconcile()
		return want(meta.IsStatusConditionTrue(o.cluster.Status.Conditions, v1alpha1.ConditionFormed), "%s: %s", step.Name(), step.Why())
	})
	if o.engine.name != "valkey-9.1" { // the others move slots key by key, which takes a minute
		return
	}
	for shard := 1; shard < 3; shard++ {
		o.beginShard(shard, 1, func(int, string) {})
	}
	o.converge()
}

// TestClusterImportsAServer: the operator lets a new cluster follow a server in no cluster, with TLS, that is written to, and take over
// from it: every key is there, and writes stop for less than a second.
func TestClusterImportsAServer(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		o := prepared(t, e, v1alpha1.Topology{2, 1, 1})
		source := startOutside(t, e, o.pool)
		must(t, source.client.FunctionLoad(t.Context(), "#!lua name=lib\nredis.register_function('f', function() return 7 end)").Err())
		typed := append(everyType(t, source.client, "one"), everyType(t, source.client, "two")...)
		for i := range 1000 {
			must(t, source.client.Set(t.Context(), fmt.Sprintf("still:%d", i), i, 0).Err())
		}
		source.write()
		o.relayed(source)
		o.following()
		time.Sleep(2 * time.Second) // so that there is a stream behind the base
		first := o.named(0, 0)
		is := o.cluster.Status.Import
		if is == nil || is.Phase != v1alpha1.ImportFollowing || is.LagBytes == nil || !strings.Contains(is.Version, ".") {
			t.Errorf("while it follows: %+v", is)
		}

		served := firstWrite(t, o.direct(first))
		o.cluster.Spec.Bootstrap.Import.CutOver = true
		o.until("RecordCutOver")
		stopped := time.Unix(0, source.last.Load())
		t.Logf("%d transactions before; writes stopped for %s", source.wrote.Load(), (<-served).Sub(stopped))
		is = o.cluster.Status.Import
		if is.Phase != v1alpha1.ImportCutOver || is.CutOverAt == nil || is.MissedBytes == nil || *is.MissedBytes != 0 {
			t.Errorf("after the cut-over: %+v", is)
		}
		direct := o.direct(first)
		if keys := compareDumps(t, source.client, direct); keys < 500 {
			t.Errorf("only %d keys were compared", keys)
		}
		before := contents(t, source.client, typed)
		if n, err := direct.FCall(t.Context(), "f", nil).Int(); n != 7 || err != nil {
			t.Errorf("the function says %d, %v", n, err)
		}
		source.stop() // its clients wait, and give up
		source.wait.Wait()
		o.formed()
		if after := contents(t, o.client(), typed); !maps.Equal(after, before) {
			t.Errorf("keys differ: %v\nwant %v", after, before)
		}

		must(t, source.client.ClientUnpause(t.Context()).Err())
		must(t, source.client.Set(t.Context(), "afterwards", 1, 0).Err())
		for range 5 {
			o.reconcile()
		}
		if n := o.client().Exists(t.Context(), "afterwards").Val(); n != 0 {
			t.Error("the cluster still follows the server")
		}
		for _, p := range o.pods {
			if view := o.view(p); len(view.Peers) != len(o.pods) {
				t.Errorf("%s knows %d nodes: %+v", p.pod.Name, len(view.Peers), view.Peers)
			}
		}
	})
}

// firstWrite is when an instance first takes a write.
func firstWrite(t *testing.T, client *goredis.Client) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		for t.Context().Err() == nil {
			if client.Set(t.Context(), "first write", 1, 0).Err() == nil {
				at <- time.Now()
				return
			}
			time.Sleep(2 * time.Millisecond)
		}
	}()
	return at
}

// compareDumps compares every key of a server with the cluster's: by DUMP, or where that has the members of a set or a hash in another
// order, by all that clients can see.
func compareDumps(t *testing.T, source, cluster *goredis.Client) int {
	t.Helper()
	ctx, keys, ordered := t.Context(), 0, 0
	for iterator := source.Scan(ctx, 0, "*", 1000).Iterator(); iterator.Next(ctx); {
		key := iterator.Val()
		there, err := source.Dump(ctx, key).Result()
		if strings.HasPrefix(key, "short:") || errors.Is(err, goredis.Nil) {
			continue // it expires while it is looked at
		}
		must(t, err)
		keys++
		here, err := cluster.Dump(ctx, key).Result()
		if err == nil && here == there {
			continue
		}
		if ordered++; err != nil || content(t, source, key) != content(t, cluster, key) {
			t.Errorf("%q differs (%v)", key, err)
		}
	}
	t.Logf("%d keys compared, %d of them not by DUMP", keys, ordered)
	return keys
}

// TestImportIsInterrupted: what a server had in another database does not come into the cluster, and an operator that ended after the
// takeover goes on.
func TestImportIsInterrupted(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		o := prepared(t, e, v1alpha1.Topology{2, 1, 1})
		source := startOutside(t, e, o.pool)
		must(t, source.client.Set(t.Context(), "key", 1, 0).Err())
		o.relayed(source)
		o.following()

		// Keys in another database, and then none again: the stream had them, and so all is copied anew.
		other := goredis.NewClient(&goredis.Options{Addr: source.addr(), Password: password, DB: 1, Protocol: 2, DisableIdentity: true,
			TLSConfig: source.client.Options().TLSConfig})
		t.Cleanup(func() { _ = other.Close() })
		must(t, other.Set(t.Context(), "key", "of database 1", 0).Err())
		eventually(t, func() error {
			step, stalls := o.reconcile().(plan.Stall)
			return want(stalls && step.Cause == "CannotImport", "%v", o.steps)
		})
		view := o.view(o.named(0, 0))
		if view.Keys != 1 {
			t.Errorf("the cluster has %d keys", view.Keys)
		}
		must(t, other.FlushDB(t.Context()).Err())
		o.following()

		// Writes are paused, and the operator ends.
		o.cluster.Spec.Bootstrap.Import.CutOver = true
		first := o.named(0, 0)
		must(t, source.node(o.pool).PauseWrites(t.Context(), time.Minute))
		eventually(t, func() error {
			there, err := source.node(o.pool).Outside(t.Context())
			must(t, err)
			here, err := o.node(first).Outside(t.Context())
			must(t, err)
			return want(there.At == here.At, "the follower is at %v, and the server at %v", here.At, there.At)
		})
		must(t, o.node(first).Failover(t.Context(), redis.FailoverTakeover))
		o.memory = rediscluster.Memory{}
		o.until("RecordCutOver")
		if is := o.cluster.Status.Import; is.MissedBytes == nil || *is.MissedBytes != 0 {
			t.Errorf("after the cut-over: %+v, %d bytes", is, ptr.Deref(is.MissedBytes, -1))
		}
		o.formed()
		if value := o.client().Get(t.Context(), "key").Val(); value != "1" {
			t.Errorf("the key is %q", value)
		}
	})
}

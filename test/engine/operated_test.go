// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// operated is a cluster of real servers that the operator's own parts look after: it is observed, planned for and acted
// on as in the reconciler. Kubernetes is a fake that holds pods and claims.
type operated struct {
	t       *testing.T
	engine  engine
	pool    *redis.Pool
	kube    client.Client
	loop    *rediscluster.Loop
	memory  rediscluster.Memory
	cluster *v1alpha1.RedisCluster
	pods    []*operatedPod
	steps   []string
	// seen is what the last reconciliation saw.
	seen *snapshot.Snapshot
	// secret is the password that instances ask for once the operator has told them; empty: none.
	secret string
	// source is where a server outside is that the cluster follows, and login how to log in there.
	source string
	login  redis.Credentials
	// dormant: StatefulSets ask for no pods.
	dormant bool
	// conf are further settings with which a pod's server starts, as redis.conf has them now; nil: none.
	conf func(p *operatedPod) []string
	// template completes a pod that is made; nil: it is complete.
	template func(pod *corev1.Pod)
	// rendered does what is asked of StatefulSets; nil: nothing.
	rendered func(plan.Shape)
	// stopping does what the kubelet does in a pod that is deleted before it stops it; nil: the node fails with the pod.
	stopping func(p *operatedPod)
}

// operatedPod is an instance on an address of its own, with the ports that the operator expects.
type operatedPod struct {
	pod    *corev1.Pod
	server *server
}

// operate starts a cluster of shards with so many instances each and lets the operator form it.
func operate(t *testing.T, e engine, topology ...int32) *operated {
	t.Helper()
	o := prepared(t, e, topology)
	o.begin(topology, func(int, string) {})
	o.converge()
	return o
}

// prepared is a cluster of which nothing runs yet.
func prepared(t *testing.T, e engine, topology v1alpha1.Topology) *operated {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	instances := topology.Instances()
	o := &operated{
		t: t, engine: e, pool: newPool(t), kube: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&corev1.Pod{}).Build(),
		cluster: &v1alpha1.RedisCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "engines", Name: "c", UID: "uid", Finalizers: []string{v1alpha1.Finalizer}},
			Spec: v1alpha1.RedisClusterSpec{Shards: ptr.To(int32(len(topology))), Replicas: &instances, SpreadMasters: ptr.To(false),

				Storage: &v1alpha1.Storage{}, Auth: v1alpha1.Auth{Enabled: ptr.To(false)}, Config: map[string]string{"cluster-node-timeout": "2000"}}}}
	o.loop = &rediscluster.Loop{Observer: &observe.Observer{Children: o.kube, Clusters: o.kube, Secrets: o.kube, Redis: o.pool}, Children: o,
		Actor: &act.Actor{Client: o.kube, Applier: apply.New(o.kube, o.kube), Redis: o.pool, Now: time.Now}, Now: time.Now}
	return o
}

// begin starts the servers, those of the first instances with what fill puts into their directories.
func (o *operated) begin(topology v1alpha1.Topology, fill func(shard int, dir string)) {
	o.t.Helper()
	for shard, replicas := range topology {
		o.beginShard(shard, replicas, fill)
	}
}

func (o *operated) beginShard(shard int, replicas int32, fill func(shard int, dir string)) {
	t := o.t
	t.Helper()
	labels := map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelShard: fmt.Sprint(shard)}
	must(t, o.kube.Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "engines", Name: o.cluster.ShardName(shard), UID: types.UID(fmt.Sprint(shard)), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o.cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}},
		Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(replicas)}}))
	for ordinal := range replicas {
		dir := t.TempDir()
		if ordinal == 0 {
			fill(shard, dir)
		}
		o.add(shard, int(ordinal), labels, dir)
	}
}

func (o *operated) add(shard, ordinal int, labels map[string]string, dir string) {
	name := fmt.Sprintf("%s-%d", o.cluster.ShardName(shard), ordinal)
	p := &operatedPod{pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "engines", Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: o.cluster.ShardName(shard), UID: types.UID(fmt.Sprint(shard)),
					Controller: ptr.To(true)}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}},
		server: &server{t: o.t, engine: o.engine, dir: dir}}
	o.pods = append(o.pods, p)
	o.ensure(p)
	o.start(p, loopback(o.t))
	o.t.Cleanup(p.server.kill)
}

// ensure makes the pod and the claim of an instance, as its StatefulSet does.
func (o *operated) ensure(p *operatedPod) {
	p.pod.ResourceVersion, p.pod.UID = "", types.UID(fmt.Sprintf("pod-%d", rand.Int64()))
	if o.template != nil {
		o.template(p.pod)
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "engines", Name: "data-" + p.pod.Name, Labels: p.pod.Labels,
			UID: types.UID(fmt.Sprintf("claim-%d", rand.Int64()))},
		Spec: corev1.PersistentVolumeClaimSpec{
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: o.cluster.Spec.Claim().Size}}}}
	if err := o.kube.Create(o.t.Context(), claim); err != nil && !apierrors.IsAlreadyExists(err) {
		o.t.Fatal(err)
	}
	if err := o.kube.Create(o.t.Context(), p.pod); err != nil && !apierrors.IsAlreadyExists(err) {
		o.t.Fatal(err)
	}
}

// loopback is an address of this machine where nobody listens on the ports of Redis.
func loopback(t *testing.T) string {
	t.Helper()
	for range 100 {
		ip := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
		if _, taken := given.LoadOrStore(ip, true); taken {
			continue
		}
		if listener, err := net.Listen("tcp", snapshot.Address(ip)); err == nil {
			_ = listener.Close() // nothing was sent
			return ip
		}
	}
	t.Fatal("no free loopback address")
	return ""
}

// start runs the server of a pod at an address.
func (o *operated) start(p *operatedPod, ip string) {
	o.t.Helper()
	p.pod.Status.PodIP = ip
	pod := p.pod.DeepCopy()
	must(o.t, o.kube.Get(o.t.Context(), client.ObjectKeyFromObject(pod), pod))
	pod.Status = p.pod.Status
	must(o.t, o.kube.Status().Update(o.t.Context(), pod))
	p.server.output = &bytes.Buffer{}
	settings := []string{"--port", "6379", "--bind", ip, "--dir", p.server.dir, "--appendonly", "yes",
		"--appendfsync", "always", "--save", "",
		"--repl-diskless-sync-delay", "0", "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-announce-ip", ip,
		"--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "no"}
	if o.conf != nil {
		settings = append(settings, o.conf(p)...)
	}
	p.server.process = exec.Command(o.engine.command, settings...) // the tests exist to run what ENGINES names
	if o.engine.preload != "" {
		p.server.process.Env = append(os.Environ(), "LD_PRELOAD="+o.engine.preload)
	}
	p.server.process.Stdout, p.server.process.Stderr = p.server.output, p.server.output
	must(o.t, p.server.process.Start())
	process, ended := p.server.process, make(chan struct{})
	p.server.ended = ended
	go func() {
		_ = process.Wait() // that it ends is what counts; why is in its output
		close(ended)
	}()
	eventually(o.t, func() error {
		if o.conf == nil {
			return o.node(p).Ping(o.t.Context())
		}
		conn, err := net.Dial("tcp", net.JoinHostPort(ip, "16379")) // the bus, whatever clients' ports are
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func (o *operated) node(p *operatedPod) *redis.Node {
	return o.pool.Node(snapshot.Address(p.pod.Status.PodIP), redis.Credentials{Password: o.secret})
}

// named is a pod by its shard and ordinal.
func (o *operated) named(shard, ordinal int) *operatedPod {
	name := fmt.Sprintf("%s-%d", o.cluster.ShardName(shard), ordinal)
	return o.pods[slices.IndexFunc(o.pods, func(p *operatedPod) bool { return p.pod.Name == name })]
}

// Compare stands for the chart: StatefulSets and pods are made by the tests.
func (o *operated) Compare(_ context.Context, _ *v1alpha1.RedisCluster, _ *snapshot.Snapshot, shape plan.Shape,
	_ *rediscluster.Memory) (rediscluster.Comparison, error) {
	if o.rendered != nil {
		o.rendered(shape)
	}
	return rediscluster.Comparison{}, nil
}

// reconcile runs the operator's loop once.
func (o *operated) reconcile() plan.Step {
	o.t.Helper()
	report, err := o.loop.Once(o.t.Context(), o.cluster, &o.memory, observe.AnswerTimeout)
	must(o.t, err)
	decision := report.Decision
	o.seen = report.Snapshot
	if said := decision.Step.Name() + ": " + decision.Step.Why(); report.Acted || len(o.steps) == 0 || o.steps[len(o.steps)-1] != said {
		o.steps = append(o.steps, said)
	}
	if report.Err != nil {
		o.steps = append(o.steps, "error: "+report.Err.Error())
	}
	for _, p := range o.pods { // what the StatefulSets' controller does
		if !o.dormant && apierrors.IsNotFound(o.kube.Get(o.t.Context(), client.ObjectKeyFromObject(p.pod), &corev1.Pod{})) {
			o.renewed(p)
		}
	}
	return decision.Step
}

// renewed starts a pod that was deleted again, with an empty volume if its claim was deleted, too.
func (o *operated) renewed(p *operatedPod) {
	if o.stopping != nil {
		o.stopping(p)
	}
	p.server.kill()
	claim := &corev1.PersistentVolumeClaim{}
	if apierrors.IsNotFound(o.kube.Get(o.t.Context(), client.ObjectKey{Namespace: "engines", Name: "data-" + p.pod.Name}, claim)) {
		p.server.dir = o.t.TempDir()
	}
	o.ensure(p)
	o.start(p, loopback(o.t))
}

// giveUp deletes the claim and the pod of an instance, as a person does.
func (o *operated) giveUp(p *operatedPod) {
	must(o.t, o.kube.Delete(o.t.Context(),
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "engines", Name: "data-" + p.pod.Name}}))
	must(o.t, o.kube.Delete(o.t.Context(), p.pod.DeepCopy()))
	o.renewed(p)
}

// converge lets the operator work until nothing is left to do.
func (o *operated) converge() { o.until("None") }

// until lets the operator work until it decides on one of the steps.
func (o *operated) until(steps ...string) plan.Step {
	o.t.Helper()
	var last plan.Step
	defer func() {
		if o.t.Failed() {
			o.t.Log(strings.Join(o.steps, "\n"))
		}
	}()
	eventually(o.t, func() error {
		last = o.reconcile()
		return want(slices.Contains(steps, last.Name()), "%s: %s", last.Name(), last.Why())
	})
	return last
}

// fill writes keys all over the slots, as many as wanted, and waits until replicas have them.
func (o *operated) fill(keys int) {
	o.t.Helper()
	c := o.client()
	for i := range keys {
		must(o.t, c.Set(o.t.Context(), fmt.Sprintf("key:%d", i), i, 0).Err())
	}
	eventually(o.t, func() error {
		for _, p := range o.pods {
			view, err := o.node(p).Describe(o.t.Context())
			if err != nil {
				return err
			}
			if master := o.answering(view.MasterID); master != nil {
				theirs, err := o.node(master).Describe(o.t.Context())
				if err := want(err == nil && theirs.Keys == view.Keys, "%s has %d keys, its master %d (%v)", p.pod.Name, view.Keys, theirs.Keys,
					err); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// answering is the pod that answers to a node ID; nil when none does.
func (o *operated) answering(id string) *operatedPod {
	for _, p := range o.pods {
		if own, err := o.node(p).Identify(o.t.Context()); err == nil && own == id {
			return p
		}
	}
	return nil
}

// kept is how many of the keys an application reads with their values.
func (o *operated) kept(keys int) int {
	o.t.Helper()
	c, found := o.client(), 0
	for i := range keys {
		var value string
		eventually(o.t, func() (err error) { // a client may take a while to learn who has taken over
			if value, err = c.Get(o.t.Context(), fmt.Sprintf("key:%d", i)).Result(); errors.Is(err, goredis.Nil) {
				return nil
			}
			return err
		})
		if value == fmt.Sprint(i) {
			found++
		}
	}
	return found
}

func (o *operated) client() *goredis.ClusterClient {
	var addrs []string
	for _, p := range o.pods {
		addrs = append(addrs, snapshot.Address(p.pod.Status.PodIP))
	}
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs, Password: o.secret, MaxRetries: 3, MaxRedirects: 16, Protocol: 2,
		DisableIdentity: true, DialTimeout: timeout, ReadTimeout: timeout})
	o.t.Cleanup(func() { _ = c.Close() }) // the test is over either way
	return c
}

// stop ends the servers of pods at once.
func (o *operated) stop(pods ...*operatedPod) {
	for _, p := range pods {
		p.server.kill()
	}
}

// again starts a stopped server, at another address if moved, and without its nodes.conf if forgetful.
func (o *operated) again(p *operatedPod, moved, forgetful bool) {
	if forgetful {
		must(o.t, os.Remove(filepath.Join(p.server.dir, "nodes.conf")))
	}
	ip := p.pod.Status.PodIP
	if moved {
		ip = loopback(o.t)
	}
	o.start(p, ip)
}

// view is how an instance sees itself.
func (o *operated) view(p *operatedPod) redis.View {
	o.t.Helper()
	view, err := o.node(p).Describe(o.t.Context())
	must(o.t, err)
	return view
}

// master is the instance of a shard that owns slots.
func (o *operated) master(shard int) *operatedPod {
	o.t.Helper()
	for _, p := range o.pods {
		if view := o.view(p); strings.HasPrefix(p.pod.Name, o.cluster.ShardName(shard)+"-") && !view.Slots.IsEmpty() {
			return p
		}
	}
	o.t.Fatalf("shard %d has no master", shard)
	return nil
}

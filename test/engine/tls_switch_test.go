// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// switched is an operated cluster whose TLS is switched.
type switched struct {
	*operated
	ca    *authority
	dir   string
	stage redisconf.TLSStage // of redis.conf
	asks  v1alpha1.ClientCertificates
	shows []tls.Certificate // of clients
	kind  string            // of the pod template
	ips   sync.Map          // of pods, by their names
	// crashes reports whether instances end by themselves, so that replicas take over.
	crashes bool
}

// startSwitched starts a cluster that has formed, without TLS.
func startSwitched(t *testing.T, e engine, topology ...int32) *switched {
	t.Helper()
	o := prepared(t, e, topology)
	s := &switched{operated: o, ca: newAuthority(t), dir: t.TempDir(), stage: redisconf.TLSPlain}
	s.ca.issue(s.dir)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "engines", Name: "certificate",
		Labels: map[string]string{v1alpha1.LabelTLS: "true"}}, Data: map[string][]byte{}}
	for _, name := range []string{"tls.crt", "tls.key", "ca.crt"} {
		data, err := os.ReadFile(s.dir + "/" + name)
		must(t, err)
		secret.Data[name] = data
	}
	must(t, o.kube.Create(t.Context(), secret))
	o.cluster.Spec.TLS = &v1alpha1.TLS{SecretName: "certificate", Mode: v1alpha1.TLSDisabled}
	o.loop.Options.CertificateDir = s.dir
	o.conf, o.template, o.rendered = s.settings, s.complete, s.renders
	o.begin(topology, func(int, string) {})
	o.converge()
	return s
}

// settings are those of redis.conf as it is now.
func (s *switched) settings(p *operatedPod) []string {
	s.ips.Store(p.pod.Name, p.pod.Status.PodIP)
	all := []string{"--cluster-announce-hostname", p.pod.Name + ".c-nodes.engines.svc", "--cluster-port", "16379",
		"--replica-announce-ip", p.pod.Status.PodIP}
	if s.stage != redisconf.TLSPlain {
		for name, value := range (redisconf.TLS{Stage: s.stage, Clients: s.asks}).Settings(s.dir) {
			all = append(all, "--"+name, value)
		}
	}
	return all
}

// complete gives a pod what the template of now has.
func (s *switched) complete(pod *corev1.Pod) {
	pod.Labels[appsv1.StatefulSetRevisionLabel] = "revision" + s.kind
	ports := []corev1.ContainerPort{{ContainerPort: v1alpha1.PortRedis}}
	if s.kind == "both" {
		ports = append(ports, corev1.ContainerPort{ContainerPort: v1alpha1.PortRedisTLS})
	}
	pod.Spec = corev1.PodSpec{Containers: []corev1.Container{{Name: "redis", Ports: ports}},
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: v1alpha1.PodConditionServing}}}
	if s.kind != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{Items: []corev1.KeyToPath{{Path: redisconf.TLSTrustedFile}}}}}}}}}
	}
}

// renders does what the API server and the StatefulSets' controller do with what the chart renders.
func (s *switched) renders(shape plan.Shape) {
	s.stage, s.asks = shape.TLS.Stage, shape.TLS.Clients
	kind := ""
	if of, _ := values.Build(s.cluster, nil, nil, shape.TLS)["tls"].(map[string]any); of["enabled"] == true {
		kind = map[bool]string{true: "both", false: "required"}[of["twoPorts"] == true]
	}
	if kind == s.kind {
		return
	}
	s.kind = kind
	for shard := range shape.Topology {
		set := &appsv1.StatefulSet{}
		must(s.t, s.kube.Get(s.t.Context(), client.ObjectKey{Namespace: "engines", Name: s.cluster.ShardName(shard)}, set))
		set.Status.UpdateRevision = "revision" + kind
		must(s.t, s.kube.Status().Update(s.t.Context(), set))
	}
}

// applications connect by TLS or plainly; they find instances by their names, and repeat nothing. go-redis does not notice that an
// encrypted connection has ended that it keeps for later, so it keeps them for a second only: an instance that restarts is away for longer.
func (s *switched) applications(secured bool) *goredis.ClusterClient {
	port := v1alpha1.PortRedis
	if secured && s.kind == "both" {
		port = v1alpha1.PortRedisTLS
	}
	var addrs []string
	for _, p := range s.pods {
		addrs = append(addrs, fmt.Sprintf("%s.c-nodes.engines.svc:%d", p.pod.Name, port))
	}
	c := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs, MaxRetries: -1, MaxRedirects: 16, Protocol: 2,
		DisableIdentity: true, DialTimeout: timeout, ReadTimeout: timeout, WriteTimeout: timeout, PoolTimeout: timeout,
		ClusterStateReloadInterval: 2 * time.Second, ConnMaxIdleTime: time.Second,
		Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			pod, _, _ := strings.Cut(host, ".")
			if ip, named := s.ips.Load(pod); named {
				host, _ = ip.(string)
			}
			conn, err := (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(host, port))
			if err != nil || !secured {
				return conn, err
			}
			config := s.ca.clients()
			config.Certificates = s.shows
			secure := tls.Client(conn, config)
			return secure, secure.HandshakeContext(ctx)
		}})
	s.t.Cleanup(func() { _ = c.Close() }) // the test is over either way
	return c
}

// to switches, and lets the operator work until that is in force and nothing is left to do. each is called before each reconciliation.
func (s *switched) to(mode v1alpha1.TLSMode, each func()) {
	s.t.Helper()
	s.cluster.Spec.TLS.Mode = mode
	s.until(string(mode), each, func() bool {
		is := s.cluster.Status.TLS
		return mode == v1alpha1.TLSDisabled && is == nil || is != nil && is.Mode == mode
	})
}

// until lets the operator work on what was asked for until that is in force and nothing is left to do.
func (s *switched) until(what string, each func(), reached func() bool) {
	s.t.Helper()
	s.cluster.Generation++
	began, held := time.Now(), map[string]string(nil)
	defer func() {
		if s.t.Failed() {
			s.t.Log(strings.Join(s.steps, "\n"))
		}
	}()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		each()
		step := s.reconcile()
		held = s.noTakeover(held, step)
		if reached() && plan.Is[plan.None](step) {
			s.t.Logf("%s after %.1f s", what, time.Since(began).Seconds())
			return
		}
	}
	s.t.Fatalf("%s is not in force: %+v, %+v", what, s.cluster.Status.TLS, s.cluster.Status.Plan)
}

// noTakeover wants what instances had when a live stage began, until something else is done: who is a master, by which epoch.
func (s *switched) noTakeover(held map[string]string, step plan.Step) map[string]string {
	s.t.Helper()
	roles := map[string]string{}
	for _, in := range s.seen.Reachable() {
		roles[in.Name] = fmt.Sprintf("master %t, epoch %d", in.Redis.Master, in.Redis.Epoch)
		if was, known := held[in.Name]; known && was != roles[in.Name] && !s.crashes {
			s.t.Errorf("%s was %s before a stage, and is %s", in.Name, was, roles[in.Name])
		}
	}
	switch {
	case plan.Is[plan.SetTLS](step):
		return roles
	case plan.Is[plan.Wait](step), plan.Is[plan.None](step), plan.Is[plan.ApplyChildren](step):
		return held
	}
	return nil // a restart may follow
}

// stops runs switchover.sh as the kubelet does in the pod of a shard's master, with a redis.conf that has one port or two, and wants its
// replica to take over.
func (s *switched) stops(shard int, conf redisconf.TLSStage) {
	s.t.Helper()
	var master, replica *operatedPod
	for ordinal := range 2 {
		p := s.named(shard, ordinal)
		view, err := s.reached(p).Describe(s.t.Context())
		must(s.t, err)
		if view.Role == redis.RoleMaster {
			master = p
		} else {
			replica = p
		}
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "helm-charts", "rediscluster", "switchover.sh"))
	must(s.t, err)
	dir := s.t.TempDir()
	script := strings.NewReplacer("/etc/redis/tls/", s.dir+"/", "/etc/redis/redis.conf", dir+"/redis.conf", "127.0.0.1",
		master.pod.Status.PodIP).Replace(string(text))
	must(s.t, os.WriteFile(filepath.Join(dir, "switchover.sh"), []byte(script), 0o600))
	must(s.t, os.WriteFile(filepath.Join(dir, "redis.conf"),
		fmt.Appendf(nil, "port %q\n", redisconf.TLS{Stage: conf}.Settings(s.dir)["port"]), 0o600))
	must(s.t, os.WriteFile(filepath.Join(dir, "redis-cli"), fmt.Appendf(nil, "#!/bin/sh\nexec %q -h %s \"$@\"\n", cli(s.t, s.engine),
		master.pod.Status.PodIP), 0o700))
	command := exec.CommandContext(s.t.Context(), "sh", filepath.Join(dir, "switchover.sh"))
	command.Env = append(os.Environ(), "PATH="+imagePath(s.t, dir))
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
		s.t.Errorf("switchover.sh: %v: %s", err, out)
	}
	view, err := s.reached(replica).Describe(s.t.Context())
	must(s.t, err)
	must(s.t, want(view.Role == redis.RoleMaster, "%s is a %s after its master was to stop", replica.pod.Name, view.Role))
}

// reached connects to an instance as it takes TLS now.
func (s *switched) reached(p *operatedPod) *redis.Node {
	way := snapshot.Way{SecondPort: s.kind == "both"}
	trusted := s.ca.trusted("any.c-nodes.engines.svc")
	if len(s.shows) > 0 {
		trusted = trusted.Showing(func() *tls.Certificate { return &s.shows[0] })
	}
	return s.pool.Node(way.Address(p.pod.Status.PodIP), redis.Credentials{TLS: trusted})
}

// TLS is switched on and off again under load. Clients that move between the stages have no command fail, no replica takes over but
// in the place of one that is restarted, and nothing is lost.
func TestTLSIsSwitched(t *testing.T) {
	all := engines(t)
	if os.Getenv("E2E") != "all" {
		all = all[:1] // it needs every announcement
	}
	forEach(t, all, func(t *testing.T, e engine) {
		s := startSwitched(t, e, 2, 2, 2)
		idle := func() {}
		plain := startLoadBy(t, s.applications(false), "plain")
		s.stopping = func(*operatedPod) { plain.settled() }
		s.to(v1alpha1.TLSBoth, idle)
		secured := startLoadBy(t, s.applications(true), "tls")
		s.stopping = func(*operatedPod) { plain.settled(); secured.settled() }
		s.stops(0, redisconf.TLSBoth)
		plain.end()
		s.stops(1, redisconf.TLSRequired) // which a pod has that is to restart for it
		s.to(v1alpha1.TLSRequired, idle)
		s.stops(0, redisconf.TLSRequired)
		s.stops(1, redisconf.TLSBoth)
		s.to(v1alpha1.TLSBoth, idle)
		plain = startLoadBy(t, s.applications(false), "plain again")
		time.Sleep(2 * time.Second)
		secured.end()
		s.to(v1alpha1.TLSDisabled, idle)
		time.Sleep(time.Second)
		plain.end()
		for _, p := range s.pods {
			if view := s.view(p); len(view.Peers) != len(s.pods) {
				t.Errorf("%s knows %d nodes", p.pod.Name, len(view.Peers))
			}
		}
	})
}

// Whichever instance ends in the middle of a stage, and starts again with the redis.conf of then or with the one of before, the
// stages go on, and no key is lost.
func TestTLSIsSwitchedWithCrashes(t *testing.T) {
	if os.Getenv("E2E") != "all" {
		t.Skip("takes minutes: with E2E=all; TestTLSIsSwitched takes one, and the simulation crashes at every write")
	}
	forEveryEngine(t, func(t *testing.T, e engine) {
		s := startSwitched(t, e, 2, 2, 2)
		s.crashes = true
		s.fill(manyKeys)
		for _, mode := range []v1alpha1.TLSMode{v1alpha1.TLSBoth, v1alpha1.TLSRequired, v1alpha1.TLSBoth, v1alpha1.TLSDisabled} {
			seen, before, crashed := 0, s.stage, map[string]bool{}
			s.to(mode, func() {
				steps := s.steps[min(seen, len(s.steps)):]
				seen = len(s.steps)
				at := slices.IndexFunc(steps, func(step string) bool { return strings.HasPrefix(step, "SetTLS") })
				if at < 0 {
					return
				}
				what := steps[at][strings.LastIndex(steps[at], ": "):]
				if crashed[what] {
					return // once after each, or it would begin again for ever
				}
				crashed[what] = true
				p := s.pods[rand.IntN(len(s.pods))]
				t.Logf("%s crashes after %s", p.pod.Name, steps)
				s.stop(p)
				for range 3 {
					s.reconcile()
					time.Sleep(200 * time.Millisecond)
				}
				now := s.stage
				if rand.IntN(2) == 0 {
					s.stage = before
				}
				s.again(p, false, false)
				s.stage = now
			})
		}
		if kept := s.kept(manyKeys); kept != manyKeys {
			t.Errorf("%d of %d keys are left", kept, manyKeys)
		}
	})
}

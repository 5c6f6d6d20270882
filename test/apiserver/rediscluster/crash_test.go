// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/values"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
)

// flow is something that the operator does for a RedisCluster in several writes to the API server.
type flow struct {
	name string
	// encrypted: the cluster has TLS.
	encrypted bool
	// issued: its certificate is made by an issuer.
	issued bool
	// cluster changes the cluster before it is created; nil: nothing.
	cluster func(*v1alpha1.RedisCluster)
	// change is what is asked of a cluster that runs; nil: the flow is that it comes to run.
	change func(*testing.T, *v1alpha1.RedisCluster)
	// between is the phase to which that leads, in which then is asked; nil: nothing.
	between v1alpha1.Phase
	then    func(*testing.T, *v1alpha1.RedisCluster)
	// phase is the one in which the flow ends; empty: the cluster is gone.
	phase v1alpha1.Phase
	// givesUp: what is asked takes a child away.
	givesUp bool
	// news is what the operator is told, and withheld what happens once the write came at which something is to happen, or what was
	// asked for is done; nil: nothing.
	news     *environment.News
	withheld func(t *testing.T, cluster *v1alpha1.RedisCluster, done func() string)
	// alike takes out of an outcome what may be as it is; nil: nothing.
	alike func(outcome string) string
}

var crashFlows = []flow{
	{name: "create", phase: v1alpha1.PhaseRunning},
	{name: "pause", change: func(t *testing.T, c *v1alpha1.RedisCluster) {
		change(t, c, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
	}, phase: v1alpha1.PhasePaused},
	{name: "TLS from birth", encrypted: true, phase: v1alpha1.PhaseRunning},
	{name: "TLS of an issuer", issued: true, phase: v1alpha1.PhaseRunning},
	{name: "TLS of an issuer, given up", issued: true, change: func(t *testing.T, c *v1alpha1.RedisCluster) {
		change(t, c, func(c *v1alpha1.RedisCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretName: c.CertificateName()} })
	}, phase: v1alpha1.PhaseRunning, givesUp: true},
	{name: "TLS of an issuer, delete, orphan", issued: true, cluster: deletedBy(v1alpha1.DeletionOrphan), change: removeCluster},
	{name: "storage", cluster: func(c *v1alpha1.RedisCluster) {
		c.Spec.Storage = &v1alpha1.Storage{Size: resource.MustParse("1Gi"), StorageClassName: ptr.To("expands")}
	}, change: func(t *testing.T, c *v1alpha1.RedisCluster) {
		bindClaims(t, c)
		change(t, c, func(c *v1alpha1.RedisCluster) { c.Spec.Storage.Size = resource.MustParse("2Gi") })
	}, phase: v1alpha1.PhaseRunning},
	{name: "delete, background", cluster: deletedBy(v1alpha1.DeletionBackground), change: removeCluster},
	{name: "delete, foreground", cluster: deletedBy(v1alpha1.DeletionForeground), change: removeCluster},
	{name: "delete, orphan", cluster: deletedBy(v1alpha1.DeletionOrphan), change: removeCluster},
	{name: "hibernate and wake", cluster: func(c *v1alpha1.RedisCluster) {
		c.Spec.Storage = &v1alpha1.Storage{Size: resource.MustParse("1Gi"), Retain: v1alpha1.RetainDelete}
	}, change: toHibernate(true), between: v1alpha1.PhaseHibernated, then: toHibernate(false), phase: v1alpha1.PhaseRunning},
	{name: "backup", change: takeBackup, phase: v1alpha1.PhaseRunning},
	{name: "restore", cluster: func(c *v1alpha1.RedisCluster) { c.Spec.Bootstrap = fromStore }, phase: v1alpha1.PhaseRunning},
	{name: "archive", cluster: archived, phase: v1alpha1.PhaseRunning},
	{name: "archive, given up", cluster: archived, change: func(t *testing.T, c *v1alpha1.RedisCluster) {
		change(t, c, func(c *v1alpha1.RedisCluster) { c.Spec.Backup = nil })
	}, phase: v1alpha1.PhaseRunning, givesUp: true},
	{name: "external", cluster: balanced, phase: v1alpha1.PhaseRunning},
	{name: "external, given up", cluster: balanced, change: func(t *testing.T, c *v1alpha1.RedisCluster) {
		change(t, c, func(c *v1alpha1.RedisCluster) { c.Spec.External = nil })
	}, phase: v1alpha1.PhaseRunning, givesUp: true},
	{name: "switchover", cluster: func(c *v1alpha1.RedisCluster) {
		c.Spec.Replicas, c.Spec.SpreadMasters = ptr.To[int32](6), ptr.To(false)
	}, change: func(t *testing.T, c *v1alpha1.RedisCluster) {
		change(t, c, func(c *v1alpha1.RedisCluster) {
			c.Annotations = map[string]string{v1alpha1.AnnotationSwitchover: c.Name + "-1-1"}
		})
	}, phase: v1alpha1.PhaseRunning},
	{name: "files", cluster: func(c *v1alpha1.RedisCluster) { c.Spec.Bootstrap = fromFiles("0-99", "100-8191", "8192-16383") },
		phase: v1alpha1.PhaseRunning},
}

func deletedBy(policy v1alpha1.DeletionPolicy) func(*v1alpha1.RedisCluster) {
	return func(c *v1alpha1.RedisCluster) { c.Spec.Finalizers = policy }
}

func toHibernate(asked bool) func(*testing.T, *v1alpha1.RedisCluster) {
	return func(t *testing.T, cluster *v1alpha1.RedisCluster) {
		if asked {
			bindClaims(t, cluster)
		}
		change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Hibernate = asked })
	}
}

func removeCluster(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	remove(t, cluster)
}

// childKinds are those of what a cluster has.
var childKinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind("RedisCluster"),
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"},
	{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Version: "v1", Kind: "Pod"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
}

var expands sync.Once

// prepareFlows makes what is in no namespace, and what some flows need.
func prepareFlows(t *testing.T) {
	t.Helper()
	installCertManager(t)
	expands.Do(func() {
		create(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "expands"}, Provisioner: "example.com/none",
			AllowVolumeExpansion: ptr.To(true)})
	})
}

// TestCrashAtEveryWriteToTheAPIServer: whichever write to the API server the operator's process ends at, and whether that was carried
// out or not, its successor brings about what an operator that lives does: the same children, claims, finalizers and status, and
// after a deletion nothing that its policy does not leave. So it is when the successor ends, too, when the API server refuses a
// write once, and when an answer is lost. The writes to Redis are in test/simulation. A few trials of half of the flows;
// SIMULATION=all tries all.
func TestCrashAtEveryWriteToTheAPIServer(t *testing.T) {
	prepareFlows(t)
	for i, f := range crashFlows {
		if i%3 != 0 && !crash.All() {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			crash.Try(t, i, f.run)
		})
	}
}

// run takes a cluster through a flow, with what happens at one of the writes, until there is what is wanted, or, without that, until
// the flow has come to its end. It returns what came of it.
func (f flow) run(t *testing.T, k *crash.Killer, want string) string {
	t.Helper()
	var story []string
	k.Say = func(format string, arguments ...any) { story = append(story, fmt.Sprintf(format, arguments...)) }
	namespace := newNamespace(t)
	kubelet := startKubelet(t, namespace)
	world := crash.World{API: api, Kinds: childKinds, Namespaces: []string{namespace}, Normalise: normalise}
	t.Cleanup(func() { check(t, world.Clear(context.Background())) })
	var looks atomic.Int64 // of the present process at instances, since it last wrote something
	kubelet.world.OnCommand(func(_ *redistest.Node, args []string) {
		if slices.Equal(args, []string{"CLUSTER", "NODES"}) {
			looks.Add(1)
		}
	})
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Replicas = ptr.To[int32](3)
	if f.cluster != nil {
		f.cluster(cluster)
	}
	dial := kubelet.world.Dial
	if f.encrypted {
		dial = encrypt(t, cluster, dial)
	}
	if f.issued {
		cluster.Spec.TLS = &v1alpha1.TLS{IssuerRef: &v1alpha1.IssuerRef{Name: "own"}}
		dial = startIssuer(t, namespace).dial(dial)
		world.Kinds = append(slices.Clone(childKinds), values.Certificate)
	}
	k.Heed(f.change == nil)
	operator := k.Operate(func(p *crash.Process) (end func(), err error) {
		looks.Store(0)
		as := operatorConfig()
		if f.news != nil {
			as = f.news.Of(as)
		}
		mgr, err := newOperator(p.Of(as), namespace, p.Dial(dial))
		if err != nil {
			return nil, err
		}
		return environment.Start(t, mgr), nil
	}, func(err error) { t.Error(err) })
	defer operator.Stop()

	if cluster.Spec.Bootstrap != nil {
		create(t, storeSecret(namespace))
	}
	if cluster.Spec.Backup != nil {
		create(t, archiveSecret(namespace))
	}
	create(t, cluster)
	outcome := func() string {
		text, err := world.Outcome(t.Context())
		check(t, err)
		if text == "" {
			return "nothing is left"
		}
		if f.alike != nil {
			text = f.alike(text)
		}
		return text
	}
	rest := func(what string, holds func() string) {
		t.Helper()
		var latest time.Time
		eventually(t, what, func() string {
			if wrote := k.Latest(); wrote != latest {
				latest = wrote
				looks.Store(0)
			}
			if time.Since(latest) < 5*pollInterval {
				return fmt.Sprintf("the operator still writes, latest %s\n%s", lastOf(k.Writes()), strings.Join(story, "\n"))
			}
			if get(t, cluster) && looks.Load() < 5*int64(ptr.Deref(cluster.Spec.Replicas, 0)) {
				return fmt.Sprintf("the operator has not looked again since it wrote %s: phase %s, reason %q", lastOf(k.Writes()),
					cluster.Status.Phase, cluster.Status.Reason)
			}
			return holds()
		})
	}
	if f.change != nil {
		rest("the beginning", func() string { return inPhase(t, cluster, v1alpha1.PhaseRunning) })
		k.Heed(true)
		f.change(t, cluster)
	}
	if f.then != nil {
		if f.withheld != nil {
			f.withheld(t, cluster, func() string { return inPhase(t, cluster, f.between) })
		}
		awaitPhase(t, cluster, f.between, "")
		f.then(t, cluster)
	}
	end := func() string {
		if f.phase == "" {
			if get(t, cluster) {
				return fmt.Sprintf("it is there, finalizers %v", cluster.Finalizers)
			}
			return ""
		}
		return inPhase(t, cluster, f.phase)
	}
	if want == "" {
		rest("the end", end)
		last := ""
		rest("nothing changes any more", func() string { // the stand-in for the kubelet may have something to do yet
			if now := outcome(); now != last {
				last = now
				time.Sleep(5 * pollInterval)
				return "it changes"
			}
			return ""
		})
		return last
	}
	if f.withheld != nil {
		f.withheld(t, cluster, end)
	}
	same := func() string {
		if why := end(); why != "" {
			return why + "\n" + strings.Join(story, "\n")
		}
		if got := outcome(); got != want {
			time.Sleep(pollInterval) // a look at all objects has its cost
			return fmt.Sprintf("%s (-undisturbed +now):\n%s", strings.Join(story, "\n"), cmp.Diff(want, got))
		}
		return ""
	}
	rest("what an operator brings about that lives", same)
	if operator.Resume() {
		k.Stirs()
		rest("what its successor brought about, when a process that was stopped goes on", same)
	}
	if k.At > 0 && !k.Struck() { // what is seen in one look, and what in two, is chance
		t.Logf("there is no write %d: %s", k.At, strings.Join(k.Writes(), "\n"))
	}
	return want
}

// lastOf are the last few of all writes.
func lastOf(writes []string) []string { return writes[max(0, len(writes)-3):] }

// inPhase says why a cluster is not at rest in a phase.
func inPhase(t *testing.T, cluster *v1alpha1.RedisCluster, phase v1alpha1.Phase) string {
	t.Helper()
	if !get(t, cluster) {
		return "it is gone"
	}
	s := cluster.Status
	if s.Phase != phase || s.ObservedGeneration != cluster.Generation || phase == v1alpha1.PhaseRunning &&
		(!meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) || s.Plan == nil || s.Plan.Step != "None") {
		return fmt.Sprintf("phase %s, reason %q, plan %+v", s.Phase, s.Reason, s.Plan)
	}
	return ""
}

// The fourth is the digest of the authorities that a run made for itself (status.tls.authorities).
var chance = regexp.MustCompile(`[0-9a-f]{40}|10\.1\.\d+\.\d+|archive-[0-9a-f]{16}|^[0-9a-f]{16}$|` +
	`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// normalise takes out what differs of a cluster and its children: passwords, node IDs, addresses.
func normalise(object *unstructured.Unstructured) error {
	if object.GetKind() == "Secret" {
		data, _, _ := unstructured.NestedMap(object.Object, "data")
		for name := range data {
			data[name] = "SECRET"
		}
		return unstructured.SetNestedMap(object.Object, data, "data")
	}
	if object.GetKind() == "Service" {
		ports, _, _ := unstructured.NestedSlice(object.Object, "spec", "ports")
		for _, port := range ports {
			delete(port.(map[string]any), "nodePort") // Kubernetes chose it
		}
		if err := unstructured.SetNestedSlice(object.Object, ports, "spec", "ports"); err != nil {
			return err
		}
	}
	object.Object = crash.Rewritten(object.Object, func(s string) string { return chance.ReplaceAllString(s, "CHANCE") }).(map[string]any)
	return nil
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// scopes is a mapper that knows every kind to live in namespaces, and tells whoever is interested when it is asked.
type scopes struct {
	meta.RESTMapper
	asked func()
}

func (s scopes) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if s.asked != nil {
		s.asked()
	}
	return &meta.RESTMapping{GroupVersionKind: kind.WithVersion(versions[0]), Scope: meta.RESTScopeNamespace}, nil
}

func newChildren(t testing.TB, asked func()) *children {
	t.Helper()
	loaded, err := chart.LoadDir(filepath.Join("..", "..", "helm-charts", "rediscluster"))
	if err != nil {
		t.Fatal(err)
	}
	return &children{chart: loaded, mapper: scopes{asked: asked}, observer: &observe.Observer{BackupImage: "operator:1"}}
}

func renderAll(t testing.TB, c *children, m *Memory, cluster *v1alpha1.RedisCluster) []*unstructured.Unstructured {
	t.Helper()
	admission.Default(cluster)
	objects, err := c.render(cluster, values.Build(cluster, cluster.Spec.Topology(), redisconf.AskedFor(cluster, nil),
		redisconf.TLSFor(cluster)), m)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func sized(name string, shards, replicas int32, template v1alpha1.PodTemplate) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name)},
		Spec: v1alpha1.RedisClusterSpec{Shards: &shards, Replicas: &replicas, Pod: []v1alpha1.PodTemplate{template}}}
}

func annotations(n, bytes int) v1alpha1.PodTemplate {
	template := v1alpha1.PodTemplate{Annotations: map[string]string{}}
	for i := range n {
		template.Annotations[fmt.Sprintf("example.com/k%d", i)] = strings.Repeat("\"", bytes)
	}
	return template
}

// affinity has a term of many values, each of which is an entry of its own and next to no bytes.
func affinity(values int) v1alpha1.PodTemplate {
	in := corev1.NodeSelectorRequirement{
		Key: "k", Operator: corev1.NodeSelectorOpIn, Values: strings.Split(strings.Repeat("a,", values)+"a", ",")}
	return v1alpha1.PodTemplate{
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{in}}}}}}}
}

// The largest clusters that admission lets through are rendered within bounds; the next larger ones are not let through, and the
// refusal names the field.
func TestLargestClustersAreRenderedWithinBounds(t *testing.T) {
	const mebi = 1 << 20
	for name, tt := range map[string]struct {
		accepted, refused *v1alpha1.RedisCluster
		at                string
		allocated, output uint64 // at most, in MiB
	}{
		"500 shards of 2, an ordinary template": {sized("c", 500, 1000, annotations(3, 20)), sized("c", 500, 1000, annotations(5, 900)),
			"spec.pod[0].annotations", 320, 4},
		"50 shards of 20, a large template": {sized("c", 50, 1000, annotations(43, 440)), sized("c", 50, 1000, annotations(1000, 950)),
			"spec.pod[0].annotations", 320, 5},
		"50 shards of 20, many entries": {sized("c", 50, 1000, affinity(1950)), sized("c", 50, 1000, affinity(2000)),
			"spec.pod[0].affinity", 320, 4},
		"3 shards, a large template": {sized("c", 3, 6, annotations(60, 500)), sized("c", 3, 6, annotations(80, 500)),
			"spec.pod[0].annotations", 64, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChildren(t, nil)
			admission.Default(tt.accepted)
			if refused := admission.Validate(tt.accepted, admission.Options{}); len(refused) > 0 {
				t.Fatalf("it is refused: %v", refused)
			}
			admission.Default(tt.refused)
			refused := admission.Validate(tt.refused, admission.Options{})
			if len(refused) != 1 || refused[0].Field != tt.at || len(refused[0].Error()) > 500 {
				t.Errorf("the next larger one: %v", refused)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			objects := renderAll(t, c, &Memory{}, tt.accepted)
			runtime.ReadMemStats(&after)
			encoded, err := json.Marshal(objects)
			if err != nil {
				t.Fatal(err)
			}
			if got := (after.TotalAlloc - before.TotalAlloc) / mebi; got > tt.allocated {
				t.Errorf("%d MiB were allocated, at most %d are to be", got, tt.allocated)
			}
			if got := uint64(len(encoded)) / mebi; got > tt.output {
				t.Errorf("%d MiB were rendered, at most %d are to be", got, tt.output)
			}
			t.Logf("%d MiB allocated, %d KiB rendered", (after.TotalAlloc-before.TotalAlloc)/mebi, len(encoded)>>10)
		})
	}
}

// The same is rendered once.
func TestRenderingIsRemembered(t *testing.T) {
	asked := 0
	c, m := newChildren(t, func() { asked++ }), &Memory{}
	first := renderAll(t, c, m, sized("c", 3, 6, v1alpha1.PodTemplate{}))
	if asked == 0 {
		t.Fatal("nothing was checked")
	}
	asked = 0
	if again := renderAll(t, c, m, sized("c", 3, 6, v1alpha1.PodTemplate{})); asked > 0 || &again[0] != &first[0] {
		t.Error("the same was rendered again")
	}
}

// Of a cluster at rest it is kept which objects there are, and that they are the same ones.
func TestRenderingAtRest(t *testing.T) {
	c, m := newChildren(t, func() {}), &Memory{}
	cluster := sized("c", 3, 6, v1alpha1.PodTemplate{})
	objects := renderAll(t, c, m, cluster)
	var refs []apply.Ref
	for _, o := range objects {
		refs = append(refs, apply.RefOf(o))
	}
	m.rendered.reduce()
	again := renderAll(t, c, m, cluster)
	for i, o := range again {
		if o != objects[i] || apply.RefOf(o) != refs[i] || len(o.Object) != 3 {
			t.Errorf("%s became %v", refs[i], o.Object)
		}
	}
	m.rendered = rendering{}
	if whole := renderAll(t, c, m, cluster); len(whole[0].Object) == 3 {
		t.Errorf("rendered anew: %v", whole[0].Object)
	}
}

// Of a cluster that is between two steps the objects are kept small, and are the same ones again when they are to be written.
func TestRenderingBetweenSteps(t *testing.T) {
	c, m := newChildren(t, func() {}), &Memory{}
	cluster := sized("c", 3, 6, v1alpha1.PodTemplate{Labels: map[string]string{"example.com/a": "<é>"}})
	objects := renderAll(t, c, m, cluster)
	var whole []*unstructured.Unstructured
	for _, o := range objects {
		whole = append(whole, o.DeepCopy())
	}
	for range 2 {
		m.rendered.pack()
		for i, o := range renderAll(t, c, m, cluster) {
			if o != objects[i] || len(o.Object) != 3 || apply.RefOf(o) != apply.RefOf(whole[i]) {
				t.Errorf("%s became %v", apply.RefOf(whole[i]), o.Object)
			}
		}
		m.rendered.unpack()
		for i, o := range renderAll(t, c, m, cluster) {
			if diff := cmp.Diff(whole[i].Object, o.Object); diff != "" || o != objects[i] {
				t.Errorf("%s (-want +got):\n%s", apply.RefOf(whole[i]), diff)
			}
		}
	}
	if full, _ := json.Marshal(whole); len(m.rendered.packed)*2 > len(full) {
		t.Errorf("%d bytes of %d are kept", len(m.rendered.packed), len(full))
	}
}

// leftOver compares with what a cluster between two steps has left.
type leftOver struct {
	pending plan.Pending
	asked   []bool
}

func (n *leftOver) Compare(_ context.Context, _ *v1alpha1.RedisCluster, _ *snapshot.Snapshot, _ plan.Shape, m *Memory) (Comparison, error) {
	n.asked = append(n.asked, m.rendered.namesOnly)
	return Comparison{NamesOnly: m.rendered.namesOnly, Pending: n.pending}, nil
}

// Nothing is written by names: a step that writes children, or may have to, is decided on once more, with the objects themselves.
func TestNoStepByNames(t *testing.T) {
	for name, tt := range map[string]struct {
		pending    plan.Pending
		finalizers []string
		asked      []bool
	}{
		"a finalizer":   {asked: []bool{true}},
		"children":      {plan.Pending{Children: []string{"Service c"}}, []string{v1alpha1.Finalizer}, []bool{true, false}},
		"a certificate": {plan.Pending{Certificate: "c-tls"}, []string{v1alpha1.Finalizer}, []bool{true, false}},
	} {
		n := &leftOver{pending: tt.pending}
		l := &Loop{Children: n, Now: time.Now}
		cluster, m := sized("c", 3, 6, v1alpha1.PodTemplate{}), &Memory{}
		cluster.Finalizers = tt.finalizers
		admission.Default(cluster)
		s := (&snapshot.Snapshot{Auth: snapshot.Auth{Known: true}}).Indexed()
		m.rendered.pack()
		desired := plan.DesiredFor(cluster, s, plan.Options{})
		children, decision, err := l.decide(t.Context(), cluster, s, desired, plan.ShapeOf(desired, s, time.Now()), m)
		if err != nil || plan.Is[plan.None](decision.Step) || act.NeedsChildren(decision.Step) && children.NamesOnly {
			t.Errorf("%s: %T by names only: %t, %v", name, decision.Step, children.NamesOnly, err)
		}
		if !slices.Equal(n.asked, tt.asked) {
			t.Errorf("%s: %+v, compared %v", name, decision.Step, n.asked)
		}
	}
}

// That what strings make of the objects is checked with one shard lets none of them through.
func TestStringsShapeNoShard(t *testing.T) {
	hostile := "x\"\n---\nkind: Secret\nmetadata: {name: theirs}\n#"
	template := v1alpha1.PodTemplate{Annotations: map[string]string{"example.com/a": hostile},
		Tolerations: []corev1.Toleration{{Key: hostile}}}
	for _, object := range renderAll(t, newChildren(t, nil), &Memory{}, sized("c", 7, 14, template)) {
		if object.GetKind() == "Secret" {
			t.Errorf("a string made %s", object.GetName())
		}
		if object.GetKind() != "StatefulSet" {
			continue
		}
		if got, _, _ := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", "example.com/a"); got != hostile {
			t.Errorf("%s: the annotation is %q", object.GetName(), got)
		}
	}
}

// Gateways stay as they are while it is not known what they are to be, but for a cluster that is hibernated.
func TestGatewaysAreKept(t *testing.T) {
	c := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.RedisClusterSpec{External: &v1alpha1.External{}}}
	for dormant, want := range map[bool]bool{false: true, true: false} {
		ref := apply.Ref{GroupVersionKind: optional[2], Name: "c-gateway"}
		if got := (&children{}).keeps(c, &snapshot.Snapshot{}, dormant, ref); got != want {
			t.Errorf("dormant: %t, kept: %t", dormant, got)
		}
	}
}

// The Service of the only master leads to whoever owns all slots, and stays as it is while that is not certain.
func TestPrimaryOf(t *testing.T) {
	instance := func(name string, owned slots.Set) snapshot.Instance {
		return snapshot.Instance{Name: name, Redis: &snapshot.Redis{NodeID: name, Slots: owned, Master: !owned.IsEmpty()}}
	}
	small := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.RedisClusterSpec{Shards: ptr.To[int32](1)}}
	large := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: v1alpha1.RedisClusterSpec{Shards: ptr.To[int32](3)}}
	all, none := slots.All(), slots.Set{}
	for name, tt := range map[string]struct {
		cluster   *v1alpha1.RedisCluster
		topology  v1alpha1.Topology
		unformed  bool
		instances []snapshot.Instance
		want      string
	}{
		"its master":                    {small, v1alpha1.Topology{2}, false, []snapshot.Instance{instance("a", none), instance("b", all)}, "b"},
		"nobody who answers owns slots": {small, v1alpha1.Topology{2}, false, []snapshot.Instance{instance("a", none)}, ""},
		"two say so":                    {small, v1alpha1.Topology{2}, false, []snapshot.Instance{instance("a", all), instance("b", all)}, ""},
		"it has some":                   {small, v1alpha1.Topology{2}, false, []snapshot.Instance{instance("a", slots.Of(1))}, ""},
		"it is being made":              {small, v1alpha1.Topology{2}, true, []snapshot.Instance{instance("a", all)}, ""},
		"other shards go":               {small, v1alpha1.Topology{2, 2}, false, []snapshot.Instance{instance("a", all)}, ""},
		"others are to come":            {large, v1alpha1.Topology{2}, false, []snapshot.Instance{instance("a", all)}, ""},
	} {
		s := &snapshot.Snapshot{Formed: !tt.unformed, Instances: tt.instances}
		if got := primaryOf(tt.cluster, s, plan.Shape{Topology: tt.topology}); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		stays := (&children{observer: &observe.Observer{}}).keeps(tt.cluster, s, false, apply.Ref{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Service"), Name: "c-primary"})
		if stays != (tt.cluster == small) {
			t.Errorf("%s: it stays: %t", name, stays)
		}
	}
}

// A cache of Certificates that never fills keeps no cluster from being looked at: what cannot be read of them is left as it is. What is
// somebody else's is told.
func TestCertificatesThatCannotBeRead(t *testing.T) {
	silent := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	refused := func(context.Context) error { return errors.New("the API server is away") }
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"},
		Spec: v1alpha1.RedisClusterSpec{TLS: &v1alpha1.TLS{IssuerRef: &v1alpha1.IssuerRef{Name: "own"}}}}
	plain := cluster.DeepCopy()
	plain.Spec.TLS, plain.Status.Certificate = nil, "c-tls"
	rendered := &unstructured.Unstructured{}
	rendered.SetGroupVersionKind(values.Certificate)
	rendered.SetNamespace("n")
	rendered.SetName("c-tls")
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(values.Certificate, meta.RESTScopeNamespace)
	for name, tt := range map[string]struct {
		cluster  *v1alpha1.RedisCluster
		rendered *unstructured.Unstructured
		answers  func(context.Context) error
		there    []client.Object
		notOurs  bool
		want     string
	}{
		"it is not there":          {cluster: cluster, rendered: rendered, want: "c-tls"},
		"nobody answers":           {cluster: cluster, rendered: rendered, answers: silent},
		"it cannot be read":        {cluster: cluster, rendered: rendered, answers: refused},
		"it is another's":          {cluster: cluster, rendered: rendered, there: []client.Object{rendered.DeepCopy()}, notOurs: true},
		"one to go cannot be read": {cluster: plain, answers: refused},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			answers := func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				reads++
				if tt.answers != nil {
					return tt.answers(ctx)
				}
				return c.Get(ctx, key, o, options...)
			}
			kube := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(tt.there...).WithInterceptorFuncs(
				interceptor.Funcs{Get: answers}).Build()
			c := &children{applier: apply.New(kube, kube), observer: &observe.Observer{Secrets: kube}, mapper: scopes{}}
			var compared Comparison
			var m Memory
			err := c.certificate(t.Context(), tt.cluster, tt.rendered, &m, &compared)
			var notOurs *apply.NotOursError
			if errors.As(err, &notOurs) != tt.notOurs || !tt.notOurs && err != nil {
				t.Error(err)
			}
			if compared.Pending.Certificate != tt.want || !compared.KeepsCertificate {
				t.Errorf("%q is pending, kept: %t", compared.Pending.Certificate, compared.KeepsCertificate)
			}
			if told := compared.CertificateUnread != ""; told != (tt.answers != nil && tt.rendered != nil) {
				t.Errorf("told: %q", compared.CertificateUnread)
			}
			asked, again := reads, Comparison{}
			if err := c.certificate(t.Context(), tt.cluster, tt.rendered, &m, &again); compared.CertificateUnread != "" &&
				(err != nil || reads != asked || again.CertificateUnread != compared.CertificateUnread) {
				t.Errorf("at the next look: %q, %v after %d reads", again.CertificateUnread, err, reads-asked)
			}
		})
	}
}

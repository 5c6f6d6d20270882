// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/chart/shape"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

var update = flag.Bool("update", false, "write testdata/*.golden.yaml anew")

// kinds are those that the chart may render. All of them live in namespaces.
var kinds = []string{"ConfigMap", "NetworkPolicy", "PodDisruptionBudget", "Service", "StatefulSet"}

func namespaced(schema.GroupVersionKind) (bool, error) { return true, nil }

func loadChart(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := chart.LoadDir(filepath.Join("..", "..", "..", "helm-charts", "rediscluster"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(c *chart.Chart, cr *v1alpha1.RedisCluster, topology v1alpha1.Topology,
	configMap map[string]string) ([]*unstructured.Unstructured, error) {
	rendered, err :=
		c.Render(values.Build(cr, topology, redisconf.AskedFor(cr, configMap), redisconf.TLSFor(cr)),
			chart.Release{Name: cr.Name, Namespace: cr.Namespace, Revision: 1, IsInstall: true},
			chart.Capabilities{})
	if err != nil {
		return nil, err
	}
	if err := chart.Check(rendered, chart.Allowed{Namespace: cr.Namespace, Kinds: kinds, Namespaced: namespaced}); err != nil {
		return nil, err
	}
	return rendered.Objects, nil
}

func readCluster(t testing.TB, path string) *v1alpha1.RedisCluster {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cr := &v1alpha1.RedisCluster{}
	if err := yaml.UnmarshalStrict(text, cr); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return cr
}

func toYAML(t testing.TB, objects []*unstructured.Unstructured) string {
	t.Helper()
	var b strings.Builder
	for _, object := range objects {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	return b.String()
}

// TestGolden shows what a RedisCluster becomes. The inputs are testdata/<name>.yaml.
func TestGolden(t *testing.T) {
	c := loadChart(t)
	samples := filepath.Join("..", "..", "..", "config", "samples")
	cases := []struct {
		name, file string
		configMap  map[string]string
	}{
		{name: "default", file: "testdata/default.yaml"},
		{name: "source-sample", file: filepath.Join(samples, "redis_v1alpha1_rediscluster.yaml")},
		{name: "full-sample", file: filepath.Join(samples, "redis_v1alpha1_rediscluster_full.yaml")},
		{name: "emptydir-noauth", file: "testdata/emptydir-noauth.yaml"},
		{name: "nfs", file: "testdata/nfs.yaml"},
		{name: "hostpath", file: "testdata/hostpath.yaml"},
		{name: "tls", file: "testdata/tls.yaml"},
		{name: "tls-both", file: "testdata/tls-both.yaml"},
		{name: "tls-clients", file: "testdata/tls-clients.yaml"},
		{name: "containers", file: "testdata/containers.yaml"},
		{name: "overlay", file: "testdata/overlay.yaml"},
		{name: "everything", file: "testdata/everything.yaml",
			configMap: map[string]string{"maxmemory": "1gb", "save": "900 1 300 10"}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			cr := readCluster(t, test.file)
			objects, err := render(c, cr, cr.Spec.Topology(), test.configMap)
			if err != nil {
				t.Fatal(err)
			}
			got, path := toYAML(t, objects), filepath.Join("testdata", test.name+".golden.yaml")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("rendered objects differ from %s (-want +got); run go test with -update when that is meant:\n%s", path, diff)
			}
		})
	}
}

// TestChartTakesNoOtherLine: whatever made the values, an argument cannot end its quotes or its line.
func TestChartTakesNoOtherLine(t *testing.T) {
	c, cr := loadChart(t), readCluster(t, "testdata/default.yaml")
	for _, tc := range []struct {
		entry []any
		taken bool
	}{
		{[]any{"hz", "10", `a b\x0a'#{}`}, true}, {[]any{"hz", ""}, true},
		{[]any{"hz"}, false}, {[]any{"Hz", "10"}, false}, {[]any{"hz 10", "10"}, false}, {[]any{"hz", "10\nrequirepass x"}, false},
		{[]any{"hz", `10" "x`}, false}, {[]any{"hz", "10", `\`}, false}, {[]any{"hz", int64(10)}, false},
	} {
		built := values.Build(cr, cr.Spec.Topology(), redisconf.AskedFor(cr, nil), redisconf.TLSFor(cr))
		built["config"] = append(built["config"].([]any), tc.entry)
		_, err := c.Render(built, chart.Release{Name: cr.Name, Namespace: cr.Namespace, Revision: 1, IsInstall: true}, chart.Capabilities{})
		if (err == nil) != tc.taken {
			t.Errorf("%q: %v", tc.entry, err)
		}
	}
}

// TestMostAreRenderedOnce: nothing that the operator itself writes into the values has the chart rendered three times (package shape).
func TestMostAreRenderedOnce(t *testing.T) {
	for _, file := range []string{"archive", "default", "emptydir-noauth", "external", "hostpath", "nfs", "tls", "tls-both", "tls-clients"} {
		cr := readCluster(t, filepath.Join("testdata", file+".yaml"))
		built := values.Build(cr, cr.Spec.Topology(), redisconf.AskedFor(cr, nil), redisconf.TLSFor(cr))
		if suspects := shape.Suspects("", built, true); len(suspects) > 0 {
			t.Errorf("%s: %v", file, suspects)
		}
	}
}

// BenchmarkRender: what most RedisClusters cost, and one with a value that holds a bracket.
func BenchmarkRender(b *testing.B) {
	c := loadChart(b)
	for name, config := range map[string]map[string]string{"plain": {"hz": "20"}, "brackets": {"proc-title-template": "{title}"}} {
		b.Run(name, func(b *testing.B) {
			cr := readCluster(b, "testdata/default.yaml")
			cr.Spec.Config = config
			b.ReportAllocs()
			for b.Loop() {
				if _, err := render(c, cr, cr.Spec.Topology(), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Pods with two ports are asked at both until the last of them is gone: the policy drops nothing there while there is spec.tls.
func TestPortsOfTLSStages(t *testing.T) {
	c := loadChart(t)
	for _, mode := range []v1alpha1.TLSMode{v1alpha1.TLSDisabled, v1alpha1.TLSBoth, v1alpha1.TLSRequired, ""} {
		cr := readCluster(t, "testdata/tls-both.yaml")
		if cr.Spec.TLS.Mode = mode; mode == "" {
			cr.Spec.TLS = nil
		}
		objects, err := render(c, cr, cr.Spec.Topology(), nil)
		if err != nil {
			t.Fatal(err)
		}
		policies := slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "NetworkPolicy" })
		if n := strings.Count(toYAML(t, policies), "port: 6380"); n != map[bool]int{true: 2}[mode != ""] {
			t.Errorf("with mode %q the policy names port 6380 %d times", mode, n)
		}
		if objects, err = render(c, cr, cr.Spec.Topology(), nil); err != nil {
			t.Fatal(err)
		}
		services := slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Service" })
		// A pod that is to restart has another name for the port that has taken plain connections all the time.
		byNumber := mode == v1alpha1.TLSDisabled || mode == v1alpha1.TLSBoth
		if n := strings.Count(toYAML(t, services), "targetPort: 6379"); n != map[bool]int{true: 2}[byNumber] {
			t.Errorf("with mode %q Services lead to 6379 by its number %d times", mode, n)
		}
	}
}

// TestScalingRestartsNothing: a pod template that changed with the topology would roll
// every instance when the cluster grows.
func TestScalingRestartsNothing(t *testing.T) {
	c := loadChart(t)
	cr := readCluster(t, "testdata/everything.yaml")
	before, err := render(c, cr, v1alpha1.Topology{2, 2, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := render(c, cr, v1alpha1.Topology{3, 2, 2, 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	was, is := podTemplates(before), podTemplates(after)
	if len(was) != 3 || len(is) != 4 {
		t.Fatalf("%d and %d StatefulSets, want 3 and 4", len(was), len(is))
	}
	for name, template := range was {
		if diff := cmp.Diff(template, is[name]); diff != "" {
			t.Errorf("the pod template of %s changed:\n%s", name, diff)
		}
	}
}

func podTemplates(objects []*unstructured.Unstructured) map[string]any {
	templates := map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "StatefulSet" {
			templates[object.GetName()], _, _ = unstructured.NestedMap(object.Object, "spec", "template")
		}
	}
	return templates
}

// TestConfigChangeRestartsNothing: settings are applied to running instances; the file
// is for those that start.
func TestConfigChangeRestartsNothing(t *testing.T) {
	c := loadChart(t)
	cr := readCluster(t, "testdata/default.yaml")
	before, err := render(c, cr, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cr.Spec.Config = map[string]string{"maxmemory": "1gb"}
	after, err := render(c, cr, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(podTemplates(before), podTemplates(after)); diff != "" {
		t.Errorf("the pod template changed with spec.config:\n%s", diff)
	}
}

// TestServiceRestartsNothing: how the Services look is nothing to pods.
func TestServiceRestartsNothing(t *testing.T) {
	c, cr := loadChart(t), readCluster(t, "testdata/overlay.yaml")
	with, err := render(c, cr, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cr.Spec.Service = nil
	without, err := render(c, cr, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(podTemplates(with), podTemplates(without)); diff != "" {
		t.Errorf("the pod template changed with spec.service:\n%s", diff)
	}
}

// TestOverlayThatSaysNothing changes no pod template: nobody restarts for {}.
func TestOverlayThatSaysNothing(t *testing.T) {
	c, cr := loadChart(t), readCluster(t, "testdata/everything.yaml")
	before, err := render(c, cr, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	cr.Spec.Pod[0].Overlay = &runtime.RawExtension{Raw: []byte(`{"containers":[{"name":"redis"}],"securityContext":{"runAsNonRoot":true}}`)}
	after, err := render(c, cr, cr.Spec.Topology(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(podTemplates(before), podTemplates(after)); diff != "" {
		t.Errorf("the pod template changed:\n%s", diff)
	}
}

// TestScheduling: which of the operator's wishes about nodes and zones the user's replace, and which they do not.
func TestScheduling(t *testing.T) {
	c := loadChart(t)
	own := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule}
	const evenly, apart = "zone ScheduleAnyway, hostname ScheduleAnyway", ", hostname DoNotSchedule of shard 1"
	for name, tt := range map[string]struct {
		spec           v1alpha1.RedisClusterSpec
		spread, prefer string
	}{
		"nothing said": {spread: evenly, prefer: "hostname, zone"},
		"required": {spec: v1alpha1.RedisClusterSpec{AntiAffinity: v1alpha1.AntiAffinityRequired}, spread: evenly + apart,
			prefer: "hostname, zone"},
		"no preference": {
			spec:   v1alpha1.RedisClusterSpec{Pod: []v1alpha1.PodTemplate{{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}}}},
			spread: evenly},
		"nodes named": {
			spec:   v1alpha1.RedisClusterSpec{Pod: []v1alpha1.PodTemplate{{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}}},
			spread: evenly, prefer: "hostname, zone"},
		"constraints of the user's": {
			spec:   v1alpha1.RedisClusterSpec{Pod: []v1alpha1.PodTemplate{{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{own}}}},
			spread: "rack DoNotSchedule", prefer: "hostname, zone"},
		"constraints of the user's and required": {
			spec: v1alpha1.RedisClusterSpec{
				AntiAffinity: v1alpha1.AntiAffinityRequired,
				Pod:          []v1alpha1.PodTemplate{{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{own}}}},
			spread: "rack DoNotSchedule" + apart, prefer: "hostname, zone"},
	} {
		cr := readCluster(t, "testdata/default.yaml")
		cr.Spec.AntiAffinity, cr.Spec.Pod = tt.spec.AntiAffinity, tt.spec.Pod
		objects, err := render(c, cr, cr.Spec.Topology(), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		spec := podSpec(t, objects, cr.ShardName(1))
		var spread, prefer []string
		for _, constraint := range spec.TopologySpreadConstraints {
			says := path.Base(constraint.TopologyKey) + " " + string(constraint.WhenUnsatisfiable)
			if constraint.LabelSelector != nil && constraint.LabelSelector.MatchLabels[v1alpha1.LabelShard] != "" {
				says += " of shard " + constraint.LabelSelector.MatchLabels[v1alpha1.LabelShard]
			}
			spread = append(spread, says)
		}
		for _, term := range spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			prefer = append(prefer, path.Base(term.PodAffinityTerm.TopologyKey))
		}
		if diff := cmp.Diff([]string{tt.spread, tt.prefer}, []string{strings.Join(spread, ", "), strings.Join(prefer, ", ")}); diff != "" {
			t.Errorf("%s: spread and preference (-want +got):\n%s", name, diff)
		}
	}
}

// podSpec is that of a StatefulSet's template.
func podSpec(t *testing.T, objects []*unstructured.Unstructured, name string) corev1.PodSpec {
	t.Helper()
	var set appsv1.StatefulSet
	for _, object := range objects {
		if object.GetKind() == "StatefulSet" && object.GetName() == name {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &set, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	return set.Spec.Template.Spec
}

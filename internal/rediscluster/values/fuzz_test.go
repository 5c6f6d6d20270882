// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

var attacks = []string{
	"plain", "", " ", "yes", "0x10", "1e3", "null", "~",
	"a\nloadmodule /x.so", "a\r\nport 1", "a\x00b", "\"\nrename-command A B", `"\x0aport 1"`, `\`, `"`, `'`, `\"`,
	"---\nkind: Secret", "x\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}", "{{ .Values }}",
	"{{ lookup \"v1\" \"Secret\" \"\" \"\" }}",
	"&a [*a, *a]", "*a", "!!binary x", "# comment", "key: value", "- item", "$(POD_IP)", "$(id)", "`id`", "\u2028", "\ufeff", "é", "\xff",
	"x\"\n  hostNetwork: true\n  y: \"", "x\n      - name: evil\n        image: evil", "%YAML 1.2", "?", "|", ">", "@",
	strings.Repeat("a", 5000),
}

// FuzzStrings puts any string in every place where users write strings. The chart may
// refuse it; what it renders has the same objects and containers as ever, and a
// redis.conf of the same directives and the user's own.
func FuzzStrings(f *testing.F) {
	for _, attack := range attacks {
		f.Add(attack, attack)
		f.Add("tcp-keepalive", attack)
		f.Add(attack, "")
	}
	c := loadChart(f)
	topology := v1alpha1.Topology{2, 1}
	want, err := render(c, written("key", "value"), topology, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		parsed, _ := redisconf.ParseConfig("maxclients 1000\n" + value)
		got, err := render(c, written(key, value), topology, parsed)
		if err != nil {
			return // refused
		}
		if a, b := inventory(want), inventory(got); a != b {
			t.Errorf("strings %q, %q changed what is made:\n%s\nwant:\n%s", key, value, b, a)
		}
		allowed := slices.Concat(directives(t, want), []string{redisconf.Canonical(key), "maxclients"}, slices.Collect(maps.Keys(parsed)))
		for _, name := range directives(t, got) {
			if !slices.Contains(allowed, name) {
				t.Errorf("strings %q, %q: redis.conf has the directive %q", key, value, name)
			}
			if _, reserved := redisconf.Reserved(name); reserved && !slices.Contains(directives(t, want), name) {
				t.Errorf("strings %q, %q: redis.conf has the reserved directive %q", key, value, name)
			}
		}
	})
}

// written is a RedisCluster with the strings wherever users write strings.
func written(key, value string) *v1alpha1.RedisCluster {
	cr := &v1alpha1.RedisCluster{}
	cr.Name, cr.Namespace = "cache", "shop"
	cr.Spec.Config = map[string]string{key: value, "maxmemory-policy": value}
	cr.Spec.Auth.SecretName = value
	cr.Spec.Service = &v1alpha1.ClientService{Annotations: map[string]string{key: value}}
	cr.Spec.Storage = &v1alpha1.Storage{StorageClassName: &value}
	cr.Spec.Pod = []v1alpha1.PodTemplate{{
		Labels: map[string]string{key: value}, Annotations: map[string]string{key: value}, NodeSelector: map[string]string{key: value},
		Env: []corev1.EnvVar{
			{Name: key, Value: value}, {Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: value}}}},
		Configmap: value, PriorityClassName: value,
		MonitorImage: "exporter:1", Monitor: &v1alpha1.MonitorContainer{Args: []string{key, value}},
		InitImage: "prepare:1", Init: &v1alpha1.InitContainer{Args: []string{key, value}},
		Tolerations:      []corev1.Toleration{{Key: key, Value: value}},
		ImagePullSecrets: []corev1.LocalObjectReference{{Name: value}},
		Overlay: merged(corev1.Container{Name: "a", Image: "a:1", Args: []string{key, value},
			Env: []corev1.EnvVar{{Name: key, Value: value}}}),
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}},
			}}}},
	}}
	return cr
}

// merged is an overlay with a container.
func merged(c corev1.Container) *runtime.RawExtension {
	raw, err := json.Marshal(corev1.PodSpec{InitContainers: []corev1.Container{c}})
	if err != nil {
		panic(err) // it is JSON
	}
	return &runtime.RawExtension{Raw: raw}
}

// inventory is what strings must not change: objects, containers and their privileges,
// mounts, volumes, selectors.
func inventory(objects []*unstructured.Unstructured) string {
	var b strings.Builder
	for _, object := range objects {
		fmt.Fprintf(&b, "%s %s/%s %v\n", object.GroupVersionKind(), object.GetNamespace(), object.GetName(), object.GetLabels())
		if object.GetKind() != "StatefulSet" {
			spec, _, _ := unstructured.NestedMap(object.Object, "spec")
			fmt.Fprintf(&b, "  %v\n", spec)
			continue
		}
		pod, _, _ := unstructured.NestedMap(object.Object, "spec", "template", "spec")
		delete(pod, "priorityClassName") // left out when empty
		fmt.Fprintf(&b, "  pod %v\n", slices.Sorted(maps.Keys(pod)))
		for _, name := range []string{"hostNetwork", "serviceAccountName", "automountServiceAccountToken", "securityContext", "volumes"} {
			fmt.Fprintf(&b, "  %s %v\n", name, pod[name])
		}
		containers, _, _ := unstructured.NestedSlice(pod, "containers")
		before, _, _ := unstructured.NestedSlice(pod, "initContainers")
		for _, container := range slices.Concat(before, containers) {
			container := container.(map[string]any)
			delete(container, "env")
			if args, ok := container["args"].([]any); ok {
				container["args"] = len(args)
			}
			fmt.Fprintf(&b, "  container %v\n", container)
		}
	}
	return b.String()
}

// directives are the names in redis.conf, read as Redis reads the file: lines, trimmed,
// comments left out, the first word in lower case.
func directives(t *testing.T, objects []*unstructured.Unstructured) []string {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() != "ConfigMap" {
			continue
		}
		conf, found, err := unstructured.NestedString(object.Object, "data", "redis.conf")
		if err != nil || !found {
			t.Fatalf("redis.conf: found %t, %v", found, err)
		}
		var names []string
		for line := range strings.SplitSeq(conf, "\n") {
			if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
				names = append(names, strings.ToLower(words[0]))
			}
		}
		return names
	}
	t.Fatal("no ConfigMap")
	return nil
}

// FuzzQuote: whatever is quoted is one argument and comes back as it was.
func FuzzQuote(f *testing.F) {
	for _, attack := range attacks {
		f.Add(attack)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		quoted := redisconf.Quote(arg)
		if strings.ContainsAny(quoted, "\n\r\x00") {
			t.Errorf("Quote(%q) = %q has a line break", arg, quoted)
		}
		back, err := redisconf.SplitArguments(quoted)
		if err != nil || len(back) != 1 || back[0] != arg {
			t.Errorf("Quote(%q) reads back as %q, %v", arg, back, err)
		}
	})
}

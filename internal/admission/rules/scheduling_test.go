// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	chartv1 "middleware.hc.cn/operator/api/chart/v1"
)

// wanted compares what is refused of a part of a spec with the beginning of the one refusal that is wanted; empty: none.
func wanted[T any](t *testing.T, text string, check func(T) field.ErrorList, want string) {
	t.Helper()
	var part T
	if err := yaml.UnmarshalStrict([]byte(text), &part); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	refused := check(part)
	if (want == "") != (len(refused) == 0) || want != "" && (len(refused) != 1 || !strings.HasPrefix(refused[0].Error(), want)) {
		t.Errorf("%s: %v, want %q", text, refused, want)
	}
}

// What the API server would refuse of an affinity is refused by its field.
func TestAffinity(t *testing.T) {
	const needed, liked = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
	nodes := func(terms string) string {
		return `nodeAffinity: {` + needed + `: {nodeSelectorTerms: [` + terms + `]}}`
	}
	expression := func(e string) string { return nodes(`{matchExpressions: [` + e + `]}`) }
	pods := func(term string) string { return `podAntiAffinity: {` + needed + `: [` + term + `]}` }
	const node, pod = "spec.affinity.nodeAffinity." + needed + ".nodeSelectorTerms", "spec.affinity.podAntiAffinity." + needed + "[0]."
	for _, tt := range [][2]string{
		{`{}`, ""},
		{nodes(``), node + ": Required value: say which nodes"},
		{expression(`{key: disk, operator: In, values: [ssd]}, {key: a, operator: Exists}, {key: n, operator: Gt, values: ["5"]}`), ""},
		{expression(`{key: disk, operator: Is, values: [ssd]}`), node + "[0].matchExpressions[0].operator: Unsupported value"},
		{expression(`{key: disk, operator: In}`), node + "[0].matchExpressions[0]: Invalid value: \"disk\": spec.affinity"},
		{expression(`{key: a b, operator: Exists}`), node + "[0].matchExpressions[0]: Invalid value"},
		{expression(`{key: a, operator: In, values: [a b]}`), node + "[0].matchExpressions[0]: Invalid value"},
		{expression(`{key: a, operator: Exists, values: [b]}`), node + "[0].matchExpressions[0]: Invalid value"},
		{expression(`{key: a, operator: Lt, values: [b]}`), node + "[0].matchExpressions[0]: Invalid value"},
		{nodes(`{matchFields: [{key: metadata.name, operator: In, values: [node-1]}]}`), ""},
		{nodes(`{matchFields: [{key: metadata.uid, operator: In, values: [a]}]}`), node + "[0].matchFields[0].key: Unsupported value"},
		{nodes(`{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}`), node + "[0].matchFields[0].values: Invalid value"},
		{nodes(`{matchFields: [{key: metadata.name, operator: Exists, values: [a]}]}`),
			node + "[0].matchFields[0].operator: Unsupported value"},
		{`nodeAffinity: {` + liked + `: [{weight: 0, preference: {}}]}`,
			"spec.affinity.nodeAffinity." + liked + "[0].weight: Invalid value: 0"},
		{`podAffinity: {` + liked + `: [{weight: 101, podAffinityTerm: {topologyKey: a}}]}`,
			"spec.affinity.podAffinity." + liked + "[0].weight: Invalid value: 101"},
		{`podAffinity: {` + liked + `: [{weight: 1, podAffinityTerm: {topologyKey: ""}}]}`,
			"spec.affinity.podAffinity." + liked + "[0].podAffinityTerm.topologyKey: Invalid value"},
		{pods(`{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [pod-template-hash]}`), ""},
		{pods(`{topologyKey: a, labelSelector: {matchLabels: {"a b": c}}}`), pod + "labelSelector.matchLabels: Invalid value"},
		{pods(`{topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: Like}]}}`),
			pod + "labelSelector.matchExpressions[0].operator: Invalid value"},
		{pods(`{topologyKey: a, namespaceSelector: {matchLabels: {a: "b c"}}}`), pod + "namespaceSelector.matchLabels: Invalid value"},
		{pods(`{topologyKey: a, namespaces: [a.b]}`), pod + "namespaces[0]: Invalid value"},
		{pods(`{topologyKey: a, matchLabelKeys: [a]}`), pod + "matchLabelKeys: Forbidden"},
		{pods(`{topologyKey: a, labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [a]}`), pod + "matchLabelKeys[0]: Invalid value"},
		{pods(`{topologyKey: a, labelSelector: {}, matchLabelKeys: [a], mismatchLabelKeys: [a]}`), pod + "matchLabelKeys[0]: Invalid value"},
		{pods(`{topologyKey: a, labelSelector: {}, mismatchLabelKeys: ["a b"]}`), pod + "mismatchLabelKeys[0]: Invalid value"},
	} {
		wanted(t, tt[0], func(a corev1.Affinity) field.ErrorList { return Affinity(field.NewPath("spec", "affinity"), &a) }, tt[1])
	}
	large := chartv1.PodPlacement{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: make([]corev1.PodAffinityTerm, 2000)}}}
	if refused := Placement(field.NewPath("spec"), large); len(refused) != 1 || refused[0].Field != "spec.affinity" {
		t.Errorf("a large one: %v", refused)
	}
}

// So it is of how pods are spread.
func TestTopologySpread(t *testing.T) {
	const at = "spec.c[0]."
	one := func(more string) string {
		return `[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule` + more + `}]`
	}
	for _, tt := range [][2]string{
		{one(``), ""},
		{one(`, minDomains: 2, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor, labelSelector: {}, matchLabelKeys: [a]`), ""},
		{`[{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]`, at + "maxSkew: Invalid value: 0"},
		{`[{maxSkew: 1, topologyKey: "", whenUnsatisfiable: ScheduleAnyway}]`, at + "topologyKey: Invalid value"},
		{`[{maxSkew: 1, topologyKey: a}]`, at + "whenUnsatisfiable: Required value"},
		{`[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Never}]`, at + "whenUnsatisfiable: Unsupported value"},
		{`[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 1}]`, at + "minDomains: Invalid value: 1"},
		{one(`, nodeTaintsPolicy: Maybe`), at + "nodeTaintsPolicy: Unsupported value"},
		{one(`, matchLabelKeys: [a]`), at + "matchLabelKeys: Forbidden"},
		{one(`, labelSelector: {matchLabels: {a: "b c"}}`), at + "labelSelector.matchLabels: Invalid value"},
		{`[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}, {maxSkew: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]`,
			"spec.c[1]: Duplicate value"},
	} {
		wanted(t, tt[0], func(c []corev1.TopologySpreadConstraint) field.ErrorList {
			return TopologySpread(field.NewPath("spec", "c"), c)
		}, tt[1])
	}
}

// A chart kind has volumes of the namespace and of its own pod, beside its /tmp.
func TestPodVolumes(t *testing.T) {
	one := func(source string) string { return `volumes: [{name: v, ` + source + `}]` }
	mounted := func(source, mount string) string {
		return `{` + one(source) + `, volumeMounts: [{name: v, ` + mount + `}]}`
	}
	const source, v, m = "spec.volumes[0].projected.sources[0]", "spec.volumes[0].", "spec.volumeMounts[0]."
	for _, tt := range [][2]string{
		{`{}`, ""},
		{mounted(`configMap: {name: a, items: [{key: k, path: p, mode: 0o440}]}`, `mountPath: /etc/a, subPath: p, readOnly: true`), ""},
		{mounted(`emptyDir: {medium: Memory, sizeLimit: 1Mi}`, `mountPath: /tmp/cache`), ""},
		{mounted(`persistentVolumeClaim: {claimName: a}`, `mountPath: /data`), ""},
		{one(`projected: {sources: [{secret: {name: a}}, {configMap: {name: b}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}`),
			""},

		{`volumes: [{name: v}]`, "spec.volumes[0]: Required value: say what to mount"},
		{one(`emptyDir: {}, secret: {secretName: a}`), "spec.volumes[0]: Required value"},
		{`volumes: [{name: tmp, emptyDir: {}}]`, v + "name: Invalid value: \"tmp\": is the volume of /tmp"},
		{`volumes: [{name: A, emptyDir: {}}]`, v + "name: Invalid value"},
		{`volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]`, "spec.volumes[1].name: Duplicate value"},
		{one(`secret: {secretName: ../other/a}`), v + "secret.secretName: Invalid value"},
		{one(`secret: {}`), v + "secret.secretName: Invalid value"},
		{one(`configMap: {name: A}`), v + "configMap.name: Invalid value"},
		{one(`configMap: {name: a, items: [{key: a, path: ../a}]}`), v + "configMap.items[0].path: Invalid value"},
		{one(`configMap: {name: a, defaultMode: 0o1777}`), v + "configMap.defaultMode: Invalid value"},
		{one(`persistentVolumeClaim: {claimName: a b}`), v + "persistentVolumeClaim.claimName: Invalid value"},
		{one(`emptyDir: {sizeLimit: -1}`), v + "emptyDir.sizeLimit: Invalid value"},
		{one(`emptyDir: {medium: Disk}`), v + "emptyDir.medium: Unsupported value"},
		{one(`downwardAPI: {items: [{path: a, fieldRef: {fieldPath: spec}}]}`),
			v + "downwardAPI.items[0].fieldRef.fieldPath: Unsupported value"},
		{one(`projected: {sources: [{}]}`), source + ": Invalid value: must have one of"},
		{one(`projected: {sources: [{secret: {name: a b}}]}`), source + ".secret.name: Invalid value"},

		{`volumeMounts: [{name: v, mountPath: /a}]`, m + "name: Not found: \"v\""},
		{mounted(`emptyDir: {}`, `mountPath: /tmp`), m + "mountPath: Invalid value: \"/tmp\": is there already"},
		{mounted(`emptyDir: {}`, `mountPath: a`), m + "mountPath: Invalid value"},
		{mounted(`emptyDir: {}`, `mountPath: /a/../b`), m + "mountPath: Invalid value"},
		{mounted(`emptyDir: {}`, `mountPath: /a, subPath: b`), m + "subPath: Forbidden: of a volume that pods write to"},
		{mounted(`secret: {secretName: a}`, `mountPath: /a, subPath: ../b`), m + "subPath: Invalid value"},
		{`{` + one(`emptyDir: {}`) + `, volumeMounts: [{name: v, mountPath: /a}, {name: v, mountPath: /a}]}`,
			"spec.volumeMounts[1].mountPath: Duplicate value"},
		{one(`configMap: {name: a, items: [` + strings.Repeat(`{key: k, path: p}, `, 1000) + `]}`), "spec.volumes: Invalid value"},
	} {
		wanted(t, tt[0], func(p chartv1.PodVolumes) field.ErrorList { return PodVolumes(field.NewPath("spec"), p) }, tt[1])
	}
	if refused := PodVolumes(field.NewPath("spec"), chartv1.PodVolumes{Volumes: make([]chartv1.Volume, 21)}); len(refused) != 1 ||
		refused[0].Type != field.ErrorTypeTooMany {
		t.Errorf("21 volumes: %v", refused)
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/release"
)

// builtIn are the kinds that objects of a Kubernetes API server (v1.37) have, by scope. The tests compare them with a server.
var builtIn = []struct {
	group      string
	namespaced bool
	kinds      string
}{
	{"", true, "ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount"},
	{"", false, "Namespace Node PersistentVolume"},
	{"admissionregistration.k8s.io", false, "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration " +
		"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"},
	{"apiextensions.k8s.io", false, "CustomResourceDefinition"},
	{"apiregistration.k8s.io", false, "APIService"},
	{"apps", true, "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet"},
	{"autoscaling", true, "HorizontalPodAutoscaler"},
	{"batch", true, "CronJob Job"},
	{"certificates.k8s.io", false, "CertificateSigningRequest ClusterTrustBundle"},
	{"coordination.k8s.io", true, "Lease"},
	{"discovery.k8s.io", true, "EndpointSlice"},
	{"events.k8s.io", true, "Event"},
	{"flowcontrol.apiserver.k8s.io", false, "FlowSchema PriorityLevelConfiguration"},
	{"networking.k8s.io", true, "Ingress NetworkPolicy"},
	{"networking.k8s.io", false, "IPAddress IngressClass ServiceCIDR"},
	{"node.k8s.io", false, "RuntimeClass"},
	{"policy", true, "PodDisruptionBudget"},
	{"rbac.authorization.k8s.io", true, "Role RoleBinding"},
	{"rbac.authorization.k8s.io", false, "ClusterRole ClusterRoleBinding"},
	{"resource.k8s.io", true, "ResourceClaim ResourceClaimTemplate"},
	{"resource.k8s.io", false, "DeviceClass ResourceSlice"},
	{"scheduling.k8s.io", false, "PriorityClass"},
	{"storage.k8s.io", true, "CSIStorageCapacity"},
	{"storage.k8s.io", false, "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass"},
}

// kindInfo is what has to be known of a kind to make objects of it.
type kindInfo struct {
	resource   string
	namespaced bool
}

// kinds tells about kinds without a cluster.
type kinds struct {
	known map[schema.GroupKind]kindInfo
	// assumed are the kinds that were asked for and are not known.
	assumed map[schema.GroupKind]bool
}

func newKinds(defined definitions) *kinds {
	k := &kinds{known: map[schema.GroupKind]kindInfo{}, assumed: map[schema.GroupKind]bool{}}
	for _, row := range builtIn {
		for _, kind := range strings.Fields(row.kinds) {
			gk := schema.GroupKind{Group: row.group, Kind: kind}
			k.known[gk] = kindInfo{resource: guessResource(gk), namespaced: row.namespaced}
		}
	}
	for gvk, d := range defined {
		k.known[gvk.GroupKind()] = kindInfo{resource: d.plural, namespaced: d.namespaced}
	}
	return k
}

// learn adds the kinds of CustomResourceDefinitions that come with a chart, as far as they say what they define.
func (k *kinds) learn(crds []*unstructured.Unstructured) {
	for _, crd := range crds {
		text := func(path ...string) string {
			s, _, _ := unstructured.NestedString(crd.Object, append([]string{"spec"}, path...)...)
			return s
		}
		gk := schema.GroupKind{Group: text("group"), Kind: text("names", "kind")}
		if _, known := k.known[gk]; !known && gk.Kind != "" {
			k.known[gk] = kindInfo{resource: cmp.Or(text("names", "plural"), guessResource(gk)), namespaced: text("scope") != "Cluster"}
		}
	}
}

func guessResource(gk schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(gk.WithVersion("v1"))
	return plural.Resource
}

// guess returns what is known of a kind. One that is not known is taken as namespaced.
func (k *kinds) guess(gk schema.GroupKind) (info kindInfo, known bool) {
	if info, known = k.known[gk]; !known {
		info = kindInfo{resource: guessResource(gk), namespaced: true}
	}
	return info, known
}

// of is guess, and remembers what is not known.
func (k *kinds) of(gk schema.GroupKind) kindInfo {
	info, known := k.guess(gk)
	if !known {
		k.assumed[gk] = true
	}
	return info
}

// namespaced is chart.Allowed's question.
func (k *kinds) namespaced(gvk schema.GroupVersionKind) (bool, error) {
	return k.of(gvk.GroupKind()).namespaced, nil
}

// named returns the known kinds of a name, in the order of their groups; usually one.
func (k *kinds) named(kind string) []schema.GroupKind {
	var found []schema.GroupKind
	for gk := range k.known {
		if gk.Kind == kind {
			found = append(found, gk)
		}
	}
	return sortedKinds(found)
}

// assumptions returns the kinds that were not known.
func (k *kinds) assumptions() []schema.GroupKind {
	return sortedKinds(slices.Collect(maps.Keys(k.assumed)))
}

func sortedKinds(list []schema.GroupKind) []schema.GroupKind {
	slices.SortFunc(list, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return list
}

// cluster is none: charts see the APIs of a Kubernetes of the version of this build, the defined kinds, and what was given.
func (p Project) cluster(defined definitions, known *kinds) release.Cluster {
	apis := map[string]bool{}
	add := func(gvk schema.GroupVersionKind) {
		apis[gvk.GroupVersion().String()] = true
		apis[gvk.GroupVersion().String()+"/"+gvk.Kind] = true
	}
	add(crdKind.WithVersion("v1"))
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version != "__internal" {
			add(gvk)
		}
	}
	for gvk := range defined {
		add(gvk)
	}
	for _, api := range p.APIVersions {
		apis[api] = true
	}
	seen := chart.Capabilities{KubeVersion: p.KubeVersion, APIVersions: slices.Sorted(maps.Keys(apis))}
	return release.Cluster{Capabilities: func() (chart.Capabilities, error) { return seen, nil }, Namespaced: known.namespaced}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/excerpt"
)

var externalPath = specPath.Child("external")

// checkExternal is about clients outside. What is asked of a Service, whoever may make Services may ask himself; quotas count it.
func checkExternal(cr *v1alpha1.RedisCluster, o Options) field.ErrorList {
	e := cr.Spec.External
	if e == nil {
		return nil
	}
	refused := shared.OneOf(externalPath.Child("mode"), e.Mode, v1alpha1.ExternalModeGateway)
	if e.Type == "" {
		refused = append(refused, field.Required(externalPath.Child("type"), "write LoadBalancer or NodePort"))
	}
	refused = append(refused, shared.OneOf(externalPath.Child("type"), e.Type, v1alpha1.ExternalLoadBalancer, v1alpha1.ExternalNodePort)...)
	refused = append(refused, shared.Range(externalPath.Child("replicas"), e.Replicas, 1, v1alpha1.MaxGateways)...)
	refused = append(refused, shared.Range(externalPath.Child("firstPort"), e.FirstPort, 1, v1alpha1.MaxExternalFirstPort)...)
	refused = append(refused, checkHost(e)...)
	refused = append(refused, checkSourceRanges(e.SourceRanges)...)
	if len(e.SourceRanges) > 0 && e.Type == v1alpha1.ExternalNodePort && !ptr.Deref(cr.Spec.NetworkPolicy.Enabled, true) {
		refused = append(refused, field.Forbidden(externalPath.Child("sourceRanges"),
			"of NodePort the NetworkPolicy alone keeps others out: set spec.networkPolicy.enabled, or leave sourceRanges out"))
	}
	refused = append(refused, serviceAnnotations(externalPath.Child("annotations"), e.Annotations, o)...)
	refused = append(refused, checkRequirements(externalPath.Child("resources"), e.Resources)...)
	if cr.TLSMode() == v1alpha1.TLSBoth {
		refused = append(refused, field.Forbidden(externalPath,
			"gateways know one kind of connections to instances: remove spec.external before spec.tls.mode is Both, and set it again when "+
				"status.tls.mode is Disabled or Required"))
	}
	switch at := externalPath.Child("tls", "secretName"); {
	case e.TLS == nil && cr.TLSMode() != v1alpha1.TLSDisabled:
		refused = append(refused, field.Required(at,
			"spec.tls encrypts connections inside, and those of clients outside would not be: name a Secret with a certificate for the host"))
	case e.TLS != nil && e.TLS.SecretName == "":
		refused = append(refused, field.Required(at, "name a Secret with a certificate for the host, or leave tls out"))
	}
	return append(refused, checkExternalTopology(cr)...)
}

// keepExternal lets clients outside in when all instances take the kind of connections that gateways make.
func keepExternal(before, after *v1alpha1.RedisCluster) field.ErrorList {
	same := before.Spec.External != nil && before.TLSMode() == after.TLSMode()
	if after.Spec.External == nil || same || reachedTLS(before) == after.TLSMode() || after.TLSMode() == v1alpha1.TLSBoth {
		return nil // of Both checkExternal tells
	}
	return field.ErrorList{field.Forbidden(externalPath, fmt.Sprintf(
		"TLS is being switched, and gateways know one kind of connections to instances: set it when status.tls.mode is %s", after.TLSMode()))}
}

// checkHost wants what can be told to clients as an address.
func checkHost(e *v1alpha1.External) field.ErrorList {
	at := externalPath.Child("host")
	if e.Host == "" {
		if e.Type == v1alpha1.ExternalNodePort {
			return field.ErrorList{field.Required(at,
				"say where clients reach the nodes: a DNS name that leads to some of them, or the address of one")}
		}
		return nil
	}
	ip, err := netip.ParseAddr(e.Host)
	wrong := ip.Zone() != "" || ip.IsUnspecified()
	if err != nil {
		wrong = len(validation.IsDNS1123Subdomain(e.Host)) > 0
	}
	if wrong {
		return field.ErrorList{field.Invalid(at, e.Host, "is neither an IP address nor a DNS name in lower case, without a port")}
	}
	return nil
}

func checkSourceRanges(ranges []string) field.ErrorList {
	const most = 50
	at := externalPath.Child("sourceRanges")
	if len(ranges) > most {
		return field.ErrorList{field.TooMany(at, len(ranges), most)}
	}
	var refused field.ErrorList
	for i, text := range ranges {
		if prefix, err := netip.ParsePrefix(text); err != nil || prefix.Masked() != prefix || prefix.String() != text {
			refused = append(refused, field.Invalid(at.Index(i), text, "is no network: write its first address and its bits, such as 192.0.2.0/24"))
		} else if slices.Index(ranges, text) < i {
			refused = append(refused, field.Duplicate(at.Index(i), text))
		}
	}
	return refused
}

// checkExternalTopology wants a port for each instance.
func checkExternalTopology(cr *v1alpha1.RedisCluster) field.ErrorList {
	at, instances := specPath.Child("replicas"), cr.Spec.InstanceCount()
	topology := cr.Spec.Topology()
	switch {
	case instances > v1alpha1.MaxExternalInstances:
		return field.ErrorList{field.Invalid(at, instances, fmt.Sprintf(
			"must be at most %d with spec.external, since each instance has a port of the Service: lower it, or remove spec.external",
			v1alpha1.MaxExternalInstances))}
	case len(topology) > 0 && topology[0] > v1alpha1.MaxExternalPerShard:
		return field.ErrorList{field.Invalid(at, instances, fmt.Sprintf(
			"makes %d instances of a shard, and with spec.external it must be at most %d, so that ports stay: lower it, raise spec.shards, or remove spec.external",
			topology[0], v1alpha1.MaxExternalPerShard))}
	}
	return nil
}

func adviseExternal(cr *v1alpha1.RedisCluster) []string {
	e := cr.Spec.External
	if e == nil {
		return nil
	}
	var warnings []string
	if !cr.AuthEnabled() {
		warnings = append(warnings,
			"spec.external: whoever reaches the gateways has all rights, since spec.auth.enabled is false: set sourceRanges")
	} else if e.TLS == nil {
		warnings = append(warnings, "spec.external.tls: without it, passwords and data of clients outside pass in the clear")
	}
	return append(warnings, adviseName(e)...)
}

// nameAnnotation is what external-dns gives a Service names by.
const nameAnnotation = "external-dns.alpha.kubernetes.io/hostname"

// adviseName warns of a name that leads to the gateways, and that clients are not told.
func adviseName(e *v1alpha1.External) []string {
	names := strings.FieldsFunc(e.Annotations[nameAnnotation], func(r rune) bool { return r == ',' || r == ' ' })
	if len(names) == 0 || slices.Contains(names, e.Host) {
		return nil
	}
	return []string{fmt.Sprintf("spec.external.host: external-dns gives the gateways the name %s, and clients are told another address; set host to it",
		excerpt.Of(names[0], longestQuote))}
}

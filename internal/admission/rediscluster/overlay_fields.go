// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	shared "middleware.hc.cn/operator/internal/admission/rules"
)

// What the API server would refuse of a StatefulSet is refused here, where its author sees it.

var (
	oneHandler = "must have one of exec, grpc, httpGet and tcpSocket"
	oneAction  = "must have one of exec, httpGet and sleep"
	// ofVariable are the fields of a pod that variables can have, and files cannot.
	ofVariable = []string{"spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
)

const mostSearches = 32

// overlayProbes is about the probes and hooks of a sidecar.
func overlayProbes(at *field.Path, c *corev1.Container, grace int64) field.ErrorList {
	refused := probe(at.Child("startupProbe"), c.StartupProbe, true)
	refused = append(refused, probe(at.Child("livenessProbe"), c.LivenessProbe, true)...)
	refused = append(refused, probe(at.Child("readinessProbe"), c.ReadinessProbe, false)...)
	if c.Lifecycle == nil {
		return refused
	}
	refused = append(refused, only(at.Child("lifecycle"), c.Lifecycle, "postStart", "preStop")...)
	for i, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if h == nil {
			continue
		}
		at := at.Child("lifecycle", []string{"postStart", "preStop"}[i])
		refused = append(refused, only(at, h, "exec", "httpGet", "sleep")...)
		if count(h.Exec != nil, h.HTTPGet != nil, h.Sleep != nil) != 1 {
			refused = append(refused, field.Invalid(at, field.OmitValueType{}, oneAction))
		}
		if h.Sleep != nil && (h.Sleep.Seconds < 1 || h.Sleep.Seconds > grace) {
			refused = append(refused, field.Invalid(at.Child("sleep", "seconds"), h.Sleep.Seconds,
				fmt.Sprintf("must be from 1 to %d, the grace period of the pod", grace)))
		}
		refused = append(refused, asks(at, h.Exec, h.HTTPGet)...)
	}
	return refused
}

// probe is about a probe of which restarts may follow, or not.
func probe(at *field.Path, p *corev1.Probe, restarts bool) field.ErrorList {
	if p == nil {
		return nil
	}
	var refused field.ErrorList
	if count(p.Exec != nil, p.GRPC != nil, p.HTTPGet != nil, p.TCPSocket != nil) != 1 {
		refused = append(refused, field.Invalid(at, field.OmitValueType{}, oneHandler))
	}
	for i, value := range []int32{p.InitialDelaySeconds, p.PeriodSeconds, p.TimeoutSeconds, p.FailureThreshold, p.SuccessThreshold} {
		if value < 0 {
			refused = append(refused, field.Invalid(at.Child(append(ofTimes, "successThreshold")[i]), value, "must not be negative"))
		}
	}
	if restarts && p.SuccessThreshold > 1 {
		refused = append(refused, field.Invalid(at.Child("successThreshold"), p.SuccessThreshold, "must be 1 of this probe"))
	}
	if g := p.TerminationGracePeriodSeconds; g != nil && (!restarts || *g < 1) {
		refused = append(refused, field.Invalid(at.Child("terminationGracePeriodSeconds"), *g,
			"must be at least 1, of a livenessProbe or startupProbe"))
	}
	if p.GRPC != nil {
		refused = append(refused, port(at.Child("grpc", "port"), intstr.FromInt32(p.GRPC.Port))...)
	}
	if p.TCPSocket != nil {
		refused = append(refused, port(at.Child("tcpSocket", "port"), p.TCPSocket.Port)...)
	}
	return append(refused, asks(at, p.Exec, p.HTTPGet)...)
}

// asks is about what probes and hooks have in common.
func asks(at *field.Path, exec *corev1.ExecAction, get *corev1.HTTPGetAction) field.ErrorList {
	var refused field.ErrorList
	if exec != nil && len(exec.Command) == 0 {
		refused = append(refused, field.Required(at.Child("exec", "command"), "say what to run"))
	}
	if get == nil {
		return refused
	}
	at = at.Child("httpGet")
	refused = append(refused, port(at.Child("port"), get.Port)...)
	refused = append(refused, shared.OneOf(at.Child("scheme"), get.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)...)
	for i, header := range get.HTTPHeaders {
		for _, problem := range validation.IsHTTPHeaderName(header.Name) {
			refused = append(refused, field.Invalid(at.Child("httpHeaders").Index(i).Child("name"), header.Name, problem))
		}
	}
	return refused
}

func count(set ...bool) (n int) {
	for _, is := range set {
		if is {
			n++
		}
	}
	return n
}

// port is about the number or the name of a port.
func port(at *field.Path, p intstr.IntOrString) field.ErrorList {
	problems := validation.IsValidPortNum(p.IntValue())
	if p.Type == intstr.String {
		problems = validation.IsValidPortName(p.StrVal)
	}
	var refused field.ErrorList
	for _, problem := range problems {
		refused = append(refused, field.Invalid(at, p.String(), problem))
	}
	return refused
}

// graceOf is how long a pod with this overlay may take to stop, in seconds.
func graceOf(spec *corev1.PodSpec) int64 {
	return ptr.Deref(spec.TerminationGracePeriodSeconds, leastGrace)
}

// overlayGroups is about the groups of the pods, and who may relabel their volumes.
func overlayGroups(at *field.Path, context *corev1.PodSecurityContext) field.ErrorList {
	var refused field.ErrorList
	if len(context.SupplementalGroups) > mostGroups {
		return append(refused, field.TooMany(at.Child("supplementalGroups"), len(context.SupplementalGroups), mostGroups))
	}
	for i, group := range context.SupplementalGroups {
		for _, problem := range validation.IsValidGroupID(group) {
			refused = append(refused, field.Invalid(at.Child("supplementalGroups").Index(i), group, problem))
		}
	}
	if policy := ptr.Deref(context.FSGroupChangePolicy, ""); context.FSGroupChangePolicy != nil && policy == "" {
		refused = append(refused, field.Required(at.Child("fsGroupChangePolicy"), "write OnRootMismatch or Always, or leave it out"))
	} else {
		refused = append(refused, shared.OneOf(at.Child("fsGroupChangePolicy"), policy, corev1.FSGroupChangeOnRootMismatch,
			corev1.FSGroupChangeAlways)...)
	}
	if context.SELinuxOptions != nil {
		refused = append(refused, only(at.Child("seLinuxOptions"), context.SELinuxOptions, "role", "type", "user")...)
	}
	seen := map[string]bool{}
	for i, s := range context.Sysctls {
		if seen[s.Name] {
			refused = append(refused, field.Duplicate(at.Child("sysctls").Index(i).Child("name"), s.Name))
		}
		seen[s.Name] = true
	}
	return refused
}

// sharedVolume refuses what kubelets would do to all files of a claim that others have, too: those of one that is named.
func sharedVolume(at *field.Path, context *corev1.PodSecurityContext) field.ErrorList {
	var refused field.ErrorList
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"fsGroup", context.FSGroup != nil}, {"fsGroupChangePolicy", context.FSGroupChangePolicy != nil},
		{"seLinuxOptions", context.SELinuxOptions != nil},
	} {
		if f.set {
			refused = append(refused, field.Forbidden(at.Child(f.name), "the claim of "+volumesPath.Child("persistentVolumeClaimName").String()+
				" may be shared, and all its files would change hands; remove it"))
		}
	}
	return refused
}

// overlaySearches is about the rest of /etc/resolv.conf.
func overlaySearches(config *corev1.PodDNSConfig) field.ErrorList {
	if config == nil {
		return nil
	}
	var refused field.ErrorList
	at := overlayPath.Child("dnsConfig")
	if len(config.Searches) > mostSearches {
		return append(refused, field.TooMany(at.Child("searches"), len(config.Searches), mostSearches))
	}
	for i, search := range config.Searches {
		name := strings.ReplaceAll(strings.TrimSuffix(search, "."), "_", "-")
		if search != "." && len(validation.IsDNS1123Subdomain(name)) > 0 {
			refused = append(refused, field.Invalid(at.Child("searches").Index(i), search, "is no DNS domain"))
		}
	}
	for i, option := range config.Options {
		if option.Name == "" {
			refused = append(refused, field.Required(at.Child("options").Index(i).Child("name"), "say which option"))
		}
	}
	return refused
}

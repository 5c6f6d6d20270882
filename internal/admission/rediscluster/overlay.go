// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/rediscluster/overlay"
)

var overlayPath = overlay.Path

// What one overlay may hold. Each object that it names is read before a StatefulSet is written.
const (
	mostInitContainers = 8
	mostVolumes        = 20
	mostMounts         = 20
	mostReferences     = 16
	mostAliases        = 32
	mostGroups         = 32
	mostNameservers    = 3
	// leastGrace is what an instance needs to switch over before it stops, in seconds; with mostGrace, a sidecar that does not end holds
	// up each stop for so long.
	leastGrace, mostGrace = 60, 600
)

// What of a part of a pod spec may be set. All else is refused.
var (
	ofOverlay = []string{"containers", "initContainers", "volumes", "serviceAccountName", "securityContext", "dnsPolicy", "dnsConfig",
		"hostAliases", "runtimeClassName", "terminationGracePeriodSeconds", "automountServiceAccountToken"}
	ofSecurity = []string{"runAsUser", "runAsGroup", "fsGroup", "fsGroupChangePolicy", "supplementalGroups", "seLinuxOptions", "sysctls",
		"runAsNonRoot", "seccompProfile"}
	ofRedis = []string{"volumeMounts", "livenessProbe", "readinessProbe"}
	ofTimes = []string{"initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold"}
)

const (
	elsewhere = "is set at spec.pod[0]."
	noHost    = "instances have nothing of their nodes; remove it"
	noToken   = "instances have no token of Kubernetes' API; remove it"
)

// notHere says of fields that are asked for why they cannot be set, or where.
var notHere = map[string]string{
	"affinity": elsewhere + "affinity", "imagePullSecrets": elsewhere + "imagePullSecrets", "nodeSelector": elsewhere + "nodeSelector",
	"priorityClassName": elsewhere + "priorityClassName", "tolerations": elsewhere + "tolerations",
	"topologySpreadConstraints": elsewhere + "topologySpreadConstraints", "env": elsewhere + "env", "resources": elsewhere + "resources",
	"hostIPC": noHost, "hostNetwork": noHost, "hostPID": noHost, "hostPort": noHost, "hostIP": noHost,
	"nodeName":              "pods find their nodes by the scheduler; use spec.pod[0].affinity",
	"serviceAccountToken":   noToken,
	"shareProcessNamespace": "what runs beside Redis is not to see its memory; remove it",

	"csi":         "a driver may mount what the author of this object must not see; use a claim",
	"envFrom":     "variables cannot come from Secrets or ConfigMaps; mount one with the label " + v1alpha1.LabelPod + ": \"true\"",
	"hostPath":    "it gives a directory of the node to who writes this object; use a claim or an emptyDir",
	"image":       "is set at spec.repository and spec.version",
	"level":       "the node chooses the categories that keep pods apart; remove it",
	"subPathExpr": "use subPath",
}

// only refuses what is set of a part of a pod spec and not among the allowed.
func only(at *field.Path, part any, allowed ...string) field.ErrorList {
	encoded, err := json.Marshal(part)
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	var set map[string]json.RawMessage
	if json.Unmarshal(encoded, &set) != nil {
		return nil // nothing is set
	}
	var refused field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if text := string(set[name]); slices.Contains(allowed, name) || text == "{}" || text == "null" || text == `""` {
			continue
		}
		why, known := notHere[name]
		if !known {
			why = "cannot be set; remove it: what can be is " + strings.Join(allowed, ", ")
		}
		refused = append(refused, field.Forbidden(at.Child(name), why))
	}
	return refused
}

// checkOverlay is about the part of a pod spec that is merged into the instances': who may write a RedisCluster may not be allowed to make
// pods, and the operator makes them.
func checkOverlay(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	o, refused := overlay.Read(cr.Spec.Template())
	if o == nil {
		return refused
	}
	types, refused := overlayVolumes(o)
	refused = append(refused, only(overlayPath, o, ofOverlay...)...)
	refused = append(refused, overlayRedis(cr, o, types)...)
	refused = append(refused, overlayInitContainers(o, types)...)
	refused = append(refused, overlaySecurity(cr, o)...)
	refused = append(refused, overlayNetwork(o)...)
	for _, name := range []struct{ at, name string }{
		{"serviceAccountName", o.ServiceAccountName}, {"runtimeClassName", ptr.Deref(o.RuntimeClassName, "")},
	} {
		if name.name != "" && len(validation.IsDNS1123Subdomain(name.name)) > 0 {
			refused = append(refused, field.Invalid(overlayPath.Child(name.at), name.name, "cannot be the name of an object; name one that exists"))
		}
	}
	if ptr.Deref(o.AutomountServiceAccountToken, false) {
		refused = append(refused, field.Forbidden(overlayPath.Child("automountServiceAccountToken"), noToken))
	}
	if grace := o.TerminationGracePeriodSeconds; grace != nil && (*grace < leastGrace || *grace > mostGrace) {
		refused = append(refused, field.Invalid(overlayPath.Child("terminationGracePeriodSeconds"), *grace,
			fmt.Sprintf("must be from %d to %d: a master switches over before it stops", leastGrace, mostGrace)))
	}
	if len(refused) > 0 {
		return refused
	}
	return shared.PodSecurity(overlayPath, api.LevelRestricted, "a RedisCluster", &metav1.ObjectMeta{}, asPod(o))
}

// asPod is a pod with what the overlay brings, and with what every pod of an instance has.
func asPod(o *corev1.PodSpec) *corev1.PodSpec {
	spec := &corev1.PodSpec{Volumes: o.Volumes, SecurityContext: &corev1.PodSecurityContext{}}
	if o.SecurityContext != nil {
		spec.SecurityContext = o.SecurityContext.DeepCopy()
	}
	spec.SecurityContext.RunAsNonRoot = ptr.To(true)
	spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	for i := range o.InitContainers {
		c := o.InitContainers[i].DeepCopy()
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		c.SecurityContext.AllowPrivilegeEscalation = ptr.To(false)
		c.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
		spec.InitContainers = append(spec.InitContainers, *c)
	}
	return spec
}

// overlayRedis is about the container redis.
func overlayRedis(cr *v1alpha1.RedisCluster, o *corev1.PodSpec, volumes map[string]shared.VolumeType) field.ErrorList {
	var refused field.ErrorList
	for i := range o.Containers {
		at, c := overlayPath.Child("containers").Index(i), &o.Containers[i]
		if c.Name != v1alpha1.ContainerRedis {
			refused = append(refused, field.Invalid(at.Child("name"), c.Name,
				"must be redis; what is to run beside it goes into initContainers, with restartPolicy: Always: it starts before Redis and stops after it"))
			continue
		}
		if i > 0 {
			return append(refused, field.Duplicate(at.Child("name"), c.Name))
		}
		refused = append(refused, only(at, c, append([]string{"name"}, ofRedis...)...)...)
		refused = append(refused, overlayMounts(at.Child("volumeMounts"), c.VolumeMounts, volumes)...)
		refused = append(refused, protectedPaths(cr, at.Child("volumeMounts"), c.VolumeMounts)...)
		refused = append(refused, times(at.Child("livenessProbe"), c.LivenessProbe, beforeRestart)...)
		refused = append(refused, times(at.Child("readinessProbe"), c.ReadinessProbe, beforeUnready)...)
	}
	return refused
}

// failing is for how long a probe may fail before something is done, in seconds, and what it has by default.
type failing struct {
	least, most      int64
	period, failures int32
	why              string
}

var (
	beforeRestart = failing{30, 3600, 10, 6, "a restart is a failover, and no cure for an instance that is busy"}
	beforeUnready = failing{1, 60, 1, 3, "for so long clients are led to an instance that does not answer"}
)

// times is about a probe of which only the times can be set.
func times(at *field.Path, probe *corev1.Probe, p failing) field.ErrorList {
	if probe == nil {
		return nil
	}
	refused := only(at, probe, ofTimes...)
	for i, value := range []int32{probe.InitialDelaySeconds, probe.PeriodSeconds, probe.TimeoutSeconds, probe.FailureThreshold} {
		if value < 0 || int64(value) > p.most {
			refused = append(refused, field.Invalid(at.Child(ofTimes[i]), value, fmt.Sprintf("must be from 1 to %d", p.most)))
		}
	}
	all := int64(cmp.Or(probe.PeriodSeconds, p.period)) * int64(cmp.Or(probe.FailureThreshold, p.failures))
	if len(refused) == 0 && (all < p.least || all > p.most) {
		refused = append(refused, field.Invalid(at, all,
			fmt.Sprintf("is periodSeconds times failureThreshold, and must be from %d to %d: %s", p.least, p.most, p.why)))
	}
	return refused
}

// overlaySecurity is about the security context of the pods.
func overlaySecurity(cr *v1alpha1.RedisCluster, o *corev1.PodSpec) field.ErrorList {
	context, at := o.SecurityContext, overlayPath.Child("securityContext")
	if context == nil {
		return nil
	}
	refused := append(only(at, context, ofSecurity...), weaker(at, context.RunAsNonRoot, context.SeccompProfile)...)
	refused = append(refused, overlayGroups(at, context)...)
	if dataPlace(cr).PersistentVolumeClaimName != "" {
		refused = append(refused, sharedVolume(at, context)...)
	}
	for _, id := range []struct {
		name  string
		value *int64
		least int64
	}{{"runAsUser", context.RunAsUser, 1}, {"runAsGroup", context.RunAsGroup, 0}, {"fsGroup", context.FSGroup, 0}} {
		switch {
		case id.value == nil:
		case *id.value < id.least || *id.value > 1<<31-1:
			refused = append(refused, field.Invalid(at.Child(id.name), *id.value, fmt.Sprintf("must be from %d to %d", id.least, 1<<31-1)))
		case dataPlace(cr).Type == v1alpha1.VolumeHostPath:
			refused = append(refused, field.Forbidden(at.Child(id.name), "directories of nodes (hostPath) are handed to user 999; remove it"))
		}
	}
	return refused
}

// weaker refuses to say otherwise what every pod and container of an instance has; to say the same is no harm.
func weaker(at *field.Path, nonRoot *bool, seccomp *corev1.SeccompProfile) field.ErrorList {
	var refused field.ErrorList
	if !ptr.Deref(nonRoot, true) {
		refused = append(refused, field.Forbidden(at.Child("runAsNonRoot"), restricted))
	}
	if seccomp != nil && seccomp.Type != corev1.SeccompProfileTypeRuntimeDefault {
		refused = append(refused, field.Forbidden(at.Child("seccompProfile"), restricted))
	}
	return refused
}

const restricted = "instances keep to the \"restricted\" Pod Security Standard, whatever their namespace allows; remove it"

// overlayNetwork is about names and addresses.
func overlayNetwork(o *corev1.PodSpec) field.ErrorList {
	refused := shared.OneOf(overlayPath.Child("dnsPolicy"), o.DNSPolicy, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone)
	var servers []string
	if o.DNSConfig != nil {
		servers = o.DNSConfig.Nameservers
	}
	at := overlayPath.Child("dnsConfig", "nameservers")
	if o.DNSPolicy == corev1.DNSNone && len(servers) == 0 {
		refused = append(refused, field.Required(at, "with dnsPolicy None nobody else names one"))
	}
	if len(servers) > mostNameservers {
		refused = append(refused, field.TooMany(at, len(servers), mostNameservers))
	}
	addresses := map[*field.Path]string{}
	for i, server := range servers[:min(len(servers), mostNameservers)] {
		addresses[at.Index(i)] = server
	}
	refused = append(refused, overlaySearches(o.DNSConfig)...)
	aliases := overlayPath.Child("hostAliases")
	if len(o.HostAliases) > mostAliases {
		return append(refused, field.TooMany(aliases, len(o.HostAliases), mostAliases))
	}
	seen := map[string]bool{}
	for i, alias := range o.HostAliases {
		if seen[alias.IP] {
			refused = append(refused, field.Duplicate(aliases.Index(i).Child("ip"), alias.IP))
		}
		seen[alias.IP] = true
		addresses[aliases.Index(i).Child("ip")] = alias.IP
		for j, name := range alias.Hostnames {
			if len(validation.IsDNS1123Subdomain(name)) > 0 {
				refused = append(refused, field.Invalid(aliases.Index(i).Child("hostnames").Index(j), name, "is no name of a host"))
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(addresses), func(a, b *field.Path) int { return strings.Compare(a.String(), b.String()) }) {
		if net.ParseIP(addresses[at]) == nil {
			refused = append(refused, field.Invalid(at, addresses[at], "is no IP address"))
		}
	}
	return refused
}

// keepUser: the files of an instance belong to the user that wrote them.
func keepUser(before, after *v1alpha1.RedisCluster) field.ErrorList {
	idsOf := func(cr *v1alpha1.RedisCluster) (ids [3]int64) {
		if o, _ := overlay.Read(cr.Spec.Template()); o != nil && o.SecurityContext != nil {
			c := o.SecurityContext
			for i, id := range []*int64{c.RunAsUser, c.RunAsGroup, c.FSGroup} {
				ids[i] = ptr.Deref(id, -1) + 1
			}
		}
		return ids
	}
	if idsOf(before) == idsOf(after) {
		return nil
	}
	return field.ErrorList{field.Forbidden(overlayPath.Child("securityContext"),
		"runAsUser, runAsGroup and fsGroup cannot change: another user could not write the files that are there; put them back, or make a new RedisCluster and copy the data")}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/overlay"
)

var (
	ofContainer = []string{
		"name", "image", "imagePullPolicy", "command", "args", "workingDir", "env", "ports", "resources", "volumeMounts", "securityContext",
		"restartPolicy",
	}
	ofSidecar           = []string{"startupProbe", "readinessProbe", "livenessProbe", "lifecycle"}
	ofContainerSecurity = []string{
		"runAsUser", "runAsGroup", "readOnlyRootFilesystem", "runAsNonRoot", "allowPrivilegeEscalation", "privileged", "capabilities",
		"seccompProfile",
	}
	ofMount = []string{"name", "mountPath", "readOnly", "subPath"}
)

// ours reports whether a container or volume of this name is the operator's, or may be one day.
func ours(name string, others ...string) bool {
	return slices.Contains(others, name) || strings.HasPrefix(name, "redis")
}

// overlayVolumes is about volumes. It returns what is mounted by the names of volumes.
func overlayVolumes(o *corev1.PodSpec) (map[string]shared.VolumeType, field.ErrorList) {
	at := overlayPath.Child("volumes")
	types, wrong := shared.Volumes(at, o.Volumes, mostVolumes, func(name string) string {
		if ours(name, "data", "config") {
			return "is a volume of the operator's; choose a name that does not begin with redis"
		}
		return ""
	})
	if len(o.Volumes) > mostVolumes {
		return types, wrong
	}
	var refused field.ErrorList
	for i, v := range o.Volumes {
		refused = append(refused, only(at.Index(i), v, append([]string{"name"}, shared.VolumeTypes()...)...)...)
		if v.Projected == nil {
			continue
		}
		for j, source := range v.Projected.Sources {
			refused = append(refused, only(at.Index(i).Child("projected", "sources").Index(j), source, "configMap", "downwardAPI", "secret")...)
		}
	}
	if len(refused) == 0 { // what cannot be set is not wrong besides
		refused = wrong
	}
	if references := overlay.References(o); len(references) > mostReferences {
		refused = append(refused, field.TooMany(at, len(references), mostReferences))
	}
	return types, refused
}

// overlayMounts is about what is mounted into a container, whatever that is.
func overlayMounts(at *field.Path, mounts []corev1.VolumeMount, volumes map[string]shared.VolumeType) field.ErrorList {
	refused := shared.Mounts(at, mounts, volumes, mostMounts, func(name string) string {
		if name == "data" || name == "config" {
			return "it holds the data or the password of instances, and is theirs alone; name a volume of " + overlayPath.Child("volumes").String()
		}
		return ""
	})
	for i := range mounts[:min(len(mounts), mostMounts)] {
		refused = append(refused, only(at.Index(i), &mounts[i], ofMount...)...)
	}
	return refused
}

// overlayInitContainers is about what runs before Redis and, as sidecars, beside it.
func overlayInitContainers(o *corev1.PodSpec, volumes map[string]shared.VolumeType) field.ErrorList {
	at := overlayPath.Child("initContainers")
	if len(o.InitContainers) > mostInitContainers {
		return field.ErrorList{field.TooMany(at, len(o.InitContainers), mostInitContainers)}
	}
	var refused field.ErrorList
	names := map[string]bool{}
	for i := range o.InitContainers {
		at, c := at.Index(i), &o.InitContainers[i]
		switch {
		case len(validation.IsDNS1123Label(c.Name)) > 0:
			refused = append(refused, field.Invalid(at.Child("name"), c.Name, "is no name of a container: lower-case letters, digits and hyphens"))
		case ours(c.Name, "exporter", "init", "data-owner"):
			refused = append(refused, field.Invalid(at.Child("name"), c.Name,
				"is a container of the operator's; choose a name that does not begin with redis"))
		case names[c.Name]:
			refused = append(refused, field.Duplicate(at.Child("name"), c.Name))
		}
		names[c.Name] = true
		refused = append(refused, overlayContainer(at, c, volumes, graceOf(o))...)
	}
	return refused
}

func overlayContainer(at *field.Path, c *corev1.Container, volumes map[string]shared.VolumeType, grace int64) field.ErrorList {
	allowed := ofContainer
	if c.RestartPolicy != nil {
		refused := shared.OneOf(at.Child("restartPolicy"), *c.RestartPolicy, corev1.ContainerRestartPolicyAlways)
		if len(refused) > 0 {
			return refused
		}
		allowed = slices.Concat(ofContainer, ofSidecar)
	}
	refused := only(at, c, allowed...)
	if c.RestartPolicy == nil {
		for _, r := range refused {
			if slices.Contains(ofSidecar, r.Field[strings.LastIndexByte(r.Field, '.')+1:]) {
				r.Detail = "belongs to a sidecar; set restartPolicy: Always, or remove it"
			}
		}
	}
	if c.Image == "" { // of one that is set, checkImages says what is wrong with it
		refused = append(refused, shared.Image(at.Child("image"), c.Image)...)
	}
	refused = append(refused, shared.OneOf(at.Child("imagePullPolicy"), c.ImagePullPolicy, corev1.PullAlways, corev1.PullIfNotPresent,
		corev1.PullNever)...)
	refused = append(refused, shared.Texts(at.Child("command"), c.Command)...)
	refused = append(refused, shared.Texts(at.Child("args"), c.Args)...)
	refused = append(refused, checkRequirements(at.Child("resources"), c.Resources)...)
	refused = append(refused, overlayEnv(at.Child("env"), c.Env)...)
	refused = append(refused, overlayProbes(at, c, grace)...)
	refused = append(refused, overlayPorts(at.Child("ports"), c.Ports)...)
	refused = append(refused, overlayMounts(at.Child("volumeMounts"), c.VolumeMounts, volumes)...)
	return append(refused, containerSecurity(at.Child("securityContext"), c.SecurityContext)...)
}

func overlayEnv(at *field.Path, env []corev1.EnvVar) field.ErrorList {
	var refused field.ErrorList
	seen := map[string]bool{}
	for i, v := range env {
		for _, problem := range validation.IsEnvVarName(v.Name) {
			refused = append(refused, field.Invalid(at.Index(i).Child("name"), v.Name, problem))
		}
		if seen[v.Name] {
			refused = append(refused, field.Duplicate(at.Index(i).Child("name"), v.Name))
		}
		seen[v.Name] = true
		refused = append(refused, shared.Text(at.Index(i).Child("value"), v.Value)...)
		refused = append(refused, checkEnvSource(at.Index(i).Child("valueFrom"), v)...)
	}
	return refused
}

// overlayPorts keeps clients and probes from being led to another container than Redis' or the exporter's.
func overlayPorts(at *field.Path, ports []corev1.ContainerPort) field.ErrorList {
	var refused field.ErrorList
	names, numbers := map[string]bool{}, map[string]bool{}
	for i := range ports {
		at, p := at.Index(i), &ports[i]
		refused = append(refused, only(at, p, "name", "containerPort", "protocol")...)
		refused = append(refused, port(at.Child("containerPort"), intstr.FromInt32(p.ContainerPort))...)
		refused = append(refused, shared.OneOf(at.Child("protocol"), p.Protocol, corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP)...)
		if number := fmt.Sprintf("%d/%s", p.ContainerPort, cmp.Or(p.Protocol, corev1.ProtocolTCP)); numbers[number] {
			refused = append(refused, field.Duplicate(at.Child("containerPort"), p.ContainerPort))
		} else {
			numbers[number] = true
		}
		if p.Name != "" {
			refused = append(refused, port(at.Child("name"), intstr.FromString(p.Name))...)
			if names[p.Name] {
				refused = append(refused, field.Duplicate(at.Child("name"), p.Name))
			}
			names[p.Name] = true
		}
		if slices.Contains([]string{"redis", "bus", "metrics", "plain"}, p.Name) {
			refused = append(refused, field.Invalid(at.Child("name"), p.Name,
				"is a port of an instance, by which Services find it; choose another name"))
		}
		switch p.ContainerPort {
		case v1alpha1.PortRedis, v1alpha1.PortRedisTLS, v1alpha1.PortBus, v1alpha1.PortMetrics:
			refused = append(refused, field.Invalid(at.Child("containerPort"), p.ContainerPort, "is a port of an instance; choose another one"))
		}
	}
	return refused
}

const code = "programs and libraries of Redis come from the image; choose another path"

// protectedPaths are those of the container redis that nothing is mounted over: what the instance keeps and reads, and the system's.
func protectedPaths(cr *v1alpha1.RedisCluster, at *field.Path, mounts []corev1.VolumeMount) field.ErrorList {
	var refused field.ErrorList
	for i, m := range mounts {
		at := at.Index(i).Child("mountPath")
		if directory, _, _ := strings.Cut(strings.TrimPrefix(m.MountPath, "/"), "/"); strings.HasPrefix(directory, "lib") ||
			strings.HasPrefix(m.MountPath, "/etc/ld.so.") {
			refused = append(refused, field.Invalid(at, m.MountPath, code))
		}
		for _, p := range []string{"/bin", "/sbin", "/usr"} {
			if within(m.MountPath, p) {
				refused = append(refused, field.Invalid(at, m.MountPath, code))
			}
		}
		for _, p := range []string{"/data", "/etc/redis", "/dev", "/proc", "/sys", "/run/secrets", "/var/run/secrets"} {
			if within(p, m.MountPath) || within(m.MountPath, p) {
				refused = append(refused, field.Invalid(at, m.MountPath, "must not be "+p+", or above or below it; choose another path"))
			}
		}
		for j, module := range cr.Spec.Modules {
			if file, problem := redisconf.ModuleFile(cr.Spec.Image(), module.Name); problem == "" && within(file, m.MountPath) {
				refused = append(refused, field.Invalid(at, m.MountPath, fmt.Sprintf(
					"the file of %s is there, and modules come from the image alone; choose another path", modulesPath.Index(j))))
			}
		}
	}
	return refused
}

// within reports whether a path is a directory, or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// containerSecurity is about the security context of a container of the author's. What every container of an instance has may be said
// once more.
func containerSecurity(at *field.Path, s *corev1.SecurityContext) field.ErrorList {
	if s == nil {
		return nil
	}
	refused := only(at, s, ofContainerSecurity...)
	for _, id := range []struct {
		name  string
		value *int64
		least int64
	}{{"runAsUser", s.RunAsUser, 1}, {"runAsGroup", s.RunAsGroup, 0}} {
		if id.value != nil && (*id.value < id.least || *id.value > 1<<31-1) {
			refused = append(refused, field.Invalid(at.Child(id.name), *id.value,
				fmt.Sprintf("must be from %d to %d: no container of an instance runs as root", id.least, 1<<31-1)))
		}
	}
	refused = append(refused, weaker(at, s.RunAsNonRoot, s.SeccompProfile)...)
	if ptr.Deref(s.Privileged, false) {
		refused = append(refused, field.Forbidden(at.Child("privileged"), restricted))
	}
	if ptr.Deref(s.AllowPrivilegeEscalation, false) {
		refused = append(refused, field.Forbidden(at.Child("allowPrivilegeEscalation"), restricted))
	}
	if c := s.Capabilities; c != nil && (len(c.Add) > 0 || !slices.Equal(c.Drop, []corev1.Capability{"ALL"})) {
		refused = append(refused, field.Forbidden(at.Child("capabilities"), restricted+": all are dropped, and none is added"))
	}
	return refused
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// External is what is made for clients outside.
type External struct {
	// Values are those of the chart, without the pod of gateways.
	Values map[string]any
	// Address is what clients are given, and Map identifies whom gateways lead them to; empty: it is not known yet.
	Address, Map string
}

// gatewayPort is what a gateway listens on for any instance; the port of an instance is as far from it as it is outside.
const gatewayPort = 7000

// mostServed is how many entries a gateway takes; a cluster has more only before it shrinks to what spec.external lets it have.
const mostServed = 1000

// mapKey is what the map is called in its ConfigMap.
const mapKey = "map.json"

// gatewayMap is internal/gateway's.
type gatewayMap struct {
	Instances []gatewayInstance `json:"instances"`
}

type gatewayInstance struct {
	Name    string   `json:"name"`
	Port    int32    `json:"port"`
	Outside string   `json:"outside"`
	Inside  []string `json:"inside"`
}

// served is a port of the Service: its name there, how far it is from the first one, and where it leads to.
type served struct {
	name, instance string
	offset         int32
	host           string
	// announced is the name that the instance tells; empty: it tells none.
	announced string
}

// ExternalOf returns what is made for clients outside of a cluster: for whom, in a Service that says what it says, in a DNS domain that may
// not be known. What the map says of an instance depends on its name and on the Service alone: a failover or a restart changes nothing.
func ExternalOf(cr *v1alpha1.RedisCluster, out snapshot.Outside, service *snapshot.ExternalService, domain string) External {
	e := cr.Spec.External
	all := servedPorts(cr, out, domain)
	ports := make([]any, len(all))
	for i, p := range all {
		port := map[string]any{"name": p.name, "port": int64(e.ServicePort(p.offset)), "targetPort": int64(gatewayPort + p.offset)}
		if e.Type == v1alpha1.ExternalNodePort && e.FirstPort != nil {
			port["nodePort"] = int64(e.ServicePort(p.offset))
		}
		ports[i] = port
	}
	ranges := make([]any, len(e.SourceRanges))
	for i, network := range e.SourceRanges {
		ranges[i] = network
	}
	x := External{Values: map[string]any{"type": string(e.Type), "ports": ports, "sourceRanges": ranges, "replicas": int64(e.GatewayCount())}}
	if len(e.Annotations) > 0 {
		x.Values["annotations"] = unstructured(&struct {
			All map[string]string `json:"all"`
		}{e.Annotations})["all"]
	}
	known, ok := mapOf(e, all, service)
	if !ok {
		return x
	}
	text, err := json.Marshal(known)
	if err != nil {
		panic(fmt.Sprintf("values: the map of gateways is no JSON: %v", err)) // it has strings and numbers
	}
	sum := sha256.Sum256(text)
	x.Map, x.Address = hex.EncodeToString(sum[:]), known.Instances[0].Outside
	x.Values["map"] = string(text)
	host, port, _ := net.SplitHostPort(x.Address) // it was joined above
	x.Values["host"], x.Values["port"] = host, port
	return x
}

// servedPorts are the ports of the Service: the one that leads to any instance, and then those of instances.
func servedPorts(cr *v1alpha1.RedisCluster, out snapshot.Outside, domain string) []served {
	end := ".svc"
	if domain != "" {
		end += "." + domain + "." // whole: no search domain answers for who is gone
	}
	all := []served{{name: "any", instance: cr.Name, host: cr.Name + "." + cr.Namespace + end}}
	add := func(shard, ordinal int) {
		offset, has := v1alpha1.ExternalOffset(shard, ordinal)
		if !has {
			return
		}
		pod := fmt.Sprintf("%s-%d", cr.ShardName(shard), ordinal)
		name := pod + "." + cr.HeadlessServiceName() + "." + cr.Namespace
		all = append(all, served{name: fmt.Sprintf("shard-%d-%d", shard, ordinal), instance: pod, offset: offset, host: name + end,
			announced: name + ".svc"})
	}
	for shard, instances := range out.Instances {
		for ordinal := range int(instances) {
			add(shard, ordinal)
		}
	}
	for _, l := range out.Leaving {
		add(l.Shard, l.Ordinal)
	}
	slices.SortFunc(all, func(a, b served) int { return cmp.Compare(a.offset, b.offset) })
	return all[:min(len(all), mostServed)]
}

// mapOf is where clients outside reach whom; false: that is not known of all.
func mapOf(e *v1alpha1.External, all []served, service *snapshot.ExternalService) (gatewayMap, bool) {
	host := e.Host
	if service == nil || host == "" && service.Host == "" {
		return gatewayMap{}, false
	}
	if host == "" {
		host = service.Host
	}
	m := gatewayMap{Instances: make([]gatewayInstance, 0, len(all))}
	for _, p := range all {
		port := e.ServicePort(p.offset)
		if e.Type == v1alpha1.ExternalNodePort {
			if port = service.NodePorts[port]; port == 0 {
				return gatewayMap{}, false
			}
		}
		inside := []string{net.JoinHostPort(p.host, "6379")}
		if p.announced != "" && p.announced != p.host {
			inside = append(inside, net.JoinHostPort(p.announced, "6379"))
		}
		m.Instances = append(m.Instances, gatewayInstance{Name: p.instance, Port: gatewayPort + p.offset,
			Outside: net.JoinHostPort(host, strconv.Itoa(int(port))), Inside: inside})
	}
	return m, true
}

// Where files are in a gateway's pod.
const (
	gatewayMapDir = "/etc/gateway/map"
	gatewayTLSDir = "/etc/gateway/tls"
	gatewayCAFile = "/etc/gateway/trust/ca.crt"
	// gatewayClientCAFile is what certificates of clients are to be signed with.
	gatewayClientCAFile = "/etc/gateway/clients/ca.crt"
)

// Gateway returns the pod that leads clients outside to the instances of a cluster, from an image that has the program. It has no identity,
// knows no password, and does not depend on how many instances there are.
func Gateway(cr *v1alpha1.RedisCluster, image string) map[string]any {
	e := cr.Spec.External
	connections, perSource := gatewayConnections(cr)
	args := []string{backupjob.Gateway, "--map-file=" + gatewayMapDir + "/" + mapKey, backupjob.Listen(),
		fmt.Sprintf("--max-connections=%d", connections), fmt.Sprintf("--max-connections-per-source=%d", perSource),
		fmt.Sprintf("--max-connections-per-instance=%d", connections)}
	if len(e.SourceRanges) > 0 { // balancers hear late that a node has no gateway any more
		args = append(args, "--drain-delay=30s")
	}
	if e.TLS != nil {
		args = append(args, "--cert-file="+gatewayTLSDir+"/"+corev1.TLSCertKey, "--key-file="+gatewayTLSDir+"/"+corev1.TLSPrivateKeyKey)
	}
	if cr.TLSMode() == v1alpha1.TLSRequired {
		args = append(args, "--ca-file="+gatewayCAFile, "--server-name="+cr.TLSServerName())
	}
	shows := cr.TLSMode() == v1alpha1.TLSRequired && cr.ShowsCertificate()
	asks := shows && e.TLS != nil && cr.ClientCertificates() == v1alpha1.ClientCertificatesRequired
	if shows {
		args = append(args, backupjob.Show()...)
	}
	if asks { // or whoever has none would come in by the one that the gateway shows
		args = append(args, "--client-ca-file="+gatewayClientCAFile)
	}
	const grace = 60 // longer than the program drains
	pod := corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](grace),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	backupjob.AddUnending(&pod, image, v1alpha1.BackupStore{}, gatewayResources(e), args...)
	mountMap(&pod, cr.GatewayName())
	c := backupjob.Of(pod)
	if e.TLS != nil {
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: e.TLS.SecretName, Items: []corev1.KeyToPath{{Key: corev1.TLSCertKey, Path: corev1.TLSCertKey},
				{Key: corev1.TLSPrivateKeyKey, Path: corev1.TLSPrivateKeyKey}}}}})
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "tls", MountPath: gatewayTLSDir, ReadOnly: true})
	}
	if cr.TLSMode() == v1alpha1.TLSRequired {
		backupjob.Mount(&pod, "trust", cr.TLSTrustSecretName(), backupjob.KeyTrusted, gatewayCAFile)
	}
	if shows {
		backupjob.MountShown(&pod, cr.TLSSecretName())
	}
	if asks {
		backupjob.Mount(&pod, "clients", cr.TLSClientTrustSecretName(), backupjob.KeyTrusted, gatewayClientCAFile)
	}
	c.TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	c.Ports = []corev1.ContainerPort{{Name: "status", ContainerPort: backupjob.StatusPort, Protocol: corev1.ProtocolTCP}}
	const often, few = 2, 3 // it has no liveness probe: who reaches it could have it restarted, with all that is connected
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("status")}},
		PeriodSeconds: often, TimeoutSeconds: 2, FailureThreshold: few}
	if limit := c.Resources.Limits.Memory().Value(); limit > 0 {
		c.Env = append(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit/10*9, 10)}) //nolint:mnd // a tenth is not Go's
	}
	return unstructured(&pod)
}

func mountMap(pod *corev1.PodSpec, name string) {
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "map", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Items: []corev1.KeyToPath{{Key: mapKey, Path: mapKey}}}}})
	c := backupjob.Of(*pod)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "map", MountPath: gatewayMapDir, ReadOnly: true})
}

// gatewayConnections are how many connections a gateway accepts, and from one source: all gateways together leave a fifth of what an
// instance accepts to clients inside. Where nodes hide whom connections come from, a node is one source.
func gatewayConnections(cr *v1alpha1.RedisCluster) (all, perSource int) {
	const byDefault, share, least, ofOne = 10_000, 0.8, 10, 1000
	const atOnce = 2 // while gateways are replaced, old ones end beside new ones
	accepts := byDefault
	for name, value := range cr.Spec.Config {
		if n, err := strconv.Atoi(value); err == nil && redisconf.Canonical(name) == "maxclients" {
			accepts = min(max(n, 0), byDefault)
		}
	}
	all = max(int(share*float64(accepts))/(atOnce*int(cr.Spec.External.GatewayCount())), least)
	if len(cr.Spec.External.SourceRanges) == 0 {
		return all, all
	}
	return all, min(all, ofOne)
}

func gatewayResources(e *v1alpha1.External) corev1.ResourceRequirements {
	if len(e.Resources.Limits)+len(e.Resources.Requests) > 0 {
		return e.Resources
	}
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
}

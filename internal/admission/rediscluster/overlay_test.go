// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//nolint:lll // a manifest and what is said of it stand in one line
package rediscluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// proxy is a sidecar as the documents of a mesh show it.
const proxy = `{name: proxy, image: "proxy:1", restartPolicy: Always, args: [--id, $(POD)], env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}],
  ports: [{name: admin, containerPort: 15000}], startupProbe: {httpGet: {path: /ready, port: 15021}}, lifecycle: {preStop: {sleep: {seconds: 5}}},
  resources: {limits: {memory: 64Mi}}, volumeMounts: [{name: tmp, mountPath: /tmp}, {name: settings, mountPath: /etc/proxy.yaml, subPath: proxy.yaml}],
  securityContext: {runAsUser: 1337, runAsNonRoot: true, allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: false,
    capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}}`

// What may be merged into the pods of instances.
func TestOverlayIsAccepted(t *testing.T) {
	for name, overlay := range map[string]string{
		"nothing": `{}`,
		"everything": `{initContainers: [` + proxy + `, {name: fetch, image: "fetch:1", command: [get]}],
			volumes: [{name: tmp, emptyDir: {sizeLimit: 1Mi}}, {name: settings, configMap: {name: proxy}}, {name: ca, secret: {secretName: ca}},
				{name: tape, persistentVolumeClaim: {claimName: tape}}, {name: who, downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}},
				{name: all, projected: {sources: [{secret: {name: ca}}, {configMap: {name: more}}]}}],
			containers: [{name: redis, volumeMounts: [{name: ca, mountPath: /etc/ssl/mine, readOnly: true}, {name: tmp, mountPath: /tmp}],
				livenessProbe: {periodSeconds: 20, failureThreshold: 30}, readinessProbe: {timeoutSeconds: 3}}],
			serviceAccountName: mesh, automountServiceAccountToken: false, runtimeClassName: gvisor, terminationGracePeriodSeconds: 600,
			securityContext: {runAsUser: 1001, runAsGroup: 0, fsGroup: 1001, fsGroupChangePolicy: Always, supplementalGroups: [7], runAsNonRoot: true,
				sysctls: [{name: net.ipv4.tcp_keepalive_time, value: "60"}], seLinuxOptions: {type: container_t}, seccompProfile: {type: RuntimeDefault}},
			dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.10, "fd00::10"], searches: [example.com]},
			hostAliases: [{ip: 10.1.2.3, hostnames: [vault.example.com]}, {ip: "fd00::1", hostnames: [log]}]}`,
	} {
		if got := sentences(Validate(cluster(t, `{pod: [{overlay: `+overlay+`}]}`), Options{})); len(got) > 0 {
			t.Errorf("%s: %s", name, strings.Join(got, "\n"))
		}
	}
}

// Nobody gets more by an overlay than by the RedisCluster: not the node, not a token, not the instance's files, not a Secret.
func TestOverlayIsRefused(t *testing.T) {
	beside := func(more string) string {
		return `{initContainers: [{name: a, image: "a:1", restartPolicy: Always, ` + more + `}]}`
	}
	volume := func(more string) string { return `{volumes: [{name: v, ` + more + `}]}` }
	mounted := func(mount string) string {
		return `{volumes: [{name: v, configMap: {name: c}}, {name: w, emptyDir: {}}], containers: [{name: redis, volumeMounts: [` + mount + `]}]}`
	}
	many := func(n int, item string) string { return strings.Repeat(item+", ", n) }
	const sidecar, r = "initContainers[0].", "containers[0]."
	const standard = `instances keep to the "restricted" Pod Security Standard, whatever their namespace allows; remove it`
	for _, tt := range []struct{ name, overlay, want string }{
		{"a list", `[]`, "spec.pod.overlay: Invalid value: has a value of the wrong type"},
		{"a number for a text", `{serviceAccountName: 5}`, "spec.pod.overlay.serviceAccountName: Invalid value: has a value of the wrong type"},
		{"a field that is not", `{initContainer: []}`, `spec.pod[0].overlay.initContainer: Invalid value: holds an unknown field`},
		{"a quantity without an end", beside(`resources: {limits: {memory: "1e1000000000"}}`),
			sidecar + `resources.limits[memory]: Invalid value: "1e1000000000": is no quantity that can be read in time`},
		{"another without an end", volume(`emptyDir: {sizeLimit: "1e1000000000"}`), "volumes[0].emptyDir.sizeLimit: Invalid value"},

		{"the node's network", `{hostNetwork: true}`, "hostNetwork: Forbidden: instances have nothing of their nodes; remove it"},
		{"the node's processes", `{hostPID: true}`, "hostPID: Forbidden"},
		{"the node's memory", `{hostIPC: true}`, "hostIPC: Forbidden"},
		{"the node's ports", beside(`ports: [{containerPort: 80, hostPort: 80}]`), sidecar + "ports[0].hostPort: Forbidden"},
		{"the node", `{nodeName: node1}`, "nodeName: Forbidden: pods find their nodes by the scheduler; use spec.pod[0].affinity"},
		{"Redis' memory", `{shareProcessNamespace: true}`, "shareProcessNamespace: Forbidden"},
		{"what is elsewhere", `{tolerations: [{operator: Exists}]}`, "tolerations: Forbidden: is set at spec.pod[0].tolerations"},
		{"another scheduler", `{schedulerName: mine}`, "schedulerName: Forbidden: cannot be set; remove it: what can be is containers, "},
		{"an old name", `{serviceAccount: admin}`, "serviceAccount: Forbidden"},
		{"a token", `{automountServiceAccountToken: true}`,
			"automountServiceAccountToken: Forbidden: instances have no token of Kubernetes' API"},
		{"an account of no name", `{serviceAccountName: ../x}`, "serviceAccountName: Invalid value"},
		{"a class of no name", `{runtimeClassName: "a b"}`, "runtimeClassName: Invalid value"},
		{"no time to switch over", `{terminationGracePeriodSeconds: 30}`,
			"terminationGracePeriodSeconds: Invalid value: 30: must be from 60 to 600"},
		{"for ever", `{terminationGracePeriodSeconds: 3601}`, "terminationGracePeriodSeconds: Invalid value"},

		{"root", `{securityContext: {runAsUser: 0}}`, "securityContext.runAsUser: Invalid value: 0: must be from 1 to 2147483647"},
		{"perhaps root", `{securityContext: {runAsNonRoot: false}}`, "securityContext.runAsNonRoot: Forbidden: " + standard},
		{"all system calls", `{securityContext: {seccompProfile: {type: Unconfined}}}`, "securityContext.seccompProfile: Forbidden: " + standard},
		{"an unsafe sysctl", `{securityContext: {sysctls: [{name: kernel.msgmax, value: "1"}]}}`,
			"spec.pod[0].overlay: Forbidden: forbidden sysctls"},
		{"another type for SELinux", `{securityContext: {seLinuxOptions: {type: spc_t}}}`, "spec.pod[0].overlay: Forbidden: seLinuxOptions"},
		{"a Windows pod", `{securityContext: {windowsOptions: {hostProcess: true}}}`, "securityContext.windowsOptions: Forbidden"},
		{"many groups", `{securityContext: {supplementalGroups: [` + many(33, "1") + `]}}`, "securityContext.supplementalGroups: Too many: 33"},

		{"a privileged container", beside(`securityContext: {privileged: true}`), sidecar + "securityContext.privileged: Forbidden: " + standard},
		{"a container of root", beside(`securityContext: {runAsUser: 0}`), sidecar + "securityContext.runAsUser: Invalid value: 0"},
		{"escalation", beside(`securityContext: {allowPrivilegeEscalation: true}`),
			sidecar + "securityContext.allowPrivilegeEscalation: Forbidden"},
		{"a capability", beside(`securityContext: {capabilities: {drop: [ALL], add: [NET_ADMIN]}}`),
			sidecar + "securityContext.capabilities: Forbidden"},
		{"a capability that is kept", beside(`securityContext: {capabilities: {drop: [NET_RAW]}}`),
			sidecar + "securityContext.capabilities: Forbidden"},
		{"/proc as it is", beside(`securityContext: {procMount: Unmasked}`), sidecar + "securityContext.procMount: Forbidden"},
		{"a block device", beside(`volumeDevices: [{name: v, devicePath: /dev/x}]`), sidecar + "volumeDevices: Forbidden"},
		{"variables of a Secret", beside(`env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]`),
			sidecar + "env[0].valueFrom.secretKeyRef: Forbidden"},
		{"all variables of a Secret", beside(`envFrom: [{secretRef: {name: s}}]`), sidecar + "envFrom: Forbidden"},
		{"a probe of somebody else", beside(`livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}`),
			"spec.pod[0].overlay: Forbidden: probe or lifecycle host"},
		{"a hook to somebody else", beside(`lifecycle: {preStop: {httpGet: {host: 10.0.0.1, port: 80}}}`),
			"spec.pod[0].overlay: Forbidden: probe or lifecycle host"},
		{"Redis' port", beside(`ports: [{containerPort: 6379}]`),
			sidecar + "ports[0].containerPort: Invalid value: 6379: is a port of an instance"},
		{"the name of Redis' port", beside(`ports: [{name: redis, containerPort: 80}]`), sidecar + `ports[0].name: Invalid value: "redis"`},
		{"no image", `{initContainers: [{name: a}]}`, sidecar + "image: Required value"},
		{"an image that is none", `{initContainers: [{name: a, image: "a b"}]}`, sidecar + "image: Invalid value"},
		{"another policy", `{initContainers: [{name: a, image: "a:1", restartPolicy: Never}]}`,
			sidecar + `restartPolicy: Unsupported value: "Never"`},
		{"a probe of what ends", `{initContainers: [{name: a, image: "a:1", readinessProbe: {exec: {command: [a]}}}]}`,
			sidecar + "readinessProbe: Forbidden: belongs to a sidecar; set restartPolicy: Always, or remove it"},
		{"a resource claim", beside(`resources: {claims: [{name: gpu}]}`), sidecar + "resources.claims: Forbidden"},
		{"a NUL", beside(`args: ["a\0"]`), sidecar + "args[0]: Invalid value"},
		{"our init container", `{initContainers: [{name: init, image: "a:1"}]}`,
			sidecar + `name: Invalid value: "init": is a container of the operator's`},
		{"our container", `{initContainers: [{name: redis, image: "a:1"}]}`, sidecar + `name: Invalid value: "redis"`},
		{"one that we may have", `{initContainers: [{name: redis-proxy, image: "a:1"}]}`, sidecar + "name: Invalid value"},
		{"a name twice", `{initContainers: [{name: a, image: "a:1"}, {name: a, image: "a:1"}]}`, `initContainers[1].name: Duplicate value: "a"`},
		{"many of them", `{initContainers: [` + many(9, `{name: a, image: "a:1"}`) + `]}`, "initContainers: Too many: 9"},

		{"a container beside Redis", `{containers: [{name: proxy, image: "a:1"}]}`,
			r + `name: Invalid value: "proxy": must be redis; what is to run beside it goes into initContainers, with restartPolicy: Always`},
		{"Redis twice", `{containers: [{name: redis}, {name: redis}]}`, `containers[1].name: Duplicate value: "redis"`},
		{"another image", `{containers: [{name: redis, image: "a:1"}]}`, r + "image: Forbidden: is set at spec.repository and spec.version"},
		{"another command", `{containers: [{name: redis, command: [sh]}]}`, r + "command: Forbidden"},
		{"more rights for Redis", `{containers: [{name: redis, securityContext: {privileged: true}}]}`, r + "securityContext: Forbidden"},
		{"another probe", `{containers: [{name: redis, livenessProbe: {exec: {command: [reboot]}}}]}`, r + "livenessProbe.exec: Forbidden"},
		{"an impatient probe", `{containers: [{name: redis, livenessProbe: {periodSeconds: 1}}]}`,
			r + "livenessProbe: Invalid value: 6: is periodSeconds times failureThreshold, and must be from 30 to 3600: a restart is a failover"},
		{"a patient one", `{containers: [{name: redis, readinessProbe: {periodSeconds: 30, failureThreshold: 3}}]}`,
			r + "readinessProbe: Invalid value: 90"},
		{"a time that overflows", `{containers: [{name: redis, livenessProbe: {periodSeconds: 2147483647, failureThreshold: 2147483647}}]}`,
			r + "livenessProbe.periodSeconds: Invalid value: 2147483647: must be from 1 to 3600"},

		{"a directory of the node", volume(`hostPath: {path: /}`), "volumes[0].hostPath: Forbidden: it gives a directory of the node"},
		{"a driver's volume", volume(`csi: {driver: secrets-store.csi.k8s.io}`), "volumes[0].csi: Forbidden"},
		{"a server's directory", volume(`nfs: {server: a, path: /}`),
			"volumes[0].nfs: Forbidden: cannot be set; remove it: what can be is name, configMap"},
		{"a token in a volume", volume(`projected: {sources: [{serviceAccountToken: {path: t}}]}`),
			"volumes[0].projected.sources[0].serviceAccountToken: Forbidden: instances have no token of Kubernetes' API"},
		{"nothing in a volume", `{volumes: [{name: v}]}`, "volumes[0]: Required value: say what to mount"},
		{"two things in a volume", volume(`emptyDir: {}, configMap: {name: c}`), "volumes[0]: Required value"},
		{"a Secret of another place", volume(`secret: {secretName: ../../kube-system/x}`), "volumes[0].secret.secretName: Invalid value"},
		{"our data", `{volumes: [{name: data, emptyDir: {}}]}`, `volumes[0].name: Invalid value: "data": is a volume of the operator's`},
		{"our settings", `{volumes: [{name: config, emptyDir: {}}]}`, `volumes[0].name: Invalid value: "config"`},
		{"a volume twice", `{volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]}`, "volumes[1].name: Duplicate value"},
		{"many volumes", `{volumes: [` + many(21, `{name: a, emptyDir: {}}`) + `]}`, "volumes: Too many: 21"},
		{"many Secrets", volume(`projected: {sources: [` + named(17) + `]}`), "volumes: Too many: 17"},

		{"the instance's files", beside(`volumeMounts: [{name: data, mountPath: /x}]`),
			sidecar + "volumeMounts[0].name: Forbidden: it holds the data or the password of instances, and is theirs alone"},
		{"the password", beside(`volumeMounts: [{name: config, mountPath: /x}]`), sidecar + "volumeMounts[0].name: Forbidden"},
		{"a volume that is not", beside(`volumeMounts: [{name: x, mountPath: /x}]`), sidecar + `volumeMounts[0].name: Not found: "x"`},
		{"over the data", mounted(`{name: w, mountPath: /data}`),
			r + `volumeMounts[0].mountPath: Invalid value: "/data": must not be /data, or above or below it`},
		{"within the data", mounted(`{name: w, mountPath: /data/x}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"over the settings", mounted(`{name: w, mountPath: /etc}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"a script of ours", mounted(`{name: v, mountPath: /etc/redis/start.sh, subPath: a}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"over everything", mounted(`{name: w, mountPath: /}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"over /proc", mounted(`{name: w, mountPath: /proc/self}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"a way around", mounted(`{name: w, mountPath: /tmp/../data}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"a path that is none", mounted(`{name: w, mountPath: tmp}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"a path twice", mounted(`{name: v, mountPath: /x}, {name: w, mountPath: /x}`), r + "volumeMounts[1].mountPath: Duplicate value"},
		{"out of the volume", mounted(`{name: v, mountPath: /x, subPath: ../x}`), r + "volumeMounts[0].subPath: Invalid value"},
		{"from the root", mounted(`{name: v, mountPath: /x, subPath: /etc}`), r + "volumeMounts[0].subPath: Invalid value"},
		{"by a link in the volume", mounted(`{name: w, mountPath: /x, subPath: a}`),
			r + "volumeMounts[0].subPath: Forbidden: of a volume that pods write to"},
		{"by a variable", mounted(`{name: v, mountPath: /x, subPathExpr: $(A)}`), r + "volumeMounts[0].subPathExpr: Forbidden: use subPath"},
		{"mounts for the node", mounted(`{name: v, mountPath: /x, mountPropagation: Bidirectional}`),
			r + "volumeMounts[0].mountPropagation: Forbidden"},
		{"many mounts", mounted(many(21, `{name: v, mountPath: /x}`)), r + "volumeMounts: Too many: 21"},

		{"programs", mounted(`{name: w, mountPath: /usr/local/bin}`), r + "volumeMounts[0].mountPath: Invalid value: \"/usr/local/bin\": programs and"},
		{"libraries", mounted(`{name: w, mountPath: /lib64}`), r + "volumeMounts[0].mountPath: Invalid value"},
		{"what is loaded first", mounted(`{name: v, mountPath: /etc/ld.so.preload, subPath: a}`), r + "volumeMounts[0].mountPath: Invalid value"},

		{"a group that is none", `{securityContext: {supplementalGroups: [-1]}}`, "securityContext.supplementalGroups[0]: Invalid value: -1"},
		{"a policy that is none", `{securityContext: {fsGroupChangePolicy: x}}`, `securityContext.fsGroupChangePolicy: Unsupported value: "x"`},
		{"the categories of others", `{securityContext: {seLinuxOptions: {level: "s0:c1,c2"}}}`, "securityContext.seLinuxOptions.level: Forbidden"},
		{"a sysctl twice", `{securityContext: {sysctls: [{name: a, value: b}, {name: a, value: b}]}}`, "securityContext.sysctls[1].name: Duplicate value"},
		{"a port that is none", beside(`ports: [{containerPort: 70000}]`), sidecar + `ports[0].containerPort: Invalid value: "70000"`},
		{"a port twice", beside(`ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]`), sidecar + "ports[1].containerPort: Duplicate"},
		{"the name of a port twice", beside(`ports: [{name: a, containerPort: 80}, {name: a, containerPort: 81}]`), sidecar + "ports[1].name: Duplicate"},
		{"a probe of two", beside(`startupProbe: {exec: {command: [a]}, tcpSocket: {port: 1}}`), sidecar + "startupProbe: Invalid value: must have one of"},
		{"a probe of nothing", beside(`startupProbe: {periodSeconds: 1}`), sidecar + "startupProbe: Invalid value: must have one of"},
		{"a probe of no port", beside(`readinessProbe: {tcpSocket: {port: 70000}}`), sidecar + "readinessProbe.tcpSocket.port: Invalid value"},
		{"a probe of a command that is none", beside(`livenessProbe: {exec: {}}`), sidecar + "livenessProbe.exec.command: Required value"},
		{"a probe before its time", beside(`livenessProbe: {tcpSocket: {port: 1}, periodSeconds: -1}`), sidecar + "livenessProbe.periodSeconds: Invalid"},
		{"alive twice", beside(`livenessProbe: {tcpSocket: {port: 1}, successThreshold: 2}`), sidecar + "livenessProbe.successThreshold: Invalid"},
		{"another grace period", beside(`readinessProbe: {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 5}`),
			sidecar + "readinessProbe.terminationGracePeriodSeconds: Invalid"},
		{"a header that is none", beside(`startupProbe: {httpGet: {port: 1, httpHeaders: [{name: "a b"}]}}`),
			sidecar + "startupProbe.httpGet.httpHeaders[0].name: Invalid"},
		{"a hook of two", beside(`lifecycle: {preStop: {exec: {command: [a]}, sleep: {seconds: 1}}}`), sidecar + "lifecycle.preStop: Invalid value: must"},
		{"a hook beyond the end", beside(`lifecycle: {preStop: {sleep: {seconds: 61}}}`),
			sidecar + "lifecycle.preStop.sleep.seconds: Invalid value: 61: must be from 1 to 60"},
		{"another signal", beside(`lifecycle: {stopSignal: SIGKILL}`), sidecar + "lifecycle.stopSignal: Forbidden"},
		{"a field that there is not", beside(`env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.password}}}]`),
			sidecar + `env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.password"`},
		{"a quantity that there is not", beside(`env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]`),
			sidecar + "env[0].valueFrom.resourceFieldRef.resource: Unsupported"},
		{"a file elsewhere", volume(`configMap: {name: c, items: [{key: a, path: ../x}]}`), "volumes[0].configMap.items[0].path: Invalid value"},
		{"a file without a key", volume(`secret: {secretName: c, items: [{path: x}]}`), "volumes[0].secret.items[0].key: Required"},
		{"a mode that is none", volume(`secret: {secretName: c, defaultMode: 4095}`), "volumes[0].secret.defaultMode: Invalid value: 4095"},
		{"a file of a field", volume(`downwardAPI: {items: [{path: x, fieldRef: {fieldPath: status.podIP}}]}`),
			"volumes[0].downwardAPI.items[0].fieldRef.fieldPath: Unsupported"},
		{"a file of nobody", volume(`downwardAPI: {items: [{path: x, resourceFieldRef: {resource: limits.cpu}}]}`),
			"volumes[0].downwardAPI.items[0].resourceFieldRef.containerName: Required"},
		{"two sources in one", volume(`projected: {sources: [{secret: {name: a}, configMap: {name: b}}]}`), "volumes[0].projected.sources[0]: Invalid"},
		{"an odd medium", volume(`emptyDir: {medium: Tape}`), "volumes[0].emptyDir.medium: Unsupported"},
		{"a domain that is none", `{dnsConfig: {searches: ["a b"]}}`, `dnsConfig.searches[0]: Invalid value: "a b"`},
		{"an address twice", `{hostAliases: [{ip: 10.0.0.1, hostnames: [a]}, {ip: 10.0.0.1, hostnames: [b]}]}`, "hostAliases[1].ip: Duplicate value"},

		{"a policy of the node", `{dnsPolicy: ClusterFirstWithHostNet}`, "dnsPolicy: Unsupported value"},
		{"no name server", `{dnsPolicy: None}`, "dnsConfig.nameservers: Required value"},
		{"a name server that is none", `{dnsConfig: {nameservers: [a]}}`, `dnsConfig.nameservers[0]: Invalid value: "a": is no IP address`},
		{"many name servers", `{dnsConfig: {nameservers: [a, b, c, d]}}`, "dnsConfig.nameservers: Too many: 4"},
		{"a line for /etc/hosts", `{hostAliases: [{ip: 10.0.0.1, hostnames: ["a\n1.2.3.4 b"]}]}`, "hostAliases[0].hostnames[0]: Invalid value"},
		{"an address that is none", `{hostAliases: [{ip: "1 x", hostnames: [a]}]}`, "hostAliases[0].ip: Invalid value"},
		{"many aliases", `{hostAliases: [` + many(33, "{ip: 10.0.0.1}") + `]}`, "hostAliases: Too many: 33"},
		{"a long text", beside(`args: ["` + strings.Repeat("x", 64<<10) + `"]`), "spec.pod[0].overlay: Invalid value: \"65"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, pause := range []string{"", "pause: true, "} { // a draft gets no more
				got := strings.Join(sentences(Validate(cluster(t, `{`+pause+`pod: [{overlay: `+tt.overlay+`}]}`), Options{})), "\n")
				if want := tt.want; !strings.HasPrefix(want, "spec") {
					tt.want = "spec.pod[0].overlay." + want
				}
				if !strings.Contains(got, tt.want) {
					t.Errorf("got\n%s\nwant\n%s", got, tt.want)
				}
			}
		})
	}
}

// named are so many Secrets.
func named(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{secret: {name: s%d}}", i))
	}
	return strings.Join(all, ", ")
}

// Code comes from the image, wherever something is mounted.
func TestNothingIsMountedOverModules(t *testing.T) {
	const spec = `{version: 8.0.6, modules: [{name: json}, {name: /opt/mine.so}], pod: [{overlay: {volumes: [{name: v, emptyDir: {}}],
		containers: [{name: redis, volumeMounts: [{name: v, mountPath: %s}]}]}}]}`
	for path, want := range map[string]string{
		"/usr/local/lib": "the file of spec.modules[0] is there, and modules come from the image alone; choose another path",
		"/opt/mine.so":   "the file of spec.modules[1] is there, and modules come from the image alone; choose another path",
		"/opt/other":     "",
	} {
		got := strings.Join(sentences(Validate(cluster(t, fmt.Sprintf(spec, path)), Options{})), "\n")
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// The files of instances belong to the user that they run as, and a Service keeps its first family.
func TestWhatARunningClusterKeeps(t *testing.T) {
	user := func(id string) string { return `{pod: [{overlay: {securityContext: {` + id + `}}}]}` }
	families := func(f string) string { return `{service: {ipFamilies: [` + f + `], ipFamilyPolicy: PreferDualStack}}` }
	for _, tt := range []struct{ before, after, want string }{
		{user("runAsUser: 1001"), user("runAsUser: 1001, supplementalGroups: [7]"), ""},
		{user("runAsUser: 1001"), user("runAsUser: 1002"), "spec.pod[0].overlay.securityContext: Forbidden: runAsUser, runAsGroup and fsGroup cannot change"},
		{`{}`, user("fsGroup: 5"), "spec.pod[0].overlay.securityContext: Forbidden"},
		{user("runAsGroup: 5"), `{}`, "spec.pod[0].overlay.securityContext: Forbidden"},
		{families("IPv6"), families("IPv6, IPv4"), ""},
		{families("IPv6"), families("IPv4"), `spec.service.ipFamilies[0]: Invalid value: "IPv4": the first family of a Service never changes; put IPv6 first`},
		{families("IPv6"), `{}`, ""},
	} {
		got := strings.Join(sentences(ValidateUpdate(cluster(t, tt.before), cluster(t, tt.after), Options{})), "\n")
		if !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%s, then %s: got %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
	on := cluster(t, `{pod: [{volumes: {type: hostPath}, overlay: {securityContext: {runAsUser: 5}}}]}`)
	if got := sentences(Validate(on, Options{AllowHostPath: true})); len(got) != 1 || !strings.Contains(got[0], "handed to user 999") {
		t.Errorf("a user for directories of nodes: %v", got)
	}
}

// Who runs the operator says what else may act on a Service.
func TestServiceAnnotationDomains(t *testing.T) {
	cr := cluster(t, `{service: {annotations: {external-dns.alpha.kubernetes.io/hostname: a, tailscale.com/expose: "true", a.b.example.com/x: y}},
		external: {type: LoadBalancer, annotations: {tailscale.com/hostname: a}}}`)
	for _, tt := range []struct {
		allowed []string
		refused int
	}{
		{[]string{}, 4}, {[]string{"alpha.kubernetes.io"}, 3}, {[]string{"tailscale.com", "example.com"}, 1}, {[]string{"*"}, 0}, {nil, 4},
	} {
		if got := sentences(Validate(cr, Options{ServiceAnnotationDomains: tt.allowed})); len(got) != tt.refused {
			t.Errorf("%q: %v", tt.allowed, got)
		}
	}
}

// What others keep in a claim is not handed to this one's pods.
func TestSharedClaimKeepsItsOwners(t *testing.T) {
	for _, named := range []string{"type: nfs, persistentVolumeClaimName: c", "type: pvc, persistentVolumeClaimName: c"} {
		cr := cluster(t, `{pod: [{volumes: {`+named+`}, overlay: {securityContext: {runAsUser: 5, fsGroup: 5, fsGroupChangePolicy: Always,
			seLinuxOptions: {type: container_t}}}}]}`)
		got := strings.Join(sentences(Validate(cr, Options{})), "\n")
		for _, name := range []string{"fsGroup", "fsGroupChangePolicy", "seLinuxOptions"} {
			if !strings.Contains(got, "securityContext."+name+": Forbidden: the claim of") {
				t.Errorf("%s of %s: %s", name, named, got)
			}
		}
		if strings.Contains(got, "runAsUser") {
			t.Error(got)
		}
	}
}

func TestService(t *testing.T) {
	for spec, want := range map[string]string{
		`{labels: {team: a}, annotations: {prometheus.io/scrape: "true", note: x}, ipFamilies: [IPv6]}`: "",
		`{annotations: {external-dns.alpha.kubernetes.io/hostname: a.example.com}}`:                     "spec.service.annotations[external-dns.alpha.kubernetes.io/hostname]: Forbidden: controllers may act by it",
		`{annotations: {getambassador.io/config: x}}`:                                                   "start it with --service-annotation-domains=…,getambassador.io",
		`{labels: {service.kubernetes.io/service-proxy-name: x}}`:                                       "spec.service.labels[service.kubernetes.io/service-proxy-name]: Forbidden",
		`{ipFamilies: [IPv6, IPv4], ipFamilyPolicy: RequireDualStack}`:                                  "",
		`{labels: {redis.middleware.hc.cn/cluster: other}}`:                                             "spec.service.labels[redis.middleware.hc.cn/cluster]: Forbidden",
		`{annotations: {helm.sh/hook: x}}`:                                                              "spec.service.annotations[helm.sh/hook]: Forbidden",
		`{ipFamilies: [IPv5]}`:                                                                          `spec.service.ipFamilies[0]: Unsupported value: "IPv5"`,
		`{ipFamilies: [IPv6, IPv6], ipFamilyPolicy: PreferDualStack}`:                                   `spec.service.ipFamilies[1]: Duplicate value: "IPv6"`,
		`{ipFamilies: [IPv6, IPv4]}`:                                                                    "two families need ipFamilyPolicy PreferDualStack or RequireDualStack",
		`{ipFamilies: [IPv6, IPv4, IPv6]}`:                                                              "spec.service.ipFamilies: Too many: 3",
		`{ipFamilyPolicy: Both}`:                                                                        `spec.service.ipFamilyPolicy: Unsupported value: "Both"`,
	} {
		got := strings.Join(sentences(Validate(cluster(t, `{service: `+spec+`}`), Options{})), "\n")
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
	}
}

// An overlay that cannot be read is refused, and nobody else's RedisCluster with it.
func TestOverlayThatIsNoPodSpec(t *testing.T) {
	for _, raw := range []string{`5`, `"a"`, `[1]`, `{"containers":{"a":1}}`, `{"volumes":[{"name":1}]}`, `{"containers":[],"containers":[]}`} {
		cr := cluster(t, `{}`)
		cr.Spec.Pod = []v1alpha1.PodTemplate{{Overlay: &runtime.RawExtension{Raw: []byte(raw)}}}
		got := sentences(Validate(cr, Options{}))
		if len(got) == 0 || !strings.HasPrefix(got[0], "spec") {
			t.Errorf("%s: %v", raw, got)
		}
		if diff := cmp.Diff([]string(nil), Warnings(cr)); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}

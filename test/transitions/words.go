// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transitions

import "strings"

// words are values of fields that a schema cannot know, by the name of the field: most of them are accepted.
var words = map[string][]any{
	"image":                     someImages,
	"middlewareImage":           {"", "redis:8.0.6", "valkey/valkey:8.1", "docker.io/library/redis:7.0.15", "redis@sha256:nonsense"},
	"monitorImage":              {"", "exporter:1", "docker.io/oliver006/redis_exporter:v1.45.0"},
	"initImage":                 {"", "busybox:1", "docker.io/library/busybox:1.36"},
	"repository":                {"docker.io/library/redis", "docker.io/valkey/valkey", "mirror.example.com:5000/redis", "redis:8"},
	"version":                   {"7.0.15", "8.0.6", "8.1", "latest", "9.1.2", "6.2", "sha256:" + strings.Repeat("a", 64)},
	"cronSpec":                  {"* * * * *", "*/5 1 * * 1-5", "@daily", "@every 1h", "61 * * * *", "TZ=UTC * * * * *"},
	"timeZone":                  {"", "UTC", "Asia/Shanghai", "Nowhere/Atlantis", "Local"},
	"name":                      {"a", "http", "web-2", "GREETING", "json", "bloom", "search", "UPPER case"},
	"host":                      {"", "a.example.com", "*.example.com", "not a host"},
	"path":                      {"/", "/shop", "shop", "/a b"},
	"header":                    {"", "X-Canary", "X Y"},
	"headerValue":               {"", "always", "a b"},
	"className":                 {"", "nginx", "UPPER"},
	"fromReplicas":              {"c-0-0", "c-1-0,c-2-0", strings.Repeat("0", 40), ","},
	"previousPasswordFor":       {"1h", "3h", "0s", "10000h", "1h1m"},
	"rotate":                    {"", "once", "twice"},
	"secretName":                {"", "some-secret", "not a name"},
	"aclSecretName":             {"", "some-users", "UPPER"},
	"caSecretName":              {"", "some-ca", "-"},
	"tlsSecretName":             {"", "some-cert", "not a name"},
	"configmap":                 {"", "some-settings", "a/b"},
	"priorityClassName":         {"", "high", "not a name"},
	"storageClassName":          {"fast", "slow", "not a name"},
	"size":                      {"1Gi", "2Gi", "5Gi", "0", "-1Gi", int64(1 << 30)},
	"persistentVolumeClaimName": {"", "data", "a b"},
	"operator":                  {"Exists", "Equal", "In", "nonsense"},
	"effect":                    {"NoSchedule", "NoExecute", "nonsense"},
	"topologyKey":               {"kubernetes.io/hostname", "zone", ""},
	"whenUnsatisfiable":         {"DoNotSchedule", "ScheduleAnyway", "nonsense"},
	"labels": {map[string]any{"team": "a"}, map[string]any{"not a key!": "a"},
		map[string]any{"a": strings.Repeat("x", 64)}},
	"annotations": {map[string]any{"example.com/a": "b"}, map[string]any{"prometheus.io/scrape": "true"}, map[string]any{"not a key!": "a"},
		map[string]any{"nginx.ingress.kubernetes.io/configuration-snippet": "deny all;"}},
	"nodeSelector": {map[string]any{"disk": "ssd"}, map[string]any{"not a key!": "a"}},
	"config": {map[string]any{"maxmemory": "64mb"}, map[string]any{"hz": "20", "appendonly": "no"}, map[string]any{"requirepass": "x"},
		map[string]any{"cluster-node-timeout": "5000"}, map[string]any{"a\nb": "c"}},
	"limits": {map[string]any{"memory": "1Gi"}, map[string]any{"cpu": "500m", "memory": "256Mi"}, map[string]any{"memory": "lots"},
		map[string]any{"cpu": int64(1)}, map[string]any{}},
	"requests": {map[string]any{"memory": "32Mi"}, map[string]any{"cpu": "50m"}, map[string]any{"memory": "100Gi"}, map[string]any{}},
	"affinity": {unschedulable, map[string]any{}, map[string]any{"podAntiAffinity": map[string]any{}}},
	"overlay": {map[string]any{}, map[string]any{"hostNetwork": true}, map[string]any{"noSuchField": true},
		map[string]any{"containers": int64(1)},
		map[string]any{"terminationGracePeriodSeconds": int64(90), "dnsPolicy": "Default"},
		map[string]any{"securityContext": map[string]any{"runAsUser": int64(1001)}},
		map[string]any{"securityContext": map[string]any{"supplementalGroups": []any{int64(7)}}},
		map[string]any{"containers": []any{map[string]any{"name": "redis", "livenessProbe": map[string]any{"failureThreshold": int64(12)}}}},
		map[string]any{"initContainers": []any{map[string]any{"name": "proxy", "image": "proxy:1", "restartPolicy": "Always"}},
			"volumes": []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}}},
		map[string]any{"volumes": []any{map[string]any{"name": "root", "hostPath": map[string]any{"path": "/"}}}}},
	"ipFamilyPolicy": {"SingleStack", "PreferDualStack"},
	"shards":         {int64(3), int64(4), int64(6), int64(500)},
	"replicas":       {int64(3), int64(6), int64(9), int64(1), int64(0), int64(1000)},
	"mountPath":      {"/etc/a", "/var/cache/a", "/tmp", "/a/../b", "a"},
	"subPath":        {"", "a", "../a"},
	"claimName":      {"data", "a b"},
	"fieldPath":      {"metadata.name", "metadata.labels['a']", "spec.nodeName", "spec"},
	"resource":       {"limits.cpu", "requests.memory", "cpu"},
	"medium":         {"", "Memory", "nonsense"},
	"port":           {"http", int64(8080), int64(0), int64(1 << 40), "no-such-port"},
}

var someImages = []any{"docker.io/library/busybox:1.36", "shop/web:1.4", "nowhere.example.com/none:1",
	"a@sha256:" + strings.Repeat("b", 64),
	"UPPER:1", "a b", "busybox"}

// unschedulable asks for a node that there is not.
var unschedulable = map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
	"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
		map[string]any{"key": "planet", "operator": "In", "values": []any{"mars"}}}}}}}}

// texts are what every string has to do with.
var texts = []string{
	"", " ", "a", "\"", "'", "\\", "{{ .Values }}", "{{", "a: b", "- a", "&a *a", "# c", "\n", "a\nb", "\t", "null", "true", "1e3", "0x1",
	"$(HOME)", "$$", "../../etc", "%s", "\x00", "\u2028", "ä😀", "<&>", "a,b", "*", "-", ".", strings.Repeat("x", 64),
	strings.Repeat("x", 254), "; rm -rf /",
}

// starts are specs that a chain may begin with, besides the samples.
var starts = map[string][]string{
	"App":          {"{image: 'shop/web:1.4'}", "{image: 'a:1', ports: [], resources: {}}"},
	"CronTab":      {"{cronSpec: '* * * * *', image: 'a:1'}"},
	"FooBar":       {"{command: date}"},
	"RedisCluster": {"{}", "{shards: 3, replicas: 6, pod: [{volumes: {type: emptyDir}}]}", "{pause: true}"},
	"Application": {"{selector: {matchLabels: {app: a}}, template: {spec: {template: {metadata: {labels: {app: a}}, " +
		"spec: {containers: [{name: a, image: 'a:1', resources: {}}]}}}}}"},
}

// mistakes are what people do wrong.
var mistakes = map[string]map[string]string{
	"App": { //nolint:gosec // it names a Secret, and holds none
		"an image that is nowhere":        "{image: 'nowhere.example.com/none:1'}",
		"a Secret that there is not":      "{envFrom: [{secretRef: {name: no-such-secret}}]}",
		"a ConfigMap that there is not":   "{envFrom: [{configMapRef: {name: no-such-config}}]}",
		"more memory than any node has":   "{resources: {requests: {memory: 900Ti}}}",
		"requests above limits":           "{resources: {requests: {cpu: '2'}, limits: {cpu: '1'}}}",
		"an Ingress without a host":       "{ingress: {enabled: true, host: null}}",
		"a probe of a port that is not":   "{probes: {path: /, port: none}}",
		"two ports of one number":         "{ports: [{name: a, containerPort: 80}, {name: b, containerPort: 80}]}",
		"two ports of one name":           "{ports: [{name: a, containerPort: 80}, {name: a, containerPort: 81}]}",
		"less pods at most than at least": "{autoscaling: {minReplicas: 5, maxReplicas: 2}}",
		"a command that is not":           "{command: [/no/such/file]}",
		"a directory of the node":         "{volumes: [{name: root, hostPath: {path: /}}], volumeMounts: [{name: root, mountPath: /x}]}",
		"a claim that there is not":       "{volumes: [{name: a, persistentVolumeClaim: {claimName: no-such-claim}}]}",
		"a volume that is not":            "{volumeMounts: [{name: no-such-volume, mountPath: /x}]}",
		"over what is there":              "{volumes: [{name: a, emptyDir: {}}], volumeMounts: [{name: a, mountPath: /tmp}]}",
		"a node that there is not":        "{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}",
		"pods spread by nothing":          "{topologySpreadConstraints: [{maxSkew: 0, topologyKey: '', whenUnsatisfiable: Never}]}",
	},
	"CronTab": { //nolint:gosec // it names a Secret, and holds none
		"a Secret that there is not":      "{volumes: [{name: a, secret: {secretName: no-such-secret}}], volumeMounts: [{name: a, mountPath: /a}]}",
		"a token":                         "{volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}",
		"an image that is nowhere":        "{image: 'nowhere.example.com/none:1'}",
		"a time that never comes":         "{cronSpec: '0 0 31 2 *'}",
		"a schedule that is none":         "{cronSpec: 'every day'}",
		"a time zone that there is not":   "{timeZone: Nowhere/Atlantis}",
		"a time zone within the schedule": "{cronSpec: 'TZ=UTC * * * * *'}",
	},
	"FooBar": {
		"an image that is nowhere": "{image: 'nowhere.example.com/none:1'}",
		"a command that is not":    "{command: no-such-command}",
		"no command":               "{command: ''}",
		"two things in a volume":   "{volumes: [{name: a, emptyDir: {}, configMap: {name: b}}]}",
	},
	"Application": {
		"an image that is nowhere":       "{template: {spec: {template: {spec: {containers: [{name: a, image: 'nowhere.example.com/none:1'}]}}}}}",
		"a node that there is not":       "{template: {spec: {template: {spec: {nodeSelector: {planet: mars}}}}}}",
		"no container":                   "{template: {spec: {template: {spec: {containers: []}}}}}",
		"a service account that is not":  "{template: {spec: {template: {spec: {serviceAccountName: no-such-account}}}}}",
		"a field that is not":            "{template: {spec: {template: {spec: {noSuchField: 1}}}}}",
		"another selector":               "{selector: {matchLabels: {app: another}}}",
		"a Deployment of another's name": "{template: {metadata: {name: another}}}",
	},
	"RedisCluster": { //nolint:gosec // it names Secrets, and holds none
		"a node that there is not":          "{pod: [{nodeSelector: {planet: mars}}]}",
		"an image that is nowhere":          "{pod: [{middlewareImage: 'nowhere.example.com/redis:8.0.6'}]}",
		"a Secret that there is not":        "{auth: {secretName: no-such-secret}}",
		"users that there are not":          "{auth: {aclSecretName: no-such-secret}}",
		"a certificate that there is not":   "{tls: {secretName: no-such-secret}}",
		"a ConfigMap that there is not":     "{pod: [{configmap: no-such-config}]}",
		"a setting that is not":             "{config: {no-such-setting: '1'}}",
		"a value that is refused":           "{config: {maxmemory-policy: least-loved}}",
		"a setting of the operator's":       "{config: {requirepass: secret}}",
		"more memory than any node has":     "{pod: [{resources: {requests: {memory: 900Ti}}}]}",
		"fewer instances than shards":       "{shards: 6, replicas: 3}",
		"data in another place":             "{storage: null, pod: [{volumes: {type: emptyDir}}]}",
		"a claim that shrinks":              "{storage: {size: 1Mi}}",
		"another class of storage":          "{storage: {storageClassName: another}}",
		"an older engine":                   "{version: 6.2.0}",
		"an account that there is not":      "{pod: [{overlay: {serviceAccountName: no-such-account}}]}",
		"the network of the node":           "{pod: [{overlay: {hostNetwork: true}}]}",
		"two families where there is one":   "{service: {ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack}}",
		"a directory of the node":           "{storage: null, pod: [{volumes: {type: hostPath}}]}",
		"slots from an instance that isn't": "{shards: 4, replicas: 8, updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 9, fromReplicas: nobody}]}}",
	},
}

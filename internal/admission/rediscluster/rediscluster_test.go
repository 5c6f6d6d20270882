// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// cluster is a defaulted RedisCluster with the given spec, in YAML.
func cluster(t *testing.T, spec string) *v1alpha1.RedisCluster {
	t.Helper()
	cr := &v1alpha1.RedisCluster{}
	cr.Name, cr.Namespace = "cache", "shop"
	if err := yaml.UnmarshalStrict([]byte(spec), &cr.Spec); err != nil {
		t.Fatal(err)
	}
	Default(cr)
	return cr
}

func sample(t *testing.T, name string) *v1alpha1.RedisCluster {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	cr := &v1alpha1.RedisCluster{}
	if err := yaml.UnmarshalStrict(text, cr); err != nil {
		t.Fatal(err)
	}
	Default(cr)
	return cr
}

func sentences[T error](problems []T) []string {
	var texts []string
	for _, problem := range problems {
		texts = append(texts, problem.Error())
	}
	return texts
}

func TestSamplesAreAccepted(t *testing.T) {
	for _, name := range []string{"redis_v1alpha1_rediscluster.yaml", "redis_v1alpha1_rediscluster_full.yaml"} {
		if refused := Validate(sample(t, name), Options{}); len(refused) > 0 {
			t.Errorf("%s is refused: %v", name, refused)
		}
	}
	if warnings := Warnings(sample(t, "redis_v1alpha1_rediscluster_full.yaml")); len(warnings) > 0 {
		t.Errorf("the full sample has warnings: %v", warnings)
	}
}

// TestDraft: the source document's sample is paused and holds placeholders. What could
// not run is a warning, and the same sentence refuses the spec once it is to run.
func TestDraft(t *testing.T) {
	cr := sample(t, "redis_v1alpha1_rediscluster.yaml")
	warnings := Warnings(cr)
	cr.Spec.Pause = false
	refused := sentences(Validate(cr, Options{}))
	want := []string{
		`spec.version: Invalid value: "library/redis:3.2.8": redis 3.2 lacks CLUSTER SHARDS and CLUSTER ADDSLOTSRANGE, which the operator works with; use Redis 7.0 or later, or Valkey 8 or later`,
		`spec.updateStrategy.assignStrategies[0].fromReplicas: Invalid value: "nodeId1": is not a node ID; name masters by their 40 hex digits, which status.nodes[].nodeId shows, separated by commas`,
		`spec.updateStrategy.assignStrategies[1].fromReplicas: Invalid value: "nodeId3": is not a node ID; name masters by their 40 hex digits, which status.nodes[].nodeId shows, separated by commas`,
		`spec.updateStrategy.assignStrategies[1].fromReplicas: Invalid value: "nodeId4": is not a node ID; name masters by their 40 hex digits, which status.nodes[].nodeId shows, separated by commas`,
		`spec.pod[0].volumes.persistentVolumeClaimName: Invalid value: "pvcName": cannot be the name of a PersistentVolumeClaim: lower-case letters, digits, hyphens and dots, beginning and ending with a letter or digit; name one that exists`,
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refusals of the running spec (-want +got):\n%s", diff)
	}
	for i, sentence := range want {
		if !strings.HasPrefix(warnings[i], sentence) || !strings.Contains(warnings[i], "while spec.pause is true") {
			t.Errorf("warning %d of the draft is %q, want %q and that it is a draft", i, warnings[i], sentence)
		}
	}
}

// What is too large is refused by the field that holds most, and nothing else of it is looked at.
func TestSizes(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	repeat := func(n int, text string) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	for name, tt := range map[string]struct{ spec, at string }{
		"a hundred variables of 100 bytes at 50 shards": {`{replicas: 100, pod: [{env: [` + numbered(100, `{name: V%d, value: `+long(100)+`}`) +
			`]}]}`, ""},
		"annotations of an agent": {`{pod: [{annotations: {a.example.com/a: "` + long(30_000) + `"}}]}`, ""},
		"annotations of 64 KiB": {`{pod: [{annotations: {a.example.com/a: "` + long(64<<10) + `"}}]}`,
			"spec.pod[0].annotations"},
		"annotations of 5 KiB at 500 shards": {`{replicas: 1000, pod: [{annotations: {a.example.com/a: "` + long(5<<10) + `"}}]}`,
			"spec.pod[0].annotations"},
		"many tolerations": {`{pod: [{labels: {a: b}, tolerations: [` + numbered(1000, `{key: k%d, operator: Exists}`) + `]}]}`,
			"spec.pod[0].tolerations"},
		"a large selector": {`{pod: [{labels: {a: b}, topologySpreadConstraints: [{labelSelector: {matchExpressions: [{key: k, operator: In, values: [` + repeat(2000, "a") + `]}]}}]}]}`,
			"spec.pod[0].topologySpreadConstraints"},
		"node labels":              {`{pod: [{nodeSelector: {` + numbered(2000, `k%d: v`) + `}}]}`, "spec.pod[0].nodeSelector"},
		"an exporter's image":      {`{pod: [{monitorImage: "` + long(70_000) + `"}]}`, "spec.pod[0].monitorImage"},
		"an exporter's arguments":  {`{pod: [{monitorImage: "e:1", monitor: {args: ["` + long(70_000) + `"]}}]}`, "spec.pod[0].monitor"},
		"variables rendered twice": {`{pod: [{initImage: "i:1", init: {}, env: [{name: A, value: "` + long(40_000) + `"}]}]}`, "spec.pod[0].env"},
		"variables rendered once":  {`{pod: [{initImage: "i:1", env: [{name: A, value: "` + long(40_000) + `"}]}]}`, ""},
		"a long setting":           {`{config: {maxmemory: "` + long(64<<10) + `"}}`, "spec.config"},
		"many settings":            {`{config: {` + numbered(201, `s%d: v`) + `}}`, "spec.config"},
		"names without number": {`{updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 1, fromReplicas: "` + repeat(3001, "a") +
			`"}]}}`, "spec.updateStrategy.assignStrategies"},
	} {
		t.Run(name, func(t *testing.T) {
			cr := cluster(t, tt.spec)
			refused := Validate(cr, Options{})
			switch {
			case tt.at == "" && len(refused) > 0:
				t.Errorf("it is refused: %v", refused)
			case tt.at != "" && (len(refused) != 1 || refused[0].Field != tt.at || len(refused[0].Error()) > 500 || len(Warnings(cr)) > 0):
				t.Errorf("got %d refusals, want one of %s: %.1000s", len(refused), tt.at, refused)
			}
		})
	}
}

// A list of refusals ends where nobody reads it any more.
func TestRefusalsAreCounted(t *testing.T) {
	cr := cluster(t, `{updateStrategy: {type: AssignReceive, assignStrategies: [`+numbered(100, `{slots: 1, fromReplicas: "a%d,b,c"}`)+`]}}`)
	if n := len(Validate(cr, Options{})); n == 0 || n > 50 {
		t.Errorf("%d refusals", n)
	}
}

// numbered writes something with the numbers from 0 to n, separated by commas.
func numbered(n int, format string) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprintf(format, i))
	}
	return strings.Join(items, ", ")
}

func TestValidate(t *testing.T) {
	cases := []struct {
		name, spec string
		options    Options
		want       []string
	}{
		{name: "nothing said", spec: `{}`},
		{name: "source's seven", spec: `{replicas: 7}`},
		{name: "five instances", spec: `{replicas: 5}`},
		{name: "two replicas", spec: `{replicas: 2}`, want: []string{
			"spec.replicas: Invalid value: 2: must be at least 3 unless shards says how many masters there are: set replicas to 6 to give each of 3 masters a replica, or set shards to 1"}},
		{name: "no instance", spec: `{replicas: 0, shards: 1}`, want: []string{
			"spec.replicas: Invalid value: 0: must be at least 1; spec.hibernate stops all instances and keeps their data"}},
		{name: "no shard", spec: `{replicas: 6, shards: 0}`, want: []string{
			"spec.shards: Invalid value: 0: must be at least 1; set it to 3 or more, so that masters elect the successor of one that is lost, or remove it"}},
		{name: "one shard", spec: `{replicas: 2, shards: 1}`},
		{name: "one instance", spec: `{replicas: 1, shards: 1}`},
		{name: "two shards", spec: `{replicas: 6, shards: 2}`},
		{name: "more shards than instances", spec: `{replicas: 4, shards: 5}`, want: []string{
			"spec.shards: Invalid value: 5: every shard needs at least one instance, and replicas is 4; raise replicas to 10 (one replica a shard), or lower shards"}},
		{name: "unknown deletion policy", spec: `{finalizers: sometimes}`, want: []string{
			`spec.finalizers: Unsupported value: "sometimes": supported values: "foreground", "background", "orphan"`}},
		{name: "AssignReceive without strategies", spec: `{updateStrategy: {type: AssignReceive}}`, want: []string{
			"spec.updateStrategy.assignStrategies: Required value: type AssignReceive needs one entry {slots, fromReplicas} for each new master, or {slots, fromReplicas, toShard} for a shard that exists; add them, or set type to AutoReceive"}},
		{name: "strategies without AssignReceive", spec: `{updateStrategy: {assignStrategies: [{slots: 1, fromReplicas: a}]}, pause: true}`,
			want: []string{
				"spec.updateStrategy.assignStrategies: Forbidden: assignStrategies belong to type AssignReceive: remove them, or set type to AssignReceive"}},
		{name: "too many slots",
			spec: `{updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 16000, fromReplicas: a}, {slots: 385, fromReplicas: a}]}, pause: true}`, want: []string{
				"spec.updateStrategy.assignStrategies: Invalid value: 16385: shards would receive 16385 slots together, and a cluster has 16384; lower some entry's slots"}},
		{name: "a shard that there is not",
			spec: `{updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 1, fromReplicas: a, toShard: 3}]}, pause: true}`,
			want: []string{
				"spec.updateStrategy.assignStrategies[0].toShard: Invalid value: 3: must be the number of a shard, from 0 to 2; leave it out for a master that joins"}},
		{name: "a shard that receives twice",
			spec: `{updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 1, fromReplicas: a, toShard: 2}, {slots: 2, fromReplicas: a, toShard: 2}]}, pause: true}`, want: []string{
				"spec.updateStrategy.assignStrategies[1].toShard: Duplicate value: 2"}},
		{name: "pipeline of zero", spec: `{updateStrategy: {pipeline: "0"}}`, want: []string{
			`spec.updateStrategy.pipeline: Invalid value: "0": must be a number of keys from 1 to 10000, as a string such as "100"`}},
		{name: "tag in the repository", spec: `{repository: "redis:7"}`, want: []string{
			`spec.repository: Invalid value: "redis:7": must be an image without its tag or digest; both go into spec.version`}},
		{name: "image with a space", spec: `{pod: [{monitorImage: "redis exporter"}]}`, want: []string{
			`spec.pod[0].monitorImage: Invalid value: "redis exporter": is not an image reference (invalid reference format); write registry/repository:tag, such as docker.io/library/busybox:1.36`}},
		{name: "old engine by middlewareImage", spec: `{pod: [{middlewareImage: "registry.example.com/db/redis:6.2-alpine"}]}`, want: []string{
			`spec.pod[0].middlewareImage: Invalid value: "registry.example.com/db/redis:6.2-alpine": redis 6.2 lacks CLUSTER SHARDS and CLUSTER ADDSLOTSRANGE, which the operator works with; use Redis 7.0 or later, or Valkey 8 or later`}},
		{name: "nfs without a claim", spec: `{pod: [{volumes: {type: nfs}}]}`, want: []string{
			"spec.pod[0].volumes.persistentVolumeClaimName: Required value: type nfs needs the name of the claim of the shared volume; for a claim an instance set type pvc, and spec.storage.storageClassName to a class of such volumes"}},
		{name: "a claim an instance, twice", spec: `{storage: {size: 5Gi, storageClassName: fast}, pod: [{volumes: {type: pvc}}]}`},
		{name: "an existing claim beside storage", spec: `{storage: {}, pod: [{volumes: {type: pvc, persistentVolumeClaimName: data}}]}`,
			want: []string{
				"spec.storage: Forbidden: storage and pod[0].volumes both say where data is kept: set one of them, or volumes.type pvc without persistentVolumeClaimName"}},
		{name: "emptyDir with a claim", spec: `{pod: [{volumes: {type: emptyDir, persistentVolumeClaimName: data}}]}`, want: []string{
			"spec.pod[0].volumes.persistentVolumeClaimName: Forbidden: persistentVolumeClaimName belongs to the types nfs and pvc; remove it, or change the type"}},
		{name: "hostPath refused, even in a draft", spec: `{pause: true, pod: [{volumes: {type: hostPath}}]}`, want: []string{
			"spec.pod[0].volumes.type: Forbidden: hostPath gives a directory of the node to who writes this object; ask whoever runs the operator to start it with --allow-host-path, or use storage"}},
		{name: "hostPath allowed", spec: `{pod: [{volumes: {type: hostPath}}]}`, options: Options{AllowHostPath: true}},
		{name: "two places for data", spec: `{storage: {size: 1Gi}, pod: [{volumes: {type: emptyDir}}]}`, want: []string{
			"spec.storage: Forbidden: storage and pod[0].volumes both say where data is kept: set one of them, or volumes.type pvc without persistentVolumeClaimName"}},
		{name: "hibernated", spec: `{hibernate: true}`},
		{name: "hibernated with data in pods", spec: `{hibernate: true, pod: [{volumes: {type: emptyDir}}]}`, want: []string{
			"spec.hibernate: Forbidden: all data would be lost: with pod[0].volumes.type emptyDir it goes with the pods; take a RedisBackup and delete the RedisCluster"}},
		{name: "hibernated without files", spec: `{hibernate: true, config: {appendonly: "no"}}`, want: []string{
			"spec.hibernate: Forbidden: data would be lost: config[appendonly] keeps it out of files; set that to yes first, and hibernate when the condition Configured is True"}},
		{name: "no storage size", spec: `{storage: {size: "0"}}`, want: []string{
			`spec.storage.size: Invalid value: "0": must be more than zero, such as 1Gi; for data that need not be kept use pod[0].volumes.type emptyDir`}},
		{name: "reserved settings", spec: `{config: {port: "6380", cluster-announce-ip: 10.0.0.1, loadmodule: /x.so}}`, want: []string{
			"spec.config[cluster-announce-ip]: Forbidden: cannot be set: the operator manages the cluster's members and slots; remove it",
			"spec.config[loadmodule]: Forbidden: cannot be set: modules are set with spec.modules; remove it",
			"spec.config[port]: Forbidden: cannot be set: the operator decides which addresses and ports an instance uses; remove it"}},
		{name: "setting with a line break", spec: `{config: {maxmemory: "1gb\nloadmodule /x.so"}}`, want: []string{
			`spec.config[maxmemory]: Invalid value: "1gb\nloadmodule /x.so": a value cannot hold line breaks or NUL bytes: write it on one line; several groups of a setting such as save go behind each other, 900 1 300 10`}},
		{name: "setting's name with a space", spec: `{config: {"maxmemory 1gb": ""}}`, want: []string{
			`spec.config[maxmemory 1gb]: Invalid value: "": is no name of a redis.conf setting: use lower-case letters, digits and hyphens, beginning with a letter, such as maxmemory-policy`}},
		{name: "validity factor of zero", spec: `{config: {cluster-replica-validity-factor: "0"}}`, want: []string{
			`spec.config[cluster-replica-validity-factor]: Invalid value: "0": must be a whole number from 1 to 1000 (0 would let a replica win that lost contact to its master long ago, with all that was written since)`}},
		{name: "two spellings of a setting", spec: `{config: {slave-priority: "1", replica-priority: "2"}}`, want: []string{
			`spec.config[slave-priority]: Duplicate value: "replica-priority"`}},
		{name: "reserved variable", spec: `{pod: [{env: [{name: POD_NAME, value: x}]}]}`, want: []string{
			"spec.pod[0].env[0].name: Forbidden: POD_NAME is set by the operator; use another name"}},
		{name: "the password as a variable", spec: `{pod: [{env: [{name: REDIS_PASSWORD, value: x}]}]}`, want: []string{
			"spec.pod[0].env[0].name: Forbidden: REDIS_PASSWORD is set by the operator; remove it, and set the password with spec.auth"}},
		{name: "variable from a Secret", spec: `{pod: [{env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: other, key: token}}}]}]}`,
			want: []string{
				"spec.pod[0].env[0].valueFrom.secretKeyRef: Forbidden: values cannot come from Secrets, ConfigMaps or files; write the value into the manifest, or use fieldRef or resourceFieldRef"}},
		{name: "operator's label", spec: `{pod: [{labels: {redis.middleware.hc.cn/cluster: other, app.kubernetes.io/part-of: shop}}]}`,
			want: []string{
				"spec.pod[0].labels[redis.middleware.hc.cn/cluster]: Forbidden: the operator and Kubernetes find objects by this label and set it themselves; remove it, or use a domain of your own"}},
		{name: "operator's annotation", spec: `{pod: [{annotations: {helm.sh/hook: pre-install}}]}`, want: []string{
			"spec.pod[0].annotations[helm.sh/hook]: Forbidden: annotations of helm.sh are set by Kubernetes and this operator; remove it"}},
		{name: "request above its limit", spec: `{pod: [{resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}]}`, want: []string{
			`spec.pod[0].resources.requests[memory]: Invalid value: "2Gi": must not exceed the limit of 1Gi; lower the request or raise the limit`}},
		{name: "storage as a resource of a container", spec: `{pod: [{resources: {limits: {storage: 1Gi}}}]}`, want: []string{
			`spec.pod[0].resources.limits: Unsupported value: "storage": supported values: "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/device"`}},
		{name: "what belongs to containers that are not there", spec: `{pod: [{init: {}, monitor: {args: [a]}}]}`, want: []string{
			"spec.pod[0].monitor: Forbidden: it belongs to the container of monitorImage, which is not set: set it, or remove monitor",
			"spec.pod[0].init: Forbidden: it belongs to the container of initImage, which is not set: set it, or remove init"}},
		{name: "the exporter's container",
			spec: `{pod: [{monitorImage: "e:1", monitor: {args: ["a\0b"], resources: {requests: {memory: 2Gi, storage: 1Gi}, limits: {memory: 1Gi}, claims: [{name: c}]}}}]}`, want: []string{
				`spec.pod[0].monitor.args[0]: Invalid value: "a\x00b": must not hold a NUL character; remove it`,
				"spec.pod[0].monitor.resources.claims: Forbidden: an instance has no resource claims; remove it",
				`spec.pod[0].monitor.resources.requests: Unsupported value: "storage": supported values: "cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "example.com/device"`,
				`spec.pod[0].monitor.resources.requests[memory]: Invalid value: "2Gi": must not exceed the limit of 1Gi; lower the request or raise the limit`}},
		{name: "containers beside Redis",
			spec: `{pod: [{initImage: "i:1", init: {args: [a, "b c"]}, monitorImage: "e:1", monitor: {resources: {limits: {cpu: "1"}}}}]}`},
		{name: "two strict constraints of nodes",
			spec: `{antiAffinity: Required, pod: [{topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]}]}`, want: []string{
				"spec.pod[0].topologySpreadConstraints[0]: Forbidden: spec.antiAffinity Required is such a constraint of kubernetes.io/hostname, and a pod can have one; remove it, or set spec.antiAffinity to Preferred"}},
		{name: "unknown anti-affinity", spec: `{antiAffinity: Sometimes}`, want: []string{
			`spec.antiAffinity: Unsupported value: "Sometimes": supported values: "Preferred", "Required"`}},
		{name: "a toleration of nothing", spec: `{pod: [{tolerations: [{key: k, operator: "1Gi"}]}]}`, want: []string{
			`spec.pod[0].tolerations[0].operator: Unsupported value: "1Gi": supported values: "Equal", "Exists", "Lt", "Gt"`}},
		{name: "a term without a topology", spec: `{pod: [{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: "a b"}]}}}]}`, want: []string{
			`spec.pod[0].affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "a b": cannot be the key of a label; name one that nodes have, such as topology.kubernetes.io/zone`}},
		{name: "a spread of nothing", spec: `{pod: [{topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}]}`, want: []string{
			"spec.pod[0].topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be at least 1"}},
		{name: "system priority", spec: `{pod: [{priorityClassName: system-node-critical}]}`, want: []string{
			"spec.pod[0].priorityClassName: Forbidden: the system- classes would let a database evict what keeps the cluster running; use a class of your own"}},
		{name: "modules of the default image", spec: `{modules: [{name: json}, {name: search, args: [WORKERS, "4"]}, {name: /opt/mine.so}]}`},
		{name: "a module by a word in an unknown image", spec: `{repository: example.com/mine, modules: [{name: json}]}`, want: []string{
			`spec.modules[0].name: Invalid value: "json": is not known to be in the image example.com/mine:8.0.6; write bloom, search, json or timeseries with an image redis:8 or later, bloom, search or json with valkey-bundle, or the absolute path of a file in the image`}},
		{name: "a module of Redis 8 in Redis 7", spec: `{version: 7.0.15, modules: [{name: json}]}`, want: []string{
			`spec.modules[0].name: Invalid value: "json": is not in the image of redis 7.0; use redis:8 or later, or an image of yours with the module, and write the absolute path of its file`}},
		{name: "a module that instances could have written", spec: `{modules: [{name: /data/dump.rdb}]}`, want: []string{
			`spec.modules[0].name: Invalid value: "/data/dump.rdb": is not in the image: /data is written by others; put the module into the image, elsewhere`}},
		{name: "a module twice", spec: `{modules: [{name: json}, {name: /usr/local/lib/redis/modules/rejson.so}]}`, want: []string{
			`spec.modules[1].name: Duplicate value: "/usr/local/lib/redis/modules/rejson.so"`}},
		{name: "modules past the schema", spec: `{modules: [{name: json, args: ["\0"]}]}`, want: []string{
			`spec.modules[0].args[0]: Invalid value: "\x00": must not hold a NUL character; remove it`}},
		{name: "two templates", spec: `{pod: [{}, {}]}`, want: []string{
			"spec.pod: Too many: 2: must have at most 1 item"}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, sentences(Validate(cluster(t, test.spec), test.options))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateName(t *testing.T) {
	for name, want := range map[string]string{
		"cache":                 "",
		strings.Repeat("a", 40): "",
		strings.Repeat("a", 41): "must be at most 40 characters",
		"1cache":                "must begin with a letter",
		"a.b":                   "must begin with a letter",
		"cache-nodes":           "that is the name of a Service of a RedisCluster cache",
	} {
		cr := cluster(t, `{}`)
		cr.Name = name
		got := strings.Join(sentences(Validate(cr, Options{})), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("name %q: %q, want %q", name, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	cases := []struct {
		name, spec string
		want       []string
	}{
		{name: "nothing to say", spec: `{}`},
		{name: "seven instances", spec: `{replicas: 7}`},
		{name: "five instances", spec: `{replicas: 5}`, want: []string{
			"spec.replicas: 5 instances in 3 shards leave 1 of them without a replica: when its only instance is lost, so is a part of the data; set replicas to 6 or more"}},
		{name: "one shard", spec: `{replicas: 2, shards: 1}`},
		{name: "two shards", spec: `{replicas: 4, shards: 2}`, want: []string{
			"spec.shards: two masters cannot elect a successor of either, and one that is alone stops serving: until the operator has proof that the lost one has stopped and appoints its successor, the whole cluster stalls; set shards to 3, or to 1"}},
		{name: "nothing is kept", spec: `{config: {appendonly: "no"}, auth: {enabled: false}, pod: [{volumes: {type: emptyDir}}]}`,
			want: []string{
				"spec.pod[0].volumes.type: emptyDir loses an instance's data with its pod; what no replica holds is gone; use storage to keep data",
				"spec.config[appendonly]: without the append-only file a restarted instance comes back without its latest writes; remove the setting to keep them",
				"spec.auth.enabled: without a password whoever reaches the Redis port can read, change and stop everything; it cannot be turned on later"}},
		{name: "a setting that the engine does not have",
			spec: `{version: 7.0.15, config: {locale-collate: C, hash-max-ziplist-value: "64", io-threads-do-reads: "yes"}}`, want: []string{
				"spec.config[locale-collate]: is no setting of redis 7.0: instances that do not know it do not start, and running ones are not told"}},
		{name: "a setting that no engine has", spec: `{version: 8.4.0, config: {locale-collate: C, made-up: "1"}}`, want: []string{
			"spec.config[made-up]: is no setting of any engine that this operator was tested with (redis-7.0, redis-8.0, valkey-8.1, valkey-9.1): instances that do not know it do not start, and running ones are not told"}},
		{name: "an entry for masters that join", spec: `{updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 1, fromReplicas: a}]}}`,
			want: []string{
				"spec.updateStrategy.assignStrategies: entries without toShard are for masters that join, and move nothing before; name the shard that receives in toShard to move slots between masters that exist"}},
		{name: "an entry for a shard that exists",
			spec: `{updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 1, fromReplicas: a, toShard: 1}]}}`},
		{name: "image without a version", spec: `{pod: [{monitorImage: docker.io/oliver006/redis_exporter}]}`, want: []string{
			`spec.pod[0].monitorImage: "docker.io/oliver006/redis_exporter" names no version, so each node runs the "latest" that it pulled first; add a tag or a digest`}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Warnings(cluster(t, test.spec))); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	ids := strings.Repeat("a", 40)
	cases := []struct {
		name, before, after string
		want                []string
	}{
		{name: "more instances", before: `{replicas: 6}`, after: `{replicas: 8}`},
		{name: "larger claims", before: `{storage: {size: 1Gi}}`, after: `{storage: {size: 2Gi}}`},
		{name: "newer version", before: `{version: 7.0.15}`, after: `{version: 8.0.6}`},
		{name: "patch back", before: `{version: 8.0.6}`, after: `{version: 8.0.2}`},
		{name: "Redis 7.2 to Valkey", before: `{version: 7.2.4}`, after: `{repository: docker.io/valkey/valkey, version: 8.1.1}`},
		{name: "smaller claims", before: `{storage: {size: 2Gi}}`, after: `{storage: {size: 1Gi}}`, want: []string{
			`spec.storage.size: Invalid value: "1Gi": a claim cannot shrink; set 2Gi or more`}},
		{name: "smaller than the claims of a volume of type pvc", before: `{pod: [{volumes: {type: pvc}}]}`, after: `{storage: {size: 500Mi}}`,
			want: []string{
				`spec.storage.size: Invalid value: "500Mi": a claim cannot shrink; set 1Gi or more`}},
		{name: "larger claims of a volume of type pvc", before: `{pod: [{volumes: {type: pvc}}]}`,
			after: `{storage: {size: 2Gi}, pod: [{volumes: {type: pvc}}]}`},
		{name: "storage taken away from a volume of type pvc", before: `{storage: {size: 2Gi}, pod: [{volumes: {type: pvc}}]}`,
			after: `{pod: [{volumes: {type: pvc}}]}`, want: []string{
				`spec.storage.size: Invalid value: "1Gi": a claim cannot shrink; set 2Gi or more`}},
		{name: "a class where the default was", before: `{pod: [{volumes: {type: pvc}}]}`, after: `{storage: {storageClassName: fast}}`,
			want: []string{
				`spec.storage.storageClassName: Invalid value: "fast": a claim keeps its class for life, and this was unset; put it back, or make a new RedisCluster and copy the data`}},
		{name: "other class", before: `{storage: {}}`, after: `{storage: {storageClassName: fast}}`, want: []string{
			`spec.storage.storageClassName: Invalid value: "fast": a claim keeps its class for life, and this was unset; put it back, or make a new RedisCluster and copy the data`}},
		{name: "other place for data", before: `{}`, after: `{pod: [{volumes: {type: emptyDir}}]}`, want: []string{
			`spec.pod[0].volumes.type: Invalid value: "emptyDir": cannot change from pvc: instances would come back without their data; keep it, or make a new RedisCluster and copy the data`}},
		{name: "other shared claim", before: `{pod: [{volumes: {type: nfs, persistentVolumeClaimName: a}}]}`,
			after: `{pod: [{volumes: {type: nfs, persistentVolumeClaimName: b}}]}`, want: []string{
				`spec.pod[0].volumes.persistentVolumeClaimName: Invalid value: "b": cannot change from "a": instances would come back without their data; keep it, or make a new RedisCluster and copy the data`}},
		{name: "more modules, and fewer where replicas find out", before: `{modules: [{name: json}]}`, after: `{modules: [{name: bloom}]}`},
		{name: "fewer modules without replicas", before: `{replicas: 3, modules: [{name: json}]}`, after: `{replicas: 3}`, want: []string{
			"spec.modules: Forbidden: cannot lose json while a shard has no replica: an instance with data of the module does not start without it; keep the module, or set replicas to 6 or more first"}},
		{name: "password off, also when paused", before: `{}`, after: `{pause: true, auth: {enabled: false}}`, want: []string{
			"spec.auth.enabled: Invalid value: false: cannot change from true: instances with and without a password do not replicate from each other; make a new RedisCluster and copy the data"}},
		{name: "major version back", before: `{version: 8.0.6}`, after: `{version: 7.0.15}`, want: []string{
			`spec.version: Invalid value: "docker.io/library/redis:7.0.15": cannot go back from redis 8.0 to redis 7.0: an older major version does not read the newer one's files; use redis 8 or later`}},
		{name: "Redis 8 to Valkey", before: `{version: 8.0.6}`, after: `{pod: [{middlewareImage: "docker.io/valkey/valkey:8.1.1"}]}`,
			want: []string{
				`spec.pod[0].middlewareImage: Invalid value: "docker.io/valkey/valkey:8.1.1": cannot go from redis 8.0 to valkey 8.1: it does not read the other engine's files; stay with redis, or make a new RedisCluster and copy the data`}},
		{name: "Redis 8 to Valkey with its modules", before: `{version: 8.0.6, modules: [{name: json}]}`,
			after: `{repository: docker.io/valkey/valkey-bundle, version: 9.0.0, modules: [{name: json}]}`, want: []string{
				`spec.version: Invalid value: "docker.io/valkey/valkey-bundle:9.0.0": cannot go from redis 8.0 to valkey 9.0: it does not read the other engine's files; stay with redis, or make a new RedisCluster and copy the data`}},
		{name: "by digest, major version back",
			before: `{version: "8.0.6@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, after: `{version: 7.0.15}`,
			want: []string{
				`spec.version: Invalid value: "docker.io/library/redis:7.0.15": cannot go back from redis 8.0 to redis 7.0: an older major version does not read the newer one's files; use redis 8 or later`}},
		{name: "one entry for two new masters", before: `{replicas: 6}`,
			after: `{replicas: 10, updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 100, fromReplicas: "` + ids + `"}]}}`,
			want: []string{
				"spec.updateStrategy.assignStrategies: Invalid value: 1: 2 new masters join, and each entry without toShard says what one of them receives; write 2 of them, or set type to AutoReceive"}},
		{name: "a draft may change altogether", before: `{pause: true, version: 8.0.6, auth: {enabled: false}}`,
			after: `{version: 7.0.15, pod: [{volumes: {type: emptyDir}}]}`},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			before, after := cluster(t, test.before), cluster(t, test.after)
			if refused := Validate(after, Options{}); len(refused) > 0 {
				t.Fatalf("the new spec alone is refused: %v", refused)
			}
			if diff := cmp.Diff(test.want, sentences(ValidateUpdate(before, after, Options{}))); diff != "" {
				t.Errorf("refusals (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPausedClusterIsNoDraft: a pause must not open a way around what cannot change.
func TestPausedClusterIsNoDraft(t *testing.T) {
	before, after := cluster(t, `{pause: true}`), cluster(t, `{auth: {enabled: false}}`)
	before.Status.Nodes = []v1alpha1.NodeStatus{{Name: "cache-0-0"}}
	if refused := ValidateUpdate(before, after, Options{}); len(refused) != 1 {
		t.Errorf("refusals: %v, want one about spec.auth.enabled", refused)
	}
}

// TestSizeTakenBack: a size that the storage class did not let the claims be expanded to is no fact yet, and must not keep the user
// from correcting it.
func TestSizeTakenBack(t *testing.T) {
	before, after := cluster(t, `{storage: {size: 2Gi}}`), cluster(t, `{storage: {size: 1Gi}}`)
	before.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonCannotExpand}}
	if refused := ValidateUpdate(before, after, Options{}); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	before.Status.Conditions[0].Reason = "OverCapacity"
	if refused := ValidateUpdate(before, after, Options{}); len(refused) != 1 {
		t.Errorf("refusals: %v, want one about spec.storage.size", refused)
	}
}

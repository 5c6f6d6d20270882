// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/test/fields"
)

// No field of a RedisCluster is accepted and ignored: each changes what is rendered or what is asked of the planner, or a test shows
// what it does elsewhere.
func TestEveryFieldHasAnEffect(t *testing.T) {
	pod := func(text string) fields.Example { return fields.Example{With: "pod: [{" + text + "}]"} }
	with := func(text string) fields.Example { return fields.Example{With: text} }
	shown := func(tests ...string) fields.Example { return fields.Example{Shown: tests} }
	assigned := "updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 5, fromReplicas: a}]}"
	const archived = "backup: {store: {s3: {bucket: a, credentialsSecretName: b}}, archive: {}}"
	archive := func(text string) fields.Example {
		return fields.Example{Base: archived, With: "backup: {" + text + "}"}
	}
	external := func(text string) fields.Example {
		return fields.Example{Base: "external: {type: LoadBalancer}", With: "external: {" + text + "}"}
	}
	examples := map[string]fields.Example{
		"spec.antiAffinity": with("antiAffinity: Required"),

		"spec.autoscale.coolDown":                      shown("TestHolds", "TestConfigOf"),
		"spec.autoscale.instancesPerShard":             shown("TestAutoscales"),
		"spec.autoscale.maxShards":                     shown("TestConstantLoadComesToRest"),
		"spec.autoscale.minShards":                     shown("TestConstantLoadComesToRest"),
		"spec.autoscale.mode":                          shown("TestAutoscaleDryRun"),
		"spec.autoscale.scaleIn.stabilization":         shown("TestDay", "TestConfigOf"),
		"spec.autoscale.scaleOut.stabilization":        shown("TestDay", "TestConfigOf"),
		"spec.autoscale.targets.memoryPercent":         shown("TestEvenLoad", "TestConfigOf"),
		"spec.autoscale.targets.networkBytesPerSecond": shown("TestConstantLoadComesToRest", "TestConfigOf"),
		"spec.autoscale.targets.operationsPerSecond":   shown("TestEvenLoad", "TestAutoscales"),

		"spec.autoscale.windows[].duration":  shown("TestBoundsOf"),
		"spec.autoscale.windows[].maxShards": shown("TestBoundsOf", "TestMoreThanAllowed"),
		"spec.autoscale.windows[].minShards": shown("TestBoundsOf", "TestAutoscaleWindow"),
		"spec.autoscale.windows[].name":      shown("TestBoundsOf", "TestAutoscaleWindow"),
		"spec.autoscale.windows[].start":     shown("TestBoundsOf"),
		"spec.autoscale.windows[].timeZone":  shown("TestBoundsOf"),

		"spec.balance.megabytesPerHour": shown("TestBudget", "TestBalances"),
		"spec.balance.mode":             shown("TestBalances", "TestPlanBalance"),

		"spec.auth.aclSecretName":       shown("TestUsers"),
		"spec.auth.enabled":             with("auth: {enabled: false}"),
		"spec.auth.previousPasswordFor": with("auth: {previousPasswordFor: 3h}"),
		"spec.auth.rotate":              shown("TestNextPasswordIsAcceptedFirst", "TestRedisClusterPasswordChanges"),
		"spec.auth.secretName":          shown("TestPasswordOfASecret"),
		"spec.config":                   with("config: {maxclients: '500'}"),
		"spec.finalizers":               with("finalizers: background"),
		"spec.networkPolicy.enabled":    with("networkPolicy: {enabled: false}"),
		"spec.hibernate":                with("hibernate: true"),
		"spec.pause":                    with("pause: true"),

		"spec.backup.archive.baseInterval":              archive("archive: {baseInterval: 2h}"),
		"spec.backup.archive.interval":                  archive("archive: {interval: 2s}"),
		"spec.backup.archive.keep":                      archive("archive: {keep: 2h}"),
		"spec.backup.archive.markInterval":              archive("archive: {markInterval: 2m}"),
		"spec.backup.archive.objective":                 archive("archive: {objective: 2m}"),
		"spec.backup.maxBytesPerSecond":                 archive("maxBytesPerSecond: 50M"),
		"spec.backup.recipients":                        archive("recipients: [age1a]"),
		"spec.backup.store.s3.bucket":                   archive("store: {s3: {bucket: c}}"),
		"spec.backup.store.s3.caSecretName":             archive("store: {s3: {caSecretName: c}}"),
		"spec.backup.store.s3.credentialsSecretName":    archive("store: {s3: {credentialsSecretName: c}}"),
		"spec.backup.store.s3.endpoint":                 archive("store: {s3: {endpoint: 'http://c:9000'}}"),
		"spec.backup.store.s3.prefix":                   archive("store: {s3: {prefix: c}}"),
		"spec.backup.store.s3.region":                   archive("store: {s3: {region: c}}"),
		"spec.backup.store.azure.caSecretName":          shown("TestJobsOfStores"),
		"spec.backup.store.azure.container":             shown("TestJobsOfStores"),
		"spec.backup.store.azure.credentialsSecretName": shown("TestJobsOfStores"),
		"spec.backup.store.azure.endpoint":              shown("TestJobsOfStores"),
		"spec.backup.store.azure.prefix":                shown("TestJobsOfStores"),
		"spec.backup.store.azure.storageAccount":        shown("TestJobsOfStores"),
		"spec.backup.store.claim.claimName":             shown("TestJobsOfStores"),
		"spec.backup.store.claim.prefix":                shown("TestJobsOfStores"),
		"spec.backup.store.gcs.bucket":                  shown("TestJobsOfStores"),
		"spec.backup.store.gcs.credentialsSecretName":   shown("TestJobsOfStores"),
		"spec.backup.store.gcs.prefix":                  shown("TestJobsOfStores"),
		"spec.backup.store.serviceAccountName":          shown("TestJobsOfStores"),

		"spec.external.annotations":    external("annotations: {a: b}"),
		"spec.external.firstPort":      external("firstPort: 6000"),
		"spec.external.host":           external("host: redis.example.com"),
		"spec.external.mode":           shown("TestExternal"), // there is one
		"spec.external.replicas":       external("replicas: 3"),
		"spec.external.resources":      external("resources: {limits: {memory: 1Gi}}"),
		"spec.external.sourceRanges":   external("sourceRanges: [192.0.2.0/24]"),
		"spec.external.tls.secretName": external("tls: {secretName: a}"),
		"spec.external.type":           external("type: NodePort"),

		"spec.bootstrap.clone.name":                   with("bootstrap: {clone: {name: other}}"),
		"spec.bootstrap.import.address":               with("bootstrap: {import: {address: 'redis:6379'}}"),
		"spec.bootstrap.import.credentialsSecretName": shown("TestWhatLeadsToASource"),
		"spec.bootstrap.import.cutOver": {Base: "bootstrap: {import: {address: 'redis:6379'}}",
			With: "bootstrap: {import: {cutOver: true}}"},
		"spec.bootstrap.import.pauseSeconds": {Base: "bootstrap: {import: {address: 'redis:6379'}}",
			With: "bootstrap: {import: {pauseSeconds: 60}}"},
		"spec.bootstrap.import.tls.caSecretName":                            shown("TestWhatLeadsToASource"),
		"spec.bootstrap.import.tls.serverName":                              shown("TestWhatLeadsToASource"),
		"spec.bootstrap.import.user":                                        shown("TestWhatLeadsToASource"),
		"spec.bootstrap.restore.files.shards[].objects":                     shown("TestRestoreJobOfFiles"),
		"spec.bootstrap.restore.files.shards[].slots":                       shown("TestRestoreJobOfFiles"),
		"spec.bootstrap.restore.files.store.azure.caSecretName":             shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.azure.container":                shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.azure.credentialsSecretName":    shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.azure.endpoint":                 shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.azure.prefix":                   shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.azure.storageAccount":           shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.claim.claimName":                shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.claim.prefix":                   shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.gcs.bucket":                     shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.gcs.credentialsSecretName":      shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.gcs.prefix":                     shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.s3.bucket":                      shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.s3.caSecretName":                shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.s3.credentialsSecretName":       shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.s3.endpoint":                    shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.s3.prefix":                      shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.s3.region":                      shown("TestJobsOfStores"),
		"spec.bootstrap.restore.files.store.serviceAccountName":             shown("TestJobsOfStores"),
		"spec.bootstrap.restore.identitySecretName":                         shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.cluster":                           shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.manifestChecksum":                  shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.moment.consistent":                 shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.moment.notAfter":                   shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.name":                              shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.namespace":                         shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.store.azure.caSecretName":          shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.azure.container":             shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.azure.credentialsSecretName": shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.azure.endpoint":              shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.azure.prefix":                shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.azure.storageAccount":        shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.claim.claimName":             shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.claim.prefix":                shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.gcs.bucket":                  shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.gcs.credentialsSecretName":   shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.gcs.prefix":                  shown("TestJobsOfStores"),
		"spec.bootstrap.restore.location.store.s3.bucket":                   shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.store.s3.caSecretName":             shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.store.s3.credentialsSecretName":    shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.store.s3.endpoint":                 shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.store.s3.prefix":                   shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.store.s3.region":                   shown("TestRestoreJob"),
		"spec.bootstrap.restore.location.store.serviceAccountName":          shown("TestJobsOfStores"),
		"spec.bootstrap.restore.maxBytesPerSecond":                          shown("TestRestoreJob"),
		"spec.bootstrap.restore.redisBackup":                                shown("TestRestoreWaitsForItsBackup"),

		"spec.modules[].args": {Base: "modules: [{name: json}]", With: "modules: [{name: json, args: [a]}]"},
		"spec.modules[].name": with("modules: [{name: json}]"),

		"spec.pod[].affinity":         pod("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: HC_Status, operator: In, values: [C]}]}]}}}"),
		"spec.pod[].annotations":      pod("annotations: {key: value}"),
		"spec.pod[].configmap":        shown("TestSettingsOfAConfigMap"),
		"spec.pod[].env":              pod("env: [{name: tony, value: aa}]"),
		"spec.pod[].imagePullSecrets": pod("imagePullSecrets: [{name: registry}]"),
		"spec.pod[].initImage":        pod("initImage: 'busybox:1'"),
		"spec.pod[].init.args": {Base: "pod: [{initImage: 'busybox:1', init: {}}]",
			With: "pod: [{initImage: 'busybox:1', init: {args: [a]}}]"},
		"spec.pod[].monitor.args": {
			Base: "pod: [{monitorImage: 'exporter:1'}]", With: "pod: [{monitorImage: 'exporter:1', monitor: {args: [a]}}]"},
		"spec.pod[].monitor.resources": {
			Base: "pod: [{monitorImage: 'exporter:1'}]",
			With: "pod: [{monitorImage: 'exporter:1', monitor: {resources: {limits: {memory: 64Mi}}}}]"},
		"spec.pod[].labels":            pod("labels: {key: value}"),
		"spec.pod[].middlewareImage":   pod("middlewareImage: 'valkey:8.1'"),
		"spec.pod[].monitorImage":      pod("monitorImage: 'exporter:1'"),
		"spec.pod[].nodeSelector":      pod("nodeSelector: {disk: ssd}"),
		"spec.pod[].overlay":           pod("overlay: {serviceAccountName: mesh}"),
		"spec.pod[].priorityClassName": pod("priorityClassName: high"),
		"spec.pod[].resources":         pod("resources: {limits: {memory: 4Gi}}"),
		"spec.pod[].tolerations":       pod("tolerations: [{key: a, operator: Exists}]"),
		"spec.pod[].topologySpreadConstraints": pod(
			"topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]"),
		"spec.pod[].updateStrategy.type": pod("updateStrategy: {type: OnDelete}"),
		"spec.pod[].volumes.type":        pod("volumes: {type: emptyDir}"),
		"spec.pod[].volumes.persistentVolumeClaimName": {Base: "pod: [{volumes: {type: nfs, persistentVolumeClaimName: a}}]",
			With: "pod: [{volumes: {type: nfs, persistentVolumeClaimName: b}}]"},

		"spec.podDisruptionBudget.enabled": with("podDisruptionBudget: {enabled: false}"),
		"spec.replicas":                    with("replicas: 9"),
		"spec.repository":                  with("repository: docker.io/valkey/valkey"),
		"spec.service.annotations":         with("service: {annotations: {a: b}}"),
		"spec.service.ipFamilies":          with("service: {ipFamilies: [IPv6]}"),
		"spec.service.ipFamilyPolicy":      with("service: {ipFamilyPolicy: PreferDualStack}"),
		"spec.service.labels":              with("service: {labels: {a: b}}"),
		"spec.shards":                      with("shards: 6"),
		"spec.spreadMasters":               with("spreadMasters: false"),
		"spec.storage.maxSize":             shown("TestClaimsGrowWithTheData"),
		"spec.storage.retain":              with("storage: {retain: Delete}"),
		"spec.storage.size":                with("storage: {size: 5Gi}"),
		"spec.storage.storageClassName":    with("storage: {storageClassName: fast}"),
		"spec.tls.caSecretName":            {Base: "tls: {secretName: a}", With: "tls: {caSecretName: b}"},
		"spec.tls.clientCASecretName":      {Base: "tls: {secretName: a}", With: "tls: {clientCASecretName: b}"},
		"spec.tls.clientCertificates":      {Base: "tls: {secretName: a}", With: "tls: {clientCertificates: Required}"},
		"spec.tls.duration":                {Base: "tls: {issuerRef: {name: a}}", With: "tls: {duration: 48h}"},
		"spec.tls.issuerRef.group":         shown("TestIssuer"), // one value is allowed
		"spec.tls.issuerRef.kind":          {Base: "tls: {issuerRef: {name: a}}", With: "tls: {issuerRef: {kind: ClusterIssuer}}"},
		"spec.tls.issuerRef.name":          with("tls: {issuerRef: {name: a}}"),
		"spec.tls.mode":                    {Base: "tls: {secretName: a}", With: "tls: {mode: Both}"},
		"spec.tls.secretName":              with("tls: {secretName: a}"),
		"spec.updateStrategy.assignStrategies[].fromReplicas": {
			Base: assigned, With: "updateStrategy: {assignStrategies: [{slots: 5, fromReplicas: b}]}"},
		"spec.updateStrategy.assignStrategies[].slots": {
			Base: assigned, With: "updateStrategy: {assignStrategies: [{slots: 6, fromReplicas: a}]}"},
		"spec.updateStrategy.assignStrategies[].toShard": {
			Base: assigned, With: "updateStrategy: {assignStrategies: [{slots: 5, fromReplicas: a, toShard: 1}]}"},
		"spec.updateStrategy.keysPerSecond": with("updateStrategy: {keysPerSecond: 100}"),
		"spec.updateStrategy.pipeline":      with("updateStrategy: {pipeline: '7'}"),
		"spec.updateStrategy.type":          with(assigned),
		"spec.version":                      with("version: 7.0.15"),
	}
	whole := []string{"spec.pod[].affinity", "spec.pod[].env", "spec.pod[].imagePullSecrets", "spec.pod[].resources",
		"spec.pod[].monitor.resources", "spec.external.resources", "spec.pod[].tolerations", "spec.pod[].topologySpreadConstraints"}
	c := newChildren(t, nil)
	fields.Check(t, "../../config/crd/bases/redis.middleware.hc.cn_redisclusters.yaml", whole, "{storage: {size: 1Gi}}", examples,
		func(t *testing.T, spec []byte) string {
			cluster := sized("c", 3, 6, v1alpha1.PodTemplate{})
			if err := yaml.UnmarshalStrict(spec, &cluster.Spec); err != nil {
				t.Fatal(err)
			}
			admission.Default(cluster)
			desired := plan.DesiredFor(cluster, &snapshot.Snapshot{}, plan.Options{})
			desired.Problems = nil // of no interest: any field may have some
			shape := plan.Shape{Topology: desired.Topology, Settings: redisconf.AskedFor(cluster, nil),
				TLS: redisconf.TLSFor(cluster)}
			if cluster.Spec.External != nil {
				shape.Outside = &snapshot.Outside{Instances: desired.Topology}
			}
			seen := &snapshot.Snapshot{Formed: true, External: &snapshot.External{Service: &snapshot.ExternalService{Host: "192.0.2.1"}}}
			v, _ := c.values(cluster, seen, shape)
			objects, err := c.render(cluster, v, &Memory{})
			if err != nil {
				t.Fatal(err)
			}
			return fields.JSON(t, []any{objects, desired, pipeline(cluster)})
		})
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// wrong is what rows of the tables of refusals stand for: by page and first cell, what the smallest object of the page's kind is
// merged with; with "update: " before it, when it is there already.
var wrong = map[string]map[string][]string{
	redisRefusalsPage: {
		"`replicas: 2`": {
			"spec: {replicas: 2}",
		},
		"`shards: 5, replicas: 4`": {
			"spec: {shards: 5, replicas: 4}",
		},
		"`storage.maxSize` below `storage.size`": {
			"spec: {storage: {size: 2Gi, maxSize: 1Gi}}",
			"spec: {storage: {maxSize: 100Mi}}",
		},
		"`autoscale` beside `shards`, or beside `replicas` other than 6, the default": {
			"spec: {shards: 3, autoscale: {minShards: 3, maxShards: 5}}",
			"spec: {replicas: 8, autoscale: {minShards: 3, maxShards: 5}}",
		},
		"`autoscale` with `minShards: 1`, or `maxShards` below `minShards`": {
			"spec: {autoscale: {minShards: 1, maxShards: 5}}",
			"spec: {autoscale: {minShards: 5, maxShards: 4}}",
		},
		"a window of `autoscale` without bounds, with a `start` that never comes, a time zone that does not exist, or a `maxShards` below `minShards`": {
			"spec: {autoscale: {minShards: 3, maxShards: 5, windows: [{name: a, start: '0 8 * * *', duration: 1h}]}}",
			"spec: {autoscale: {minShards: 3, maxShards: 5, windows: [{name: a, start: '0 8 30 2 *', duration: 1h, minShards: 4}]}}",
			"spec: {autoscale: {minShards: 3, maxShards: 5, windows: [{name: a, start: '0 8 * * *', timeZone: Mars/Olympus, duration: 1h, minShards: 4}]}}",
			"spec: {autoscale: {minShards: 4, maxShards: 5, windows: [{name: a, start: '0 8 * * *', duration: 1h, maxShards: 3}]}}",
		},
		"`autoscale` with `updateStrategy.type: AssignReceive`": {
			"spec: {autoscale: {minShards: 3, maxShards: 5}, updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 5, fromReplicas: 0b1c5f6de4f4c3b2a1908f7e6d5c4b3a29181706}]}}",
		},
		"`balance` with `shards: 1`": {
			"spec: {shards: 1, replicas: 2, balance: {}}",
		},
		"`balance` with `updateStrategy.type: AssignReceive`": {
			"spec: {balance: {mode: Report}, updateStrategy: {type: AssignReceive, assignStrategies: [{slots: 5, fromReplicas: 0b1c5f6de4f4c3b2a1908f7e6d5c4b3a29181706}]}}",
		},
		"`version: 6.2` (not paused)": {
			"spec: {version: '6.2'}",
		},
		"`updateStrategy.type: AssignReceive` without strategies": {
			"spec: {updateStrategy: {type: AssignReceive}}",
		},
		"`finalizers: later`": {
			"spec: {finalizers: later}",
		},
		"`pod[0].volumes.type: nfs` without a claim": {
			"spec: {pod: [{volumes: {type: nfs}}]}",
		},
		"`MAXMEMORY` of `2Gi` in `pod[0].env`": {
			"spec: {pod: [{env: [{name: MAXMEMORY, value: 2Gi}]}]}",
		},
		"`pod[0].monitor` without `monitorImage`": {
			"spec: {pod: [{monitor: {args: [a]}}]}",
		},
		"`config: {port: \"7000\"}`": {
			"spec: {config: {port: '7000'}}",
		},
		"`storage` and `pod[0].volumes` together, but for `pvc` without a claim": {
			"spec: {storage: {size: 1Gi}, pod: [{volumes: {type: emptyDir}}]}",
			"spec: {storage: {size: 1Gi}, pod: [{volumes: {type: pvc, persistentVolumeClaimName: data}}]}",
		},
		"a `secretKeyRef` in `pod[0].env`": {
			"spec: {pod: [{env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]}]}",
		},
		"labels or annotations of Kubernetes' or the operator's domains": {
			"spec: {pod: [{labels: {app.kubernetes.io/name: other}}]}",
			"spec: {pod: [{labels: {redis.middleware.hc.cn/cluster: other}}]}",
		},
		"a request above its limit": {
			"spec: {pod: [{resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}]}",
		},
		"`priorityClassName: system-…`": {
			"spec: {pod: [{priorityClassName: system-node-critical}]}",
		},
		"`antiAffinity: Required` and a `DoNotSchedule` constraint of `kubernetes.io/hostname`": {
			"spec: {antiAffinity: Required, pod: [{topologySpreadConstraints: [{maxSkew: 1, topologyKey: " +
				"kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]}]}",
		},
		"`hibernate: true` with `pod[0].volumes.type: emptyDir`, or with `config: {appendonly: \"no\"}`": {
			"spec: {hibernate: true, pod: [{volumes: {type: emptyDir}}]}",
			"spec: {hibernate: true, config: {appendonly: 'no'}}",
		},
		"`bootstrap.import` or `bootstrap.clone` with `auth.enabled: false`": {
			"spec: {bootstrap: {import: {address: 'a:1'}}, auth: {enabled: false}}",
			"spec: {bootstrap: {clone: {name: other}}, auth: {enabled: false}}",
		},
		"`service.annotations` or `external.annotations` of a domain that `--service-annotation-domains` does not name": {
			"spec: {service: {annotations: {tailscale.com/expose: 'true'}}}",
		},
		"`service.labels` of `service.kubernetes.io`": {
			"spec: {service: {labels: {service.kubernetes.io/service-proxy-name: a}}}",
		},
		"two `service.ipFamilies` without a dual-stack `ipFamilyPolicy`": {
			"spec: {service: {ipFamilies: [IPv4, IPv6]}}",
		},
		"`tls` with neither `secretName` nor `issuerRef`, or with both": {
			"spec: {tls: {mode: Both}}", "spec: {tls: {secretName: a, issuerRef: {name: b}}}",
		},
		"`tls.issuerRef` of kind `ClusterIssuer` that `--cluster-issuers` does not name, or of another group": {
			"spec: {tls: {issuerRef: {name: a, kind: ClusterIssuer}}}", "spec: {tls: {issuerRef: {name: a, group: b.example}}}",
		},
		"`tls.duration` below `1h`, or with `tls.secretName`": {
			"spec: {tls: {issuerRef: {name: a}, duration: 59m}}", "spec: {tls: {secretName: a, duration: 2h}}",
		},
		"`bootstrap.import` or `bootstrap.clone` with `tls.mode: Both`": {
			"spec: {bootstrap: {import: {address: 'a:1'}}, tls: {secretName: a, mode: Both}}",
			"spec: {bootstrap: {clone: {name: other}}, tls: {secretName: a, mode: Both}}",
		},
		"`external` with `tls.mode: Both`": {
			"spec: {external: {type: LoadBalancer, tls: {secretName: b}}, tls: {secretName: a, mode: Both}}",
		},
		"`external.sourceRanges` of type `NodePort` with `networkPolicy.enabled: false`": {
			"spec: {external: {type: NodePort, host: a, sourceRanges: [192.0.2.0/24]}, networkPolicy: {enabled: false}}",
		},
		"a name of more than 40 characters, or that ends in `-nodes`": {
			"metadata: {name: a" + strings.Repeat("b", 40) + "}",
			"metadata: {name: cache-nodes}",
		},
	},
	"docs/app.md": {
		"two things in a volume, or nothing": {
			"spec: {volumes: [{name: a, emptyDir: {}, secret: {secretName: a}}]}",
			"spec: {volumes: [{name: a}]}",
		},
		"`hostPath`, `csi`, `nfs` and the like in a volume": {
			"spec: {volumes: [{name: a, hostPath: {path: /}}]}",
			"spec: {volumes: [{name: a, csi: {driver: a}}]}",
			"spec: {volumes: [{name: a, nfs: {server: a, path: /}}]}",
		},
		"a volume named `tmp`": {
			"spec: {volumes: [{name: tmp, emptyDir: {}}]}",
		},
		"a mount of a volume that is not, over `/tmp`, or out of the volume": {
			"spec: {volumeMounts: [{name: a, mountPath: /a}]}",
			"spec: {volumes: [{name: a, emptyDir: {}}], volumeMounts: [{name: a, mountPath: /tmp}]}",
			"spec: {volumes: [{name: a, configMap: {name: a}}], volumeMounts: [{name: a, mountPath: /a, subPath: ../b}]}",
		},
		"of `affinity`, `tolerations` and `topologySpreadConstraints`, what the API server would refuse in a pod": {
			"spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}}",
			"spec: {tolerations: [{operator: Equal}]}",
			"spec: {topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
		},
		"no `image`, or `image: \"a b\"`": {
			"spec: {image: null}",
			"spec: {image: a b}",
		},
		"`ingress.enabled` without a host": {
			"spec: {ingress: {enabled: true}}",
		},
		"an Ingress with the Service off, or without ports": {
			"spec: {ingress: {enabled: true, host: a.example.com}, service: {enabled: false}}",
			"spec: {ingress: {enabled: true, host: a.example.com}, ports: []}",
		},
		"configuration snippets, `nginx.ingress.kubernetes.io/canary*`": {
			"spec: {ingress: {enabled: true, host: a.example.com, annotations: {nginx.ingress.kubernetes.io/configuration-snippet: x}}}",
			"spec: {ingress: {enabled: true, host: a.example.com, annotations: {nginx.ingress.kubernetes.io/canary-weight: '5'}}}",
		},
		"a `gateway` without a name; with `gateway`, a path with `//`, `/../` or `%2F`": {
			"spec: {ingress: {enabled: true, host: a.example.com, gateway: {name: ''}}}",
			"spec: {ingress: {enabled: true, host: a.example.com, path: /a//b, gateway: {name: public}}}",
			"spec: {ingress: {enabled: true, host: a.example.com, path: /a/../b, gateway: {name: public}}}",
			"spec: {ingress: {enabled: true, host: a.example.com, path: /a%2Fb, gateway: {name: public}}}",
		},
		"annotations of Helm, of this operator or of Kubernetes itself": {
			"spec: {service: {annotations: {helm.sh/resource-policy: keep}}}",
			"spec: {service: {annotations: {middleware.hc.cn/pause: 'true'}}}",
		},
		"`autoscaling` without a CPU request": {
			"spec: {autoscaling: {maxReplicas: 3}}",
		},
		"`minReplicas` above `maxReplicas`": {
			"spec: {resources: {requests: {cpu: 50m}}, autoscaling: {minReplicas: 5, maxReplicas: 3}}",
		},
		"two ports of one name or number": {
			"spec: {ports: [{name: a, containerPort: 8080}, {name: a, containerPort: 8081}]}",
			"spec: {ports: [{name: a, containerPort: 8080, servicePort: 80}, {name: b, containerPort: 8081, servicePort: 80}]}",
		},
		"a request above its limit": {
			"spec: {resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}",
		},
		"a name that cannot name a Service, or of more than 56 characters": {
			"metadata: {name: 1a}",
			"metadata: {name: a" + strings.Repeat("b", 56) + "}",
		},
	},
	"docs/application.md": {
		"an empty selector": {
			"spec: {selector: {matchLabels: null}}",
		},
		"labels that do not match the selector": {
			"spec: {template: {spec: {template: {metadata: {labels: {app: b}}}}}}",
			"spec: {template: {metadata: {labels: {app: b}}}}",
		},
		"`template.metadata.namespace`": {
			"spec: {template: {metadata: {namespace: other}}}",
		},
		"`hostNetwork`, `hostPath`, `privileged`, added capabilities and the like": {
			"spec: {template: {spec: {template: {spec: {hostNetwork: true}}}}}",
			"spec: {template: {spec: {template: {spec: {volumes: [{name: a, hostPath: {path: /}}]}}}}}",
			"spec: {template: {spec: {template: {spec: {containers: [{name: a, image: a, securityContext: {privileged: true}}]}}}}}",
			"spec: {template: {spec: {template: {spec: {containers: [{name: a, image: a, securityContext: " +
				"{capabilities: {add: [SYS_ADMIN]}}}]}}}}}",
		},
		"`serviceAccountName`, a token": {
			"spec: {template: {spec: {template: {spec: {serviceAccountName: other}}}}}",
			"spec: {template: {spec: {template: {spec: {automountServiceAccountToken: true}}}}}",
		},
		"no container, two of one name, an image that is none": {
			"spec: {template: {spec: {template: {spec: {containers: []}}}}}",
			"spec: {template: {spec: {template: {spec: {containers: [{name: a, image: a}, {name: a, image: b}]}}}}}",
			"spec: {template: {spec: {template: {spec: {containers: [{name: a, image: a b}]}}}}}",
		},
		"reserved annotations, the label `app.kubernetes.io/managed-by`": {
			"spec: {template: {metadata: {annotations: {middleware.hc.cn/pause: 'true'}}}}",
			"spec: {template: {metadata: {labels: {app: a, app.kubernetes.io/managed-by: me}}}}",
		},
		"another selector or name in an update": {
			"update: spec: {selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: b}}, spec: " +
				"{template: {metadata: {labels: {app: b}}}}}}",
			"update: spec: {template: {metadata: {name: other}}}",
		},
	},
	"docs/crontab.md": {
		"a variable with a value and a `valueFrom`": {
			"spec: {env: [{name: a, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}",
		},
		"volumes, mounts and affinity that an App [may not have](app.md#what-is-refused)": {
			"spec: {volumes: [{name: a, hostPath: {path: /}}]}",
			"spec: {volumeMounts: [{name: a, mountPath: /a}]}",
		},
		"`cronSpec: \"* * * *\"`, six fields, `@every 5m`, `TZ=UTC 0 0 * * *`": {
			"spec: {cronSpec: '* * * *'}",
			"spec: {cronSpec: '* * * * * *'}",
			"spec: {cronSpec: '@every 5m'}",
			"spec: {cronSpec: TZ=UTC 0 0 * * *}",
		},
		"`cronSpec: \"61 * * * *\"`": {
			"spec: {cronSpec: 61 * * * *}",
		},
		"`cronSpec: \"0 0 30 2 *\"`": {
			"spec: {cronSpec: 0 0 30 2 *}",
		},
		"`timeZone: Mars/Base`": {
			"spec: {timeZone: Mars/Base}",
		},
		"no `image`": {
			"spec: {image: null}",
		},
		"a name of more than 52 characters": {
			"metadata: {name: a" + strings.Repeat("b", 52) + "}",
		},
	},
	"docs/backup.md": {
		"no `cluster`": {
			"spec: {cluster: null}",
		},
		"`timeout: 30s`, or more than a week": {
			"spec: {timeout: 30s}",
			"spec: {timeout: 169h}",
		},
		"`bucket: Backups/`": {
			"spec: {store: {s3: {bucket: Backups/}}}",
		},
		"no store, or two of them": {
			"spec: {store: {s3: null}}",
			"spec: {store: {claim: {claimName: backups}}}",
			"spec: {store: {gcs: {bucket: backups}}}",
		},
		"neither `credentialsSecretName` nor `serviceAccountName`, or both; `serviceAccountName` with a `claim`": {
			"spec: {store: {s3: {credentialsSecretName: null}}}",
			"spec: {store: {serviceAccountName: backups}}",
			"spec: {store: {s3: null, gcs: {bucket: backups}}}",
			"spec: {store: {s3: null, gcs: {bucket: backups, credentialsSecretName: store}, serviceAccountName: backups}}",
			"spec: {store: {s3: null, azure: {container: backups, storageAccount: account}}}",
			"spec: {store: {s3: null, claim: {claimName: backups}, serviceAccountName: backups}}",
		},
		"`prefix: ../data` of a claim": {
			"spec: {store: {s3: null, claim: {claimName: backups, prefix: ../data}}}",
			"spec: {store: {s3: null, claim: {claimName: backups, prefix: a/../../b}}}",
			"spec: {store: {s3: null, claim: {claimName: backups, prefix: .hidden}}}",
		},
		"`claimName: a/b`": {
			"spec: {store: {s3: null, claim: {claimName: a/b}}}",
			"spec: {store: {s3: null, claim: {claimName: ..}}}",
		},
		"`storageAccount: my-account`": {
			"spec: {store: {s3: null, azure: {container: backups, storageAccount: my-account, credentialsSecretName: store}}}",
		},
		"`maxBytesPerSecond: 50`, or `1e9`": {
			"spec: {maxBytesPerSecond: 50}",
			"spec: {maxBytesPerSecond: '50'}",
			"spec: {maxBytesPerSecond: 1e1000000000}",
			"spec: {maxBytesPerSecond: 1000G}",
		},
		"`prefix: ../other`, `/a`, `a//b`": {
			"spec: {store: {s3: {prefix: ../other}}}",
			"spec: {store: {s3: {prefix: /a}}}",
			"spec: {store: {s3: {prefix: a//b}}}",
		},
		"an `endpoint` that is no `http://HOST:PORT` or `https://HOST:PORT`": {
			"spec: {store: {s3: {endpoint: minio}}}",
			"spec: {store: {s3: {endpoint: 'https://a/b?c'}}}",
		},
		"a recipient that is no age public key": {
			"spec: {recipients: [age1x]}",
		},
		"another spec than before, but for `deletionPolicy`": {
			"update: spec: {cluster: other}",
			"update: spec: {store: {s3: {prefix: other}}}",
			"update: spec: {recipients: [age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p]}",
			"update: spec: {timeout: 7h}",
			"update: spec: {maxBytesPerSecond: 50M}",
		},
		"`deletionPolicy: Keep`": {
			"spec: {deletionPolicy: Keep}",
		},
		"a name of more than 52 characters": {
			"metadata: {name: " + strings.Repeat("a", 53) + "}",
		},
	},
	"docs/backup-schedule.md": {
		"no `schedule`; `schedule: 0 0 2 * * *`, with seconds; `@every 1h`, `@yearly`; `TZ=UTC 0 2 * * *`": {
			"spec: {schedule: null}",
			"spec: {schedule: ''}",
			"spec: {schedule: 0 0 2 * * *}",
			"spec: {schedule: '@every 1h'}",
			"spec: {schedule: '@yearly'}",
			"spec: {schedule: TZ=UTC 0 2 * * *}",
			"spec: {schedule: CRON_TZ=UTC 0 2 * * *}",
			"spec: {schedule: '" + strings.Repeat("*", 101) + " * * * *'}",
		},
		"`timeZone: Local`, `../etc/passwd`": {
			"spec: {timeZone: Local}",
			"spec: {timeZone: ../etc/passwd}",
			"spec: {timeZone: /etc/localtime}",
		},
		"`jitter: 2h`": {
			"spec: {jitter: 2h}",
			"spec: {jitter: -1s}",
		},
		"`timeout: 30s`": {
			"spec: {timeout: 30s}",
			"spec: {timeout: 169h}",
		},
		"`maxBytesPerSecond: 1k`": {
			"spec: {maxBytesPerSecond: 1k}",
		},
		"`retention: {}`": {
			"spec: {retention: {}}",
		},
		"`keepLast: 0`, or more than 1000": {
			"spec: {retention: {keepLast: 0}}",
			"spec: {retention: {keepLast: 1001}}",
		},
		"`keepFor: 1s`": {
			"spec: {retention: {keepFor: 1s}}",
		},
		"`verify: {}`, or with a `schedule` that is none": {
			"spec: {verify: {}}",
			"spec: {verify: {schedule: ''}}",
			"spec: {verify: {schedule: '@every 1h'}}",
			"spec: {verify: {schedule: 0 0 2 * * *}}",
		},
		"`verify.timeout: 30s`": {
			"spec: {verify: {schedule: '@daily', timeout: 30s}}",
			"spec: {verify: {schedule: '@daily', timeout: 169h}}",
		},
		"`recipients` and `verify` without `identitySecretName`, or the latter without `recipients`": {
			"spec: {verify: {schedule: '@daily', identitySecretName: key}}",
			"spec: {verify: {schedule: '@daily'}, recipients: [age1" + strings.Repeat("q", 58) + "]}",
		},
		"a `store` or `recipients` that a RedisBackup would not have": {
			"spec: {store: {s3: null}, recipients: [age1x]}",
		},
		"a name of more than 39 characters": {
			"metadata: {name: " + strings.Repeat("a", 40) + "}",
		},
	},
	"docs/foobar.md": {
		"volumes, mounts and affinity that an App [may not have](app.md#what-is-refused)": {
			"spec: {volumes: [{name: a}]}",
		},
		"no `command`, or only spaces": {
			"spec: {command: null}",
			"spec: {command: ' '}",
		},
		"`barz: \"maybe\"`": {
			"spec: {barz: maybe}",
		},
		"`barz: true` without quotes": {
			"spec: {barz: true}",
		},
		"`image: \"a b\"`": {
			"spec: {image: a b}",
		},
		"a name of more than 52 characters": {
			"metadata: {name: a" + strings.Repeat("b", 52) + "}",
		},
	},
}

// Each row of the tables of what is refused is refused, at the fields that the row names, and each sentence says what to do.
func TestWhatPagesRefuseIsRefused(t *testing.T) {
	all := kinds(t)
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, k := range all {
		page := k.page
		if page == redisPage {
			page = redisRefusalsPage
		}
		rows := rowsOf(t, page, "| manifest | refused at |")
		if len(rows) != len(wrong[page]) {
			t.Errorf("%s: %d rows are refused, and %d are tried here", page, len(rows), len(wrong[page]))
		}
		for _, row := range rows {
			cases := wrong[page][row[0]]
			if len(cases) == 0 {
				t.Errorf("%s: %q is not tried here", page, row[0])
			}
			paths, _, _ := strings.Cut(row[1], ": ")
			for _, patch := range cases {
				var before map[string]any
				patch, update := strings.CutPrefix(patch, "update: ")
				if update {
					before = k.with(t, "{}")
				}
				refused := k.refuses(t, before, k.with(t, patch))
				if strings.Contains(row[1], "immutable") { // the field is the row's own words
					if len(refused) == 0 || !strings.Contains(refused.ToAggregate().Error(), "immutable") {
						t.Errorf("%s: %s is not refused as immutable: %v", page, patch, refused)
					}
					continue
				}
				found := false
				for _, match := range quoted.FindAllStringSubmatch(paths, -1) {
					found = found || refusedAt(refused, match[1])
				}
				if !found {
					t.Errorf("%s: %s is refused at %v, the page says %s", page, patch, refused, paths)
				}
			}
		}
	}
}

// refusedAt reports whether something is refused at a path, of which an ellipsis stands for any part. A rule about the name of an object
// is the schema's own, at the root, and its sentence begins with the path.
func refusedAt(refused field.ErrorList, path string) bool {
	pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(path), "…", ".*"))
	for _, err := range refused {
		if pattern.MatchString(err.Field) || pattern.MatchString(err.Detail) {
			return true
		}
	}
	return false
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"maps"
	"slices"
	"strings"
)

// Reasons why a setting is refused. Each completes "cannot be set: …".
const (
	ownsAddress  = "the operator decides which addresses and ports an instance uses"
	ownsFiles    = "the operator decides where an instance keeps its files"
	ownsProcess  = "Kubernetes runs the process and reads its log"
	ownsPassword = "the password is set with spec.auth"
	ownsCluster  = "the operator manages the cluster's members and slots"
	ownsTLS      = "TLS is set with spec.tls"
	ownsStop     = "the operator moves a master's role before it stops an instance"
	ownsModules  = "modules are set with spec.modules"
	noCode       = "it would load other files or code into the server"
	noProtected  = "it would open commands that read and write files or crash the server"
	noRename     = "the operator needs every command under its own name"
)

// ReservedSettings are the redis.conf settings that neither spec.config nor the user's
// ConfigMap may hold, each with the reason. A name that ends in * stands for all that
// begin with it. Names are spelled with replica, not slave (see Canonical).
var ReservedSettings = map[string]string{
	"port":                ownsAddress,
	"bind":                ownsAddress,
	"bind-source-addr":    ownsAddress,
	"protected-mode":      ownsAddress,
	"unixsocket":          ownsAddress,
	"unixsocketperm":      ownsAddress,
	"unixsocketgroup":     ownsAddress,
	"rdma-*":              ownsAddress,
	"replica-announce-*":  ownsAddress,
	"replica-announced":   ownsAddress,
	"dir":                 ownsFiles,
	"dbfilename":          ownsFiles,
	"appendfilename":      ownsFiles,
	"appenddirname":       ownsFiles,
	"rdb-del-sync-files":  ownsFiles,
	"pidfile":             ownsProcess,
	"logfile":             ownsProcess,
	"daemonize":           ownsProcess,
	"supervised":          ownsProcess,
	"syslog-*":            ownsProcess,
	"requirepass":         ownsPassword,
	"masterauth":          ownsPassword,
	"masteruser":          ownsPassword,
	"primaryauth":         ownsPassword,
	"primaryuser":         ownsPassword,
	"user":                ownsPassword,
	"aclfile":             ownsPassword,
	"cluster-*":           ownsCluster,
	"replicaof":           ownsCluster,
	"sentinel":            ownsCluster,
	"tls-*":               ownsTLS,
	"shutdown-on-sigterm": ownsStop,
	"shutdown-on-sigint":  ownsStop,
	"include":             noCode,
	"loadmodule":          ownsModules,
	"enable-*":            noProtected,
	"rename-command":      noRename,
	"socket-mark-id":      ownsAddress,
}

// openClusterSettings are the cluster-* settings that users may set all the same.
var openClusterSettings = map[string]bool{
	"cluster-node-timeout":                true,
	"cluster-require-full-coverage":       true,
	"cluster-allow-reads-when-down":       true,
	"cluster-allow-pubsubshard-when-down": true,
	"cluster-replica-validity-factor":     true,
	"cluster-link-sendbuf-limit":          true,
	"cluster-slot-stats-enabled":          true,
}

// reservedPrefixes are the entries of ReservedSettings that end in *, without it.
var reservedPrefixes = func() []string {
	var prefixes []string
	for _, name := range slices.Sorted(maps.Keys(ReservedSettings)) {
		if prefix, ok := strings.CutSuffix(name, "*"); ok {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}()

// Reserved reports whether a setting is refused, and why. The name may be in any case
// and in either spelling.
func Reserved(name string) (reason string, reserved bool) {
	name = Canonical(name)
	if openClusterSettings[name] {
		return "", false
	}
	if reason, ok := ReservedSettings[name]; ok {
		return reason, true
	}
	for _, prefix := range reservedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return ReservedSettings[prefix+"*"], true
		}
	}
	return "", false
}

// aliases are further names of settings (config.c), each with the one that all engines know.
var aliases = map[string]string{
	"hash-max-ziplist-entries":          "hash-max-listpack-entries",
	"hash-max-ziplist-value":            "hash-max-listpack-value",
	"list-max-ziplist-size":             "list-max-listpack-size",
	"zset-max-ziplist-entries":          "zset-max-listpack-entries",
	"zset-max-ziplist-value":            "zset-max-listpack-value",
	"lua-time-limit":                    "busy-reply-threshold",
	"commandlog-execution-slower-than":  "slowlog-log-slower-than",
	"commandlog-slow-execution-max-len": "slowlog-max-len",
}

// Canonical is the one spelling under which a setting is merged. Redis ignores case in
// names, and every name with slave in it is an alias of the one with replica.
func Canonical(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name), "slave", "replica")
	if other, ok := aliases[name]; ok {
		return other
	}
	return name
}

// reservedEnv are the variables of the Redis container that the operator sets, or that
// would hand it a password, each with what to do instead.
var reservedEnv = map[string]string{
	"POD_NAME":       anotherName,
	"POD_NAMESPACE":  anotherName,
	"POD_IP":         anotherName,
	"REDIS_ADDR":     anotherName,
	"REDIS_PASSWORD": useAuth,
	"REDIS_USER":     anotherName,
	"REDISCLI_AUTH":  useAuth,
}

const (
	anotherName = "use another name"
	useAuth     = "remove it, and set the password with spec.auth"
)

// ReservedEnv reports whether an environment variable cannot be set by users, and what to do
// instead.
func ReservedEnv(name string) (remedy string, reserved bool) {
	remedy, reserved = reservedEnv[name]
	return remedy, reserved
}

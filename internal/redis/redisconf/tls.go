// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Paths of the certificate in the Redis container.
const (
	TLSDir             = "/etc/redis/tls"
	TLSCertificatePath = TLSDir + "/tls.crt"
	tlsKeyPath         = TLSDir + "/tls.key"
	tlsTrustedPath     = TLSDir + "/ca.crt"
	// TLSTrustedFile is where the volume of the container's configuration has the trusted certificates.
	TLSTrustedFile = "tls/ca.crt"
)

// TLSStage is how far an instance is on the way from plain connections to encrypted ones. Each stage differs from its neighbours by
// what a running instance takes at once, but the last two, which one takes when it starts.
type TLSStage int

// The stages, in their order. TLSUnknown is none.
const (
	TLSUnknown TLSStage = iota
	// TLSPlain: one port, which is not encrypted.
	TLSPlain
	// TLSOpened: clients may connect by TLS to a second port, of which nobody is told: announced as the port for TLS is the number of
	// the plain one, so that it makes no difference whether an instance that still speaks plainly on the bus reads the one or the other.
	TLSOpened
	// TLSBus: the cluster bus is encrypted as well.
	TLSBus
	// TLSLinks: on the way to TLS, replicas will ask for TLS when they connect to their master the next time.
	TLSLinks
	// TLSUnlinked: on the way back, both ports are announced, and replicas ask for no TLS any more.
	TLSUnlinked
	// TLSBoth: both ports are announced; clients use either, bus and replication TLS.
	TLSBoth
	// TLSSecond: on the way back from TLSRequired, one port, which is encrypted, and is where TLSBoth has it. A client that still asks the
	// other port is refused, where it would wait in vain for a plain one to answer it. It announces the plain port all the same: who has
	// heard of the one has heard of the other, and nobody asks for it yet.
	TLSSecond
	// TLSRequired: one port, which is encrypted.
	TLSRequired
)

// TLSStageOf is the stage that a running instance's settings show; TLSUnknown when the engine knows no TLS.
func TLSStageOf(settings map[string]string) TLSStage {
	announced := settings["cluster-announce-tls-port"] == portTLS
	switch {
	case settings["tls-port"] == "":
		return TLSUnknown
	case settings["tls-port"] == "0":
		return TLSPlain
	case settings["port"] == "0" && settings["tls-port"] == portTLS:
		return TLSSecond
	case settings["port"] == "0":
		return TLSRequired
	case settings["tls-cluster"] != "yes":
		return TLSOpened
	case announced && settings["tls-replication"] == "yes":
		return TLSBoth
	case announced:
		return TLSUnlinked
	case settings["tls-replication"] == "yes":
		return TLSLinks
	}
	return TLSBus
}

// TLSSettingNames are the settings that stages differ by, and those that go with them.
func TLSSettingNames() []string {
	return slices.Sorted(maps.Keys(tlsStages[TLSBoth]))
}

// TLS is what redis.conf says of TLS.
type TLS struct {
	Stage TLSStage
	// Clients is what is wanted of clients; empty: what is when nobody asks for anything.
	Clients v1alpha1.ClientCertificates
}

// TLSFor is what it says in the end of a cluster.
func TLSFor(cr *v1alpha1.RedisCluster) TLS {
	return TLS{Stage: TLSGoal(cr.TLSMode()), Clients: cr.ClientCertificates()}
}

// AuthClients is the setting of what instances want of clients.
const AuthClients = "tls-auth-clients"

// AuthClientsOf is its value.
func AuthClientsOf(want v1alpha1.ClientCertificates) string {
	switch want {
	case v1alpha1.ClientCertificatesRequired:
		return "yes"
	case v1alpha1.ClientCertificatesNone:
		return "no"
	case v1alpha1.ClientCertificatesOptional:
	}
	return "optional"
}

// Settings are those of an instance that has the files of its certificate in a directory: name to value.
func (t TLS) Settings(dir string) map[string]string {
	settings := maps.Clone(tlsStages[t.Stage])
	for name, value := range settings {
		if file, inDir := strings.CutPrefix(value, TLSDir); inDir {
			settings[name] = dir + file
		}
	}
	if _, has := settings[AuthClients]; has {
		settings[AuthClients] = AuthClientsOf(t.Clients)
	}
	return settings
}

var (
	portRedis = strconv.Itoa(int(v1alpha1.PortRedis))
	portTLS   = strconv.Itoa(int(v1alpha1.PortRedisTLS))
	portBus   = strconv.Itoa(int(v1alpha1.PortBus))
)

// tlsStages are the settings of each stage. Unless somebody wants more, certificates of clients are checked and not asked for: the
// password is what lets them in.
// Clients are redirected to DNS names, because those are what the certificate holds.
var tlsStages = func() map[TLSStage]map[string]string {
	with := func(base map[string]string, change map[string]string) map[string]string {
		all := maps.Clone(base)
		maps.Copy(all, change)
		return all
	}
	files := map[string]string{AuthClients: AuthClientsOf(""), "tls-cert-file": TLSCertificatePath, "tls-key-file": tlsKeyPath,
		"tls-ca-cert-file": tlsTrustedPath, "cluster-preferred-endpoint-type": "hostname"}
	stages := map[TLSStage]map[string]string{
		TLSPlain: {"port": portRedis, "tls-port": "0", "tls-cluster": "no", "tls-replication": "no",
			"cluster-announce-port": "0", "cluster-announce-tls-port": "0", "cluster-announce-bus-port": "0",
			"cluster-preferred-endpoint-type": "ip"},
		TLSRequired: with(files, map[string]string{"port": "0", "tls-port": portRedis, "tls-cluster": "yes", "tls-replication": "yes"}),
	}
	stages[TLSOpened] = with(files, map[string]string{"port": portRedis, "tls-port": portTLS, "tls-cluster": "no", "tls-replication": "no",
		"cluster-announce-port": "0", "cluster-announce-tls-port": portRedis, "cluster-announce-bus-port": portBus})
	stages[TLSBus] = with(stages[TLSOpened], map[string]string{"tls-cluster": "yes"})
	stages[TLSLinks] = with(stages[TLSBus], map[string]string{"tls-replication": "yes"})
	stages[TLSUnlinked] = with(stages[TLSBus], map[string]string{"cluster-announce-port": portRedis, "cluster-announce-tls-port": portTLS})
	stages[TLSBoth] = with(stages[TLSUnlinked], map[string]string{"tls-replication": "yes"})
	stages[TLSSecond] = with(stages[TLSBoth], map[string]string{"port": "0"})
	return stages
}()

// tlsOrder is that of the lines of redis.conf: as they have always been, so that no file changes because of an operator's upgrade.
var tlsOrder = []string{"port", "tls-port", "tls-cluster", "tls-replication", AuthClients, "tls-cert-file", "tls-key-file",
	"tls-ca-cert-file", "cluster-preferred-endpoint-type", "cluster-announce-port", "cluster-announce-tls-port", "cluster-announce-bus-port"}

// tlsSettings are the lines of redis.conf.
func tlsSettings(tls TLS) []Setting {
	if tls.Stage == TLSUnknown || tls.Stage == TLSPlain {
		return nil
	}
	var lines []Setting
	settings := tls.Settings(TLSDir)
	for _, name := range tlsOrder {
		if value, has := settings[name]; has {
			lines = append(lines, Setting{Name: name, Args: []string{value}})
		}
	}
	return lines
}

// AsFile is the stage that redis.conf has while instances are at this one: of those that are passed within seconds it has the one from
// which an instance that starts finds all others.
func (s TLSStage) AsFile() TLSStage {
	switch s {
	case TLSOpened:
		return TLSPlain
	case TLSLinks, TLSUnlinked:
		return TLSBus
	case TLSUnknown, TLSPlain, TLSBus, TLSBoth, TLSSecond, TLSRequired:
	}
	return s
}

// tlsNames are the names of the stages that redis.conf may have, as the status keeps them.
var tlsNames = map[TLSStage]string{TLSPlain: "Plain", TLSBus: "Bus", TLSBoth: "Both", TLSSecond: "Second", TLSRequired: "Required"}

// String is the name of a stage that redis.conf may have; empty: it is none.
func (s TLSStage) String() string { return tlsNames[s.AsFile()] }

// TLSStageNamed is the stage of that name; TLSUnknown if there is none.
func TLSStageNamed(name string) TLSStage {
	for stage, is := range tlsNames {
		if is == name {
			return stage
		}
	}
	return TLSUnknown
}

// TLSGoal is the stage that instances have in the end with a mode.
func TLSGoal(mode v1alpha1.TLSMode) TLSStage {
	switch mode {
	case v1alpha1.TLSBoth:
		return TLSBoth
	case v1alpha1.TLSRequired:
		return TLSRequired
	case v1alpha1.TLSDisabled:
	}
	return TLSPlain
}

// EncryptsBus reports whether instances at the stage find each other by TLS.
func (s TLSStage) EncryptsBus() bool { return s >= TLSBus }

// AnnouncedTLSPort is the port that an instance at the stage announces for TLS; 0: none.
func (s TLSStage) AnnouncedTLSPort() int {
	switch s {
	case TLSOpened, TLSBus, TLSLinks, TLSRequired:
		return int(v1alpha1.PortRedis)
	case TLSUnlinked, TLSBoth, TLSSecond:
		return int(v1alpha1.PortRedisTLS)
	case TLSUnknown, TLSPlain:
	}
	return 0
}

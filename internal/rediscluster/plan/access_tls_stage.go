// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// SetTLS takes running instances to a stage of TLS, all at once and each by one command: what they listen to and what they announce
// changes together or not at all.
type SetTLS struct {
	base
	Changes []InstanceConfig
}

// Name implements Step.
func (SetTLS) Name() string { return "SetTLS" }

// tlsStages are those that running instances show.
type tlsStages struct {
	pods        []*snapshot.Instance // those that show one
	least, most redisconf.TLSStage
	// absent names one that shows none, for a reason; empty when all do.
	absent string
	// secured is how many encrypt the bus.
	secured int
}

func (in input) tlsStages() tlsStages {
	var s tlsStages
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		stage := pod.TLSStage()
		if stage == redisconf.TLSUnknown || pod.Terminating {
			s.absent = fmt.Sprintf("%s does not answer", pod.Name)
			continue
		}
		if len(s.pods) == 0 || stage < s.least {
			s.least = stage
		}
		s.most = max(s.most, stage)
		if stage.EncryptsBus() {
			s.secured++
		}
		s.pods = append(s.pods, pod)
	}
	return s
}

// at are the instances at one of the stages.
func (s tlsStages) at(stages ...redisconf.TLSStage) []*snapshot.Instance {
	var at []*snapshot.Instance
	for _, pod := range s.pods {
		if slices.Contains(stages, pod.TLSStage()) {
			at = append(at, pod)
		}
	}
	return at
}

// tlsStage is the stage of TLS that redis.conf is to have now: the one from which an instance that starts finds the others. It goes by
// what all of them show, in one direction only, and stays while that is not known; without instances it is what is asked for.
func (in input) tlsStage() redisconf.TLSStage {
	goal, was, seen := redisconf.TLSGoal(in.desired.TLS), in.snap.TLSStage, in.tlsStages()
	switch {
	case in.desired.TLS == "" && in.holdsCertificates():
		return cmp.Or(was, in.podsStage())
	case len(in.snap.Instances) == 0:
		return goal
	case slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool { return !pod.HasCertificate }):
		return redisconf.TLSPlain // it would not start with the name of a file that it does not have
	case was == redisconf.TLSUnknown && len(seen.pods) == 0 && in.podsStage() == redisconf.TLSRequired:
		was = redisconf.TLSRequired
	case was == redisconf.TLSUnknown:
		was = seen.shown(goal)
	}
	if goal < redisconf.TLSRequired && max(was, seen.most) > redisconf.TLSBoth {
		was = redisconf.TLSSecond
		if seen.absent == "" && seen.most <= redisconf.TLSSecond {
			was = redisconf.TLSBoth
		}
	}
	if goal == redisconf.TLSPlain {
		return in.tlsLowered(was, seen)
	}
	return in.tlsRaised(was, goal, seen)
}

// podsStage is the stage that pods were made for, as far as their ports tell.
func (in input) podsStage() redisconf.TLSStage {
	if slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool { return pod.TwoPorts }) {
		return redisconf.TLSBoth
	}
	return redisconf.TLSRequired
}

func (in input) holdsCertificates() bool {
	return slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool { return pod.HasCertificate })
}

// shown is the stage of redis.conf that instances were started with, as far as they show it.
func (s tlsStages) shown(goal redisconf.TLSStage) redisconf.TLSStage {
	switch {
	case len(s.pods) == 0:
		return goal
	case 2*s.secured <= len(s.pods):
		return redisconf.TLSPlain
	}
	return max(s.least.AsFile(), redisconf.TLSBus) // one that started plainly among the others does not find them
}

func (in input) tlsRaised(was, goal redisconf.TLSStage, seen tlsStages) redisconf.TLSStage {
	if 2*seen.secured > len(seen.pods) {
		was = max(was, redisconf.TLSBus)
	}
	if seen.least < redisconf.TLSBoth {
		return was
	}
	if goal == redisconf.TLSRequired && seen.absent == "" && in.portsKnown(seen).Holds {
		return redisconf.TLSRequired
	}
	return max(was, redisconf.TLSBoth)
}

func (in input) tlsLowered(was redisconf.TLSStage, seen tlsStages) redisconf.TLSStage {
	switch {
	case seen.absent != "":
		return was
	case seen.most <= redisconf.TLSOpened:
		return redisconf.TLSPlain
	case seen.most <= redisconf.TLSLinks:
		return min(was, redisconf.TLSBus)
	}
	return was
}

// portsKnown holds when every instance that answers tells clients by TLS where each other one that it knows takes TLS.
func (in input) portsKnown(seen tlsStages) Verdict {
	if takes := takesTLS(seen); !takes.Holds {
		return takes
	}
	for _, pod := range seen.pods {
		if pod.Way.Plain {
			return fails(PortsKnown, "%s was not asked by TLS yet", pod.Name)
		}
		for _, other := range seen.pods {
			peer, knows := pod.Redis.Peers[other.Redis.NodeID] // which are others
			if want := other.TLSStage().AnnouncedTLSPort(); knows && peer.Port != want {
				return fails(PortsKnown, "%s does not know yet that %s announces port %d for TLS", pod.Name, other.Name, want)
			}
		}
	}
	return holds(PortsKnown)
}

// takesTLS holds unless an instance that takes TLS as well was reached plainly only, because TLS failed: its certificate may have expired.
func takesTLS(seen tlsStages) Verdict {
	for _, pod := range seen.pods {
		if pod.TLSError != "" && pod.TLSStage() > redisconf.TLSPlain {
			return fails(PortsKnown, "%s does not take TLS: %s", pod.Name, pod.TLSError)
		}
	}
	return holds(PortsKnown)
}

// planTLSBehind takes an instance to the others that cannot find it: one that restarted with a redis.conf of before, which the kubelet
// may leave in a pod for more than a minute, or that was not told when the others were.
func planTLSBehind(in input) Step {
	seen := in.tlsStages()
	if in.desired.TLS == "" {
		return nil
	}
	if in.tls.EncryptsBus() {
		if in.desired.TLS == v1alpha1.TLSDisabled && seen.most <= redisconf.TLSLinks {
			return nil // the others follow
		}
		behind := seen.at(redisconf.TLSPlain, redisconf.TLSOpened)
		return in.setTLS(slices.DeleteFunc(behind, func(pod *snapshot.Instance) bool { return !pod.HasCertificate }), redisconf.TLSBus,
			"the others use TLS on the cluster bus")
	}
	ahead := seen.at(redisconf.TLSBus, redisconf.TLSLinks, redisconf.TLSUnlinked, redisconf.TLSBoth)
	return in.setTLS(ahead, redisconf.TLSOpened, "the others use no TLS on the cluster bus")
}

// setTLS takes instances to a stage; nil when there are none.
func (in input) setTLS(pods []*snapshot.Instance, to redisconf.TLSStage, why string) Step {
	if len(pods) == 0 {
		return nil
	}
	step := SetTLS{}
	var names []string
	for _, pod := range pods {
		change := InstanceConfig{On: target(pod), Engine: pod.Redis.EngineVersion(), Settings: map[string]string{}}
		for name, want := range (redisconf.TLS{Stage: to, Clients: in.clients}).Settings(in.desired.CertificateDir) {
			if pod.Redis.Settings[name] != want {
				change.Settings[name] = want
			}
		}
		step.Changes, names = append(step.Changes, change), append(names, pod.Name)
	}
	step.Reason = fmt.Sprintf("%s: %s", list(names), why)
	return step
}

// planTLSStage takes all instances a stage further towards the connections that are asked for. What cannot be done while they run,
// planRollout does: pods with a certificate, and one port in place of two.
func planTLSStage(in input) Step {
	if in.desired.TLS == "" {
		return nil
	}
	seen := in.tlsStages()
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Settings != nil && pod.TLSStage() == redisconf.TLSUnknown && in.desired.TLS != v1alpha1.TLSDisabled {
			return Stall{base: base{fmt.Sprintf(
				"spec.tls: %s of image %s was built without TLS: use another image, or set spec.tls.mode to Disabled",
				pod.Redis.EngineVersion(), pod.Image)}, Cause: "SettingRefused"}
		}
	}
	if in.movesSlots() {
		return nil
	}
	if in.desired.TLS == v1alpha1.TLSDisabled {
		return in.lowerTLS(seen)
	}
	return in.raiseTLS(seen)
}

// movesSlots reports whether slots are on their way: they arrive before anything of TLS begins, since instances send keys to each
// other's ports.
func (in input) movesSlots() bool {
	return in.snap.Goal != nil || slices.ContainsFunc(in.snap.Reachable(), func(pod *snapshot.Instance) bool {
		return len(pod.Redis.Migrating)+len(pod.Redis.Importing)+len(pod.Redis.Jobs) > 0
	})
}

func (in input) raiseTLS(seen tlsStages) Step {
	if slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool { return !pod.HasCertificate }) {
		return nil // pods get it when they restart
	}
	if seen.least == redisconf.TLSRequired {
		return nil
	}
	if step := in.setTLS(seen.at(redisconf.TLSPlain), redisconf.TLSOpened, "they take TLS at a second port from now on"); step != nil {
		return step
	}
	if opened := seen.at(redisconf.TLSOpened); len(opened) > 0 {
		if wait := in.allAtTLSStage(seen); wait != nil {
			return wait
		}
		return in.setTLS(opened, redisconf.TLSBus, "the cluster bus uses TLS from now on")
	}
	if bus := seen.at(redisconf.TLSBus); len(bus) > 0 {
		if seen.most == redisconf.TLSBus {
			if wait := in.allAtTLSStage(seen); wait != nil {
				return wait
			}
		}
		return in.setTLS(bus, redisconf.TLSLinks, "replicas use TLS when they connect from now on")
	}
	if step := in.setTLS(seen.at(redisconf.TLSLinks, redisconf.TLSUnlinked), redisconf.TLSBoth, "they announce both ports"); step != nil {
		return step
	}
	if step := in.takePlain(seen); step != nil {
		return step
	}
	if in.desired.TLS == v1alpha1.TLSBoth && in.snap.TLSMode == v1alpha1.TLSBoth && in.tls == redisconf.TLSBoth {
		return nil // nothing of the switch is left that could wait, and what else is asked for does not
	}
	return in.knowPorts(seen)
}

// takePlain lets instances that take TLS only take plain connections beside it; nil while one takes TLS where they are to be, and when
// TLS is required: those restart.
func (in input) takePlain(seen tlsStages) Step {
	if in.tls > redisconf.TLSBoth || in.desired.TLS == v1alpha1.TLSRequired {
		return nil
	}
	return in.setTLS(seen.at(redisconf.TLSSecond), redisconf.TLSBoth, "they take plain connections, too")
}

func (in input) lowerTLS(seen tlsStages) Step {
	if step := in.takePlain(seen); step != nil {
		return step
	}
	if seen.most > redisconf.TLSBoth {
		return in.knowPorts(seen) // planRollout moves the port of those that take TLS only
	}
	if both := seen.at(redisconf.TLSBoth); len(both) > 0 {
		if seen.least == redisconf.TLSBoth {
			if wait := in.allAtTLSStage(seen); wait != nil {
				return wait
			}
		}
		return in.setTLS(both, redisconf.TLSUnlinked, "replicas use no TLS when they connect from now on")
	}
	linked := seen.at(redisconf.TLSUnlinked, redisconf.TLSLinks)
	if step := in.setTLS(linked, redisconf.TLSBus, "they announce the plain port only"); step != nil {
		return step
	}
	if bus := seen.at(redisconf.TLSBus); len(bus) > 0 {
		if seen.least == redisconf.TLSBus {
			if wait := in.allAtTLSStage(seen); wait != nil {
				return wait
			}
		}
		return in.setTLS(bus, redisconf.TLSOpened, "the cluster bus uses no TLS any more")
	}
	return in.setTLS(seen.at(redisconf.TLSOpened), redisconf.TLSPlain, "they take plain connections only")
}

// allAtTLSStage waits for every instance to answer, and to know where the others are: one that is told later than the others is cut
// off from them until then.
func (in input) allAtTLSStage(seen tlsStages) Step {
	if seen.absent != "" {
		return waitFor(fails(AllAtTLSStage, "TLS changes when all instances answer: %s", seen.absent))
	}
	return in.knowPorts(seen)
}

func (in input) knowPorts(seen tlsStages) Step {
	if known := in.portsKnown(seen); !known.Holds {
		return waitFor(known)
	}
	return nil
}

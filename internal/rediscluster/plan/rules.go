// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// rule decides on a step; nil when there is none. Its name is what the log says. heals marks one that
// goes by what the cluster is, not by what the spec asks for: it is followed also while the spec is not
// valid, with the topology that exists.
type rule struct {
	name  string
	heals bool
	find  func(input) Step
}

// rules is the order of deciding: the first step found is taken. What a Stall holds back is in
// Reaches.
var rules = []rule{
	// What has to be there first.
	{"validation", true, planValidation},
	{"finalizer", false, planFinalizer},
	{"place", true, planPlace},
	{"record nodes", true, planRecordNodes},
	{"auth", false, planAuth},
	{"needed certificate", false, planNeededCertificate},
	{"TLS", false, planTLS},
	{"restore", false, planRestore},
	{"import", false, planImport},
	{"children", false, planChildren},
	{"conflict", true, planConflict},
	{"access", false, planAccess},
	{"certificates", false, planCertificates},
	{"TLS of one", false, planTLSBehind},
	{"follow", true, planFollow},
	{"elections", true, planElections},
	// Forming, and new masters.
	{"restored data", false, planRestored},
	{"timeout", false, planTimeout},
	{"restored epochs", false, planRestoredEpochs},
	{"assign", false, planAssign},
	{"meet", true, planMeet},
	// What would be done again, left behind by what follows.
	{"switched over", true, planEndSwitchover},
	// Healing.
	{"promote", true, planPromote},
	{"forget", true, planForget},
	{"reclaim", true, planReclaim},
	{"force delete", true, planForceDelete},
	{"repair", false, planRepair},
	{"reidentify", false, planReidentify},
	{"recreate", false, planRecreate},
	{"misconfigured", false, planMisconfigured},
	{"ambiguous", true, planAmbiguous},
	{"unowned keys", true, planUnownedKeys},
	{"replicate", true, planReplicate},
	{"return", true, planReturn},
	{"fence", true, planFence},
	{"add to endpoints", true, planAddToEndpoints},
	{"storage", false, planStorage},
	{"disk", true, planDisk},
	{"certificate", false, planCertificate},
	// Settings, and slots on their way.
	{"functions", false, planFunctions},
	{"config", false, planConfig},
	{"TLS of clients", false, planTLSClients},
	{"TLS stage", false, planTLSStage},
	{"epoch", false, planEpoch},
	{"goal", false, planGoal},
	{"move", false, planMove},
	{"majority", false, planMajority},
	{"withheld", false, planWithheld},
	{"refused outside", false, planRefusedOutside},
	{"not grown", false, planNotGrown},
	{"served outside", false, planServed},
	{"await reclaim", true, planAwaitReclaim},
	{"await proof", true, planAwaitProof},
	{"converge", true, planConverge},
	{"await fence", false, planAwaitFence},
	// What waits for a cluster that is healthy.
	{"refusal", false, planRefusal},
	{"removal", false, planRemoval},
	{"switchover", false, planSwitchover},
	{"rollout", false, planRollout},
	{"hibernate", false, planHibernate},
	{"spread", false, planSpread},
	{"await switchover", false, planAwaitSwitchover},
	{"autoscale", false, planAutoscale},
	{"balance", false, planBalance},
	{"turn", false, planTurn},
}

// healing are the rules that heal, in their order.
var healing = slices.DeleteFunc(slices.Clone(rules), func(r rule) bool { return !r.heals })

// next is the first step that a rule has. A stall gives way to steps of later rules, as far as
// it holds nothing back; told is that stall. One that was told in the last reconciliation goes on being
// told while a step of an earlier rule is taken.
func next(in input, rules []rule) (step Step, told *Stall, by string) {
	var tells string
	for _, rule := range rules {
		found := in.spare(rule.find(in))
		if found == nil {
			continue
		}
		if stall, ok := found.(Stall); ok {
			if step == nil && Reaches[stall.Cause] == Everything {
				return stall, &stall, rule.name
			}
			if told == nil && (step == nil || stall.Cause == in.snap.Stalled) {
				told, tells = &stall, rule.name
			}
		} else if step == nil {
			step, by = found, rule.name
		}
		if step != nil && (told != nil || in.snap.Stalled == "") {
			break
		}
	}
	wait, waits := step.(Wait)
	switch {
	case told != nil && (step == nil || waits):
		told.After = wait.After
		return *told, told, tells
	case step == nil:
		return None{base{"the cluster is healthy"}}, nil, ""
	}
	return step, told, by
}

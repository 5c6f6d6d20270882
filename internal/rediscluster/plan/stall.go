// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Reach is what a stall holds back.
type Reach string

// The reaches.
const (
	// Everything: the instances cannot be asked, or what is sent to one might reach another cluster.
	Everything Reach = "Everything"
	// WhatTheSpecSays: all but healing, which goes by what the cluster is (the rules in healing).
	WhatTheSpecSays Reach = "WhatTheSpecSays"
	// ItsPart: what concerns the instance, the shard or the change that the stall names. The
	// rules that come after it leave that alone, each by a condition of its own.
	ItsPart Reach = "ItsPart"
)

// Reaches are the causes of stalls, and what each holds back.
var Reaches = map[string]Reach{
	"PasswordUnavailable":       Everything,
	"CertificateUnavailable":    Everything,
	"OverlayUnavailable":        Everything, // as it is looked at last, what heals comes before
	"Conflict":                  Everything,
	"CannotRestore":             Everything, // nothing starts without its data
	"CannotImport":              Everything, // what follows a server outside is not touched
	"InvalidSpec":               WhatTheSpecSays,
	"RenderFailed":              WhatTheSpecSays,
	"NameTaken":                 WhatTheSpecSays,
	"CannotChange":              WhatTheSpecSays,
	"Forbidden":                 WhatTheSpecSays,
	"Rejected":                  WhatTheSpecSays,
	v1alpha1.ReasonCannotExpand: WhatTheSpecSays,
	"AmbiguousOwner":            ItsPart, // planMeet does not introduce the instance, and what it claims is set aside
	"DamagedFiles":              ItsPart, // the instance does not run, or is set aside
	"DataLost":                  ItsPart, // the slots stay without an owner
	"NoCandidate":               ItsPart, // the slots stay without an owner
	"WritesRefused":             ItsPart, // slots neither come to the instance nor leave it: it is not converged
	"UnownedKeys":               ItsPart, // planReplicate leaves the instance out, planRemoval does not let it go
	"SettingRefused":            ItsPart, // a new cluster whose pods do not start: nothing is assigned before all answer
	"InvalidAssignment":         ItsPart, // no goal is recorded, so that no slot moves; planRemoval lets nothing go
	"OverCapacity":              ItsPart, // likewise
	"ExpansionRefused":          ItsPart, // claims keep their size
	"ExternalRefused":           ItsPart, // what is made for clients outside is applied apart
}

// asItIs is the desire that a cluster stays as it is: what an invalid spec asks for is not
// known. False when there is no cluster yet.
func asItIs(d Desired, in input) (Desired, bool) {
	if len(in.snap.Shards) == 0 || !in.snap.Formed {
		return d, false
	}
	d.Topology = existingTopology(in.snap)
	return d, true
}

func planValidation(in input) Step {
	if len(in.problems) == 0 {
		return nil
	}
	first := in.problems[0]
	reason := first.message
	if more := len(in.problems) - 1; more > 0 {
		reason = fmt.Sprintf("%s (and %d more)", reason, more)
	}
	return Stall{base: base{reason}, Cause: first.cause, Refused: first.refused}
}

// planUnownedKeys tells of instances that own no slot and hold keys: they cannot follow anybody
// without losing them.
func planUnownedKeys(in input) Step {
	masters := in.masters()
	for _, pod := range in.snap.Reachable() {
		master, r := masters[pod.Shard], pod.Redis
		if _, disputed := in.disputes[pod.Name]; disputed || master == nil || master == pod || pod.Terminating || pod.Fenced ||
			in.safeToRemove(pod).Holds {
			continue
		}
		if r.Master && r.Keys > 0 && r.Slots.IsEmpty() && len(r.Importing)+len(r.Migrating) == 0 {
			return Stall{
				base: base{
					fmt.Sprintf("%s owns no slot and holds %d keys, which would be lost if it became a replica; delete its claim to give them up",
						pod.Name, r.Keys)},
				Cause: "UnownedKeys", BlockedBy: NoUnownedKeys}
		}
	}
	return nil
}

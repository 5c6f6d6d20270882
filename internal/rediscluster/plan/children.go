// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// ApplyChildren makes the children be as the chart renders them for Topology.
type ApplyChildren struct {
	base
	Topology v1alpha1.Topology
}

func (ApplyChildren) Name() string { return "ApplyChildren" }

// Pending is what the children that exist lack of those that the chart renders for a shape.
type Pending struct {
	// Children names those that are to be applied or deleted, such as "Service cache".
	Children []string
	// Certificate is the Certificate of cert-manager that is not as the chart renders it, or is to go; empty: there is none.
	Certificate string
	// Withheld says why StatefulSets that are not as the chart renders them stay as they are;
	// nil when none is held back.
	Withheld *snapshot.Withheld
	// Map identifies whom gateways are to lead clients outside to; empty: that is not known, or nobody.
	Map string
	// Outside says why what is made for clients outside is not as it is rendered, if somebody has to change something; empty when not.
	Outside string
	// NotGrown says why claims could not be expanded for the data when that was tried last; empty when they could. Nobody tries again
	// while GrowsLater.
	NotGrown   string
	GrowsLater bool
	// Held names the StatefulSets that wait for the cluster's turn; Turn is what is known of that, nil: nobody was asked.
	Held []string
	Turn *Turn
	// Refused is what cannot be rendered or done until somebody changes something; nil when there
	// is nothing.
	Refused *Refused
}

// Refused is what cannot be done until somebody changes something.
type Refused struct {
	// Cause is the reason in one CamelCase word, Message says what is wrong and what helps.
	Cause, Message string
	// Step is the step that could not be carried out; nil when none was tried.
	Step Step
}

func planChildren(in input) Step {
	if len(in.pending.Children) == 0 {
		return nil
	}
	switch {
	case in.stopped() && !in.dormant:
		return Wake{base{fmt.Sprintf("spec.hibernate is false: the %d instances that there were start again", in.topology.Instances())}}
	case in.dormant && !in.stopped():
		return nil // planHibernate has the last word
	case in.dormant && !in.asleep():
		return Hibernate{base{fmt.Sprintf("spec.hibernate is true: the %d instances stop, each master as the last of its shard",
			in.topology.Instances())}}
	}
	return ApplyChildren{base: base{"children to apply: " + list(in.pending.Children)}, Topology: in.topology}
}

// planWithheld says why StatefulSets stay as they are. Instances that run have been seen to by
// then, and what has begun to move has moved.
func planWithheld(in input) Step {
	if in.pending.Withheld == nil {
		return nil
	}
	return Stall{base: base{in.pending.Withheld.Message}, Cause: in.pending.Withheld.Cause}
}

// planRefusedOutside says why what is made for clients outside stays as it is.
func planRefusedOutside(in input) Step {
	if in.pending.Outside == "" {
		return nil
	}
	return Stall{base: base{in.pending.Outside}, Cause: "ExternalRefused"}
}

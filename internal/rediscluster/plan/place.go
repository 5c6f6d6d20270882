// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
)

// Place lets pods start that keep their data in a directory of a node: each on the node that has
// its data, or on any if none has.
type Place struct {
	base
	Pods []Placement
}

// Placement is the node of a pod; any when Node is empty.
type Placement struct {
	Pod, UID, Node string
}

// Name implements Step.
func (Place) Name() string { return "Place" }

// onNode precedes the name of the node in what identifies a directory of it.
const onNode = "node/"

// planPlace comes before all that needs instances to run: a pod that waits is nobody's risk.
func planPlace(in input) Step {
	step := Place{}
	var bound []string
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		if !pod.Unplaced || pod.Terminating {
			continue
		}
		node, _ := strings.CutPrefix(in.snap.DataVolumes[pod.Name], onNode)
		if node == in.snap.DataVolumes[pod.Name] || node == in.desired.GiveUpNode {
			node = ""
		}
		if node != "" {
			bound = append(bound, fmt.Sprintf("%s on %s", pod.Name, node))
		}
		step.Pods = append(step.Pods, Placement{Pod: pod.Name, UID: pod.UID, Node: node})
	}
	switch {
	case len(step.Pods) == 0:
		return nil
	case len(bound) > 0:
		step.Reason = "instances start where their data is: " + list(bound)
	default:
		step.Reason = fmt.Sprintf("%d instances have no data yet, and start on any node", len(step.Pods))
	}
	return step
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

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

// RecordNodes writes down which nodes instances run on that keep their data there, before they are
// given any: whoever goes on after a crash starts their next pods where the data is.
type RecordNodes struct{ base }

// Name implements Step.
func (RecordNodes) Name() string { return "RecordNodes" }

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
		node := in.snap.PlacedOn[pod.Name]
		if node == in.desired.GiveUpNode {
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

// planRecordNodes comes before all that gives an instance slots, or has it copy: the scheduler
// chooses the node, so this is the first time that it is known, and the last that it is empty.
func planRecordNodes(in input) Step {
	var found []string
	for _, pod := range in.snap.Reachable() {
		if pod.OnNode && in.snap.PlacedOn[pod.Name] != pod.NodeName {
			found = append(found, fmt.Sprintf("%s on %s", pod.Name, pod.NodeName))
		}
	}
	if len(found) == 0 {
		return nil
	}
	return RecordNodes{base{"where instances are to keep their data: " + list(found)}}
}

// placedOn are, by pod, the nodes that instances with their data there last ran on, after this
// pass. Instances that do not exist now keep theirs.
func (in input) placedOn() map[string]string {
	after := map[string]string{}
	for name, node := range in.snap.PlacedOn {
		if len(in.problems) > 0 || in.asksForPod(name) {
			after[name] = node
		}
	}
	for _, pod := range in.snap.Reachable() {
		if pod.OnNode {
			after[pod.Name] = pod.NodeName
		}
	}
	if len(after) == 0 {
		return nil
	}
	return after
}

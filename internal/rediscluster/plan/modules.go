// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// modulesLoaded reports whether no instance is still to restart with other modules. Keys of a module's
// type can go only to where the module is, so no slot begins to move before.
func modulesLoaded(in input) Verdict {
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; pod.Modules != in.desired.Modules && (in.stale(pod) || in.unobservedShard(pod.Shard)) {
			return fails(ModulesLoaded, "%s has not started with the modules of spec.modules yet", pod.Name)
		}
	}
	return holds(ModulesLoaded)
}

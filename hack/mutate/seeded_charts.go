// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// chartBugs are those of chart kinds, and of the applying of objects that all kinds share.
var chartBugs = []Bug{
	{Name: "takes an object for ours that another controller owns", File: "internal/apply/ownership.go",
		Old: `	if controller != nil {
		return &NotOursError{Ref: ref, Owner: controller.Kind + " " + controller.Name}
	}`,
		New: ``},
	{Name: "takes an object for ours by its owner's name, whatever kind that has", File: "internal/apply/ownership.go",
		Old: `	if ownerName == namespacedName(owner) && ownerType == ownerGVK.GroupKind().String() {`,
		New: `	if ownerName == namespacedName(owner) {`},
	{Name: "adopts an object that nobody is said to own", File: "internal/apply/ownership.go",
		Old: `	return &NotOursError{Ref: ref}`,
		New: `	return nil`},
	{Name: "gives a kept object a reference by which the garbage collector deletes it", File: "internal/apply/ownership.go",
		Old: `	if followed(owner, stamped) && !IsKept(stamped.GetAnnotations()) {`,
		New: `	if followed(owner, stamped) {`},
	{Name: "believes a cache that is older than what was applied", File: "internal/apply/decide.go",
		Old: `	if cached.GetUID() == was.ref.UID && older(cached.GetResourceVersion(), was.version) {
		if _, behind := was.written().Behind(cached.GetResourceVersion(), now); behind {
			return lagging
		}
		return outdated // the API server knows nothing of our write, whatever fields we own
	}`,
		New: ``},
	{Name: "takes an object of another UID for the one that was applied", File: "internal/apply/decide.go",
		Old: `	if was.ref.UID != "" && cached.GetUID() != was.ref.UID {
		if _, behind := was.written().Behind(cached.GetResourceVersion(), now); behind && !was.seen {
			return lagging // the object that ours replaced
		}
		return outdated
	}`,
		New: ``},
	{Name: "upgrades before the hooks of a deletion have run", File: "internal/release/plan.go",
		Old: `	if step := planHook(desired, seen, now); step != nil {
		return step
	}
	if seen.Hooks.Event != string(postDelete) {`,
		New: `	if seen.Hooks.Event != string(postDelete) {`},
	{Name: "lets the object go before its objects are gone", File: "internal/release/plan.go",
		Old: `	if seen.Hooks.Event != string(postDelete) {
		return Uninstall{}
	}
	return Leave{}`,
		New: `	return Leave{}`},
	{Name: "deploys although the spec is invalid", File: "internal/release/plan.go",
		Old: `	if len(desired.Invalid) > 0 {
		return Stall`,
		New: `	if len(desired.Invalid) > 1 {
		return Stall`},
	{Name: "takes over a release that another operator has changed since", File: "internal/release/plan.go",
		Old: `	if seen.Former != nil && desired.Rendered != nil && desired.Revision == seen.Former.Revision {`,
		New: `	if seen.Former != nil && desired.Rendered != nil {`},
	{Name: "deletes what cannot be changed in place although it is to be kept", File: "internal/apply/recreate.go",
		Old: `	case IsKept(live.GetAnnotations()):
		return change,
			&ImmutableError{Ref: change.Ref, Err: fmt.Errorf("%w (it is not deleted because of %s: %s)", refusal, keepAnnotation, keepValue)}
	}`,
		New: `	}`},
	{Name: "deletes what cannot be changed in place, whose-ever it is by now", File: "internal/apply/recreate.go",
		Old: `	if err := child.ownedBy(owner, live); err != nil {
		return change, err
	}`,
		New: ``},
	{Name: "deletes the pods of a StatefulSet that the new one selects", File: "internal/apply/recreate.go",
		Old: `	if !reflect.DeepEqual(had, wants) {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationOrphan`,
		New: `	_, _ = had, wants
	return metav1.DeletePropagationBackground`},
	{Name: "settles a conflict in an object of somebody else's", File: "internal/apply/conflict.go",
		Old: `	if err := child.ownedBy(owner, live); err != nil {
		return nil, err
	}`,
		New: ``},
	{Name: "takes every conflict at a deletion for an object that is gone", File: "internal/apply/prune.go",
		Old: `	if apierrors.IsConflict(err) && a.replaced(ctx, live) || apierrors.IsNotFound(err) {
		return false, nil
	}`,
		New: `	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return false, nil
	}`},
	{Name: "lets the number of replicas become 1 when the chart stops to render it", File: "internal/apply/preserve.go",
		Old: `	if err := a.passReplicas(ctx, RefOf(child.object)); err != nil {
		return fmt.Errorf("keep the number of replicas: %w", err)
	}`,
		New: ``},
	{Name: "writes over the record of another release of the name", File: "internal/release/history.go",
		Old: `	if !refersTo(existing, cr.GetUID()) {
		return errTaken
	}`,
		New: ``},
	{Name: "deletes the records of another release of the name", File: "internal/release/history.go",
		Old: `		if !refersTo(secret, cr.GetUID()) {
			continue
		}
		if err := r.live.Delete(`,
		New: `		if err := r.live.Delete(`},
	{Name: "deletes the objects of another's hooks", File: "internal/release/hook_act.go",
		Old: `		if apply.OwnedBy(cr, live) != nil {
			continue
		}`,
		New: ``},
}

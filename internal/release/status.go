// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/pause"
)

// Condition types. The first five are helm-operator's.
const (
	TypeInitialized     = "Initialized"
	TypeDeployed        = "Deployed"
	TypeReleaseFailed   = "ReleaseFailed"
	TypeIrreconcilable  = "Irreconcilable"
	TypePaused          = "Paused"
	TypeReady           = "Ready"
	TypeProgressing     = "Progressing"
	TypeHistoryRecorded = "HistoryRecorded"
	TypeStalled         = "Stalled"
)

// Condition reasons. Those of Deployed and ReleaseFailed are helm-operator's.
const (
	ReasonInstallSuccessful = "InstallSuccessful"
	ReasonUpgradeSuccessful = "UpgradeSuccessful"
	ReasonInstallError      = "InstallError"
	ReasonUpgradeError      = "UpgradeError"
	ReasonUninstallError    = "UninstallError"
	ReasonReconcileError    = "ReconcileError"
	ReasonInvalidSpec       = "InvalidSpec"
	ReasonRenderFailed      = "RenderFailed"
	ReasonNotOurs           = apply.ReasonNotOurs
	ReasonImmutable         = apply.ReasonImmutable
	ReasonRejected          = apply.ReasonRejected
	ReasonRecorded          = "Recorded"
	ReasonHistoryForbidden  = "Forbidden"
	ReasonHistoryNameTaken  = "NameTaken"
	ReasonHistoryFailed     = "WriteFailed"
	ReasonHistoryLost       = "RenderingLost"
	ReasonChildrenReady     = "ChildrenReady"
	ReasonChildNotReady     = "ChildNotReady"
	ReasonChildFailed       = "ChildFailed"
	ReasonNotDeployed       = "NotDeployed"
	ReasonHookRunning       = "HookRunning"
	ReasonHookFailed        = "HookFailed"
	ReasonUninstalling      = "Uninstalling"

	ReasonHistoryClusterScoped = "ClusterScoped"
)

// effect is what a reconciliation found and did; status is computed from it.
type effect struct {
	step     Step
	deployed Deployed
	// inventory and children are as they are after the step.
	inventory []apply.Known
	children  []Child
	changes   apply.ChangeSet
	history   *metav1.Condition
	// hooks is how far the hooks are after the step; the zero value when none run.
	hooks Progress
	// hookFailure is why a hook failed in this step.
	hookFailure string
	// hooksSkipped is why hooks of a deletion did not run.
	hooksSkipped string
	// remaining are the objects that an uninstallation waits for.
	remaining []apply.Ref
	// again is when to look again without an event; zero means never.
	again time.Duration
	// lagging reports whether the cache did not show all that was applied before the step.
	lagging bool
	// held reports whether objects of a former revision stay until those that replace them are ready.
	held bool
	// awaited are the APIs that the resource asks for and the cluster does not serve.
	awaited []string
	// chart is that of Desired.
	chart string
	// forget reports whether what was rendered is needed no more as soon as the status is written.
	forget bool
	// failure is nil when the step succeeded.
	failure *failure
}

// failure is why a step did not succeed.
type failure struct {
	reason string
	// final reports whether trying again cannot help until the resource (or what its message names) changes.
	final bool
	// again is when to look again although it is final; zero means at the next event.
	again time.Duration
	err   error
}

// extras are the kind's own status fields and conditions.
type extras struct {
	fields     map[string]any
	conditions []metav1.Condition
}

// computeStatus returns the status of cr after a reconciliation: the engine's fields and those of the kind, everything else as it was.
// It is pure; observedGeneration is left out if zero (a kind without a status subresource, whose generation counts every write).
func computeStatus(cr *unstructured.Unstructured, done effect, more extras, observedGeneration int64, now time.Time) (map[string]any,
	error) {
	next := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}
	if status, ok := cr.Object["status"].(map[string]any); ok {
		next.Object["status"] = status
		next = next.DeepCopy()
	}
	status := next.Object["status"].(map[string]any)
	for key, value := range more.fields {
		switch {
		case key == fieldConditions || key == fieldDeployedRelease || key == fieldInventory || key == fieldHooks ||
			key == fieldObservedGeneration:
		case value == nil:
			delete(status, key)
		default:
			status[key] = value
		}
	}
	readiness := readyConditions(done)
	done.deployed.Turn = done.turnOf(readiness, now)
	if done.deployed.Digest != "" {
		status[fieldDeployedRelease] = done.deployed.write()
	}
	if len(done.inventory) > 0 || status[fieldInventory] != nil {
		status[fieldInventory] = writeInventory(done.inventory)
	}
	delete(status, fieldHooks)
	if done.hooks.Event != "" {
		status[fieldHooks] = done.hooks.write()
	}
	if observedGeneration > 0 {
		status[fieldObservedGeneration] = observedGeneration
	}
	set := append(releaseConditions(cr, done), readiness...)
	set = append(set, upgradedCondition(cr, done)...)
	list := conditions.Set(conditions.Read(cr), now, observedGeneration, append(set, more.conditions...)...)
	return status, conditions.Write(next, list)
}

// WholeStatus is a status with every field that the engine has to find again; the values do not matter. Without those of waves, objects
// do not wait for their turn.
func WholeStatus() (map[string]any, error) {
	kind := schema.GroupVersionKind{Group: "group", Version: "version", Kind: "kind"}
	known := apply.Known{Ref: apply.Ref{GroupVersionKind: kind, Namespace: "namespace", Name: "name", UID: "uid"}, Fields: "fields"}
	done := effect{step: Nothing{}, deployed: Deployed{Digest: "digest"}, inventory: []apply.Known{known},
		hooks: Progress{Event: string(preInstall), Failures: 1}}
	return computeStatus(&unstructured.Unstructured{}, done, extras{}, 1, time.Time{})
}

// releaseConditions are those that tell about the release itself.
func releaseConditions(cr *unstructured.Unstructured, done effect) []metav1.Condition {
	_, paused := done.step.(Pause)
	set := []metav1.Condition{
		conditions.Condition(TypeInitialized, metav1.ConditionTrue, "Seen", ""),
		conditions.Condition(TypePaused, conditions.Status(paused), pause.ReasonNotPaused, pause.Message(cr)),
	}
	if paused {
		set[1].Reason = pause.ReasonPaused
		return set
	}
	irreconcilable := conditions.Condition(TypeIrreconcilable, metav1.ConditionFalse, "Reconcilable", "")
	if stall, ok := done.step.(Stall); ok {
		irreconcilable = conditions.Condition(TypeIrreconcilable, metav1.ConditionTrue, stall.Reason, stall.Message)
	}
	if f := done.failure; f != nil && f.final {
		irreconcilable = conditions.Condition(TypeIrreconcilable, metav1.ConditionTrue, f.reason, f.err.Error())
	}
	stalled := irreconcilable
	stalled.Type = TypeStalled
	if stalled.Status == metav1.ConditionFalse {
		stalled.Reason = "NotStalled"
	}
	releaseFailed := conditions.Condition(TypeReleaseFailed, metav1.ConditionFalse, "NotFailed", "")
	if message := failureMessage(done); message != "" {
		releaseFailed = conditions.Condition(TypeReleaseFailed, metav1.ConditionTrue, failedReason(done.step), message)
	}
	set = append(set, irreconcilable, stalled, releaseFailed)
	if done.history != nil {
		set = append(set, *done.history)
	}
	return append(set, deployedCondition(done))
}

// failureMessage is why the release failed; empty when it did not.
func failureMessage(done effect) string {
	if done.failure != nil {
		return done.failure.err.Error()
	}
	if wait, ok := done.step.(AwaitHook); ok && wait.Failed {
		return wait.Message
	}
	return done.hookFailure
}

// failedReason is helm-operator's word for what failed.
func failedReason(step Step) string {
	event := ""
	switch step := step.(type) {
	case Install:
		return ReasonInstallError
	case Upgrade:
		return ReasonUpgradeError
	case Uninstall, Leave:
		return ReasonUninstallError
	case ClearHook:
		event = step.Hook.Progress.Event
	case StartHook:
		event = step.Hook.Progress.Event
	case AwaitHook:
		event = step.Hook.Progress.Event
	case EndHook:
		event = step.Hook.Progress.Event
	case Nothing, Gone, Pause, Stall, AddFinalizer, TakeOver, TakeTurn, Repair, RecordHistory:
	}
	switch hookEvent(event).action() {
	case "install":
		return ReasonInstallError
	case "upgrade":
		return ReasonUpgradeError
	case "delete":
		return ReasonUninstallError
	}
	return ReasonReconcileError
}

func deployedCondition(done effect) metav1.Condition {
	if done.deployed.Digest == "" {
		return conditions.Condition(TypeDeployed, metav1.ConditionFalse, ReasonNotDeployed, "no revision was installed completely")
	}
	reason := ReasonInstallSuccessful
	if done.deployed.Revision > 1 {
		reason = ReasonUpgradeSuccessful
	}
	return conditions.Condition(TypeDeployed, metav1.ConditionTrue, reason,
		fmt.Sprintf("revision %d of release %s", done.deployed.Revision, done.deployed.Name))
}

// readyConditions are computed from the children's own status. They name the first child that keeps the release from being
// ready, failed ones first, and count the others.
func readyConditions(done effect) []metav1.Condition {
	notReady := func(reason, message string, progressing bool) []metav1.Condition {
		return []metav1.Condition{
			conditions.Condition(TypeReady, metav1.ConditionFalse, reason, message),
			conditions.Condition(TypeProgressing, conditions.Status(progressing), reason, message),
		}
	}
	if stall, ok := done.step.(Stall); ok {
		return notReady(stall.Reason, stall.Message, false)
	}
	if done.failure != nil {
		return notReady(done.failure.reason, done.failure.err.Error(), !done.failure.final)
	}
	if reason, message := underWay(done); reason != "" {
		return notReady(reason, message, true)
	}
	if _, paused := done.step.(Pause); paused && done.deployed.Digest == "" {
		return notReady(pause.ReasonPaused, "nothing was installed before the pause", false)
	}
	if done.deployed.Digest == "" {
		return notReady(ReasonNotDeployed, "no revision was installed completely", true)
	}
	var broken, pending []string
	for _, child := range done.children {
		state := readinessOf(child.Object)
		if child.Behind { // its controller has not told of the change
			if _, tells := number(child.Object, "status", "observedGeneration"); tells {
				state = waiting("is not seen yet as it was applied")
			}
		}
		switch state.progress {
		case failed:
			broken = append(broken, child.sentence(state))
		case inProgress:
			pending = append(pending, child.sentence(state))
		case ready:
		}
	}
	switch {
	case len(broken) > 0:
		return notReady(ReasonChildFailed, firstOf(append(broken, pending...)), len(pending) > 0)
	case len(pending) > 0:
		return notReady(ReasonChildNotReady, firstOf(pending), true)
	}
	message := fmt.Sprintf("all %d objects are ready", len(done.children))
	return []metav1.Condition{
		conditions.Condition(TypeReady, metav1.ConditionTrue, ReasonChildrenReady, message),
		conditions.Condition(TypeProgressing, metav1.ConditionFalse, ReasonChildrenReady, message),
	}
}

// underWay says what the release waits for besides its children: a hook, or the end of its deletion.
func underWay(done effect) (reason, message string) {
	switch step := done.step.(type) {
	case AwaitHook:
		if step.Failed {
			return ReasonHookFailed, step.Message
		}
		return ReasonHookRunning, step.Message
	case StartHook:
		return ReasonHookRunning, step.Hook.String() + " runs"
	case ClearHook:
		return ReasonHookRunning, step.Hook.String() + " waits until its earlier run is gone"
	case EndHook:
		if done.hookFailure != "" {
			return ReasonHookFailed, done.hookFailure
		}
		if done.hooks.Event != "" {
			return ReasonHookRunning, step.Hook.String() + " succeeded"
		}
	case Uninstall:
		if len(done.remaining) > 0 {
			return ReasonUninstalling, "waiting until these are gone: " + remains(done.remaining)
		}
		return ReasonUninstalling, "the objects are gone"
	case Leave:
		return ReasonUninstalling, "the last records are being removed"
	case Nothing, Gone, Pause, Stall, AddFinalizer, TakeOver, Install, Upgrade, TakeTurn, Repair, RecordHistory:
	}
	if done.hooks.Event != "" {
		return ReasonHookRunning, done.hooks.Event + " hooks follow"
	}
	return "", ""
}

// sentence names the child and says what keeps it from being ready.
func (c Child) sentence(state readiness) string {
	text := c.Kind + " " + c.Name + " " + state.why
	if c.Why != "" {
		text += ": " + c.Why
	}
	return text
}

func firstOf(sentences []string) string {
	first := strings.TrimSuffix(sentences[0], ".")
	if len(sentences) == 1 {
		return first
	}
	return fmt.Sprintf("%s (and %d more)", first, len(sentences)-1)
}

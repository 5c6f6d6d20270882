// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// passwordChange is how far a change of the password has come; nil when none is under way.
func passwordChange(s *snapshot.Snapshot, d plan.Decision, previousFor time.Duration) *v1alpha1.PasswordChange {
	if s.Auth.Changing == "" {
		return nil
	}
	message := "clients are told the new password; the previous one is accepted until then"
	if s.Auth.Changing == snapshot.PasswordAccepting {
		message = "every instance accepts the next password; clients are told it when it is in the files of every pod"
	}
	if pending := plan.AccessPending(s); pending != "" {
		message = pending
	} else if !d.Healthy {
		message = "the cluster is unhealthy, and the change waits for that"
	}
	return &v1alpha1.PasswordChange{
		Stage: string(s.Auth.Changing), Message: message,
		Since: metav1.NewTime(s.Auth.ChangedAt), Until: metav1.NewTime(plan.PasswordStageEnds(s.Auth, previousFor)),
	}
}

// accessApplied reports whether running instances accept the passwords and users of the spec and its Secrets.
func accessApplied(s *snapshot.Snapshot) metav1.Condition {
	condition := func(holds bool, reason, message string) metav1.Condition {
		return conditions.Condition(v1alpha1.ConditionAccessApplied, conditions.Status(holds), reason, message)
	}
	pending := plan.AccessPending(s)
	switch {
	case !s.Auth.Known:
		return condition(false, "PasswordUnavailable", s.Auth.Problem)
	case s.Auth.AskedProblem != "":
		return condition(false, "SecretUnusable", s.Auth.AskedProblem+"; until then everything stays as it was")
	case s.Auth.Changing == snapshot.PasswordAccepting:
		return condition(false, "PasswordChanging", "clients are told the next password when every instance accepts it")
	case s.Auth.Due || s.Auth.UsersDue || pending != "":
		return condition(false, "NotApplied", pending)
	}
	return condition(true, "Applied", "")
}

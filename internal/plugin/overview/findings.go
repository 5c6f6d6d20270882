// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Severity is how bad a finding is.
type Severity string

// The severities, the worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "note"
)

// Finding is something that a person should know, and what to type next; that may be empty.
type Finding struct {
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	Type     string   `json:"type,omitempty"`
}

// certificateSoon is how long before its end a certificate is told of: as the alert does.
const certificateSoon = 14 * 24 * time.Hour

// findings are what is wrong.
func findings(seen Seen, c Cluster) []Finding {
	cr := seen.Cluster
	f := finder{namespace: cr.Namespace, name: cr.Name}
	f.operator(cr)
	f.conditions(cr)
	f.instances(c)
	for i := range seen.Claims {
		if claim := &seen.Claims[i]; claim.Status.Phase == corev1.ClaimLost || claim.Status.Phase == corev1.ClaimPending {
			f.add(Warning, fmt.Sprintf("claim %s is %s", claim.Name, claim.Status.Phase), "kubectl describe pvc %s -n %s", claim.Name, cr.Namespace)
		}
	}
	if end := cr.Status.CertificateNotAfter; end != nil && end.Sub(seen.Now) < certificateSoon {
		f.add(Warning, "the certificate of the instances expires "+end.UTC().Format(time.RFC3339)+": renew it in its Secret", "")
	}
	if cr.Spec.Pause {
		f.add(Info, "paused: the operator changes nothing", "kubectl middleware resume %s -n %s", cr.Name, cr.Namespace)
	}
	order := []Severity{Error, Warning, Info}
	slices.SortStableFunc(f.found, func(a, b Finding) int { return slices.Index(order, a.Severity) - slices.Index(order, b.Severity) })
	return f.found
}

type finder struct {
	namespace, name string
	found           []Finding
}

// add has names of objects in what is to be typed, which Kubernetes keeps free of what a shell reads, and nothing else.
func (f *finder) add(severity Severity, message, command string, names ...any) {
	if len(names) > 0 {
		command = fmt.Sprintf(command, names...)
	}
	f.found = append(f.found, Finding{Severity: severity, Message: message, Type: command})
}

// operator is whether anybody looks after the cluster.
func (f *finder) operator(cr *v1alpha1.RedisCluster) {
	status := &cr.Status
	switch {
	case status.Phase == "" && len(status.Conditions) == 0:
		f.add(Error, "no operator has looked at this RedisCluster: it does not run, or does not watch the namespace",
			"kubectl middleware check -n %s", f.namespace)
	case status.ObservedGeneration != 0 && status.ObservedGeneration < cr.Generation:
		f.add(Warning, fmt.Sprintf("what is shown is of generation %d, and the spec is at %d: the operator has not got to it yet",
			status.ObservedGeneration, cr.Generation), "kubectl middleware check -n %s", f.namespace)
	}
	formed := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionFormed)
	if formed && status.Slots < slots.Count {
		f.add(Error, fmt.Sprintf("%d of %d slots are not served: commands on their keys fail", slots.Count-status.Slots, slots.Count), "")
	}
}

// told are the conditions that are told when they have the status, and what helps.
var told = []struct {
	condition string
	status    metav1.ConditionStatus
	severity  Severity
	help      string
}{
	{v1alpha1.ConditionStalled, metav1.ConditionTrue, Error, "kubectl describe rediscluster %s -n %s"},
	{v1alpha1.ConditionAccessApplied, metav1.ConditionFalse, Warning, ""},
	{v1alpha1.ConditionCertificateInUse, metav1.ConditionFalse, Warning, ""},
	{v1alpha1.ConditionConfigured, metav1.ConditionFalse, Warning, ""},
	{v1alpha1.ConditionMastersSpread, metav1.ConditionFalse, Warning, ""},
	{v1alpha1.ConditionAnomalous, metav1.ConditionTrue, Warning, ""},
	{v1alpha1.ConditionFenced, metav1.ConditionTrue, Warning, "kubectl middleware unfence %s -n %s"},
	{v1alpha1.ConditionFenced, metav1.ConditionFalse, Warning, ""},
	{v1alpha1.ConditionExternalAccess, metav1.ConditionFalse, Warning, "kubectl get rediscluster %s -n %s -o jsonpath={.status.external}"},
	{v1alpha1.ConditionArchiving, metav1.ConditionFalse, Warning, "kubectl get rediscluster %s -n %s -o jsonpath={.status.archive}"},
}

// inProgress are reasons that say that a condition becomes what it is to be without anybody's help.
var inProgress = []string{"PasswordChanging", "NotBegun", "Concentrated"}

func (f *finder) conditions(cr *v1alpha1.RedisCluster) {
	for _, row := range told {
		c := meta.FindStatusCondition(cr.Status.Conditions, row.condition)
		if c == nil || c.Status != row.status {
			continue
		}
		severity := row.severity
		if slices.Contains(inProgress, c.Reason) {
			severity = Info
		}
		command := row.help
		if command != "" {
			command = fmt.Sprintf(command, f.name, f.namespace)
		}
		f.found = append(f.found, Finding{Severity: severity, Message: sentence(c), Type: command})
	}
	if c := meta.FindStatusCondition(cr.Status.Conditions, v1alpha1.ConditionProgressing); c != nil && c.Reason == v1alpha1.ReasonTimedOut {
		f.add(Error, sentence(c), "kubectl describe rediscluster %s -n %s", f.name, f.namespace)
	}
}

func sentence(c *metav1.Condition) string {
	return strings.TrimSuffix(c.Type+" is "+string(c.Status)+", "+c.Reason+": "+c.Message, ": ")
}

// instances are those that do not serve.
func (f *finder) instances(c Cluster) {
	for _, shard := range c.Shards {
		for _, in := range shard.Instances {
			message := strings.TrimSuffix(in.Name+": "+in.State+": "+in.Message, ": ")
			switch in.State {
			case "Serving", "True", "Terminating":
			case "NotReached", "ClusterDown", "NotInSync":
				f.add(Warning, message, "kubectl logs %s -n %s -c %s --tail=50", in.Name, f.namespace, redisContainer)
			default:
				f.add(Warning, message, "kubectl describe pod %s -n %s", in.Name, f.namespace)
			}
		}
	}
}

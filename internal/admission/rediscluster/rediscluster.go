// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rediscluster says what a RedisCluster may be. The webhook calls it before an
// object is stored, and the reconciler calls it again, for objects that came past the
// webhook. All of it is pure.
package rediscluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Options are the operator's own settings that admission depends on.
type Options struct {
	// AllowHostPath permits volumes of type hostPath (flag --allow-host-path). They give
	// who writes a RedisCluster a directory of the node.
	AllowHostPath bool
	// ServiceAnnotationDomains are those whose annotations, and those of their subdomains, Services of clients may have (flag
	// --service-annotation-domains); "*" is any, and nil are DefaultServiceAnnotationDomains.
	ServiceAnnotationDomains []string
	// ClusterIssuers are the names of those that certificates may be asked of (flag --cluster-issuers); "*" is any. They may be meant for
	// others, whom a certificate of theirs would convince.
	ClusterIssuers []string
}

// DefaultServiceAnnotationDomains are those of monitoring and of load balancers.
var DefaultServiceAnnotationDomains = []string{"prometheus.io", "service.beta.kubernetes.io", "networking.gke.io"}

// Default writes what the CRD's schema defaults, the built-in image, and storage when nothing says where
// data is kept. Where storage and a volume of type pvc say that together, storage stays. shards stays unset, so that kubectl scale
// keeps its meaning.
func Default(cr *v1alpha1.RedisCluster) {
	s := &cr.Spec
	if s.Autoscale != nil {
		defaultTo(&s.Autoscale.Mode, v1alpha1.AutoscaleAuto)
		defaultTo(&s.Autoscale.InstancesPerShard, v1alpha1.DefaultInstancesPerShard)
		for i := range s.Autoscale.Windows {
			defaultTo(&s.Autoscale.Windows[i].TimeZone, v1alpha1.DefaultWindowTimeZone)
		}
	}
	if s.Balance != nil {
		defaultTo(&s.Balance.Mode, v1alpha1.BalanceMove)
		defaultTo(&s.Balance.MegabytesPerHour, v1alpha1.DefaultMegabytesPerHour)
	}
	defaultTo(&s.Replicas, ptr.To(v1alpha1.DefaultReplicas))
	defaultTo(&s.Finalizers, v1alpha1.DeletionForeground)
	defaultTo(&s.Repository, v1alpha1.DefaultRepository)
	defaultTo(&s.Version, v1alpha1.DefaultVersion)
	defaultTo(&s.UpdateStrategy.Type, v1alpha1.AutoReceive)
	defaultTo(&s.UpdateStrategy.Pipeline, v1alpha1.DefaultPipeline)
	defaultTo(&s.Auth.Enabled, ptr.To(true))
	defaultTo(&s.Auth.PreviousPasswordFor, &metav1.Duration{Duration: v1alpha1.DefaultPreviousPasswordFor})
	defaultTo(&s.AntiAffinity, v1alpha1.AntiAffinityPreferred)
	defaultTo(&s.SpreadMasters, ptr.To(true))
	defaultTo(&s.NetworkPolicy.Enabled, ptr.To(true))
	defaultTo(&s.PodDisruptionBudget.Enabled, ptr.To(true))
	defaultBackup(s.Backup)
	if s.External != nil {
		defaultTo(&s.External.Mode, v1alpha1.ExternalModeGateway)
		defaultTo(&s.External.Replicas, ptr.To(v1alpha1.DefaultGateways))
	}
	for i := range s.Pod {
		defaultTo(&s.Pod[i].UpdateStrategy.Type, v1alpha1.RollingUpdate)
	}
	if s.Storage == nil && s.Template().Volumes == nil {
		s.Storage = &v1alpha1.Storage{}
	}
	if s.Storage != nil && claimEach(cr) {
		for i := range s.Pod {
			s.Pod[i].Volumes = nil // type pvc, which adds nothing; the schema wants one of the two
		}
	}
	if s.Storage != nil {
		// A size of "0" is not an unset one: it is refused, not replaced.
		defaultTo(&s.Storage.Size, resource.MustParse(v1alpha1.DefaultStorageSize))
		defaultTo(&s.Storage.Retain, v1alpha1.Retain)
	}
}

func defaultTo[T comparable](to *T, value T) {
	if *to == *new(T) {
		*to = value
	}
}

// rules are asked in their order, whatever the spec says. They keep objects safe to look
// at: what fails one of them could write what it must not, or could not be understood.
var rules = []func(*v1alpha1.RedisCluster, Options) field.ErrorList{
	checkName,
	checkReplicas,
	checkEnums,
	checkSlotStrategy,
	checkImages,
	checkDataPlace,
	checkStorage,
	checkBootstrap,
	checkBackup,
	checkBalance,
	checkExternal,
	checkConfig,
	checkModules,
	checkHibernate,
	checkAuth,
	checkTLS,
	checkLabels,
	checkAnnotations,
	checkEnv,
	checkResources,
	checkContainers,
	checkScheduling,
	checkOverlay,
	checkService,
}

// runRules are asked in their order when the cluster is to run. A paused spec is a draft
// that may still hold placeholders, and there they are warnings.
var runRules = []func(*v1alpha1.RedisCluster) field.ErrorList{
	checkEngineVersion,
	checkNodeIDs,
	checkObjectNames,
}

// Validate returns what is wrong with a defaulted RedisCluster, most basic things first. One
// that is too large is not looked at any further.
func Validate(cr *v1alpha1.RedisCluster, o Options) field.ErrorList {
	refused := CheckAutoscale(cr)
	if len(refused) > 0 {
		return refused
	}
	cr = largestOf(cr)
	if refused = checkSize(cr); len(refused) > 0 {
		return refused
	}
	for _, rule := range rules {
		refused = append(refused, rule(cr, o)...)
	}
	if !cr.Spec.Pause {
		refused = append(refused, draftProblems(cr)...)
	}
	return refused[:min(len(refused), maxProblems)]
}

func draftProblems(cr *v1alpha1.RedisCluster) field.ErrorList {
	var problems field.ErrorList
	for _, rule := range runRules {
		problems = append(problems, rule(cr)...)
	}
	return problems
}

// advice are the rules whose breach is allowed and deserves a word.
var advice = []func(*v1alpha1.RedisCluster) []string{
	adviseReplicas,
	adviseElections,
	adviseKeepingData,
	adviseAuth,
	adviseTLS,
	adviseExternal,
	adviseImages,
	adviseConfig,
	adviseAssignment,
	adviseEnv,
	advisePipeline,
}

// Warnings returns what a user should know about a RedisCluster that is accepted.
func Warnings(cr *v1alpha1.RedisCluster) []string {
	if len(CheckAutoscale(cr)) > 0 {
		return nil // it is refused
	}
	warnings := adviseAutoscale(cr)
	cr = largestOf(cr)
	if len(checkSize(cr)) > 0 {
		return nil // it is refused
	}
	if cr.Spec.Pause {
		for _, problem := range draftProblems(cr) {
			warnings = append(warnings, fmt.Sprintf("%v (accepted while spec.pause is true, refused when it is false)", problem))
		}
	}
	for _, advise := range advice {
		warnings = append(warnings, advise(cr)...)
	}
	return warnings
}

// Paths of the fields that several rules are about.
var (
	specPath    = field.NewPath("spec")
	podPath     = specPath.Child("pod").Index(0)
	volumesPath = podPath.Child("volumes")
	storagePath = specPath.Child("storage")
)

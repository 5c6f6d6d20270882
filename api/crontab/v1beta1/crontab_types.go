// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	chartv1 "middleware.hc.cn/operator/api/chart/v1"
)

// ConcurrencyPolicy says what happens when a run is due and the last one has
// not finished.
// +kubebuilder:validation:Enum=Allow;Forbid;Replace
type ConcurrencyPolicy string

// The concurrency policies of a CronJob.
const (
	// AllowConcurrent starts the new run beside the old one.
	AllowConcurrent ConcurrencyPolicy = "Allow"
	// ForbidConcurrent skips the new run.
	ForbidConcurrent ConcurrencyPolicy = "Forbid"
	// ReplaceConcurrent stops the old run and starts the new one.
	ReplaceConcurrent ConcurrencyPolicy = "Replace"
)

// CronTabSpec says what to run, and when.
type CronTabSpec struct {
	// When to run: five cron fields (minute, hour, day of month, month, day of
	// week) or one of @yearly, @annually, @monthly, @weekly, @daily, @midnight,
	// @hourly. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[ \\t]*(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[^ \\t\\n@]+([ \\t]+[^ \\t\\n]+){4})[ \\t]*$')`,message="must have five fields (minute hour day-of-month month day-of-week), such as \"*/5 * * * *\", or be one of @yearly, @monthly, @weekly, @daily, @hourly"
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=10,displayName="Schedule",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	CronSpec string `json:"cronSpec"`

	// Container image to run. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=30,displayName="Image",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Image string `json:"image"`

	// Number of pods of each run. All of them must succeed.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=60,displayName="Pods per Run",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:podCount"}
	Replicas *int32 `json:"replicas,omitempty"`

	// Command that replaces the image's entrypoint. Without it the image's own
	// entrypoint runs. $(NAME) refers to an environment variable, as in a pod.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=40,displayName="Command"
	Command []string `json:"command,omitempty"`

	// Arguments of the command. Without them, and without a command, the image's
	// own arguments are used.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=16384
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=50,displayName="Arguments"
	Args []string `json:"args,omitempty"`

	// Environment variables, as in a pod. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=52,displayName="Environment Variables",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	Env []corev1.EnvVar `json:"env,omitempty"`

	// ConfigMaps and Secrets whose entries become environment variables, as in a
	// pod. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=53,displayName="Environment Sources",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:advanced"}
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Stops further runs while true. A run that has begun goes on.
	// +optional
	// +kubebuilder:default=false
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=70,displayName="Suspend",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:booleanSwitch"}
	Suspend *bool `json:"suspend,omitempty"`

	// Time zone of cronSpec by its IANA name, such as Asia/Shanghai. Without it
	// the time zone of the cluster's controller manager applies, mostly UTC.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=20,displayName="Time Zone",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	TimeZone string `json:"timeZone,omitempty"`

	// What to do when a run is due and the last one has not finished: Allow both,
	// Forbid the new one, or Replace the old one.
	// +optional
	// +kubebuilder:default=Allow
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=80,displayName="Concurrency Policy",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:select:Allow","urn:alm:descriptor:com.tectonic.ui:select:Forbid","urn:alm:descriptor:com.tectonic.ui:select:Replace","urn:alm:descriptor:com.tectonic.ui:advanced"}
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// Number of finished runs to keep, of the successful and of the failed ones
	// each.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=90,displayName="History Limit",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:number","urn:alm:descriptor:com.tectonic.ui:advanced"}
	HistoryLimit *int32 `json:"historyLimit,omitempty"`

	chartv1.PodPlacement `json:",inline"`
	chartv1.PodVolumes   `json:",inline"`
}

// CronTabStatus says what was run, and what comes next.
type CronTabStatus struct {
	chartv1.ReleaseStatus `json:",inline"`

	// When the last run began.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=20,displayName="Last Run",xDescriptors={"urn:alm:descriptor:text"}
	LastRunTime *metav1.Time `json:"lastRunTime,omitempty"`

	// When the next run is due, seen from the last run. Absent while suspended.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=30,displayName="Next Run",xDescriptors={"urn:alm:descriptor:text"}
	NextRunTime *metav1.Time `json:"nextRunTime,omitempty"`

	// Number of runs in progress.
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=status,order=10,displayName="Active Runs",xDescriptors={"urn:alm:descriptor:text"}
	Active int32 `json:"active,omitempty"`
}

// CronTab runs a container image on a cron schedule.
//
// +genclient
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=crontabs,singular=crontab,shortName=ct,categories=middleware
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.cronSpec`
// +kubebuilder:printcolumn:name="Image",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Last Run",type=date,JSONPath=`.status.lastRunTime`
// +kubebuilder:printcolumn:name="Next Run",type=string,JSONPath=`.status.nextRunTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52",message="metadata.name must have at most 52 characters, because the names of a CronJob's Jobs append 11"
// +operator-sdk:csv:customresourcedefinitions:order=4,displayName="Cron Tab",resources={{CronJob,v1},{Job,v1},{Pod,v1},{Secret,v1},{Event,v1}}
type CronTab struct {
	metav1.TypeMeta `json:",inline"`
	// Name, namespace, labels and annotations of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to run, and when.
	// +required
	Spec CronTabSpec `json:"spec"`

	// What was run, and what comes next. Written by the operator.
	// +optional
	Status CronTabStatus `json:"status,omitempty"`
}

// CronTabList is a list of CronTabs.
//
// +kubebuilder:object:root=true
type CronTabList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// The CronTabs.
	Items []CronTab `json:"items"`
}

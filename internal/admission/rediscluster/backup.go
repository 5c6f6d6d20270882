// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// archiveTime is one of the times of an archive, with its default and what it may be.
type archiveTime struct {
	name                   string
	is                     **metav1.Duration
	byDefault, least, most time.Duration
	between                string
}

func archiveTimes(a *v1alpha1.Archive) []archiveTime {
	const day = 24 * time.Hour
	return []archiveTime{
		{"interval", &a.Interval, v1alpha1.DefaultArchiveInterval, time.Second, 10 * time.Minute, "1s and 10m"},
		{"markInterval", &a.MarkInterval, v1alpha1.DefaultArchiveMarkInterval, 5 * time.Second, day, "5s and 24h"},
		{"baseInterval", &a.BaseInterval, v1alpha1.DefaultArchiveBaseInterval, 10 * time.Minute, 30 * day, "10m and 720h"},
		{"keep", &a.Keep, v1alpha1.DefaultArchiveKeep, time.Hour, 3650 * day, "1h and 87600h"},
		{"objective", &a.Objective, v1alpha1.DefaultArchiveObjective, 5 * time.Second, day, "5s and 24h"},
	}
}

func defaultBackup(backup *v1alpha1.ClusterBackup) {
	if backup == nil {
		return
	}
	if s3 := backup.Store.S3; s3 != nil {
		defaultTo(&s3.Region, v1alpha1.DefaultRegion)
	}
	if backup.Archive == nil {
		return
	}
	for _, d := range archiveTimes(backup.Archive) {
		defaultTo(d.is, &metav1.Duration{Duration: d.byDefault})
	}
}

var recipientForm = regexp.MustCompile(`^age1[02-9ac-hj-np-z]{58}$`)

// checkBackup is about what is kept of the cluster in an object store.
func checkBackup(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	backup, at := cr.Spec.Backup, specPath.Child("backup")
	if backup == nil {
		return nil
	}
	var refused field.ErrorList
	if backup.Archive == nil {
		refused = append(refused, field.Required(at.Child("archive"), "say what is kept: set archive, or leave backup out"))
	} else {
		refused = append(refused, checkArchive(backup.Archive, at.Child("archive"))...)
	}
	const mostRecipients = 10
	if n := len(backup.Recipients); n > mostRecipients {
		refused = append(refused, field.TooMany(at.Child("recipients"), n, mostRecipients))
	}
	for i, recipient := range backup.Recipients[:min(len(backup.Recipients), mostRecipients)] {
		if !recipientForm.MatchString(recipient) {
			refused = append(refused, field.Invalid(at.Child("recipients").Index(i), recipient,
				"is no age public key: write the line that begins with age1, as age-keygen prints it"))
		}
	}
	refused = append(refused, CheckRate(backup.MaxBytesPerSecond, at.Child("maxBytesPerSecond"))...)
	return append(refused, CheckStore(backup.Store, at.Child("store"))...)
}

func checkArchive(archive *v1alpha1.Archive, at *field.Path) field.ErrorList {
	var refused field.ErrorList
	for _, d := range archiveTimes(archive) {
		if is := *d.is; is != nil && (is.Duration < d.least || is.Duration > d.most) {
			refused = append(refused, field.Invalid(at.Child(d.name), is.Duration.String(), "must be between "+d.between))
		}
	}
	if i, o := archive.Interval, archive.Objective; i != nil && o != nil && o.Duration < 2*i.Duration {
		refused = append(refused, field.Invalid(at.Child("objective"), o.Duration.String(),
			"must be twice the interval at least: what is written waits for as long as that, and then for the store"))
	}
	return refused
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
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

// What the schema says of a store, for objects that came past it: these become arguments of a program.
var (
	bucketForm    = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixForm    = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)
	regionForm    = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	endpointForm  = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]{1,292}$`)
	recipientForm = regexp.MustCompile(`^age1[02-9ac-hj-np-z]{58}$`)
)

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
	return append(refused, checkStore(backup.Store, at.Child("store"))...)
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

func checkStore(store v1alpha1.BackupStore, at *field.Path) field.ErrorList {
	if at = at.Child("s3"); store.S3 == nil {
		return field.ErrorList{field.Required(at, "say where: set s3")}
	}
	s3 := store.S3
	var refused field.ErrorList
	const longestPrefix = 200
	if !bucketForm.MatchString(s3.Bucket) {
		refused = append(refused, field.Invalid(at.Child("bucket"), s3.Bucket, "is no name of a bucket: name one that exists"))
	}
	if s3.Prefix != "" && (!prefixForm.MatchString(s3.Prefix) || len(s3.Prefix) > longestPrefix) {
		refused = append(refused, field.Invalid(at.Child("prefix"), s3.Prefix,
			"cannot be put before the names of objects: use letters, digits, dots, hyphens and underscores, with single slashes in between"))
	}
	if s3.Region != "" && !regionForm.MatchString(s3.Region) {
		refused = append(refused, field.Invalid(at.Child("region"), s3.Region, "is no region: write one such as eu-west-1"))
	}
	if s3.Endpoint != "" && !endpointForm.MatchString(s3.Endpoint) {
		refused = append(refused, field.Invalid(at.Child("endpoint"), s3.Endpoint, "must be http://HOST:PORT or https://HOST:PORT"))
	}
	for _, secret := range []struct {
		at   *field.Path
		name string
	}{{at.Child("credentialsSecretName"), s3.CredentialsSecretName}, {at.Child("caSecretName"), s3.CASecretName}} {
		if secret.name != "" && len(validation.IsDNS1123Subdomain(secret.name)) > 0 {
			refused = append(refused, field.Invalid(secret.at, secret.name, "cannot be the name of a Secret: name one that exists"))
		}
	}
	if s3.CredentialsSecretName == "" {
		refused = append(refused, field.Required(at.Child("credentialsSecretName"), "name the Secret with the credentials of the store"))
	}
	return refused
}

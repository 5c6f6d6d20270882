// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// What the schema says of stores, for objects that came past it: these become arguments of a program.
var (
	bucketForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixForm   = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`)
	regionForm   = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	endpointForm = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]{1,292}$`)

	googleBucketForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`)
	containerForm     = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){2,62}$`)
	accountForm       = regexp.MustCompile(`^[a-z0-9]{3,24}$`)
	azureEndpointForm = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]{1,267}(/[a-z0-9]{3,24})?$`)
)

const longestPrefix = 200

func checkS3(s3 *v1alpha1.S3Store, at *field.Path) field.ErrorList {
	var refused field.ErrorList
	if !bucketForm.MatchString(s3.Bucket) {
		refused = append(refused, field.Invalid(at.Child("bucket"), s3.Bucket, "is no name of a bucket: name one that exists"))
	}
	if s3.Region != "" && !regionForm.MatchString(s3.Region) {
		refused = append(refused, field.Invalid(at.Child("region"), s3.Region, "is no region: write one such as eu-west-1"))
	}
	if s3.Endpoint != "" && !endpointForm.MatchString(s3.Endpoint) {
		refused = append(refused, field.Invalid(at.Child("endpoint"), s3.Endpoint, "must be http://HOST:PORT or https://HOST:PORT"))
	}
	return refused
}

func checkAzure(azure *v1alpha1.AzureStore, at *field.Path) field.ErrorList {
	var refused field.ErrorList
	if !containerForm.MatchString(azure.Container) {
		refused = append(refused, field.Invalid(at.Child("container"), azure.Container, "is no name of a container: name one that exists"))
	}
	if !accountForm.MatchString(azure.StorageAccount) {
		refused = append(refused, field.Invalid(at.Child("storageAccount"), azure.StorageAccount,
			"is no name of a storage account: they have 3 to 24 lower-case letters and digits"))
	}
	if azure.Endpoint != "" && !azureEndpointForm.MatchString(azure.Endpoint) {
		refused = append(refused, field.Invalid(at.Child("endpoint"), azure.Endpoint,
			"must be http://HOST:PORT or https://HOST:PORT, with /ACCOUNT at its end where a server has several"))
	}
	return refused
}

// CheckStore is about where backups lie, whatever object says so. The schema refuses the same; a CRD may have been changed.
func CheckStore(store v1alpha1.BackupStore, at *field.Path) field.ErrorList {
	type named struct {
		at   *field.Path
		name string
	}
	var names []named
	var credentials string
	kinds := 0
	add := func(kind, secret, ca string) *field.Path {
		kinds++
		credentials += secret
		in := at.Child(kind)
		names = append(names, named{in.Child("credentialsSecretName"), secret}, named{in.Child("caSecretName"), ca})
		return in
	}
	var in *field.Path
	var refused field.ErrorList
	if s := store.S3; s != nil {
		in = add("s3", s.CredentialsSecretName, s.CASecretName)
		refused = checkS3(s, in)
	}
	if s := store.GCS; s != nil {
		in = add("gcs", s.CredentialsSecretName, "")
		if !googleBucketForm.MatchString(s.Bucket) {
			refused = append(refused, field.Invalid(in.Child("bucket"), s.Bucket, "is no name of a bucket: name one that exists"))
		}
	}
	if s := store.Azure; s != nil {
		in = add("azure", s.CredentialsSecretName, s.CASecretName)
		refused = checkAzure(s, in)
	}
	if s := store.Claim; s != nil {
		in = add("claim", "", "")
		names = append(names, named{in.Child("claimName"), s.ClaimName})
	}
	if kinds != 1 {
		return field.ErrorList{field.Required(at, "say where: set one of s3, gcs, azure and claim")}
	}
	switch identity := at.Child("serviceAccountName"); {
	case store.Claim != nil && store.ServiceAccountName != "":
		refused = append(refused, field.Forbidden(identity, "a claim is mounted, and nobody logs in to it: leave serviceAccountName out"))
	case store.Claim == nil && (credentials == "") == (store.ServiceAccountName == ""):
		refused = append(refused, field.Required(identity,
			"say who logs in to the store: set either credentialsSecretName in it, or serviceAccountName for a pod's identity"))
	}
	if prefix := store.Prefix(); prefix != "" && (!prefixForm.MatchString(prefix) || len(prefix) > longestPrefix) {
		refused = append(refused, field.Invalid(in.Child("prefix"), prefix,
			"must be a path below the store, such as a/b, of letters, digits, dots, hyphens and underscores, and no part that begins with a dot"))
	}
	for _, n := range append(names, named{at.Child("serviceAccountName"), store.ServiceAccountName}) {
		if n.name != "" && len(validation.IsDNS1123Subdomain(n.name)) > 0 {
			refused = append(refused, field.Invalid(n.at, n.name, "cannot be the name of an object; name one of this namespace"))
		}
	}
	if store.Claim != nil && store.Claim.ClaimName == "" {
		refused = append(refused, field.Required(in.Child("claimName"), "name the claim"))
	}
	return refused
}

// CheckRate is about a limit of bytes a second.
func CheckRate(limit v1alpha1.ByteRate, at *field.Path) field.ErrorList {
	if _, known := limit.Value(); limit == "" || known {
		return nil
	}
	return field.ErrorList{field.Invalid(at, string(limit),
		"must be from 100k to 999Gi bytes a second, such as 50M; leave it out for no limit")}
}

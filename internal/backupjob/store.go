// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backupjob

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

const (
	// storeDir is where the certificates of a store are in the pod, keyDir its credentials if they are a file, claimDir the volume, which
	// claimVolume is the name of.
	storeDir, trustFile   = "/etc/backup/store", "ca.crt"
	keyDir, keyFile       = "/etc/backup/credentials", "credentials.json"
	claimDir, claimVolume = "/backups", "backups"
	// claimGroup is the group that owns what is written to a claim: that of the operator's image. Who restores is another user, and in it.
	claimGroup = 65532
)

// Store is the argument that says where the backups of a cluster lie.
func Store(l v1alpha1.BackupLocation) string {
	address, query := url.URL{}, url.Values{"prefix": {l.Folder()}}
	switch store := l.Store; {
	case store.S3 != nil:
		address = url.URL{Scheme: "s3", Host: store.S3.Bucket}
		query.Set("region", store.S3.Region)
		if store.S3.Endpoint != "" {
			query.Set("endpoint", store.S3.Endpoint)
			query.Set("use_path_style", "true")
		}
	case store.GCS != nil:
		address = url.URL{Scheme: "gs", Host: store.GCS.Bucket}
	case store.Azure != nil:
		address = url.URL{Scheme: "azblob", Host: store.Azure.Container}
		if store.Azure.Endpoint != "" {
			query.Set("endpoint", store.Azure.Endpoint)
		}
	case store.Claim != nil:
		address = url.URL{Scheme: "file", Path: claimDir}
	}
	address.RawQuery = query.Encode()
	return "--store=" + address.String()
}

// Needs is what a pod is given for a store that a field names. Each must carry the label that says so.
func Needs(store v1alpha1.BackupStore, field, label string) []access.Needed {
	secret := func(kind, of, name string) access.Needed {
		return access.Needed{Field: field + "." + kind + "." + of, Name: name, Label: label}
	}
	needed := []access.Needed{
		{Field: field + ".serviceAccountName", Name: store.ServiceAccountName, Label: label, Kind: access.KindServiceAccount}}
	if s := store.S3; s != nil {
		needed = append(needed, secret("s3", "credentialsSecretName", s.CredentialsSecretName), secret("s3", "caSecretName", s.CASecretName))
	}
	if s := store.GCS; s != nil {
		needed = append(needed, secret("gcs", "credentialsSecretName", s.CredentialsSecretName))
	}
	if s := store.Azure; s != nil {
		needed = append(needed,
			secret("azure", "credentialsSecretName", s.CredentialsSecretName), secret("azure", "caSecretName", s.CASecretName))
	}
	if s := store.Claim; s != nil {
		needed = append(needed, access.Needed{Field: field + ".claim.claimName", Name: s.ClaimName, Label: label, Kind: access.KindClaim})
	}
	return needed
}

// Labels are those of a pod, with the one by which Azure's webhook knows that it is to have an identity, and the one by which pods that
// have the same claim come to one node.
func Labels(store v1alpha1.BackupStore, labels map[string]string) map[string]string {
	all := WithClaim(store)
	if store.Azure != nil && store.ServiceAccountName != "" {
		all = map[string]string{"azure.workload.identity/use": "true"}
	}
	if all == nil {
		return labels
	}
	for key, value := range labels {
		all[key] = value
	}
	return all
}

// WithClaim are labels of all pods that have the claim of a store; nil: it is none.
func WithClaim(store v1alpha1.BackupStore) map[string]string {
	if store.Claim == nil {
		return nil
	}
	name := store.Claim.ClaimName
	if len(name) > validation.LabelValueMaxLength {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}
	return map[string]string{v1alpha1.LabelStoreClaim: name}
}

// besideClaim is what brings a pod to the node where others have the claim of its store.
func besideClaim(store v1alpha1.BackupStore) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: WithClaim(store)}}
}

// changedAffinity is the affinity of a pod, to be changed: it may be a template's.
func changedAffinity(pod *corev1.PodSpec) *corev1.PodAffinity {
	affinity := &corev1.Affinity{}
	if pod.Affinity != nil {
		affinity = pod.Affinity.DeepCopy()
	}
	if pod.Affinity = affinity; affinity.PodAffinity == nil {
		affinity.PodAffinity = &corev1.PodAffinity{}
	}
	return affinity.PodAffinity
}

// Together has a pod run on no other node than those that have the claim of its store. Where none has, it may run anywhere: it bears the
// label itself.
func Together(pod *corev1.PodSpec, store v1alpha1.BackupStore) {
	affinity := changedAffinity(pod)
	affinity.RequiredDuringSchedulingIgnoredDuringExecution = append(affinity.RequiredDuringSchedulingIgnoredDuringExecution,
		besideClaim(store))
}

// lead gives a pod, which has the container, what leads to a store: volumes, and an identity, which the cloud's own webhook or server gives
// tokens to. One that writes to a claim prefers the node where others have it: a volume that one node at a time can mount is mounted there.
func lead(pod *corev1.PodSpec, store v1alpha1.BackupStore, reads bool) {
	pod.ServiceAccountName = store.ServiceAccountName
	if name := trusted(store); name != "" {
		Mount(pod, "store", name, KeyTrusted, path.Join(storeDir, trustFile))
	}
	if store.GCS != nil && store.GCS.CredentialsSecretName != "" {
		Mount(pod, "credentials", store.GCS.CredentialsSecretName, keyFile, path.Join(keyDir, keyFile))
	}
	if store.Claim == nil {
		return
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: claimVolume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: store.Claim.ClaimName, ReadOnly: reads}}})
	c := Of(*pod)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: claimVolume, MountPath: claimDir, ReadOnly: reads})
	context := &corev1.PodSecurityContext{}
	if pod.SecurityContext != nil {
		context = pod.SecurityContext.DeepCopy() // it may be a template's
	}
	switch pod.SecurityContext = context; {
	case !reads:
		const most = 100 // of the preferences of a pod
		affinity := changedAffinity(pod)
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution,
			corev1.WeightedPodAffinityTerm{Weight: most, PodAffinityTerm: besideClaim(store)})
		context.FSGroup, context.FSGroupChangePolicy = ptr.To[int64](claimGroup), ptr.To(corev1.FSGroupChangeOnRootMismatch)
	case context.RunAsUser != nil: // who is given its user by the platform is the one who wrote
		context.SupplementalGroups = append(context.SupplementalGroups, claimGroup)
	}
}

// LeaveGroup leaves to the platform which group owns volumes.
func LeaveGroup(pod *corev1.PodSpec) { pod.SecurityContext.FSGroup = nil }

// trusted is the Secret with the certificates of a store's server; empty: the public authorities are trusted.
func trusted(store v1alpha1.BackupStore) string {
	switch {
	case store.S3 != nil:
		return store.S3.CASecretName
	case store.Azure != nil:
		return store.Azure.CASecretName
	}
	return ""
}

// variables are what the clients of stores read: keys by name, and no other of a Secret.
func variables(store v1alpha1.BackupStore) (list []corev1.EnvVar) {
	is := func(name, value string) { list = append(list, corev1.EnvVar{Name: name, Value: value}) }
	of := func(secret, key string, optional bool) {
		list = append(list, corev1.EnvVar{Name: key, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key, Optional: ptr.To(optional)}}})
	}
	trust := path.Join(storeDir, trustFile)
	switch {
	case store.S3 != nil:
		if secret := store.S3.CredentialsSecretName; secret != "" {
			of(secret, "AWS_ACCESS_KEY_ID", false)
			of(secret, "AWS_SECRET_ACCESS_KEY", false)
			of(secret, "AWS_SESSION_TOKEN", true)
		}
		is("AWS_EC2_METADATA_DISABLED", "true") // the node's own identity is not the author's
		if trusted(store) != "" {
			is("AWS_CA_BUNDLE", trust)
		}
	case store.GCS != nil:
		if store.GCS.CredentialsSecretName != "" {
			is("GOOGLE_APPLICATION_CREDENTIALS", path.Join(keyDir, keyFile))
		}
	case store.Azure != nil:
		is("AZURE_STORAGE_ACCOUNT", store.Azure.StorageAccount)
		is("AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential") // and not the node's, whatever a Secret lacks
		if secret := store.Azure.CredentialsSecretName; secret != "" {
			of(secret, "AZURE_STORAGE_KEY", true)
			of(secret, "AZURE_STORAGE_SAS_TOKEN", true)
		}
		if trusted(store) != "" {
			is("SSL_CERT_FILE", trust)
			is("SSL_CERT_DIR", storeDir) // which has no other
		}
	}
	return list
}

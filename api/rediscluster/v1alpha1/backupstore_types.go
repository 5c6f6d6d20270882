// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"math"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// LabelBackup with the value true is what a Secret, a claim or a ServiceAccount must carry to be named in spec.store of a RedisBackup.
const LabelBackup = "redis.middleware.hc.cn/backup"

// BackupStore is a place where backups lie.
//
// +kubebuilder:validation:XValidation:rule="[has(self.s3), has(self.gcs), has(self.azure), has(self.claim)].filter(is, is).size() == 1",message="say where: set one of s3, gcs, azure and claim"
// +kubebuilder:validation:XValidation:rule="!has(self.claim) || !has(self.serviceAccountName)",message="a claim is mounted, and nobody logs in to it: leave serviceAccountName out",fieldPath=".serviceAccountName"
// +kubebuilder:validation:XValidation:rule="has(self.claim) || has(self.serviceAccountName) != ((has(self.s3) && has(self.s3.credentialsSecretName)) || (has(self.gcs) && has(self.gcs.credentialsSecretName)) || (has(self.azure) && has(self.azure.credentialsSecretName)))",message="say who logs in to the store: set either credentialsSecretName in it, or serviceAccountName for a pod's identity",fieldPath=".serviceAccountName"
type BackupStore struct {
	// s3 is a bucket of Amazon S3, or of a server that speaks its language.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=21,displayName="Object Store"
	S3 *S3Store `json:"s3,omitempty"`

	// gcs is a bucket of Google Cloud Storage.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=210,displayName="Google Cloud Storage"
	GCS *GCSStore `json:"gcs,omitempty"`

	// azure is a container of Azure Blob Storage.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=220,displayName="Azure Blob Storage"
	Azure *AzureStore `json:"azure,omitempty"`

	// claim is a persistent volume claim of the namespace.
	//
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=230,displayName="Claim"
	Claim *ClaimStore `json:"claim,omitempty"`

	// serviceAccountName is the ServiceAccount of the namespace that the pod has, to log in to s3, gcs or azure as whom the cloud
	// takes it for, in place of a Secret. It must carry the label that Secrets of the store need. The pod is given no token of
	// Kubernetes' API.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=240,displayName="Service Account",xDescriptors={"urn:alm:descriptor:io.kubernetes:ServiceAccount"}
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// ByteRate is a number of bytes a second, from 100k to 999Gi: digits and a unit (k, M, G, Ki, Mi, Gi). It is no Quantity, whose text can
// take for ever to read.
//
// +kubebuilder:validation:Pattern=`^([1-9][0-9]{2,5}(k|Ki)|[1-9][0-9]{0,5}(M|Mi)|[1-9][0-9]{0,2}(G|Gi))$`
// +kubebuilder:validation:MaxLength=10
type ByteRate string

// byteRateForm is what the schema's marker says.
var byteRateForm = regexp.MustCompile(`^([1-9][0-9]{2,5}(k|Ki)|[1-9][0-9]{0,5}(M|Mi)|[1-9][0-9]{0,2}(G|Gi))$`)

// Value is the number; false: it is none.
func (r ByteRate) Value() (int64, bool) {
	if !byteRateForm.MatchString(string(r)) {
		return math.MaxInt64, false
	}
	quantity, err := resource.ParseQuantity(string(r))
	return quantity.Value(), err == nil
}

// S3Store is a bucket of Amazon S3, or of a server that speaks its language.
type S3Store struct {
	// bucket is the name of the bucket, which exists.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=22,displayName="Bucket",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Bucket string `json:"bucket"`

	// prefix is put before the names of all objects. The backup lies at
	// PREFIX/NAMESPACE/CLUSTER/NAME in the bucket.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	// +kubebuilder:validation:MaxLength=200
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=23,displayName="Prefix",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Prefix string `json:"prefix,omitempty"`

	// region is that of the bucket. Default: us-east-1, which servers other than Amazon's take.
	//
	// +kubebuilder:default=us-east-1
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]{1,64}$`
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=24,displayName="Region",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Region string `json:"region,omitempty"`

	// endpoint is the URL of a server other than Amazon's, such as https://minio.store.svc:9000.
	//
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:\[\]-]+$`
	// +kubebuilder:validation:MaxLength=300
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=25,displayName="Endpoint",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Endpoint string `json:"endpoint,omitempty"`

	// credentialsSecretName is a Secret of the namespace with the keys AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if there is one. It must carry the label
	// redis.middleware.hc.cn/backup: "true", because the pod that takes the backup shows it to the
	// endpoint. Required without serviceAccountName.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=26,displayName="Credentials",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`

	// caSecretName is a Secret of the namespace with the certificates to trust under ca.crt, in place of
	// the public ones. It must carry the same label.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=27,displayName="CA Certificates",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CASecretName string `json:"caSecretName,omitempty"`
}

// GCSStore is a bucket of Google Cloud Storage.
type GCSStore struct {
	// bucket is the name of the bucket, which exists.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=211,displayName="Bucket",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Bucket string `json:"bucket"`

	// prefix is put before the names of all objects. The backup lies at
	// PREFIX/NAMESPACE/CLUSTER/NAME in the bucket.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	// +kubebuilder:validation:MaxLength=200
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=212,displayName="Prefix",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Prefix string `json:"prefix,omitempty"`

	// credentialsSecretName is a Secret of the namespace with a service account's key, as Google gives it, under
	// credentials.json. It must carry the label redis.middleware.hc.cn/backup: "true". Required without
	// serviceAccountName.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=213,displayName="Credentials",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`
}

// AzureStore is a container of Azure Blob Storage.
type AzureStore struct {
	// container is the name of the container, which exists.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9](-?[a-z0-9]){2,62}$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=221,displayName="Container",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Container string `json:"container"`

	// storageAccount is the name of the storage account that the container is of.
	//
	// +kubebuilder:validation:Pattern=`^[a-z0-9]{3,24}$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=222,displayName="Storage Account",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	StorageAccount string `json:"storageAccount"`

	// prefix is put before the names of all objects. The backup lies at
	// PREFIX/NAMESPACE/CLUSTER/NAME in the container.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	// +kubebuilder:validation:MaxLength=200
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=223,displayName="Prefix",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Prefix string `json:"prefix,omitempty"`

	// endpoint is the URL of the account's blob service. Default: https://ACCOUNT.blob.core.windows.net. Servers that have
	// several accounts have their name at its end: https://azurite.store.svc:10000/ACCOUNT.
	//
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.:\[\]-]+(/[a-z0-9]{3,24})?$`
	// +kubebuilder:validation:MaxLength=300
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=224,displayName="Endpoint",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Endpoint string `json:"endpoint,omitempty"`

	// credentialsSecretName is a Secret of the namespace with the account's key under AZURE_STORAGE_KEY, or a shared
	// access signature under AZURE_STORAGE_SAS_TOKEN. It must carry the label
	// redis.middleware.hc.cn/backup: "true", because the pod that takes the backup shows it to the endpoint. Required
	// without serviceAccountName.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=225,displayName="Credentials",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CredentialsSecretName string `json:"credentialsSecretName,omitempty"`

	// caSecretName is a Secret of the namespace with the certificates to trust under ca.crt, in place of
	// the public ones. It must carry the same label.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=226,displayName="CA Certificates",xDescriptors={"urn:alm:descriptor:io.kubernetes:Secret"}
	CASecretName string `json:"caSecretName,omitempty"`
}

// LabelStoreClaim on a pod is the claim that it has mounted as a store of backups: its name, or a digest if that is too long for a label.
const LabelStoreClaim = "redis.middleware.hc.cn/store-claim"

// ClaimStore is a persistent volume claim of the namespace.
type ClaimStore struct {
	// claimName is the name of the claim. It must carry the label redis.middleware.hc.cn/backup: "true": who may write
	// RedisBackups reads and writes what lies below the prefix. That of an instance is refused.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=231,displayName="Claim",xDescriptors={"urn:alm:descriptor:io.kubernetes:PersistentVolumeClaim"}
	ClaimName string `json:"claimName"`

	// prefix is the folder in the volume. The backup lies at PREFIX/NAMESPACE/CLUSTER/NAME.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	// +kubebuilder:validation:MaxLength=200
	// +optional
	// +operator-sdk:csv:customresourcedefinitions:type=spec,order=232,displayName="Folder",xDescriptors={"urn:alm:descriptor:com.tectonic.ui:text"}
	Prefix string `json:"prefix,omitempty"`
}

// Prefix is what comes before the namespace and the name of the cluster, wherever the store is.
func (s BackupStore) Prefix() string {
	switch {
	case s.S3 != nil:
		return s.S3.Prefix
	case s.GCS != nil:
		return s.GCS.Prefix
	case s.Azure != nil:
		return s.Azure.Prefix
	case s.Claim != nil:
		return s.Claim.Prefix
	}
	return ""
}

// place is where the store is, for people.
func (s BackupStore) place() string {
	switch {
	case s.S3 != nil:
		return "s3://" + s.S3.Bucket
	case s.GCS != nil:
		return "gs://" + s.GCS.Bucket
	case s.Azure != nil:
		return "azblob://" + s.Azure.StorageAccount + "/" + s.Azure.Container
	case s.Claim != nil:
		return "claim://" + s.Claim.ClaimName
	}
	return "nowhere:"
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"net"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
)

// checkDataPlace is about pod[0].volumes.
func checkDataPlace(cr *v1alpha1.RedisCluster, o Options) field.ErrorList {
	volumes := cr.Spec.Template().Volumes
	if volumes == nil {
		return nil
	}
	var refused field.ErrorList
	if cr.Spec.Storage != nil && !claimEach(cr) {
		refused = append(refused,
			field.Forbidden(storagePath,
				"storage and pod[0].volumes both say where data is kept: set one of them, or volumes.type pvc without persistentVolumeClaimName"))
	}
	typePath, claimPath := volumesPath.Child("type"), volumesPath.Child("persistentVolumeClaimName")
	switch volumes.Type {
	case v1alpha1.VolumeHostPath:
		if !o.AllowHostPath {
			refused = append(refused,
				field.Forbidden(typePath,
					"hostPath gives a directory of the node to who writes this object; ask whoever runs the operator to start it with --allow-host-path, or use storage"))
		}
		fallthrough
	case v1alpha1.VolumeEmptyDir:
		if volumes.PersistentVolumeClaimName != "" {
			refused = append(refused,
				field.Forbidden(claimPath, "persistentVolumeClaimName belongs to the types nfs and pvc; remove it, or change the type"))
		}
	case v1alpha1.VolumeNFS:
		if volumes.PersistentVolumeClaimName == "" {
			refused = append(refused,
				field.Required(claimPath,
					"type nfs needs the name of the claim of the shared volume; for a claim an instance set type pvc, and spec.storage.storageClassName to a class of such volumes"))
		}
	case v1alpha1.VolumePVC:
	case "":
		refused = append(refused, field.Required(typePath, "say where data is kept: emptyDir, hostPath, nfs or pvc"))
	default:
		refused = append(refused, shared.OneOf(typePath, volumes.Type, v1alpha1.VolumeEmptyDir, v1alpha1.VolumeHostPath, v1alpha1.VolumeNFS,
			v1alpha1.VolumePVC)...)
	}
	return refused
}

func checkStorage(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	storage := cr.Spec.Storage
	if storage == nil {
		return nil
	}
	refused := shared.OneOf(storagePath.Child("retain"), storage.Retain, v1alpha1.Retain, v1alpha1.RetainDelete)
	if storage.Size.Sign() <= 0 {
		refused = append(refused,
			field.Invalid(storagePath.Child("size"), storage.Size.String(),
				"must be more than zero, such as 1Gi; for data that need not be kept use pod[0].volumes.type emptyDir"))
	}
	if most := storage.MaxSize; most != nil && most.Cmp(storage.Size) < 0 {
		refused = append(refused, field.Invalid(storagePath.Child("maxSize"), most.String(),
			fmt.Sprintf("must be no less than spec.storage.size, %s: claims grow from there, and never shrink", storage.Size.String())))
	}
	return refused
}

// checkBootstrap is about what a new cluster begins with.
func checkBootstrap(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	restore, at := cr.Restore(), specPath.Child("bootstrap", "restore")
	if from := cr.Import(); from != nil {
		return checkImport(cr, from, specPath.Child("bootstrap", "import"))
	}
	if of := cr.CloneOf(); of != "" {
		return checkClone(cr, of, specPath.Child("bootstrap", "clone"))
	}
	if restore == nil {
		return nil
	}
	var refused field.ErrorList
	named := 0
	for _, is := range []bool{restore.RedisBackup != "", restore.Location != nil, restore.Files != nil} {
		if is {
			named++
		}
	}
	if named != 1 {
		refused = append(refused, field.Required(at.Child("redisBackup"), "say which data: set one of redisBackup, location and files"))
	}
	if restore.Files != nil {
		refused = append(refused, CheckFiles(restore, at)...)
	}
	if restore.Location != nil {
		refused = append(refused, CheckStore(restore.Location.Store, at.Child("location", "store"))...)
	}
	refused = append(refused, CheckRate(restore.MaxBytesPerSecond, at.Child("maxBytesPerSecond"))...)
	if cr.Spec.Claim() == nil {
		refused = append(refused, field.Forbidden(at,
			"a backup is restored into the claims of instances, and these have none: use storage in place of pod[0].volumes"))
	}
	return refused
}

// importAddress is what an address of a server outside looks like.
var importAddress = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}$`)

// checkImport is about a server outside whose data a new cluster takes.
func checkImport(cr *v1alpha1.RedisCluster, from *v1alpha1.Import, at *field.Path) field.ErrorList {
	var refused field.ErrorList
	if cr.Restore() != nil || cr.CloneOf() != "" {
		refused = append(refused, field.Forbidden(at, "a cluster begins with one thing: set one of restore, import and clone"))
	}
	_, port, err := net.SplitHostPort(from.Address)
	if number, notNumber := strconv.ParseUint(port, 10, 16); err != nil || notNumber != nil || number == 0 ||
		!importAddress.MatchString(from.Address) {
		refused = append(refused, field.Invalid(at.Child("address"), from.Address, "must be HOST:PORT, such as redis.example.com:6379"))
	}
	if from.User != "" && from.CredentialsSecretName == "" {
		refused = append(refused, field.Required(at.Child("credentialsSecretName"), "a user logs in with a password"))
	}
	return append(refused, checkFollows(cr, at)...)
}

// checkClone is about a RedisCluster whose data a new cluster takes.
func checkClone(cr *v1alpha1.RedisCluster, of string, at *field.Path) field.ErrorList {
	var refused field.ErrorList
	if cr.Restore() != nil {
		refused = append(refused, field.Forbidden(at, "a cluster begins with one thing: set one of restore, import and clone"))
	}
	if of == cr.Name || len(validation.IsDNS1123Label(of)) > 0 {
		refused = append(refused, field.Invalid(at.Child("name"), of, "must name another RedisCluster of the namespace"))
	}
	return append(refused, checkFollows(cr, at)...)
}

// checkFollows is about what instances need that begin as replicas of a server outside.
func checkFollows(cr *v1alpha1.RedisCluster, at *field.Path) field.ErrorList {
	var refused field.ErrorList
	if cr.Spec.Claim() == nil {
		refused = append(refused, field.Forbidden(at,
			"the first instance of each shard is prepared in its claim, and these have none: use storage in place of pod[0].volumes"))
	}
	if !cr.AuthEnabled() {
		refused = append(refused, field.Invalid(authPath.Child("enabled"), false,
			"who reaches the relay of an import or a clone could read all data and pause writes at the server: leave it at true, the relay asks for the password"))
	}
	return refused
}

// checkObjectNames is about the objects that a spec names.
func checkObjectNames(cr *v1alpha1.RedisCluster) field.ErrorList {
	template := cr.Spec.Template()
	type reference struct {
		at         *field.Path
		name, kind string
	}
	references := []reference{
		{podPath.Child("configmap"), template.Configmap, "ConfigMap"},
		{podPath.Child("priorityClassName"), template.PriorityClassName, "PriorityClass"},
		{authPath.Child("secretName"), cr.Spec.Auth.SecretName, "Secret"},
		{authPath.Child("aclSecretName"), cr.Spec.Auth.ACLSecretName, "Secret"},
	}
	if template.Volumes != nil {
		references =
			append(references, reference{volumesPath.Child("persistentVolumeClaimName"), template.Volumes.PersistentVolumeClaimName,
				"PersistentVolumeClaim"})
	}
	if from := cr.Import(); from != nil {
		importPath := specPath.Child("bootstrap", "import")
		references = append(references, reference{importPath.Child("credentialsSecretName"), from.CredentialsSecretName, "Secret"})
		if from.TLS != nil {
			references = append(references, reference{importPath.Child("tls", "caSecretName"), from.TLS.CASecretName, "Secret"})
		}
	}
	if tls := cr.Spec.TLS; tls != nil {
		references = append(references, reference{tlsPath.Child("secretName"), tls.SecretName, "Secret"},
			reference{tlsPath.Child("caSecretName"), tls.CASecretName, "Secret"},
			reference{tlsPath.Child("clientCASecretName"), tls.ClientCASecretName, "Secret"})
	}
	if cr.Spec.Storage != nil && cr.Spec.Storage.StorageClassName != nil {
		references = append(references, reference{storagePath.Child("storageClassName"), *cr.Spec.Storage.StorageClassName, "StorageClass"})
	}
	for i, secret := range template.ImagePullSecrets {
		references = append(references, reference{podPath.Child("imagePullSecrets").Index(i).Child("name"), secret.Name, "Secret"})
	}
	var refused field.ErrorList
	for _, r := range references {
		if r.name != "" && len(validation.IsDNS1123Subdomain(r.name)) > 0 {
			refused = append(refused,
				field.Invalid(r.at, r.name, "cannot be the name of a "+r.kind+
					": lower-case letters, digits, hyphens and dots, beginning and ending with a letter or digit; name one that exists"))
		}
	}
	return refused
}

// adviseKeepingData warns of choices that lose data with a pod.
func adviseKeepingData(cr *v1alpha1.RedisCluster) []string {
	var warnings []string
	if volumes := cr.Spec.Template().Volumes; volumes != nil && volumes.Type == v1alpha1.VolumeEmptyDir {
		warnings = append(warnings,
			"spec.pod[0].volumes.type: emptyDir loses an instance's data with its pod; what no replica holds is gone; use storage to keep data")
	}
	if cr.Spec.Config["appendonly"] == "no" {
		warnings = append(warnings,
			"spec.config[appendonly]: without the append-only file a restarted instance comes back without its latest writes; remove the setting to keep them")
	}
	return warnings
}

func adviseAuth(cr *v1alpha1.RedisCluster) []string {
	if cr.AuthEnabled() {
		return nil
	}
	return []string{
		"spec.auth.enabled: without a password whoever reaches the Redis port can read, change and stop everything; it cannot be turned on later"}
}

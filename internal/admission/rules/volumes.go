// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// VolumeType is what a volume mounts.
type VolumeType string

// The types of volumes that whoever writes one of our objects can have mounted: none reaches a node, or a token.
const (
	configMapVolume   VolumeType = "configMap"
	downwardAPIVolume VolumeType = "downwardAPI"
	emptyDirVolume    VolumeType = "emptyDir"
	claimVolume       VolumeType = "persistentVolumeClaim"
	projectedVolume   VolumeType = "projected"
	secretVolume      VolumeType = "secret"
)

// VolumeTypes are the fields of a volume that can be set, but for its name.
func VolumeTypes() []string {
	return []string{string(configMapVolume), string(downwardAPIVolume), string(emptyDirVolume), string(claimVolume), string(projectedVolume),
		string(secretVolume)}
}

const (
	// mostMode is the largest mode of a file that the API server takes.
	mostMode = 0o777
)

var (
	// ofPod are the fields of a pod that variables and files can have.
	ofPod  = []string{"metadata.name", "metadata.namespace", "metadata.uid"}
	ofFile = []string{"metadata.labels", "metadata.annotations"}
	// ofContainer are what a container may use, of which variables and files can tell.
	ofContainer = []string{"limits.cpu", "limits.memory", "limits.ephemeral-storage", "requests.cpu", "requests.memory",
		"requests.ephemeral-storage"}
)

// Volumes checks at most so many volumes of a pod by the API server's rules, and that each is of one of the types above; what else is set
// of one, it does not see. taken says why a name cannot be had; empty: it can. It returns the types of volumes by their names.
func Volumes(at *field.Path, volumes []corev1.Volume, most int, taken func(name string) string) (map[string]VolumeType, field.ErrorList) {
	types := map[string]VolumeType{}
	if len(volumes) > most {
		return types, field.ErrorList{field.TooMany(at, len(volumes), most)}
	}
	var refused field.ErrorList
	for i := range volumes {
		at, v := at.Index(i), &volumes[i]
		_, twice := types[v.Name]
		switch why := taken(v.Name); {
		case len(validation.IsDNS1123Label(v.Name)) > 0:
			refused = append(refused, field.Invalid(at.Child("name"), v.Name, "is no name of a volume: lower-case letters, digits and hyphens"))
		case why != "":
			refused = append(refused, field.Invalid(at.Child("name"), v.Name, why))
		case twice:
			refused = append(refused, field.Duplicate(at.Child("name"), v.Name))
		}
		types[v.Name] = typeOf(v)
		if types[v.Name] == "" {
			refused = append(refused, field.Required(at,
				"say what to mount: configMap, downwardAPI, emptyDir, persistentVolumeClaim, projected or secret"))
		}
		refused = append(refused, filesOf(at, &v.VolumeSource)...)
	}
	return types, refused
}

// typeOf is what a volume mounts; empty: none or more than one that can be.
func typeOf(v *corev1.Volume) VolumeType {
	var set []VolumeType
	for kind, is := range map[VolumeType]bool{
		configMapVolume: v.ConfigMap != nil, downwardAPIVolume: v.DownwardAPI != nil, emptyDirVolume: v.EmptyDir != nil,
		claimVolume: v.PersistentVolumeClaim != nil, projectedVolume: v.Projected != nil, secretVolume: v.Secret != nil,
	} {
		if is {
			set = append(set, kind)
		}
	}
	if len(set) != 1 {
		return ""
	}
	return set[0]
}

// Mounts checks at most so many mounts of a container by the API server's rules, and by those of Volumes, whose types they name. forbidden
// says why a volume cannot be mounted that is none of them; empty: there is none.
func Mounts(at *field.Path, mounts []corev1.VolumeMount, volumes map[string]VolumeType, most int,
	forbidden func(name string) string) field.ErrorList {
	if len(mounts) > most {
		return field.ErrorList{field.TooMany(at, len(mounts), most)}
	}
	var refused field.ErrorList
	seen := map[string]bool{}
	for i := range mounts {
		at, m := at.Index(i), &mounts[i]
		kind, known := volumes[m.Name]
		switch why := forbidden(m.Name); {
		case why != "":
			refused = append(refused, field.Forbidden(at.Child("name"), why))
		case !known:
			refused = append(refused, field.NotFound(at.Child("name"), m.Name))
		}
		if !path.IsAbs(m.MountPath) || path.Clean(m.MountPath) != m.MountPath || strings.ContainsAny(m.MountPath, ":\x00") {
			refused = append(refused, field.Invalid(at.Child("mountPath"), m.MountPath,
				"must be an absolute path such as /etc/proxy, without :, .. and a slash at the end"))
		}
		if seen[m.MountPath] {
			refused = append(refused, field.Duplicate(at.Child("mountPath"), m.MountPath))
		}
		seen[m.MountPath] = true
		switch {
		case m.SubPath == "":
		case kind == claimVolume || kind == emptyDirVolume:
			// What writes there could put a link into its place.
			refused = append(refused, field.Forbidden(at.Child("subPath"), "of a volume that pods write to, mount the whole; remove it"))
		case path.IsAbs(m.SubPath) || path.Clean(m.SubPath) != m.SubPath || m.SubPath == ".." || strings.HasPrefix(m.SubPath, "../") ||
			strings.ContainsRune(m.SubPath, 0):
			refused = append(refused, field.Invalid(at.Child("subPath"), m.SubPath, "must be the path of a file in the volume, without .."))
		}
	}
	return refused
}

// FieldOfPod is about what a pod says of itself. allowed are the fields of which there is no list.
func FieldOfPod(at *field.Path, ref *corev1.ObjectFieldSelector, allowed ...string) field.ErrorList {
	if ref == nil {
		return nil
	}
	refused := OneOf(at.Child("apiVersion"), ref.APIVersion, "v1")
	for _, list := range ofFile {
		if key, is := strings.CutPrefix(ref.FieldPath, list+"['"); is && strings.HasSuffix(key, "']") {
			key = strings.TrimSuffix(key, "']")
			if len(validation.IsQualifiedName(strings.ToLower(key))) == 0 {
				return refused
			}
		}
	}
	allowed = slices.Concat(ofPod, allowed)
	if !slices.Contains(allowed, ref.FieldPath) {
		refused = append(refused, field.NotSupported(at.Child("fieldPath"), ref.FieldPath,
			append(allowed, "metadata.labels['…']", "metadata.annotations['…']")))
	}
	return refused
}

// QuantityOfPod is about what a container may use.
func QuantityOfPod(at *field.Path, ref *corev1.ResourceFieldSelector, named bool) field.ErrorList {
	if ref == nil {
		return nil
	}
	var refused field.ErrorList
	if named && ref.ContainerName == "" {
		refused = append(refused, field.Required(at.Child("containerName"), "say of which container"))
	}
	if !slices.Contains(ofContainer, ref.Resource) {
		refused = append(refused, field.NotSupported(at.Child("resource"), ref.Resource, ofContainer))
	}
	divisors := []string{"0", "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if strings.HasSuffix(ref.Resource, ".cpu") {
		divisors = []string{"0", "1", "1m"}
	}
	return append(refused, OneOf(at.Child("divisor"), ref.Divisor.String(), divisors...)...)
}

// filesOf checks what a volume holds.
func filesOf(at *field.Path, v *corev1.VolumeSource) field.ErrorList {
	var refused field.ErrorList
	if s := v.ConfigMap; s != nil {
		refused = append(refused, named(at.Child("configMap", "name"), "ConfigMap", s.Name)...)
		refused = append(refused, files(at.Child("configMap"), s.Items, s.DefaultMode)...)
	}
	if s := v.Secret; s != nil {
		refused = append(refused, named(at.Child("secret", "secretName"), "Secret", s.SecretName)...)
		refused = append(refused, files(at.Child("secret"), s.Items, s.DefaultMode)...)
	}
	if s := v.PersistentVolumeClaim; s != nil {
		refused = append(refused, named(at.Child("persistentVolumeClaim", "claimName"), "PersistentVolumeClaim", s.ClaimName)...)
	}
	if s := v.DownwardAPI; s != nil {
		refused = append(refused, append(files(at.Child("downwardAPI"), nil, s.DefaultMode), itsFiles(at.Child("downwardAPI"), s.Items)...)...)
	}
	if s := v.EmptyDir; s != nil {
		refused = append(refused, OneOf(at.Child("emptyDir", "medium"), s.Medium, corev1.StorageMediumMemory)...)
		if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
			refused = append(refused, field.Invalid(at.Child("emptyDir", "sizeLimit"), s.SizeLimit.String(), "must not be negative"))
		}
	}
	if v.Projected != nil {
		refused = append(refused, files(at.Child("projected"), nil, v.Projected.DefaultMode)...)
		refused = append(refused, sources(at.Child("projected", "sources"), v.Projected.Sources)...)
	}
	return refused
}

// sources are what a projected volume brings together.
func sources(at *field.Path, projected []corev1.VolumeProjection) field.ErrorList {
	var refused field.ErrorList
	for i, source := range projected {
		at := at.Index(i)
		set := 0
		for _, is := range []bool{source.ConfigMap != nil, source.DownwardAPI != nil, source.Secret != nil} {
			if is {
				set++
			}
		}
		if set != 1 {
			refused = append(refused, field.Invalid(at, field.OmitValueType{}, "must have one of configMap, downwardAPI and secret"))
		}
		if s := source.ConfigMap; s != nil {
			refused = append(refused, named(at.Child("configMap", "name"), "ConfigMap", s.Name)...)
			refused = append(refused, files(at.Child("configMap"), s.Items, nil)...)
		}
		if s := source.Secret; s != nil {
			refused = append(refused, named(at.Child("secret", "name"), "Secret", s.Name)...)
			refused = append(refused, files(at.Child("secret"), s.Items, nil)...)
		}
		if s := source.DownwardAPI; s != nil {
			refused = append(refused, itsFiles(at.Child("downwardAPI"), s.Items)...)
		}
	}
	return refused
}

// named refuses what cannot be the name of an object.
func named(at *field.Path, kind, name string) field.ErrorList {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(at, name, "cannot be the name of a "+kind+"; name one that exists")}
	}
	return nil
}

func files(at *field.Path, items []corev1.KeyToPath, mode *int32) field.ErrorList {
	refused := fileMode(at.Child("defaultMode"), mode)
	for i, item := range items {
		at := at.Child("items").Index(i)
		if item.Key == "" {
			refused = append(refused, field.Required(at.Child("key"), "say which key"))
		}
		refused = append(refused, append(fileAt(at.Child("path"), item.Path), fileMode(at.Child("mode"), item.Mode)...)...)
	}
	return refused
}

// itsFiles are those of the downward API.
func itsFiles(at *field.Path, items []corev1.DownwardAPIVolumeFile) field.ErrorList {
	var refused field.ErrorList
	for i, item := range items {
		at := at.Child("items").Index(i)
		if (item.FieldRef == nil) == (item.ResourceFieldRef == nil) {
			refused = append(refused, field.Invalid(at, field.OmitValueType{}, "must have either fieldRef or resourceFieldRef"))
		}
		refused = append(refused, FieldOfPod(at.Child("fieldRef"), item.FieldRef, ofFile...)...)
		refused = append(refused, QuantityOfPod(at.Child("resourceFieldRef"), item.ResourceFieldRef, true)...)
		refused = append(refused, append(fileAt(at.Child("path"), item.Path), fileMode(at.Child("mode"), item.Mode)...)...)
	}
	return refused
}

func fileAt(at *field.Path, p string) field.ErrorList {
	if p == "" || path.IsAbs(p) || strings.HasPrefix(p, "..") || slices.Contains(strings.Split(p, "/"), "..") {
		return field.ErrorList{field.Invalid(at, p, "must be the path of a file below the volume, without ..")}
	}
	return nil
}

func fileMode(at *field.Path, mode *int32) field.ErrorList {
	return Range(at, mode, 0, mostMode)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/distribution/reference"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/images"
	shared "middleware.hc.cn/operator/internal/admission/rules"
	"middleware.hc.cn/operator/internal/rediscluster/overlay"
)

// DefaultImage writes the default image into a cluster that names none, at its making. On an
// update it keeps what the object had: a manifest without these fields, which is applied again
// after the default has moved, changes no image.
//
// A digest belongs to its repository: with another one, the version is the tag alone.
func DefaultImage(before, cr *v1alpha1.RedisCluster, image images.Redis) {
	if before != nil {
		image.Repository = cmp.Or(before.Spec.Repository, image.Repository)
		image.Version = cmp.Or(before.Spec.Version, image.Version)
	}
	defaultTo(&cr.Spec.Repository, image.Repository)
	if cr.Spec.Repository != image.Repository {
		byDefault := v1alpha1.RedisClusterSpec{Version: image.Version}
		image.Version = cmp.Or(byDefault.Tag(), v1alpha1.DefaultVersion)
	}
	defaultTo(&cr.Spec.Version, image.Version)
}

// declaredImage is repository:version, which stands even where middlewareImage
// overrides it.
func declaredImage(cr *v1alpha1.RedisCluster) string {
	declared := v1alpha1.RedisClusterSpec{Repository: cr.Spec.Repository, Version: cr.Spec.Version}
	return declared.Image()
}

// podImages are the images of the pod template that are set.
func podImages(cr *v1alpha1.RedisCluster) []imageField {
	template := cr.Spec.Template()
	var set []imageField
	for _, f := range []imageField{
		{podPath.Child("middlewareImage"), template.MiddlewareImage},
		{podPath.Child("initImage"), template.InitImage},
		{podPath.Child("monitorImage"), template.MonitorImage},
	} {
		if f.image != "" {
			set = append(set, f)
		}
	}
	if o, _ := overlay.Read(template); o != nil {
		for i, c := range o.InitContainers[:min(len(o.InitContainers), mostInitContainers)] {
			if c.Image != "" {
				set = append(set, imageField{overlayPath.Child("initContainers").Index(i).Child("image"), c.Image})
			}
		}
	}
	return set
}

type imageField struct {
	at    *field.Path
	image string
}

func checkImages(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	var refused field.ErrorList
	repository, at := cr.Spec.Repository, specPath.Child("repository")
	if repository != "" {
		refused = shared.Image(at, repository)
		if named, err := reference.ParseNormalizedNamed(repository); err == nil && !reference.IsNameOnly(named) {
			refused = append(refused, field.Invalid(at, repository, "must be an image without its tag or digest; both go into spec.version"))
		}
	}
	if version := cr.Spec.Version; version != "" && !v1alpha1.ValidVersion(version) {
		refused = append(refused,
			field.Invalid(specPath.Child("version"), version,
				"must be an image's tag, such as 8.0.6 or 9.1.2-alpine (letters, digits, dots, hyphens and underscores), a digest sha256:…, or both: 8.0.6@sha256:…"))
	}
	for _, f := range podImages(cr) {
		refused = append(refused, shared.Image(f.at, f.image)...)
	}
	return refused
}

func adviseImages(cr *v1alpha1.RedisCluster) []string {
	var warnings []string
	for _, f := range podImages(cr) {
		warnings = append(warnings, shared.UntaggedImage(f.at, f.image)...)
	}
	return warnings
}

// engine is the server that an image's name and tag promise.
type engine struct {
	name         string // redis or valkey
	major, minor int
	exact        bool // the tag has the minor version
}

func (e engine) String() string { return fmt.Sprintf("%s %d.%d", e.name, e.major, e.minor) }

// movesSlots reports whether the engine can move whole slots by itself (slots.AtomicMethod).
func (e engine) movesSlots() bool {
	switch e.name {
	case "valkey":
		return e.major >= 9
	case "redis":
		return e.major > 8 || e.major == 8 && e.minor >= 4
	}
	return false
}

var versionTag = regexp.MustCompile(`^v?([0-9]{1,4})(?:\.([0-9]{1,4}))?(?:[.+_-].*)?$`)

// engineOf reads the engine of an image whose name ends in redis, valkey or valkey-bundle and whose tag
// begins with a version. Of other images nothing is known.
func engineOf(image string) (e engine, known bool) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return engine{}, false
	}
	e.name = strings.TrimSuffix(path.Base(reference.Path(named)), "-bundle") // Valkey with its modules, of the same version
	tagged, ok := named.(reference.Tagged)
	if !ok || (e.name != "redis" && e.name != "valkey") {
		return engine{}, false
	}
	match := versionTag.FindStringSubmatch(tagged.Tag())
	if match == nil {
		return engine{}, false
	}
	e.major, _ = strconv.Atoi(match[1])
	e.minor, _ = strconv.Atoi(match[2]) // "" is 0: a tag 7 is at least 7.0
	e.exact = match[2] != ""
	return e, true
}

// EngineVersion is the engine of an image and its version, such as redis:8.0; empty when its name and tag do not say both numbers.
func EngineVersion(image string) string {
	e, known := engineOf(image)
	if !known || !e.exact {
		return ""
	}
	return fmt.Sprintf("%s:%d.%d", e.name, e.major, e.minor)
}

// minMajor is Redis 7.0's. Valkey began as 7.2.
const minMajor = 7

func checkEngineVersion(cr *v1alpha1.RedisCluster) field.ErrorList {
	var refused field.ErrorList
	for _, f := range []imageField{
		{specPath.Child("version"), declaredImage(cr)},
		{podPath.Child("middlewareImage"), cr.Spec.Template().MiddlewareImage},
	} {
		if e, known := engineOf(f.image); known && e.major < minMajor {
			refused = append(refused,
				field.Invalid(f.at, f.image,
					fmt.Sprintf(
						"%s lacks CLUSTER SHARDS and CLUSTER ADDSLOTSRANGE, which the operator works with; use Redis 7.0 or later, or Valkey 8 or later", e)))
		}
	}
	return refused
}

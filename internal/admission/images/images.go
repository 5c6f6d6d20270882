// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package images holds the images that pods run when a resource names none. Variables of the
// operator's Deployment set them, so that a bundle that names images by digest, or that of a
// mirror, changes what resources get too.
package images

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// The variables of the operator's Deployment. OLM's tools know the prefix.
const (
	VariableRedis  = "RELATED_IMAGE_REDIS"
	VariableFooBar = "RELATED_IMAGE_FOOBAR_SHELL"
)

// FooBar runs the commands of FooBars that name no image, unless VariableFooBar is set.
const FooBar = "docker.io/library/busybox:1.36"

// Redis is an image as spec.repository and spec.version of a RedisCluster name it.
type Redis struct{ Repository, Version string }

// Defaults are the images of resources that name none.
type Defaults struct {
	Redis  Redis
	FooBar string
}

// BuiltIn are the defaults without any variable.
func BuiltIn() Defaults {
	return Defaults{Redis: Redis{v1alpha1.DefaultRepository, v1alpha1.DefaultVersion}, FooBar: FooBar}
}

// FromEnvironment are the defaults that the operator's variables set; an unset or empty one leaves
// what is built in. Every mistake is in the error.
func FromEnvironment(get func(name string) string) (Defaults, error) {
	defaults := BuiltIn()
	var mistakes []error
	if image := get(VariableRedis); image != "" {
		redis, err := split(image)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", VariableRedis, err))
		}
		defaults.Redis = redis
	}
	if image := get(VariableFooBar); image != "" {
		if _, err := split(image); err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", VariableFooBar, err))
		}
		defaults.FooBar = image
	}
	return defaults, errors.Join(mistakes...)
}

// split takes an image apart. One without tag and digest would be another one tomorrow.
func split(image string) (Redis, error) {
	const remedy = "write registry/repository:tag, registry/repository@sha256:… or both"
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return Redis{}, fmt.Errorf("%q is not an image reference (%w); %s", image, err, remedy)
	}
	var parts []string
	if tagged, ok := named.(reference.Tagged); ok {
		parts = append(parts, tagged.Tag())
	}
	if pinned, ok := named.(reference.Digested); ok {
		parts = append(parts, pinned.Digest().String())
	}
	version := strings.Join(parts, "@")
	if !v1alpha1.ValidVersion(version) {
		return Redis{}, fmt.Errorf("%q has neither a tag nor a sha256 digest; %s", image, remedy)
	}
	return Redis{Repository: named.Name(), Version: version}, nil
}

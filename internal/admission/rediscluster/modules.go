// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

var modulesPath = specPath.Child("modules")

// Limits of the schema.
const (
	maxModules         = 16
	maxModuleArgs      = 64
	maxModuleArgLength = 512
	// modulesSince is the first major version of Redis whose image brings modules along.
	modulesSince = 8
)

// checkModules is about what an instance loads as code: nothing but files of its own image.
func checkModules(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	var refused field.ErrorList
	if n := len(cr.Spec.Modules); n > maxModules {
		return field.ErrorList{field.TooMany(modulesPath, n, maxModules)}
	}
	image, files := cr.Spec.Image(), map[string]bool{}
	for i, module := range cr.Spec.Modules {
		at := modulesPath.Index(i)
		file, problem := redisconf.ModuleFile(image, module.Name)
		if e, known := engineOf(image); problem == "" && file != module.Name && known && e.name == "redis" && e.major < modulesSince {
			problem = fmt.Sprintf(
				"is not in the image of %s; use redis:%d or later, or an image of yours with the module, and write the absolute path of its file", e,
				modulesSince)
		}
		switch {
		case problem != "":
			refused = append(refused, field.Invalid(at.Child("name"), module.Name, problem))
		case files[file]:
			refused = append(refused, field.Duplicate(at.Child("name"), module.Name))
		}
		files[file] = true
		refused = append(refused, checkModuleArgs(at.Child("args"), module.Args)...)
	}
	return refused
}

func checkModuleArgs(at *field.Path, args []string) field.ErrorList {
	if len(args) > maxModuleArgs {
		return field.ErrorList{field.TooMany(at, len(args), maxModuleArgs)}
	}
	var refused field.ErrorList
	for i, arg := range args {
		if len(arg) > maxModuleArgLength {
			refused = append(refused, field.TooLongMaxLength(at.Index(i), arg, maxModuleArgLength))
		}
		if strings.ContainsRune(arg, 0) {
			refused = append(refused, field.Invalid(at.Index(i), arg, "must not hold a NUL character; remove it"))
		}
	}
	return refused
}

// keepModules refuses to take a module away where that could end a shard: an instance that has
// the module's data does not start without it. With a replica, that one finds out, and the
// rollout stops at it while its master goes on.
func keepModules(before, after *v1alpha1.RedisCluster) field.ErrorList {
	if after.Spec.InstanceCount() >= 2*after.Spec.ShardCount() {
		return nil
	}
	for _, module := range before.Spec.Modules {
		if !slices.ContainsFunc(after.Spec.Modules, func(m v1alpha1.Module) bool { return m.Name == module.Name }) {
			return field.ErrorList{
				field.Forbidden(modulesPath,
					fmt.Sprintf(
						"cannot lose %s while a shard has no replica: an instance with data of the module does not start without it; keep the module, or set replicas to %d or more first", module.Name, 2*after.Spec.ShardCount()))}
		}
	}
	return nil
}

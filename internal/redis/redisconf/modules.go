// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// shipped are the files of the modules that an image brings along, by the last part of its name.
var shipped = map[string]map[string]string{
	"redis": {
		"bloom":      "/usr/local/lib/redis/modules/redisbloom.so",
		"search":     "/usr/local/lib/redis/modules/redisearch.so",
		"json":       "/usr/local/lib/redis/modules/rejson.so",
		"timeseries": "/usr/local/lib/redis/modules/redistimeseries.so",
	},
	"valkey-bundle": {
		"bloom":  "/usr/lib/valkey/libvalkey_bloom.so",
		"search": "/usr/lib/valkey/libsearch.so",
		"json":   "/usr/lib/valkey/libjson.so",
	},
}

// mounted are the directories of the Redis container that are not the image's. What instances,
// or others who share a volume, have written there must not become code.
var mounted = []string{DataDir, "/etc/redis", "/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", "/var/tmp"}

// ModuleFile is the file of a module in an image; problem says why there is none.
func ModuleFile(image, name string) (file, problem string) {
	if !strings.HasPrefix(name, "/") {
		files := shipped[imageName(image)]
		if file, known := files[name]; known {
			return file, ""
		}
		return "", "is not known to be in the image " + image + "; write bloom, search, json or timeseries with an image redis:8 or later, " +
			"bloom, search or json with valkey-bundle, or the absolute path of a file in the image"
	}
	if path.Clean(name) != name || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", "is not the plain absolute path of a file; write it without .., // and spaces, in ASCII"
	}
	for _, dir := range mounted {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return "", "is not in the image: " + dir + " is written by others; put the module into the image, elsewhere"
		}
	}
	return name, ""
}

// imageName is the last part of an image's name.
func imageName(image string) string {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return ""
	}
	return path.Base(reference.Path(named))
}

// modules are the settings that load the modules, in the order of the spec. What has no file is
// left out: admission has reported it.
func modules(spec *v1alpha1.RedisClusterSpec) []Setting {
	var all []Setting
	for _, module := range spec.Modules {
		if file, problem := ModuleFile(spec.Image(), module.Name); problem == "" {
			all = append(all, Setting{Name: "loadmodule", Args: append([]string{file}, module.Args...)})
		}
	}
	return all
}

// ModulesDigest identifies the modules and their arguments; empty without modules. The order
// counts, because modules may need each other. Where an image has its modules does not: another
// image restarts the instances anyway.
func ModulesDigest(spec *v1alpha1.RedisClusterSpec) string {
	var all []Setting
	for _, module := range spec.Modules {
		all = append(all, Setting{Name: "loadmodule", Args: slices.Concat([]string{module.Name}, module.Args)})
	}
	return digest(all)
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"io/fs"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// CheckFiles is about files of servers that a new cluster begins with: together they have each slot once.
func CheckFiles(restore *v1alpha1.Restore, at *field.Path) field.ErrorList {
	files, list := restore.Files, at.Child("files", "shards")
	refused := CheckStore(files.Store, at.Child("files", "store"))
	if restore.IdentitySecretName != "" {
		refused = append(refused, field.Forbidden(at.Child("identitySecretName"),
			"files are read as they are: decrypt them, and leave it out"))
	}
	var owned slots.Set
	for i, shard := range files.Shards {
		for j, object := range shard.Objects {
			if !fs.ValidPath(object) {
				refused = append(refused, field.Invalid(list.Index(i).Child("objects").Index(j), object,
					"must be the name of an object below the store's prefix, such as dump.rdb, without . and .. in its path"))
			}
		}
		set, err := slots.Parse(shard.Slots)
		switch slotsAt := list.Index(i).Child("slots"); {
		case shard.Slots == "" && len(files.Shards) == 1:
			set = slots.All()
		case shard.Slots == "":
			refused = append(refused, field.Required(slotsAt, "say which slots the server owned, such as 0-5460 (CLUSTER SHARDS tells)"))
		case err != nil:
			refused = append(refused, field.Invalid(slotsAt, shard.Slots, err.Error()))
		case !owned.Intersect(set).IsEmpty():
			refused = append(refused, field.Invalid(slotsAt, shard.Slots,
				fmt.Sprintf("slots %.200s are those of a former entry, too", owned.Intersect(set))))
		}
		owned = owned.Union(set)
	}
	if missing := owned.Complement(); len(refused) == 0 && !missing.IsEmpty() {
		refused = append(refused, field.Invalid(list, len(files.Shards),
			fmt.Sprintf("slots %.200s are in no entry: add the files of the masters that owned them, or give them to an entry", missing)))
	}
	return refused
}

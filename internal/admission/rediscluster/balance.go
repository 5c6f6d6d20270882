// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	shared "middleware.hc.cn/operator/internal/admission/rules"
)

// mostMegabytesPerHour is a TiB.
const mostMegabytesPerHour = 1 << 20

// checkBalance keeps two from saying which shard owns which slots.
func checkBalance(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	b, at := cr.Spec.Balance, specPath.Child("balance")
	if b == nil {
		return nil
	}
	refused := shared.OneOf(at.Child("mode"), b.Mode, v1alpha1.BalanceMove, v1alpha1.BalanceReport)
	if b.MegabytesPerHour < 1 || b.MegabytesPerHour > mostMegabytesPerHour {
		refused = append(refused, field.Invalid(at.Child("megabytesPerHour"), b.MegabytesPerHour,
			fmt.Sprintf("must be from 1 to %d", mostMegabytesPerHour)))
	}
	if cr.Spec.UpdateStrategy.Type == v1alpha1.AssignReceive {
		refused = append(refused, field.Invalid(specPath.Child("updateStrategy", "type"), cr.Spec.UpdateStrategy.Type,
			"says which shard owns how many slots, which balance would change: set it to AutoReceive, or remove balance"))
	}
	if cr.Spec.ShardCount() == 1 {
		refused = append(refused, field.Forbidden(at, "the only shard owns all slots: remove balance, or set shards to 2 or more"))
	}
	return refused
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

import (
	"crypto/sha256"
	"encoding/hex"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// AuthConfigPath is the file of the password in the Redis container: the key auth.conf of the Secret <name>-auth.
const AuthConfigPath = "/etc/redis/auth/auth.conf"

// File is what stands in redis.conf with these settings, and with that of TLS. The password's file comes first, so that
// whatever it held could not override a setting of the operator's; TLS comes last and wins.
func File(cr *v1alpha1.RedisCluster, all []Setting, tls TLS) []Setting {
	var file []Setting
	if cr.AuthEnabled() {
		file = append(file, Setting{Name: "include", Args: []string{AuthConfigPath}})
	}
	file = append(file, all...)
	file = append(file, tlsSettings(tls)...)
	return append(file, modules(&cr.Spec)...)
}

// AtStartDigest identifies the settings that instances take only when they start; empty when all of
// them are what the engines have anyway.
func AtStartDigest(all []Setting) string {
	var atStart []Setting
	for _, s := range all {
		if s.Source != FromOperator && NeedsRestart(s.Name) && !IsDefault(s.Name, s.Value()) {
			atStart = append(atStart, s)
		}
	}
	return digest(atStart)
}

// digest identifies settings, their values and their order; empty without any.
func digest(all []Setting) string {
	if len(all) == 0 {
		return ""
	}
	hash := sha256.New()
	for _, s := range all {
		_, _ = hash.Write([]byte(s.Line() + "\n")) // a hash takes everything
	}
	const digits = 16
	return hex.EncodeToString(hash.Sum(nil))[:digits]
}

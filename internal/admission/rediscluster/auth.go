// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

var (
	authPath = specPath.Child("auth")
	tlsPath  = specPath.Child("tls")
)

// checkAuth wants fields that go together, and Secrets that are not the operator's own.
func checkAuth(cr *v1alpha1.RedisCluster, _ Options) field.ErrorList {
	auth := cr.Spec.Auth
	var refused field.ErrorList
	if auth.Rotate != "" && auth.SecretName != "" {
		refused = append(refused,
			field.Invalid(authPath.Child("rotate"), auth.Rotate,
				fmt.Sprintf(
					"asks for a random password, and spec.auth.secretName gives one: change the key %s of Secret %s, or remove one of the fields",
					v1alpha1.SecretKeyPassword, auth.SecretName)))
	}
	if auth.ACLSecretName != "" && !cr.AuthEnabled() {
		refused = append(refused,
			field.Invalid(authPath.Child("aclSecretName"), auth.ACLSecretName,
				"users mean little while the user default needs no password: set spec.auth.enabled to true, or remove the field"))
	}
	if auth.ACLSecretName != "" && auth.ACLSecretName == auth.SecretName {
		refused = append(refused,
			field.Invalid(authPath.Child("aclSecretName"), auth.ACLSecretName,
				"each key of it is a user, and spec.auth.secretName holds a password: use two Secrets"))
	}
	for _, named := range []struct{ field, secret string }{{"secretName", auth.SecretName}, {"aclSecretName", auth.ACLSecretName}} {
		if named.secret == cr.AuthSecretName() {
			refused = append(refused,
				field.Invalid(authPath.Child(named.field), named.secret, "is the Secret that the operator keeps itself: use another one"))
		}
	}
	if d := auth.PreviousPasswordFor; d != nil && d.Duration < 0 {
		refused = append(refused,
			field.Invalid(authPath.Child("previousPasswordFor"), d.Duration.String(), "cannot be negative: write how long, such as 30m"))
	}
	return refused
}

func keepAuth(before, after *v1alpha1.RedisCluster) field.ErrorList {
	if before.AuthEnabled() == after.AuthEnabled() {
		return nil
	}
	return field.ErrorList{
		field.Invalid(authPath.Child("enabled"), after.AuthEnabled(),
			fmt.Sprintf(
				"cannot change from %t: instances with and without a password do not replicate from each other; make a new RedisCluster and copy the data", before.AuthEnabled()))}
}

// keepTLS refuses what would leave instances that do not understand each other while they
// restart one after the other.
func keepTLS(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, is := before.Spec.TLS, after.Spec.TLS
	switch {
	case ptr.Equal(was, is):
		return nil
	case was == nil || is == nil:
		return field.ErrorList{
			field.Forbidden(tlsPath,
				"TLS cannot be turned on or off later: instances with and without it do not reach each other's cluster bus; make a new RedisCluster and copy the data")}
	}
	return field.ErrorList{
		field.Invalid(tlsPath.Child("secretName"), is.SecretName,
			fmt.Sprintf("cannot change from %q with CA %q: change what the Secrets hold instead, which instances load without a restart",
				was.SecretName, was.CASecretName))}
}

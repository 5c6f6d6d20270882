// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
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

// checkTLS wants one certificate, and refuses what a relay to a server outside cannot follow.
func checkTLS(cr *v1alpha1.RedisCluster, o Options) field.ErrorList {
	tls := cr.Spec.TLS
	if tls == nil {
		return nil
	}
	refused := checkIssuer(tls, o)
	if cr.TLSMode() == v1alpha1.TLSBoth && follows(cr) {
		refused = append(refused, field.Invalid(tlsPath.Child("mode"), cr.Spec.TLS.Mode,
			"a cluster that takes the data of another one begins with Disabled or Required: set one of them, and Both after the cut-over"))
	}
	return refused
}

// shortestCertificate is what cert-manager makes at least.
const shortestCertificate = time.Hour

// checkIssuer is about where the certificate comes from.
func checkIssuer(tls *v1alpha1.TLS, o Options) field.ErrorList {
	at, issuer := tlsPath.Child("issuerRef"), tls.IssuerRef
	switch {
	case issuer == nil && tls.SecretName == "":
		return field.ErrorList{field.Required(tlsPath.Child("secretName"),
			"name the Secret with the certificate, or set spec.tls.issuerRef to have cert-manager make it")}
	case issuer == nil && tls.Duration != nil:
		return field.ErrorList{field.Forbidden(tlsPath.Child("duration"),
			"who makes the Secret of spec.tls.secretName says how long its certificate is valid: remove it")}
	case issuer == nil:
		return nil
	case tls.SecretName != "":
		return field.ErrorList{field.Forbidden(at, "spec.tls.secretName names a certificate that is there: remove one of the two")}
	}
	var refused field.ErrorList
	if len(validation.IsDNS1123Subdomain(issuer.Name)) > 0 {
		refused = append(refused, field.Invalid(at.Child("name"), issuer.Name, "cannot be the name of an issuer; name one that exists"))
	}
	if issuer.Group != "" && issuer.Group != v1alpha1.IssuerGroup {
		refused = append(refused, field.NotSupported(at.Child("group"), issuer.Group, []string{v1alpha1.IssuerGroup}))
	}
	switch issuer.Kind {
	case "", v1alpha1.IssuerKindIssuer:
	case v1alpha1.IssuerKindClusterIssuer:
		if !slices.Contains(o.ClusterIssuers, issuer.Name) && !slices.Contains(o.ClusterIssuers, "*") {
			refused = append(refused, field.Forbidden(at, fmt.Sprintf("ClusterIssuer %s may be meant for others: name an Issuer of the namespace, "+
				"or ask whoever runs the operator to start it with --cluster-issuers=%s", issuer.Name, issuer.Name)))
		}
	default:
		refused = append(refused, field.NotSupported(at.Child("kind"), issuer.Kind,
			[]v1alpha1.IssuerKind{v1alpha1.IssuerKindIssuer, v1alpha1.IssuerKindClusterIssuer}))
	}
	if tls.Duration != nil && tls.Duration.Duration < shortestCertificate {
		refused = append(refused, field.Invalid(tlsPath.Child("duration"), tls.Duration.Duration.String(),
			"cert-manager makes none for less than 1h: write a longer time, such as 2160h, or remove it"))
	}
	return refused
}

// adviseTLS says who is about to be refused, and who is let in.
func adviseTLS(cr *v1alpha1.RedisCluster) []string {
	tls := cr.Spec.TLS
	if tls == nil || cr.TLSMode() == v1alpha1.TLSDisabled {
		return nil
	}
	var warnings []string
	if at := tlsPath.Child("clientCertificates"); tls.ClientCertificates == v1alpha1.ClientCertificatesRequired {
		if cr.Status.TLS == nil || cr.Status.TLS.ClientCertificates != v1alpha1.ClientCertificatesRequired {
			warnings = append(warnings, fmt.Sprintf(
				"%s: clients that show no certificate of a CA in Secret %s are refused when they connect the next time: give it to them first",
				at, cr.TLSClientTrustSecretName()))
		}
		if cr.TLSMode() == v1alpha1.TLSBoth {
			warnings = append(warnings, at.String()+": plain connections need none, as long as spec.tls.mode is Both")
		}
	}
	if tls.ClientCASecretName != "" {
		warnings = append(warnings, fmt.Sprintf(
			"%s: whoever has a certificate of a CA in Secret %s and reaches port 16379 can join the cluster: keep spec.networkPolicy enabled",
			tlsPath.Child("clientCASecretName"), tls.ClientCASecretName))
	}
	return warnings
}

// follows reports whether the cluster takes the data of a server outside now.
func follows(cr *v1alpha1.RedisCluster) bool {
	return cr.Follows() && (cr.Status.Import == nil || cr.Status.Import.CutOverAt == nil)
}

// tlsOrder are the modes as clients pass them.
var tlsOrder = []v1alpha1.TLSMode{v1alpha1.TLSDisabled, v1alpha1.TLSBoth, v1alpha1.TLSRequired}

// keepTLS lets TLS be switched one stage at a time, so that clients can move in between.
func keepTLS(before, after *v1alpha1.RedisCluster) field.ErrorList {
	was, is := before.Spec.TLS, after.Spec.TLS
	modePath := tlsPath.Child("mode")
	switch {
	case ptr.Equal(was, is):
		return nil
	case is == nil && before.UsesTLS():
		return field.ErrorList{field.Forbidden(tlsPath,
			"instances use it: set mode to Both, let clients move, set it to Disabled, and remove the field when status.tls is gone")}
	case before.UsesTLS() && (after.TLSSecretName() != before.TLSSecretName() || is.CASecretName != was.CASecretName):
		return field.ErrorList{
			field.Invalid(tlsPath.Child("secretName"), after.TLSSecretName(),
				fmt.Sprintf("cannot change from %q with CA %q: change what the Secrets hold instead, which instances load without a restart",
					before.TLSSecretName(), was.CASecretName))}
	case before.UsesTLS() && (trustsItsOwn(before) || trustsItsOwn(after)) && !ptr.Equal(before.Issuer(), after.Issuer()):
		return field.ErrorList{field.Forbidden(tlsPath.Child("issuerRef"),
			"another issuer may have another CA, and instances that trust one alone would not know those that have a certificate of the other: "+
				"set mode to Both and then to Disabled, change it, and switch TLS on again; with spec.tls.caSecretName, whose Secret can hold both "+
				"CAs, it can be changed at any time")}
	case before.TLSMode() == after.TLSMode():
		return nil
	case follows(before):
		return field.ErrorList{field.Invalid(modePath, after.TLSMode(),
			fmt.Sprintf("cannot change from %s while the cluster takes the data of another one: change it after the cut-over", before.TLSMode()))}
	}
	reached := reachedTLS(before)
	if from, to := slices.Index(tlsOrder, reached), slices.Index(tlsOrder, after.TLSMode()); max(from-to, to-from) > 1 {
		return field.ErrorList{field.Invalid(modePath, after.TLSMode(),
			fmt.Sprintf("cannot follow %s: set Both, wait until status.tls.mode is Both, and let clients move first", reached))}
	}
	return nil
}

// trustsItsOwn reports whether what instances trust changes with the Secret of their certificate.
func trustsItsOwn(cr *v1alpha1.RedisCluster) bool {
	return cr.TLSTrustSecretName() == cr.TLSSecretName() || cr.TLSClientTrustSecretName() == cr.TLSSecretName()
}

// reachedTLS is the mode that clients can rely on.
func reachedTLS(cr *v1alpha1.RedisCluster) v1alpha1.TLSMode {
	switch {
	case cr.Status.TLS != nil:
		return cr.Status.TLS.Mode
	case cr.TLSMode() == v1alpha1.TLSBoth:
		return v1alpha1.TLSDisabled // nothing of it has been reported yet
	}
	return cr.TLSMode()
}

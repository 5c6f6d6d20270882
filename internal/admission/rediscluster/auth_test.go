// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func TestAuthAndTLSRefused(t *testing.T) {
	for spec, want := range map[string]string{
		`{tls: {secretName: a, mode: Both}, bootstrap: {clone: {name: b}}}`: "spec.tls.mode: Invalid value: \"Both\": a cluster that takes the data of another one begins with Disabled or Required",

		`{auth: {secretName: mine, rotate: "1"}}`:                 "spec.auth.rotate: Invalid value: \"1\": asks for a random password, and spec.auth.secretName gives one",
		`{auth: {enabled: false, aclSecretName: users}}`:          "spec.auth.aclSecretName: Invalid value: \"users\": users mean little",
		`{auth: {secretName: mine, aclSecretName: mine}}`:         "spec.auth.aclSecretName: Invalid value: \"mine\": each key of it is a user",
		`{auth: {secretName: cache-auth}}`:                        "spec.auth.secretName: Invalid value: \"cache-auth\": is the Secret that the operator keeps itself",
		`{auth: {aclSecretName: cache-auth}}`:                     "spec.auth.aclSecretName: Invalid value: \"cache-auth\": is the Secret that the operator keeps itself",
		`{auth: {previousPasswordFor: -1h}}`:                      "spec.auth.previousPasswordFor: Invalid value: \"-1h0m0s\": cannot be negative",
		`{auth: {aclSecretName: A_b}}`:                            "spec.auth.aclSecretName: Invalid value: \"A_b\": cannot be the name of a Secret",
		`{tls: {secretName: A_b}}`:                                "spec.tls.secretName: Invalid value: \"A_b\": cannot be the name of a Secret",
		`{auth: {rotate: "1", aclSecretName: users}}`:             "",
		`{auth: {secretName: mine, previousPasswordFor: 30m}}`:    "",
		`{tls: {secretName: certificate, caSecretName: company}}`: "",
	} {
		refused := strings.Join(sentences(Validate(cluster(t, spec), Options{})), "\n")
		if !strings.HasPrefix(refused, want) || want == "" && refused != "" {
			t.Errorf("%s: %q, want one that begins with %q", spec, refused, want)
		}
	}
}

// A certificate comes from one place; a ClusterIssuer is asked for it only if the operator's flag names it.
func TestIssuer(t *testing.T) {
	named := Options{ClusterIssuers: []string{"company"}}
	for _, tt := range []struct {
		tls, want string
		options   Options
	}{
		{tls: `{}`, want: "spec.tls.secretName: Required value: name the Secret with the certificate, or set spec.tls.issuerRef"},
		{tls: `{issuerRef: {name: own}}`},
		{tls: `{issuerRef: {name: own, kind: Issuer, group: cert-manager.io}, duration: 1h}`},
		{tls: `{issuerRef: {name: own}, secretName: a}`,
			want: "spec.tls.issuerRef: Forbidden: spec.tls.secretName names a certificate that is there"},
		{tls: `{secretName: a, duration: 48h}`, want: "spec.tls.duration: Forbidden: who makes the Secret"},
		{tls: `{issuerRef: {name: own}, duration: 59m}`,
			want: "spec.tls.duration: Invalid value: \"59m0s\": cert-manager makes none for less than 1h"},
		{tls: `{issuerRef: {name: Own}}`, want: "spec.tls.issuerRef.name: Invalid value: \"Own\": cannot be the name of an issuer"},
		{tls: `{issuerRef: {name: own, group: awspca.cert-manager.io}}`, want: "spec.tls.issuerRef.group: Unsupported value"},
		{tls: `{issuerRef: {name: own, kind: AWSPCAIssuer}}`, want: "spec.tls.issuerRef.kind: Unsupported value"},
		{tls: `{issuerRef: {name: company, kind: ClusterIssuer}}`,
			want: "spec.tls.issuerRef: Forbidden: ClusterIssuer company may be meant for others: name an Issuer of the namespace, or ask whoever " +
				"runs the operator to start it with --cluster-issuers=company"},
		{tls: `{issuerRef: {name: company, kind: ClusterIssuer}}`, options: named},
		{tls: `{issuerRef: {name: others, kind: ClusterIssuer}}`, options: named, want: "spec.tls.issuerRef: Forbidden: ClusterIssuer others"},
		{tls: `{issuerRef: {name: others, kind: ClusterIssuer}}`, options: Options{ClusterIssuers: []string{"*"}}},
	} {
		refused := strings.Join(sentences(Validate(cluster(t, "{tls: "+tt.tls+"}"), tt.options)), "\n")
		if !strings.HasPrefix(refused, tt.want) || tt.want == "" && refused != "" {
			t.Errorf("%s: %q, want %q", tt.tls, refused, tt.want)
		}
	}
}

// TLS is switched one stage at a time, from what clients can rely on, and back; what it is made of stays while it is used.
func TestTLSStays(t *testing.T) {
	const (
		off     = `{tls: {secretName: a, mode: Disabled}}`
		both    = `{tls: {secretName: a, mode: Both}}`
		with    = `{tls: {secretName: a}}`
		without = `{}`
	)
	for _, tt := range []struct {
		before  string
		reached v1alpha1.TLSMode
		after   string
		want    string
	}{
		{with, "", with, ""},
		{with, "", `{tls: {secretName: a, mode: Required}}`, ""},
		{without, "", without, ""},
		{without, "", off, ""},
		{without, "", both, ""},
		{without, "", with, "spec.tls.mode: Invalid value: \"Required\": cannot follow Disabled: set Both, wait until status.tls.mode is Both"},
		{off, "", with, "spec.tls.mode: Invalid value: \"Required\": cannot follow Disabled"},
		{both, "", with, "spec.tls.mode: Invalid value: \"Required\": cannot follow Disabled"},
		{both, v1alpha1.TLSDisabled, with, "spec.tls.mode: Invalid value: \"Required\": cannot follow Disabled"},
		{both, v1alpha1.TLSDisabled, off, ""},
		{both, v1alpha1.TLSBoth, with, ""},
		{both, v1alpha1.TLSBoth, off, ""},
		{with, v1alpha1.TLSBoth, both, ""},
		{with, v1alpha1.TLSBoth, off, ""},
		{with, v1alpha1.TLSRequired, both, ""},
		{with, "", both, ""},
		{with, "", off, "spec.tls.mode: Invalid value: \"Disabled\": cannot follow Required: set Both"},
		{both, v1alpha1.TLSRequired, off, "spec.tls.mode: Invalid value: \"Disabled\": cannot follow Required"},
		{with, "", without, "spec.tls: Forbidden: instances use it: set mode to Both, let clients move"},
		{off, v1alpha1.TLSDisabled, without, "spec.tls: Forbidden: instances use it"},
		{off, "", without, ""},
		{off, "", `{tls: {secretName: b, mode: Disabled}}`, ""},
		{off, v1alpha1.TLSDisabled, `{tls: {secretName: b, mode: Disabled}}`,
			"spec.tls.secretName: Invalid value: \"b\": cannot change from \"a\""},
		{with, "", `{tls: {secretName: a, clientCASecretName: b, clientCertificates: Required}}`, ""},
		{`{tls: {secretName: a, clientCASecretName: b, clientCertificates: Required}}`, "", with, ""},
		{with, "", `{tls: {secretName: b}}`, "spec.tls.secretName: Invalid value: \"b\": cannot change from \"a\""},
		{with, "", `{tls: {secretName: a, caSecretName: c}}`, "spec.tls.secretName: Invalid value: \"a\": cannot change from \"a\" with CA \"\""},
		// The Secret of an issuer is cache-tls. Who makes it changes only where both CAs can be trusted meanwhile.
		{off, "", `{tls: {issuerRef: {name: b}, mode: Disabled}}`, ""},
		{with, "", `{tls: {issuerRef: {name: b}}}`, "spec.tls.secretName: Invalid value: \"cache-tls\": cannot change from \"a\""},
		{`{tls: {secretName: cache-tls}}`, "", `{tls: {issuerRef: {name: b}}}`,
			"spec.tls.issuerRef: Forbidden: another issuer may have another CA"},
		{`{tls: {issuerRef: {name: b}}}`, "", `{tls: {secretName: cache-tls}}`,
			"spec.tls.issuerRef: Forbidden: another issuer may have another CA"},
		{`{tls: {issuerRef: {name: b}}}`, "", `{tls: {issuerRef: {name: c}}}`,
			"spec.tls.issuerRef: Forbidden: another issuer may have another CA"},
		{`{tls: {issuerRef: {name: b}}}`, "", `{tls: {issuerRef: {name: b, kind: Issuer, group: cert-manager.io}, duration: 48h}}`, ""},
		{`{tls: {secretName: cache-tls, caSecretName: d}}`, "", `{tls: {issuerRef: {name: b}, caSecretName: d}}`, ""},
		{`{tls: {issuerRef: {name: b}, caSecretName: d}}`, "", `{tls: {issuerRef: {name: c}, caSecretName: d}}`, ""},
		{`{tls: {issuerRef: {name: b}, caSecretName: cache-tls}}`, "", `{tls: {issuerRef: {name: c}, caSecretName: cache-tls}}`,
			"spec.tls.issuerRef: Forbidden: another issuer may have another CA"},
		{`{tls: {issuerRef: {name: b}, caSecretName: d, clientCASecretName: cache-tls}}`, "",
			`{tls: {issuerRef: {name: c}, caSecretName: d, clientCASecretName: cache-tls}}`,
			"spec.tls.issuerRef: Forbidden: another issuer may have another CA"},
		{`{tls: {secretName: a}, bootstrap: {clone: {name: b}}}`, "", `{tls: {secretName: a, mode: Both}, bootstrap: {clone: {name: b}}}`,
			"spec.tls.mode: Invalid value: \"Both\": cannot change from Required while the cluster takes the data of another one"},
	} {
		before := cluster(t, tt.before)
		if tt.reached != "" {
			before.Status.TLS = &v1alpha1.TLSStatus{Mode: tt.reached}
		}
		refused := strings.Join(sentences(ValidateUpdate(before, cluster(t, tt.after), Options{})), "\n")
		if !strings.HasPrefix(refused, tt.want) || tt.want == "" && refused != "" {
			t.Errorf("%s (reached %s) to %s: %q, want %q", tt.before, tt.reached, tt.after, refused, tt.want)
		}
	}
}

// Who is about to be refused is told before, and not again afterwards.
func TestCertificatesOfClientsAreWarnedOf(t *testing.T) {
	for _, tt := range []struct {
		spec string
		is   v1alpha1.ClientCertificates
		want []string
	}{
		{`{tls: {secretName: a}}`, "", nil},
		{`{tls: {secretName: a, mode: Disabled, clientCertificates: Required}}`, "", nil},
		{`{tls: {secretName: a, clientCertificates: Required}}`, "", []string{"of a CA in Secret a are refused"}},
		{`{tls: {secretName: a, caSecretName: b, clientCertificates: Required}}`, v1alpha1.ClientCertificatesOptional,
			[]string{"of a CA in Secret b are refused"}},
		{`{tls: {secretName: a, clientCASecretName: c, clientCertificates: Required}}`, v1alpha1.ClientCertificatesRequired,
			[]string{"a CA in Secret c and reaches port 16379 can join"}},
		{`{tls: {secretName: a, mode: Both, clientCertificates: Required}}`, v1alpha1.ClientCertificatesRequired,
			[]string{"plain connections need none"}},
	} {
		cr := cluster(t, tt.spec)
		cr.Status.TLS = &v1alpha1.TLSStatus{ClientCertificates: tt.is}
		got := adviseTLS(cr)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %q, want %q", tt.spec, got, tt.want)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%s: %q, want %q", tt.spec, got[i], want)
			}
		}
	}
}

// An import names a server that can be reached, and whoever asks for one may say later when it ends, and nothing else.
func TestImport(t *testing.T) {
	spec := func(of string) string { return `{bootstrap: {import: {` + of + `}}}` }
	for of, want := range map[string]string{
		`address: 'redis.example.com:6379'`: "", `address: '10.0.0.7:6379'`: "", `address: '[fd00::7]:6379'`: "",
		`address: redis`:          "spec.bootstrap.import.address: Invalid value",
		`address: 'redis:0'`:      "spec.bootstrap.import.address: Invalid value",
		`address: 'redis:99999'`:  "spec.bootstrap.import.address: Invalid value",
		`address: '-v:6379'`:      "spec.bootstrap.import.address: Invalid value",
		`address: 'a b:6379'`:     "spec.bootstrap.import.address: Invalid value",
		`address: 'a:1', user: a`: "spec.bootstrap.import.credentialsSecretName: Required value",
		`address: 'a:1', user: a, credentialsSecretName: b, tls: {caSecretName: c}`: "",
		`address: 'a:1', credentialsSecretName: A`:                                  "spec.bootstrap.import.credentialsSecretName: Invalid value",
		`address: 'a:1', tls: {caSecretName: A}`:                                    "spec.bootstrap.import.tls.caSecretName: Invalid value",
	} {
		refused := strings.Join(sentences(Validate(cluster(t, spec(of)), Options{})), "\n")
		if !strings.HasPrefix(refused, want) || want == "" && refused != "" {
			t.Errorf("%s: %q, want one that begins with %q", of, refused, want)
		}
	}
	for both, want := range map[string]string{
		`{bootstrap: {import: {address: 'a:1'}}, auth: {enabled: false}}`:             "spec.auth.enabled: Invalid value: false: who",
		`{bootstrap: {clone: {name: a}}, auth: {enabled: false}}`:                     "spec.auth.enabled: Invalid value: false: who",
		`{bootstrap: {clone: {name: a}}}`:                                             "",
		`{bootstrap: {clone: {name: cache}}}`:                                         "spec.bootstrap.clone.name: Invalid value",
		`{bootstrap: {clone: {name: a}, restore: {redisBackup: a}}}`:                  "spec.bootstrap.clone: Forbidden: a cluster begins",
		`{bootstrap: {clone: {name: a}, import: {address: 'a:1'}}}`:                   "spec.bootstrap.import: Forbidden: a cluster begins",
		`{bootstrap: {clone: {name: a}}, pod: [{volumes: {type: emptyDir}}]}`:         "spec.bootstrap.clone: Forbidden: the first",
		`{bootstrap: {import: {address: 'a:1'}, restore: {redisBackup: a}}}`:          "spec.bootstrap.import: Forbidden: a cluster begins",
		`{bootstrap: {import: {address: 'a:1'}}, pod: [{volumes: {type: emptyDir}}]}`: "spec.bootstrap.import: Forbidden: the first",
	} {
		if refused := strings.Join(sentences(Validate(cluster(t, both), Options{})), "\n"); !strings.HasPrefix(refused, want) {
			t.Errorf("%s: %q", both, refused)
		}
	}
	before := spec(`address: 'a:1'`)
	for after, want := range map[string]string{
		spec(`address: 'a:1', cutOver: true, pauseSeconds: 60`): "", `{}`: "spec.bootstrap: Forbidden",
		spec(`address: 'b:1'`): "spec.bootstrap: Forbidden", spec(`address: 'a:1', tls: {caSecretName: c}`): "spec.bootstrap: Forbidden",
		`{bootstrap: {restore: {redisBackup: a}}}`: "spec.bootstrap: Forbidden",
	} {
		refused := strings.Join(sentences(ValidateUpdate(cluster(t, before), cluster(t, after), Options{})), "\n")
		if !strings.HasPrefix(refused, want) || want == "" && refused != "" {
			t.Errorf("to %s: %q, want %q", after, refused, want)
		}
	}
}

func TestBootstrapIsOfANewCluster(t *testing.T) {
	const of, from = `{bootstrap: {restore: {redisBackup: monday}}}`, `{bootstrap: {restore: {redisBackup: tuesday}}}`
	for spec, want := range map[string]string{
		of:                           "",
		`{bootstrap: {restore: {}}}`: "spec.bootstrap.restore.redisBackup: Required value: say which data",
		`{bootstrap: {restore: {redisBackup: a}}, pod: [{volumes: {type: emptyDir}}]}`: "spec.bootstrap.restore: Forbidden",
	} {
		refused := strings.Join(sentences(Validate(cluster(t, spec), Options{})), "\n")
		if !strings.HasPrefix(refused, want) || want == "" && refused != "" {
			t.Errorf("%s: %q, want one that begins with %q", spec, refused, want)
		}
	}
	for _, tt := range [][2]string{{`{}`, of}, {of, `{}`}, {of, from}} {
		refused := strings.Join(sentences(ValidateUpdate(cluster(t, tt[0]), cluster(t, tt[1]), Options{})), "\n")
		if !strings.HasPrefix(refused, "spec.bootstrap: Forbidden: it is what a new cluster begins with") {
			t.Errorf("%s to %s: %q", tt[0], tt[1], refused)
		}
	}
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	start    = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	dnsNames = []string{"webhook.system.svc", "webhook.system.svc.cluster.local"}
)

// accepts checks that a client that trusts the authorities accepts what is served under every name.
func accepts(t *testing.T, authorities []byte, s Set, at time.Time) {
	t.Helper()
	pair, err := tls.X509KeyPair(s.Certificate, s.Key)
	if err != nil {
		t.Fatalf("%v: the certificate and its key do not match: %v", at, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	for _, name := range dnsNames {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at}); err != nil {
			t.Fatalf("%v: a client refuses the certificate for %s: %v", at, name, err)
		}
	}
}

func next(t *testing.T, now time.Time, s Set) (Set, time.Time) {
	t.Helper()
	following, recheck, err := Next(now, s, dnsNames)
	if err != nil {
		t.Fatalf("%v: %v", now, err)
	}
	if !recheck.After(now) {
		t.Fatalf("%v: the next check is at %v, which is not later", now, recheck)
	}
	return following, recheck
}

// The year around the end of an authority: whoever trusts what was announced before a change accepts what is served after it.
func TestNoAdmissionFailsWhileCertificatesChange(t *testing.T) {
	old, err := bootstrap(start.Add(authorityAhead/2-authorityLife), dnsNames)
	if err != nil {
		t.Fatal(err)
	}
	// A certificate that this authority signed recently; the years in between need not be walked through.
	set, err := renewCertificate(start.Add(-authorityAhead), old, dnsNames)
	if err != nil {
		t.Fatal(err)
	}
	certificates, authorities := 0, 0
	for at := start.Add(-authorityAhead); at.Before(start.Add(authorityAhead / 3)); {
		now := at
		var following Set
		following, at = next(t, now, set)
		accepts(t, set.Authorities, following, now)
		accepts(t, following.Authorities, following, at)
		renewed, announced := !cmp.Equal(set.Certificate, following.Certificate), !cmp.Equal(set.Authorities, following.Authorities)
		if renewed && announced {
			t.Fatalf("%v: a new authority was announced and used at once", now)
		}
		if renewed {
			certificates++
		}
		if announced {
			authorities++
		}
		set = following
	}
	if authorities != 1 || certificates < 6 {
		t.Errorf("there were %d new authorities and %d new certificates; want 1 and at least 6", authorities, certificates)
	}
}

func TestASettledSetStaysAsItIs(t *testing.T) {
	set, recheck := next(t, start, Set{})
	if want := start.Add(servingLife - servingAhead); !recheck.Equal(want) {
		t.Errorf("the next check is at %v, want %v", recheck, want)
	}
	again, _ := next(t, recheck.Add(-time.Second), set)
	if diff := cmp.Diff(set, again); diff != "" {
		t.Errorf("it changed before it was due:\n%s", diff)
	}
}

func TestAnUnusableSetIsReplaced(t *testing.T) {
	good, _ := next(t, start, Set{})
	other, _ := next(t, start, Set{})
	tests := map[string]struct {
		set Set
		now time.Time
	}{
		"nothing":                 {Set{}, start},
		"no key of the authority": {Set{Authorities: good.Authorities, Certificate: good.Certificate, Key: good.Key}, start},
		"damaged certificate": {
			Set{Authorities: good.Authorities, AuthorityKey: good.AuthorityKey, Certificate: []byte("x"), Key: good.Key}, start},
		"signed by somebody else": {
			Set{Authorities: good.Authorities, AuthorityKey: good.AuthorityKey, Certificate: other.Certificate, Key: other.Key}, start},
		"expired while the operator was": {good, start.Add(servingLife + time.Hour)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, _ := next(t, test.now, test.set)
			if cmp.Equal(set.Certificate, test.set.Certificate) {
				t.Error("the certificate was kept")
			}
			accepts(t, set.Authorities, set, test.now)
		})
	}
}

func TestOtherNamesNeedAnotherCertificate(t *testing.T) {
	set, _ := next(t, start, Set{})
	renamed, _, err := Next(start, set, []string{"other.system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	if cmp.Equal(set.Certificate, renamed.Certificate) {
		t.Error("the certificate was kept although it is for other names")
	}
}

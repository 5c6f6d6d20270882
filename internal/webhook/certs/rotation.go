// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certs makes and rotates the serving certificate of the admission webhooks when nobody else (cert-manager, OLM)
// provides one, and tells the API server which authority to trust.
//
// The certificate is served from memory, not from a mounted Secret: a kubelet may take minutes to bring a new Secret into a
// running pod. A new authority is announced a while before anything signed by it is served, so that no admission fails while
// certificates change.
package certs

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

const (
	// authorityLife and authorityAhead: an authority lives ten years, its successor is announced one year before its end.
	authorityLife  = 10 * 365 * 24 * time.Hour
	authorityAhead = 365 * 24 * time.Hour
	// servingLife and servingAhead: a serving certificate lives 90 days and is replaced 30 days before its end, which leaves
	// time to notice that renewing fails.
	servingLife  = 90 * 24 * time.Hour
	servingAhead = 30 * 24 * time.Hour
	// settle is how long an authority is announced before a certificate of it is served: API servers learn of it through
	// a watch, usually within a second.
	settle = 10 * time.Minute
	// skew is how far in the past certificates begin, for clients whose clock is behind.
	skew = time.Hour

	authorityName = "middleware-operator-webhook-ca"
	organization  = "middleware-operator"
)

// Set is the content of the Secret: what to serve and what to announce.
type Set struct {
	// Authorities are PEM certificates, the newest first; all of them are announced to the API server.
	Authorities []byte
	// AuthorityKey is the newest authority's private key, PEM.
	AuthorityKey []byte
	// Certificate and Key are what is served, PEM.
	Certificate, Key []byte
}

// FromSecret reads a Set from a Secret's data; what is missing is empty.
func FromSecret(data map[string][]byte) Set {
	return Set{Authorities: data["ca.crt"], AuthorityKey: data["ca.key"], Certificate: data["tls.crt"], Key: data["tls.key"]}
}

// Data is the Secret's data for this Set.
func (s Set) Data() map[string][]byte {
	return map[string][]byte{"ca.crt": s.Authorities, "ca.key": s.AuthorityKey, "tls.crt": s.Certificate, "tls.key": s.Key}
}

// Next returns the Set that is right at the given time for a server of the given DNS names, and when to ask again. It returns the
// same Set while nothing has to change. A Set that cannot be used (empty, damaged, expired, for other names) is replaced as a
// whole; otherwise changes are such that a client that knows the Authorities of ten minutes ago accepts the Certificate.
func Next(now time.Time, s Set, dnsNames []string) (next Set, recheck time.Time, err error) {
	view, err := parse(now, s, dnsNames)
	if err != nil {
		next, err = bootstrap(now, dnsNames)
		if err != nil {
			return Set{}, time.Time{}, err
		}
		view, err = parse(now, next, dnsNames)
		return next, view.recheck(now), err
	}
	switch {
	case view.authorityDue(now):
		next, err = announceAuthority(now, s, view)
	case view.certificateDue(now):
		next, err = renewCertificate(now, s, dnsNames)
	default:
		return s, view.recheck(now), nil
	}
	if err != nil {
		return Set{}, time.Time{}, err
	}
	view, err = parse(now, next, dnsNames)
	return next, view.recheck(now), err
}

// view is a parsed Set.
type view struct {
	authorities []*x509.Certificate
	serving     *x509.Certificate
	// current reports whether the newest authority signed the serving certificate.
	current bool
}

func (v view) authorityDue(now time.Time) bool {
	return now.After(v.authorities[0].NotAfter.Add(-authorityAhead))
}

func (v view) certificateDue(now time.Time) bool {
	if v.settled(now) && !v.current {
		return true
	}
	return now.After(v.serving.NotAfter.Add(-servingAhead)) && (v.current || v.settled(now))
}

func (v view) settled(now time.Time) bool { return !now.Before(v.settledAt()) }

func (v view) settledAt() time.Time { return v.authorities[0].NotBefore.Add(skew + settle) }

// recheck is the next time at which something may be due, at least a minute from now.
func (v view) recheck(now time.Time) time.Time {
	due := v.serving.NotAfter.Add(-servingAhead)
	if authority := v.authorities[0].NotAfter.Add(-authorityAhead); authority.Before(due) {
		due = authority
	}
	if !v.current && v.settledAt().Before(due) {
		due = v.settledAt()
	}
	if earliest := now.Add(time.Minute); due.Before(earliest) {
		return earliest
	}
	return due
}

// parse fails when the Set cannot serve the names at this time.
func parse(now time.Time, s Set, dnsNames []string) (view, error) {
	authorities, err := decode(s.Authorities)
	if err != nil {
		return view{}, fmt.Errorf("authorities: %w", err)
	}
	serving, err := decode(s.Certificate)
	if err != nil {
		return view{}, fmt.Errorf("serving certificate: %w", err)
	}
	v := view{authorities: authorities, serving: serving[0]}
	v.current = serving[0].CheckSignatureFrom(authorities[0]) == nil

	newest := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorities[0].Raw})
	if ok, err := rotator.ValidCert(newest, newest, s.AuthorityKey, authorityName, nil, now); !ok {
		return view{}, fmt.Errorf("newest authority: %w", err)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	roots := x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a)
	}
	for _, name := range dnsNames {
		if _, err := serving[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now, KeyUsages: usages}); err != nil {
			return view{}, fmt.Errorf("serving certificate: %w", err)
		}
	}
	return v, nil
}

func decode(text []byte) ([]*x509.Certificate, error) {
	var certificates []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		certificates = append(certificates, c)
	}
	if len(certificates) == 0 {
		return nil, errors.New("there is none")
	}
	return certificates, nil
}

func issuer(dnsNames []string) *rotator.CertRotator {
	return &rotator.CertRotator{
		CAName: authorityName, CAOrganization: organization,
		DNSName: dnsNames[0], ExtraDNSNames: dnsNames[1:],
		ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func bootstrap(now time.Time, dnsNames []string) (Set, error) {
	authority, err := issuer(dnsNames).CreateCACert(now.Add(-skew), now.Add(authorityLife))
	if err != nil {
		return Set{}, fmt.Errorf("making an authority: %w", err)
	}
	return renewCertificate(now, Set{Authorities: authority.CertPEM, AuthorityKey: authority.KeyPEM}, dnsNames)
}

// announceAuthority puts a new authority in front and drops those that have expired. The serving certificate stays.
func announceAuthority(now time.Time, s Set, v view) (Set, error) {
	authority, err := issuer([]string{""}).CreateCACert(now.Add(-skew), now.Add(authorityLife))
	if err != nil {
		return Set{}, fmt.Errorf("making the next authority: %w", err)
	}
	s.Authorities = slices.Clone(authority.CertPEM)
	for _, old := range v.authorities {
		if now.Before(old.NotAfter) {
			s.Authorities = append(s.Authorities, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: old.Raw})...)
		}
	}
	s.AuthorityKey = authority.KeyPEM
	return s, nil
}

// renewCertificate makes a serving certificate signed by the newest authority.
func renewCertificate(now time.Time, s Set, dnsNames []string) (Set, error) {
	authorities, err := decode(s.Authorities)
	if err != nil {
		return Set{}, fmt.Errorf("authorities: %w", err)
	}
	block, _ := pem.Decode(s.AuthorityKey)
	if block == nil {
		return Set{}, errors.New("authority key: it is not PEM")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return Set{}, fmt.Errorf("authority key: %w", err)
	}
	signer := &rotator.KeyPairArtifacts{Cert: authorities[0], Key: key}
	s.Certificate, s.Key, err = issuer(dnsNames).CreateCertPEM(signer, now.Add(-skew), now.Add(servingLife))
	if err != nil {
		return Set{}, fmt.Errorf("making a serving certificate: %w", err)
	}
	return s, nil
}

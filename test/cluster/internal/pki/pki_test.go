// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

func TestCertificates(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	made, err := NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := LoadAuthority(made.Pair, now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Cert)

	server, err := authority.Server("api", "192.0.2.1", "kubernetes.default")
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"192.0.2.1", "kubernetes.default"} {
		verify(t, server, x509.VerifyOptions{
			DNSName: host, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
	}
	client, err := authority.Client("system:node:node1", "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	leaf := verify(t, client, x509.VerifyOptions{
		Roots: roots, CurrentTime: now.Add(lifetime - time.Second), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if leaf.Subject.CommonName != "system:node:node1" || leaf.Subject.Organization[0] != "system:nodes" {
		t.Errorf("the client is %s", leaf.Subject)
	}
}

// verify checks the pair's certificate and that its key belongs to it.
func verify(t *testing.T, pair Pair, options x509.VerifyOptions) *x509.Certificate {
	t.Helper()
	both, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := both.Leaf.Verify(options); err != nil {
		t.Error(err)
	}
	return both.Leaf
}

// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// Authority signs certificates for tests.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	from, until time.Time
	serial      int64
}

// NewAuthority makes one whose certificates, and its own, are valid in that time.
func NewAuthority(from, until time.Time) *Authority {
	a := &Authority{key: newKey(), from: from, until: until, serial: 1}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.certificate = signed(template, template, a.key, a.key)
	return a
}

// PEM is its own certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// Issue makes a certificate for DNS names with these usages, as the data of a Secret: tls.crt, tls.key and ca.crt.
func (a *Authority) Issue(names []string, uses ...x509.ExtKeyUsage) map[string][]byte {
	a.serial++
	key := newKey()
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	is := signed(&x509.Certificate{SerialNumber: big.NewInt(a.serial), NotBefore: a.from, NotAfter: a.until, DNSNames: names,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: uses}, a.certificate, key, a.key)
	return map[string][]byte{"ca.crt": a.PEM(), "tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: is.Raw}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

// BothUsages are those of the certificates of instances.
func BothUsages() []x509.ExtKeyUsage {
	return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func signed(template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) *x509.Certificate {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		panic(err)
	}
	is, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return is
}

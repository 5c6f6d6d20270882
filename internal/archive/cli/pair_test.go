// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A certificate is read once for each change of its files, and one that is not whole changes nothing.
func TestPairIsReadOnceForEachChange(t *testing.T) {
	dir := t.TempDir()
	p := &pair{cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	if _, err := p.get(nil); err == nil {
		t.Error("there is none")
	}
	moment := time.Now()
	write := func(path, kind string, text []byte) {
		t.Helper()
		moment = moment.Add(time.Second)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: text}), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, moment, moment); err != nil {
			t.Fatal(err)
		}
	}
	issue := func() (cert, key []byte) {
		t.Helper()
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		of := &x509.Certificate{SerialNumber: big.NewInt(1)}
		if cert, err = x509.CreateCertificate(rand.Reader, of, of, private.Public(), private); err != nil {
			t.Fatal(err)
		}
		if key, err = x509.MarshalECPrivateKey(private); err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	cert, key := issue()
	write(p.cert, "CERTIFICATE", cert)
	write(p.key, "EC PRIVATE KEY", key)
	first, err := p.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.get(nil); again != first || err != nil {
		t.Errorf("it is read again: %v", err)
	}
	cert, key = issue()
	write(p.cert, "CERTIFICATE", cert)
	if half, err := p.get(nil); half != first || err != nil {
		t.Errorf("with the former key: %v", err)
	}
	write(p.key, "EC PRIVATE KEY", key)
	second, err := p.get(nil)
	if err != nil || second == first || string(second.Certificate[0]) != string(cert) {
		t.Errorf("after the change: %v", err)
	}
	if err := os.Remove(p.key); err != nil {
		t.Fatal(err)
	}
	if last, err := p.get(nil); last != second || err != nil {
		t.Errorf("a file is missing: %v", err)
	}
}

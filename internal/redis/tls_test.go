// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue makes a certificate of names that the authority signs; with a nil one it is an authority itself.
func issue(t *testing.T, by *authority, names ...string) (*authority, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour)}
	signer := by
	if by == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
		signer = &authority{certificate: template, key: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, &key.PublicKey, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate: parsed, key: key}, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// heard serves one connection, with TLS when it is given a certificate, and returns the address and what the client said.
func heard(t *testing.T, show *tls.Certificate) (addr string, said <-chan []byte) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // nobody uses it any more
	all := make(chan []byte, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			all <- nil
			return
		}
		if show != nil {
			conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*show}, MinVersion: tls.VersionTLS12})
		}
		buffer := make([]byte, 4096)
		n, _ := conn.Read(buffer) // what was read before an error counts
		_ = conn.Close()
		all <- buffer[:n]
	}()
	return listener.Addr().String(), all
}

// With TLS a password goes to whoever shows the cluster's certificate, and to nobody else, whatever address it has: not to one
// with the certificate of another cluster or authority, and not in plain text to one that has none.
func TestNothingIsToldWithoutTheCertificate(t *testing.T) {
	const secret = "the-password-of-the-cluster"
	trusted, _ := issue(t, nil)
	foreign, _ := issue(t, nil)
	_, right := issue(t, trusted, "*.c-nodes.n.svc")
	_, otherCluster := issue(t, trusted, "*.d-nodes.n.svc")
	_, otherNamespace := issue(t, trusted, "*.c-nodes.m.svc")
	_, otherAuthority := issue(t, foreign, "*.c-nodes.n.svc")
	credentials := redis.Credentials{Password: secret,
		TLS: redis.NewTLS(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: trusted.certificate.Raw}), "any.c-nodes.n.svc")}
	for name, tt := range map[string]struct {
		show *tls.Certificate
		told bool
	}{
		"the cluster's":       {&right, true},
		"another cluster's":   {&otherCluster, false},
		"another namespace's": {&otherNamespace, false},
		"another authority's": {&otherAuthority, false},
		"none":                {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			pool := redis.NewPool(redis.Options{DialTimeout: 10 * time.Second, IOTimeout: 10 * time.Second})
			defer pool.Close()
			addr, said := heard(t, tt.show)
			if err := pool.Node(addr, credentials).Ping(t.Context()); !errors.Is(err, redis.ErrUnreachable) {
				t.Errorf("it is not reached: %v", err)
			}
			if got := <-said; bytes.Contains(got, []byte(secret)) != tt.told {
				t.Errorf("it was told %q", got)
			}
		})
	}
}

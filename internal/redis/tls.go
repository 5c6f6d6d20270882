// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"
)

// TLS makes connections encrypted. Connections are shared by Credentials with the same TLS.
type TLS struct {
	trusted *x509.CertPool
	name    string
	// shows is the certificate that nodes are shown that ask for one; nil: none.
	shows func() *tls.Certificate
}

// NewTLS trusts the certificates in PEM, and takes a node's certificate when it is valid for the DNS name. It is nil when
// there is no certificate in PEM.
func NewTLS(trusted []byte, name string) *TLS {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trusted) {
		return nil
	}
	return &TLS{trusted: pool, name: name}
}

// Named is the same for nodes whose certificates are for another name.
func (t *TLS) Named(name string) *TLS { return &TLS{trusted: t.trusted, name: name, shows: t.shows} }

// Showing is the same, with a certificate for nodes that ask for one: whichever is the one of the moment, nil for none. It must be safe to
// call at any time.
func (t *TLS) Showing(shows func() *tls.Certificate) *TLS {
	return &TLS{trusted: t.trusted, name: t.name, shows: shows}
}

// Verify says why a node's certificate would not be taken at that time, for each of these uses.
func (t *TLS) Verify(pair tls.Certificate, now time.Time, uses ...x509.ExtKeyUsage) error {
	others := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if certificate, err := x509.ParseCertificate(der); err == nil {
			others.AddCert(certificate)
		}
	}
	options := x509.VerifyOptions{Roots: t.trusted, Intermediates: others, DNSName: t.name, CurrentTime: now}
	for _, use := range uses {
		options.KeyUsages = []x509.ExtKeyUsage{use}
		if _, err := pair.Leaf.Verify(options); err != nil {
			return err
		}
	}
	return nil
}

// wrap makes a connection encrypted. It never falls back.
func (t *TLS) wrap(ctx context.Context, conn net.Conn) (*tls.Conn, error) {
	config := &tls.Config{RootCAs: t.trusted, ServerName: t.name, MinVersion: tls.VersionTLS12}
	if t.shows != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if shown := t.shows(); shown != nil {
				return shown, nil
			}
			return &tls.Certificate{}, nil // none, and the node decides
		}
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS: %w", err), conn.Close())
	}
	return secure, nil
}

// Fingerprint identifies a certificate: SHA-256 of its DER, in hex.
func Fingerprint(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// Certificate is what the node shows to a new connection.
func (n *Node) Certificate(ctx context.Context) (*x509.Certificate, error) {
	secured := n.key.credentials.TLS
	c := command{name: "TLS"}
	if secured == nil {
		return nil, n.failed(ctx, c, errors.New("the node is reached without TLS"))
	}
	ctx, cancel := context.WithTimeout(ctx, n.pool.options.DialTimeout)
	defer cancel()
	conn, err := n.pool.options.Dialer(ctx, n.key.addr)
	if err != nil {
		return nil, n.failed(ctx, c, err)
	}
	secure, err := secured.wrap(ctx, conn)
	if err != nil {
		return nil, n.failed(ctx, c, err)
	}
	defer func() { _ = secure.Close() }() // nothing was sent
	return secure.ConnectionState().PeerCertificates[0], nil
}

// ReloadCertificates makes the node read its certificate, key and trusted certificates again, of which path is the first.
// Connections that are open stay. The engines load all three when one is set, to the value that it has too.
func (n *Node) ReloadCertificates(ctx context.Context, path string) error {
	return n.ConfigSet(ctx, "tls-cert-file", path)
}

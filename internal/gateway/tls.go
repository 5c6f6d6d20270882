// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// certificate is what clients are shown, from two files.
type certificate struct {
	certFile, keyFile string
	text              []byte
	pair              atomic.Pointer[tls.Certificate]
}

// refresh reads the files. With what cannot be used, what was there stays.
func (c *certificate) refresh() error {
	cert, err := os.ReadFile(c.certFile)
	key, keyErr := os.ReadFile(c.keyFile)
	if err := errors.Join(err, keyErr); err != nil {
		return fmt.Errorf("the certificate for clients: %w", err)
	}
	text := append(cert, key...)
	if bytes.Equal(text, c.text) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // a file is newer than the other
		return fmt.Errorf("the certificate for clients: %w", err)
	}
	c.text = text
	c.pair.Store(&pair)
	return nil
}

// config is that of a port, whose certificate is the one of the moment, and which leads somewhere for a server name. Sessions are resumed
// at the same gateway: keys of tickets are of the process, and change every day.
func (c *certificate) config(leads func(server string) bool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if !leads(hello.ServerName) {
				return nil, nil //nolint:nilnil // the client is told that the name is not known
			}
			return c.pair.Load(), nil
		},
	}
}

// authority is who signs the certificates of instances, from a file.
type authority struct {
	file, serverName string
	text             []byte
	client           atomic.Pointer[tls.Config]
}

func (a *authority) refresh() error {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("the authority of instances: %w", err)
	}
	if bytes.Equal(text, a.text) {
		return nil
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return fmt.Errorf("the authority of instances: %s has no certificate in PEM", a.file)
	}
	a.text = text
	a.client.Store(&tls.Config{RootCAs: trusted, ServerName: a.serverName, MinVersion: tls.VersionTLS12})
	return nil
}

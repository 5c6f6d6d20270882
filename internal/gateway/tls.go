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

// certificate is what clients or instances are shown, from two files.
type certificate struct {
	what              string // it is, for people
	certFile, keyFile string
	text              []byte
	pair              atomic.Pointer[tls.Certificate]
	clients           *authority // of the certificates that clients have to show; nil: none is asked for
}

// refresh reads the files. With what cannot be used, what was there stays, of that alone.
func (c *certificate) refresh() error {
	var err error
	if c.clients != nil {
		err = c.clients.refresh()
	}
	return errors.Join(err, c.load())
}

func (c *certificate) load() error {
	cert, err := os.ReadFile(c.certFile)
	key, keyErr := os.ReadFile(c.keyFile)
	if err := errors.Join(err, keyErr); err != nil {
		return fmt.Errorf("%s: %w", c.what, err)
	}
	text := append(cert, key...)
	if bytes.Equal(text, c.text) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil { // a file is newer than the other
		return fmt.Errorf("%s: %w", c.what, err)
	}
	c.text = text
	c.pair.Store(&pair)
	return nil
}

// config is that of a port, whose certificate is the one of the moment, and which leads somewhere for a server name. Sessions are resumed
// at the same gateway: keys of tickets are of the process, and change every day.
func (c *certificate) config(leads func(server string) bool) *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if !leads(hello.ServerName) {
				return nil, nil //nolint:nilnil // the client is told that the name is not known
			}
			return c.pair.Load(), nil
		},
	}
	if c.clients != nil {
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			asks := config.Clone()
			asks.GetConfigForClient = nil
			asks.ClientAuth, asks.ClientCAs = tls.RequireAndVerifyClientCert, c.clients.client.Load().RootCAs
			return asks, nil
		}
	}
	return config
}

// authority is who signs the certificates of instances, or of clients, from a file.
type authority struct {
	what             string // it is, for people
	file, serverName string
	text             []byte
	client           atomic.Pointer[tls.Config]
	shows            *certificate // to instances that ask for one; nil: nothing
}

// refresh reads the files, as that of a certificate does.
func (a *authority) refresh() error {
	var err error
	if a.shows != nil {
		err = a.shows.refresh()
	}
	return errors.Join(err, a.load())
}

func (a *authority) load() error {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("%s: %w", a.what, err)
	}
	if bytes.Equal(text, a.text) {
		return nil
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s: %s has no certificate in PEM", a.what, a.file)
	}
	a.text = text
	config := &tls.Config{RootCAs: trusted, ServerName: a.serverName, MinVersion: tls.VersionTLS12}
	if a.shows != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.shows.pair.Load(), nil }
	}
	a.client.Store(config)
	return nil
}

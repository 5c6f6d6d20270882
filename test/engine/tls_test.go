// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

const certifiedName = "any.cache-nodes.shop.svc"

// authority issues certificates.
type authority struct {
	t           testing.TB
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
	issued      int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "engine test"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	return &authority{t: t, certificate: certificate, key: key, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		issued: 1}
}

// issue writes a new certificate for *.cache-nodes.shop.svc, *.redis.example.com, instances of an operated cluster, and addresses, and
// its key to the directory, and returns its fingerprint.
func (a *authority) issue(dir string, addresses ...net.IP) string {
	a.t.Helper()
	a.issued++
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(a.issued), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		DNSNames:    []string{"*.cache-nodes.shop.svc", "*.redis.example.com", "*.c-nodes.engines.svc"},
		IPAddresses: addresses, KeyUsage: x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	must(a.t, err)
	certificate, err := x509.ParseCertificate(der)
	must(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	for name, data := range map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), "ca.crt": a.pem,
	} {
		must(a.t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return redis.Fingerprint(certificate)
}

func (a *authority) trusted(name string) *redis.TLS {
	a.t.Helper()
	return redis.NewTLS(a.pem, name)
}

// clients is how clients trust it.
func (a *authority) clients() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	return &tls.Config{RootCAs: roots, ServerName: certifiedName, MinVersion: tls.VersionTLS12}
}

// startEncrypted runs a server in cluster mode with the TLS settings of the chart.
func startEncrypted(t testing.TB, e engine, pool *redis.Pool, dir string, secured *redis.TLS) *server {
	t.Helper()
	busPort := freePort(t)
	s := &server{t: t, engine: e, busPort: busPort, secured: secured}
	s.settings = append(clusterMode(busPort), "--tls-cluster", "yes", "--tls-replication", "yes", "--tls-auth-clients", "optional",
		"--tls-cert-file", filepath.Join(dir, "tls.crt"), "--tls-key-file", filepath.Join(dir, "tls.key"), "--tls-ca-cert-file",
		filepath.Join(dir, "ca.crt"))
	return startWith(t, pool, s)
}

// A cluster with TLS forms, replicates, moves slots and loads a renewed certificate under load; nobody reaches it otherwise.
func TestEncryptedCluster(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		ctx, dir, ca := t.Context(), t.TempDir(), newAuthority(t)
		first := ca.issue(dir)
		secured := ca.trusted(certifiedName)
		c := startClusterOf(t, newPool(t), 3, 2, 3, func(pool *redis.Pool) *server { return startEncrypted(t, e, pool, dir, secured) })
		c.tls = ca.clients()
		load := startLoad(c)

		moving := slots.Range(100, 299)
		ways := []mover{reshard.Classic}
		if c.view(0).Atomic != slots.AtomicNone {
			ways = append(ways, reshard.Atomic)
		}
		for _, way := range ways {
			complete(t, way, reshard.Options{}, c.move(0, 2, moving))
			complete(t, way, reshard.Options{}, c.move(2, 0, moving))
		}

		shown := func(i int) string {
			certificate, err := c.node(i).Certificate(ctx)
			must(t, err)
			return redis.Fingerprint(certificate)
		}
		renewed := ca.issue(dir)
		for i := range c.servers {
			if got := shown(i); got != first {
				t.Errorf("%s shows %s before it is told, want %s", c.node(i), got, first)
			}
			must(t, c.node(i).ReloadCertificates(ctx, filepath.Join(dir, "tls.crt")))
			if got := shown(i); got != renewed {
				t.Errorf("%s shows %s after it was told, want %s", c.node(i), got, renewed)
			}
		}
		c.servers[3].kill()
		c.servers[3].run()
		eventually(t, func() error { return inSync(t, c.node(3), c.ids[0]) })
		load.end()

		for name, credentials := range map[string]redis.Credentials{
			"without TLS":            {Password: password},
			"by another authority":   {Password: password, TLS: newAuthority(t).trusted(certifiedName)},
			"under another's name":   {Password: password, TLS: ca.trusted("any.other-nodes.shop.svc")},
			"without the right word": {Password: "guessed", TLS: secured},
		} {
			err := newPool(t).Node(c.servers[0].addr(), credentials).Ping(ctx)
			if !errors.Is(err, redis.ErrUnreachable) && !errors.Is(err, redis.ErrAuth) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// portSettings are on what port the server listens.
func (s *server) portSettings() []string {
	if s.secured == nil {
		return []string{"--port", strconv.Itoa(s.port)}
	}
	return []string{"--port", "0", "--tls-port", strconv.Itoa(s.port)}
}

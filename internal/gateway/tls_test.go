// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// issue writes a certificate that signs itself, for names, and returns who trusts it.
func issue(t testing.TB, cert, key string, names ...string) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IsCA: true,
		BasicConstraintsValid: true}
	text, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: text}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		trusted.AppendCertsFromPEM(pem.EncodeToMemory(block))
	}
	return trusted
}

// One port leads to all instances, by the name that a client wants; another name is refused, and sessions are resumed.
func TestServerNames(t *testing.T) {
	dir, port, own := t.TempDir(), free(t), free(t)
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	trusted := issue(t, cert, key, "*.example.com")
	var instances []Instance
	for n, name := range []string{"a", "b", "c"} {
		i := startInstance(t, map[string]string{"PING": "+" + name + "\r\n"})
		i.answers["GET"] = "-MOVED 1 " + i.Addr().String() + "\r\n"
		instance := Instance{Name: name, Outside: fmt.Sprintf("%s.example.com:6379", name), Inside: []string{i.Addr().String()}}
		if n == 2 {
			instance.Port = own
		}
		instances = append(instances, instance)
	}
	// With one port for all, the file has that as well.
	path := filepath.Join(dir, "map.json")
	writeWhole(t, path, Map{Port: port, Instances: instances})
	g := startGateway(t, func(o *Options) { o.MapFile, o.CertFile, o.KeyFile = path, cert, key })
	sessions := tls.NewLRUClientSessionCache(8)
	dial := func(port uint16, server string) (*tls.Conn, error) {
		return tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{RootCAs: trusted, ServerName: server, ClientSessionCache: sessions,
			MinVersion: tls.VersionTLS12})
	}
	for _, tc := range []struct {
		port         uint16
		server, want string
	}{{port, "a.example.com", "a"}, {port, "B.example.com", "b"}, {own, "c.example.com", "c"}, {own, "a.example.com", "c"}} {
		for resumed := range 2 {
			conn, err := dial(tc.port, tc.server)
			if err != nil {
				t.Fatal(tc.server, err)
			}
			in := bufio.NewReader(conn)
			if got, err := ask(conn, in, "PING\r\n"); got != "+"+tc.want+"\r\n" {
				t.Errorf("%s leads to %q, %v", tc.server, got, err)
			}
			if got, err := ask(conn, in, "GET a\r\n"); got != "-MOVED 1 "+tc.want+".example.com:6379\r\n" {
				t.Errorf("%s: a redirection is %q, %v", tc.server, got, err)
			}
			if resumed == 1 && !conn.ConnectionState().DidResume {
				t.Errorf("%s: a session is not resumed", tc.server)
			}
			_ = conn.Close()
		}
	}
	for _, server := range []string{"c.example.com", "x.example.com"} {
		if _, err := dial(port, server); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%s: %v", server, err)
		}
	}
	eventually(t, func() bool { return g.figures.refused[noHandshake].Load() == 2 })
	// A name that is taken out of the map leads nowhere, also with a session from before.
	writeWhole(t, path, Map{Port: port, Instances: instances[:1]})
	eventually(t, func() bool {
		conn, err := dial(port, "b.example.com")
		if err != nil {
			return true
		}
		defer func() { _ = conn.Close() }()
		_, err = ask(conn, bufio.NewReader(conn), "PING\r\n")
		return err != nil
	})
	// Without TLS nobody can be told apart.
	o := g.options
	o.CertFile = ""
	if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the map: port:") {
		t.Error(err)
	}
}

// What cannot be used holds back nothing else: a list of CAs that is broken does not make a certificate expire that was renewed, nor the
// other way round.
func TestWhatIsRenewedIsLoaded(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	issue(t, file("tls.crt"), file("tls.key"), "a")
	issue(t, file("ca.crt"), file("ca.key"), "ca")
	outside := &certificate{what: "the certificate for clients", certFile: file("tls.crt"), keyFile: file("tls.key"),
		clients: &authority{what: "the authority of clients", file: file("ca.crt")}}
	inside := &authority{what: "the authority of instances", file: file("ca.crt"),
		shows: &certificate{what: "the certificate for instances", certFile: file("tls.crt"), keyFile: file("tls.key")}}
	refresh := func() error { return errors.Join(outside.refresh(), inside.refresh()) }
	if err := refresh(); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, shown := outside.pair.Load(), inside.shows.pair.Load()
	write("ca.crt", "broken")
	issue(t, file("tls.crt"), file("tls.key"), "b")
	if err := refresh(); err == nil || !strings.Contains(err.Error(), "the authority of clients") ||
		!strings.Contains(err.Error(), "the authority of instances") {
		t.Error(err)
	}
	if outside.pair.Load() == pair || inside.shows.pair.Load() == shown {
		t.Error("a renewed certificate was not loaded beside CAs that are broken")
	}
	clients, instances := outside.clients.client.Load(), inside.client.Load()
	issue(t, file("ca.crt"), file("ca.key"), "other")
	write("tls.crt", "broken")
	if err := refresh(); err == nil || !strings.Contains(err.Error(), "the certificate for clients") ||
		!strings.Contains(err.Error(), "the certificate for instances") {
		t.Error(err)
	}
	if outside.clients.client.Load() == clients || inside.client.Load() == instances {
		t.Error("CAs were not loaded beside a certificate that is broken")
	}
}
